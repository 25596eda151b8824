/* SPDX-License-Identifier: Apache-2.0 */
#include "kubesim/kubelet_loop.h"

#include "base/time_text.h"

#include <time.h>

struct kubelet_loop {
    struct kubelet_attach *attach;
    struct http_front *front;
    uv_timer_t timer;
};

static int64_t wall_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * US_PER_S + now.tv_nsec / 1000;
}

static void on_timer(uv_timer_t *timer);

static void set_timer(struct kubelet_loop *kubelet)
{
    int64_t next_us = kubelet_attach_next_us(kubelet->attach);
    uv_timer_stop(&kubelet->timer);
    if (next_us == INT64_MAX)
        return;
    int64_t wait_us = MAX(next_us - wall_us(), 0);
    uv_timer_start(&kubelet->timer, on_timer, (uint64_t)((wait_us + US_PER_MS - 1) / US_PER_MS), 0);
}

static void on_timer(uv_timer_t *timer)
{
    struct kubelet_loop *kubelet = timer->data;
    kubelet_attach_tick(kubelet->attach, wall_us());
    http_front_pump(kubelet->front);
    set_timer(kubelet);
}

/* From within a request: only the timer may be set. */
static void on_wake(void *context)
{
    struct kubelet_loop *kubelet = context;
    uv_timer_start(&kubelet->timer, on_timer, 0, 0);
}

struct kubelet_loop *kubelet_loop_start(uv_loop_t *loop, struct kubesim *sim, struct http_front *front,
                                        const struct kubelet_options *options)
{
    struct kubelet_loop *kubelet = xcalloc(1, sizeof(*kubelet));
    kubelet->front = front;
    uv_timer_init(loop, &kubelet->timer);
    kubelet->timer.data = kubelet;
    kubelet->attach = kubelet_attach_make(sim, options, wall_us(), on_wake, kubelet);
    set_timer(kubelet);
    return kubelet;
}

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void kubelet_loop_stop(struct kubelet_loop *kubelet)
{
    if (!kubelet)
        return;
    kubelet_attach_free(kubelet->attach);
    uv_close((uv_handle_t *)&kubelet->timer, on_closed);
}
