/* SPDX-License-Identifier: Apache-2.0
 *
 * Just enough of an HTTP/2 server (RFC 9113): it does not decode the request's headers, and answers from the
 * static table. Flow control is not looked at: answers are a few bytes. */
#include "hostile_server.h"

enum {
    FRAME_DATA = 0,
    FRAME_HEADERS = 1,
    FRAME_RST_STREAM = 3,
    FRAME_SETTINGS = 4,
    FRAME_PING = 6,
    FRAME_WINDOW_UPDATE = 8,
    FLAG_ACK = 1,
    FLAG_END_STREAM = 1,
    FLAG_END_HEADERS = 4,
    SETTING_STREAMS_MAX = 3,
    REFUSED_STREAM = 7,
    OPEN_MAX = 1024,
};

struct frame {
    uint8_t type;
    uint8_t flags;
    uint32_t stream;
    uint32_t length;
    uint8_t payload[16384];
};

struct h2 {
    struct hostile_connection *connection;
    const struct hostile_h2 *options;
    size_t streams; /* whose request is whole */
    size_t answered;
    uint32_t open[OPEN_MAX]; /* waiting for their answer */
    size_t open_count;
};

static bool send_frame(struct h2 *h2, uint8_t type, uint8_t flags, uint32_t stream, const void *payload,
                       size_t length)
{
    uint8_t frame[9 + 64];
    PRE(length <= 64);
    const uint8_t head[9] = {0,
                             (uint8_t)(length >> 8),
                             (uint8_t)length,
                             type,
                             flags,
                             (uint8_t)(stream >> 24),
                             (uint8_t)(stream >> 16),
                             (uint8_t)(stream >> 8),
                             (uint8_t)stream};
    memcpy(frame, head, sizeof(head));
    if (length)
        memcpy(frame + 9, payload, length);
    return hostile_send(h2->connection, (const char *)frame, 9 + length);
}

static bool read_frame(struct h2 *h2, struct frame *frame)
{
    uint8_t head[9];
    if (!hostile_read(h2->connection, head, sizeof(head)))
        return false;
    frame->length = (uint32_t)head[0] << 16 | (uint32_t)head[1] << 8 | head[2];
    frame->type = head[3];
    frame->flags = head[4];
    frame->stream =
        ((uint32_t)head[5] << 24 | (uint32_t)head[6] << 16 | (uint32_t)head[7] << 8 | head[8]) & 0x7FFFFFFF;
    return frame->length <= sizeof(frame->payload) &&
           hostile_read(h2->connection, frame->payload, frame->length);
}

static bool send_settings(struct h2 *h2)
{
    unsigned max = h2->options->streams_max ? h2->options->streams_max : 100;
    const uint8_t setting[6] = {
        0,           SETTING_STREAMS_MAX, (uint8_t)(max >> 24), (uint8_t)(max >> 16), (uint8_t)(max >> 8),
        (uint8_t)max};
    return send_frame(h2, FRAME_SETTINGS, 0, 0, setting, sizeof(setting));
}

/* ":status: 200" is entry 8 of the static table. */
static bool answer(struct h2 *h2, uint32_t stream)
{
    static const uint8_t ok[] = {0x88};
    h2->answered++;
    return send_frame(h2, FRAME_HEADERS, FLAG_END_HEADERS, stream, ok, sizeof(ok)) &&
           send_frame(h2, FRAME_DATA, FLAG_END_STREAM, stream, "ok", 2);
}

static bool answer_open(struct h2 *h2)
{
    bool good = true;
    for (size_t i = 0; i < h2->open_count && good; i++)
        good = h2->answered >= h2->options->answer_first || answer(h2, h2->open[i]);
    h2->open_count = 0;
    return good;
}

static bool take_stream(struct h2 *h2, uint32_t stream)
{
    hostile_keep_request(h2->connection, "h2");
    if (++h2->streams == h2->options->close_at)
        return false;
    if (h2->options->refuse_first && h2->streams == 1 && hostile_number(h2->connection) == 0) {
        static const uint8_t code[4] = {0, 0, 0, REFUSED_STREAM};
        return send_frame(h2, FRAME_RST_STREAM, 0, stream, code, sizeof(code));
    }
    ENSURE(h2->open_count < OPEN_MAX);
    h2->open[h2->open_count++] = stream;
    return h2->open_count < h2->options->hold_until || answer_open(h2);
}

static bool take_frame(struct h2 *h2, const struct frame *frame)
{
    bool ack = frame->flags & FLAG_ACK;
    switch (frame->type) {
    case FRAME_SETTINGS:
        return ack || send_frame(h2, FRAME_SETTINGS, FLAG_ACK, 0, NULL, 0);
    case FRAME_PING:
        return ack || send_frame(h2, FRAME_PING, FLAG_ACK, 0, frame->payload, 8);
    case FRAME_HEADERS:
    case FRAME_DATA:
        return !(frame->flags & FLAG_END_STREAM) || take_stream(h2, frame->stream);
    default:
        return true;
    }
}

void hostile_serve_h2(struct hostile_connection *connection, const struct hostile_h2 *options)
{
    struct h2 h2 = {.connection = connection, .options = options};
    char preface[24];
    if (!hostile_read(connection, preface, sizeof(preface)) || memcmp(preface, "PRI * HTTP/2.0", 14) != 0)
        return;
    if (!send_settings(&h2))
        return;
    struct frame *frame = xcalloc(1, sizeof(*frame));
    while (read_frame(&h2, frame) && take_frame(&h2, frame))
        ;
    free(frame);
}
