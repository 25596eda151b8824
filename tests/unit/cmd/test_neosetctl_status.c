/* SPDX-License-Identifier: Apache-2.0
 *
 * What a person sees: one set as a picture of its pods, in each phase. tests/golden/neosetctl/status-*.txt
 * (GOLDEN_UPDATE=1 writes them anew). */
#include "set_objects.h"

#include "cmd/neosetctl/follow.h"
#include "cmd/neosetctl/picture.h"
#include "cmd/neosetctl/report.h"

#define UPDATED_AT_07_58                                                                                     \
    ",'annotations':{'apps.neo.io/in-place-state':'{\\\"at\\\":\\\"2026-11-30T07:58:00Z\\\",\\\"target\\\":" \
    "\\\"mysql-new\\\",\\\"containers\\\":{\\\"mysql\\\":{\\\"image\\\":\\\"mysql:8.0\\\","                  \
    "\\\"containerID\\\":\\\"a\\\"}"                                                                         \
    "}}'}"
#define NOT_READY_POD                                                                                        \
    "'phase':'Running','conditions':[{'type':'Ready','status':'False','lastTransitionTime':"                 \
    "'2026-11-30T07:59:00Z'}],'containerStatuses':[{'name':'mysql','ready':false,'started':true,"            \
    "'restartCount':1,'state':{'running':{}}}]"
#define BROKEN_POD                                                                                           \
    "'phase':'Running','conditions':[{'type':'Ready','status':'False','lastTransitionTime':"                 \
    "'2026-11-30T07:58:20Z'}],'containerStatuses':[{'name':'mysql','ready':false,'restartCount':0,'state':"  \
    "{'waiting':{'reason':'ImagePullBackOff','message':'Back-off pulling image mysql:8.1'}}}]"
#define DRAINED_POD                                                                                          \
    "'phase':'Running','conditions':[{'type':'Ready','status':'False'},{'type':"                             \
    "'apps.neo.io/in-place-ready','status':'False','reason':'Updating','lastTransitionTime':"                \
    "'2026-11-30T07:59:55Z'}],'containerStatuses':[{'name':'mysql','ready':true,'state':{'running':{}}}]"

/* One letter a pod, ordinal 0 first: O old and ready, T target and ready, u being updated, b broken on the
 * target, d drained for its update, D likewise and new, c in a crash loop on the target, x terminating,
 * S still a StatefulSet's, f nobody's, m missing. */
#define CRASHING_POD                                                                                         \
    "'phase':'Running','conditions':[{'type':'Ready','status':'False','lastTransitionTime':"                 \
    "'2026-11-30T07:59:00Z'}],'containerStatuses':[{'name':'mysql','ready':false,'restartCount':3,'state':"  \
    "{'waiting':{'reason':'CrashLoopBackOff','message':'back-off 40s restarting failed container'}}}]"

/* A pod of the StatefulSet that is being adopted, or of nobody. */
static cJSON *foreign_pod(int ordinal, const char *owner_kind)
{
    cJSON *pod = pod_of(ordinal, "old", "mysql:8.0", "", READY_POD);
    cJSON *reference = json_path(pod, "metadata", "ownerReferences", NULL)->child;
    if (owner_kind) {
        json_set_str(reference, "kind", owner_kind);
        json_set_str(reference, "uid", "s1");
    } else {
        json_remove(json_get(pod, "metadata"), "ownerReferences");
    }
    return pod;
}

static cJSON *pods_of(const char *letters)
{
    cJSON *pods = json_new_array();
    for (int ordinal = 0; letters[ordinal]; ordinal++) {
        switch (letters[ordinal]) {
        case 'O':
            json_append_item(pods, pod_of(ordinal, "old", "mysql:8.0", "", READY_POD));
            break;
        case 'd':
            json_append_item(pods, pod_of(ordinal, "old", "mysql:8.0", "", DRAINED_POD));
            break;
        case 'D':
            json_append_item(pods, pod_of(ordinal, "new", "mysql:8.1", UPDATED_AT_07_58, DRAINED_POD));
            break;
        case 'T':
            json_append_item(pods, pod_of(ordinal, "new", "mysql:8.1", UPDATED_AT_07_58, READY_POD));
            break;
        case 'u':
            json_append_item(pods, pod_of(ordinal, "new", "mysql:8.1", UPDATED_AT_07_58, NOT_READY_POD));
            break;
        case 'b':
            json_append_item(pods, pod_of(ordinal, "new", "mysql:8.1", UPDATED_AT_07_58, BROKEN_POD));
            break;
        case 'c':
            json_append_item(pods, pod_of(ordinal, "new", "mysql:8.1", UPDATED_AT_07_58, CRASHING_POD));
            break;
        case 'S':
            json_append_item(pods, foreign_pod(ordinal, "StatefulSet"));
            break;
        case 'f':
            json_append_item(pods, foreign_pod(ordinal, NULL));
            break;
        case 'x':
            json_append_item(pods, pod_of(ordinal, "old", "mysql:8.0",
                                          ",'deletionTimestamp':'2026-11-30T08:00:30Z'", READY_POD));
            break;
        default:
            break;
        }
    }
    return pods;
}

#define ROLL(phase, ready, updated, available, stage, done, message)                                         \
    ROLL_TO("mysql-new", "mysql:8.1", phase, ready, updated, available, stage, done, message)
#define ROLL_TO(target, image, phase, ready, updated, available, stage, done, message)                       \
    "'observedGeneration':2,'replicas':5,'readyReplicas':" #ready ",'updatedReplicas':" #updated             \
    ",'availableReplicas':" #available ",'phase':'" phase                                                    \
    "','currentImage':'mysql:8.0','targetImage':'" image "','currentPartition':" #stage                      \
    ",'currentRevisionName':'mysql-old','updateRevisionName':'" target "','effectiveMaxUnavailable':1,"      \
    "'doneOrdinals':[" done "],'message':'" message "'"
#define REST(phase, revision, image, count, message)                                                         \
    "'observedGeneration':2,'replicas':" #count ",'readyReplicas':" #count ",'updatedReplicas':" #count      \
    ",'availableReplicas':" #count ",'phase':'" phase "','currentImage':'" image "','targetImage':'" image   \
    "','currentPartition':0,'currentRevisionName':'" revision "','updateRevisionName':'" revision            \
    "','effectiveMaxUnavailable':1,'message':'" message "'"

struct scene {
    const char *name;
    int replicas;
    const char *strategy;
    const char *status;
    const char *pods;
    size_t columns; /* of the terminal; 0: a pipe */
    bool is_settled;
    bool is_adopting;
    const char *away;      /* what its Lease says of the controller */
    const char *recreates; /* why pods are re-created */
    int64_t generation;    /* 0: the one that was looked at */
};

static const struct scene scenes[] = {
    {"idle", 3, "'partition':0", REST("Idle", "mysql-old", "mysql:8.0", 3, "all 3 pods run mysql:8.0."),
     "OOO", .is_settled = true},
    {"canary", 5, "'partition':0",
     ROLL("Canary", 4, 0, 4, 4, "", "mysql-4 is patched; its container mysql is not up yet."),
     .pods = "OOOOu"},
    {"draining", 5, "'partition':0", ROLL("Canary", 4, 0, 4, 4, "", "mysql-4 is being updated."),
     .pods = "OOOOd"},
    {"rolling-out", 5, "'partition':0",
     "'currentUpdatePod':'mysql-3'," ROLL("RollingOut", 4, 1, 4, 3, "4",
                                          "mysql-3 is updated, and not ready."),
     .pods = "OOOuT"},
    {"paused", 5, "'partition':0,'pause':true",
     ROLL("Paused", 4, 1, 4, 3, "4", "paused: set spec.updateStrategy.pause to false to let updates begin."),
     .pods = "OOOuT"},
    {"failed", 5, "'partition':0",
     ROLL("Failed", 4, 1, 4, 3, "4",
          "mysql-3 is updated, and does not come up: mysql waits: ImagePullBackOff. It had 330 s; no other "
          "pod "
          "is updated until it comes up, or a new template is applied."),
     "OOObT", .columns = 80},
    {"completed", 3, "'partition':0",
     REST("Completed", "mysql-new", "mysql:8.1", 3, "all 3 pods run mysql:8.1."), "TTT", .is_settled = true},
    {"held", 5, "'partition':3",
     ROLL("RollingOut", 5, 2, 5, 3, "3,4", "3 pods held back by partition 3: lower it to go on."), "OOOTT",
     .columns = 80, .is_settled = true},
    {"held-before-the-first", 5, "'partition':4",
     ROLL("Canary", 5, 0, 5, 4, "", "mysql-4 is updated once mysql:8.1 is on node a; so far: not found."),
     "OOOOO", .columns = 80},
    {"held-in-the-middle", 5, "'partition':1",
     ROLL("RollingOut", 5, 2, 5, 3, "4", "mysql-3 is ready; it counts as available when it stays so."),
     "OOOTT", .columns = 80},
    {"way-back", 5, "'partition':0",
     ROLL_TO("mysql-old", "mysql:8.0", "RollingOut", 4, 4, 4, 3, "0,1,2,3", "mysql-4 is being updated."),
     .pods = "OOOOD"},
    {"scaling", 5, "'partition':0", REST("Idle", "mysql-old", "mysql:8.0", 3, "3 of 5 pods are available."),
     .pods = "OOOm"},
    {"terminating", 3, "'partition':0",
     REST("Idle", "mysql-old", "mysql:8.0", 2, "2 of 3 pods are available."), .pods = "OOx"},
    {"no-pods", 0, "'partition':0", REST("Idle", "mysql-old", "mysql:8.0", 0, "no pod is asked for."), "",
     .columns = 80, .is_settled = true},
    {"new", 3, "'partition':0", "", "", .columns = 80},
    {"hundred", 100, "'partition':10",
     "'currentUpdatePod':'mysql-61'," ROLL(
         "RollingOut", 97, 36, 97, 61,
         "63,64,65,66,67,68,69,70,71,72,73,74,75,"
         "76,77,78,79,80,81,82,83,84,85,86,87,88,89,90,91,92,93,94,95,96,97,98,99",
         "mysql-61 is updated, and does not come up: mysql waits: ImagePullBackOff."),
     "OOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOObuTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTx",
     .columns = 80},
    {"crash-loop", 5, "'partition':0",
     ROLL("RollingOut", 4, 1, 4, 3, "4", "mysql-3 is updated, and does not come up."), "OOOcT",
     .columns = 80},
    {"recreated", 5, "'partition':0",
     ROLL("RollingOut", 4, 1, 4, 3, "4", "mysql-3 is updated, and not ready."), "OOOuT", .columns = 80,
     .recreates = "spec.containers[mysql].env changes"},
    {"adopting", 3, "'partition':0,'pause':true",
     "'observedGeneration':2,'replicas':0,'phase':'Paused','message':'waits for the pods of the "
     "StatefulSet.'",
     "SSf", .columns = 80, .is_adopting = true},
    {"changed", 3, "'partition':0",
     REST("Completed", "mysql-new", "mysql:8.1", 3, "all 3 pods run mysql:8.1."), "TTT", .columns = 80,
     .generation = 3},
    {"away", 5, "'partition':0", ROLL("RollingOut", 4, 1, 4, 3, "4", "mysql-3 is updated, and not ready."),
     "OOOuT", .columns = 80,
     .away = "it was last seen at 2026-11-30T07:48:00Z as neoset-0 (renewing Lease neoset-system/neoset, "
             "every 5 s)"},
};

static cJSON *set_of_scene(const struct scene *scene)
{
    cJSON *object = set_of(scene->strategy, scene->status);
    json_set_item(json_get(object, "spec"), "replicas", json_new_int64(scene->replicas));
    if (scene->is_adopting)
        json_add_str(json_add_object(json_get(object, "metadata"), "annotations"), "apps.neo.io/adopts",
                     "s1");
    return object;
}

static void make_picture(const struct scene *scene, struct ctl_picture *ret)
{
    *ret = (struct ctl_picture){
        .object = set_of_scene(scene), .pod_objects = pods_of(scene->pods), .at_us = NOW_US};
    set_view_make(ret->object, &ret->set);
    ret->set.generation = scene->generation > 0 ? scene->generation : ret->set.generation;
    ret->set.away = scene->away;
    ret->set.away_next = scene->away ? "kubectl get lease,pods -n neoset-system   (start it again)" : NULL;
    ret->set.seen_us = NOW_US - 12 * 60 * US_PER_S;
    ret->set.recreates = scene->recreates;
    pod_views_make(&ret->set, ret->pod_objects, NOW_US, &ret->pods);
}

static struct sheet_look look_of(const struct scene *scene)
{
    return (struct sheet_look){.format = SHEET_TABLE,
                               .is_terminal = scene->columns > 0,
                               .columns = scene->columns > 0 ? scene->columns : 100};
}

/* --- the picture --- */

static char *status_of(struct history *history, const struct scene *scene, const struct sheet_look *look)
{
    struct ctl_picture picture;
    make_picture(scene, &picture);
    assert_int_equal(ctl_report_status(&history->out, look, &picture.set, &picture.pods, NOW_US, NULL, NULL),
                     0);
    ctl_picture_done(&picture);
    assert_int_equal(out_flush(&history->out, NULL), 0);
    return history_take(history);
}

static void expect_width(const char *text, size_t columns)
{
    while (*text) {
        size_t length = strcspn(text, "\n");
        if (length > columns)
            fail_msg("%zu columns: %.*s", length, (int)length, text);
        text += length + (text[length] == '\n');
    }
}

static void each_phase_is_a_picture_of_its_pods(void **state)
{
    struct history *history = *state;
    for (size_t i = 0; i < ARRAY_SIZE(scenes); i++) {
        struct sheet_look look = look_of(&scenes[i]);
        char *text = status_of(history, &scenes[i], &look);
        if (look.is_terminal)
            expect_width(text, look.columns);
        CLEANUP_FREE char *path = xasprintf("../neosetctl/status-%s.txt", scenes[i].name);
        expect_golden(history, text, path);
    }
}

static const struct scene *scene_named(const char *name)
{
    size_t found = 0;
    while (found < ARRAY_SIZE(scenes) - 1 && !str_equal(scenes[found].name, name))
        found++;
    assert_string_equal(scenes[found].name, name);
    return &scenes[found];
}

static void colours_say_nothing_of_their_own(void **state)
{
    struct history *history = *state;
    static const char *const names[] = {"failed", "hundred"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        struct sheet_look look = look_of(scene_named(names[i]));
        CLEANUP_FREE char *plain = status_of(history, scene_named(names[i]), &look);
        look.has_color = true;
        CLEANUP_FREE char *coloured = status_of(history, scene_named(names[i]), &look);
        assert_null(strchr(plain, '\x1b'));
        assert_non_null(strstr(coloured, "\x1b["));
        CLEANUP_BUF struct buf bare = BUF_INIT(1 << 20);
        for (const char *at = coloured; *at; at++) {
            if (*at == '\x1b')
                at += strcspn(at, "m");
            else
                buf_add_char(&bare, *at);
        }
        assert_string_equal(buf_text(&bare), plain);
        assert_int_equal(ctl_rows_of(coloured, 80), ctl_rows_of(plain, 80));
    }
}

static void wide_shows_each_pod(void **state)
{
    struct history *history = *state;
    struct sheet_look look = look_of(scene_named("hundred"));
    look.format = SHEET_WIDE;
    look.is_terminal = false;
    CLEANUP_FREE char *text = status_of(history, scene_named("hundred"), &look);
    assert_non_null(strstr(text, "\nmysql-99 "));
    assert_non_null(strstr(text, "\nmysql-0 "));
    assert_non_null(strstr(text, "\n---- stage 61: opened down to here ----\nmysql-60 "));
    assert_non_null(strstr(text, "\n==== partition 10: the pods below are held back ====\nmysql-9 "));
}

static void any_width_and_any_number_can_be_drawn(void **state)
{
    struct history *history = *state;
    static const size_t columns[] = {1, 10, 40, 71, 72, 300};
    static const int replicas[] = {0, 1, 20, 21, 49, 50, 51, 101, 30000};
    for (size_t i = 0; i < ARRAY_SIZE(columns); i++) {
        for (size_t j = 0; j < ARRAY_SIZE(replicas); j++) {
            struct scene scene = *scene_named("hundred");
            scene.columns = columns[i];
            scene.replicas = replicas[j];
            struct sheet_look look = look_of(&scene);
            CLEANUP_FREE char *text = status_of(history, &scene, &look);
            assert_non_null(strstr(text, "Next: "));
        }
    }
}

/* A partition beyond the pods holds all of them back; it is told above them. */
static void marks_beyond_the_pods_are_told_above_them(void **state)
{
    struct history *history = *state;
    struct scene scene = *scene_named("hundred");
    scene.strategy = "'partition':200";
    struct sheet_look look = look_of(&scene);
    CLEANUP_FREE char *text = status_of(history, &scene, &look);
    assert_non_null(strstr(text, "  stage and partition 200\n"));
}

/* --- why --- */

static char *why_of(struct history *history, const struct scene *scene, struct audit *journal)
{
    struct ctl_picture picture;
    make_picture(scene, &picture);
    struct sheet_look look = {.format = SHEET_TABLE, .columns = 100};
    assert_int_equal(ctl_report_why(&history->out, &look, &picture.set, &picture.pods, NOW_US, journal, NULL),
                     0);
    ctl_picture_done(&picture);
    assert_int_equal(out_flush(&history->out, NULL), 0);
    return history_take(history);
}

static void the_first_sentence_is_the_cause(void **state)
{
    struct history *history = *state;
    static const struct {
        const char *name, *cause;
    } table[] = {
        {"idle", "mysql in prod does not stand still: nothing is waited for."},
        {"new", "mysql in prod stands where it stands because no controller has looked at it yet."},
        {"paused", "mysql in prod stands where it stands because it is paused: no update is started."},
        {"canary",
         "mysql in prod stands where it stands because mysql-4 is patched; its container mysql is not "
         "up yet."},
        {"failed",
         "mysql in prod stands where it stands because mysql-3 is updated, and does not come up: mysql "
         "waits: ImagePullBackOff. It had 330 s; no other pod is updated until it comes up, or a new "
         "template is applied."},
        {"hundred",
         "mysql in prod stands where it stands because mysql-61 does not come up: container mysql: "
         "ImagePullBackOff: Back-off pulling image mysql:8.1."},
        {"held",
         "mysql in prod stands where it stands because partition 3 holds back 3 pods, and all others are "
         "done."},
        {"held-before-the-first",
         "mysql in prod stands where it stands because mysql-4 is updated once mysql:8.1 is on "
         "node a; so far: not found."},
        {"scaling", "mysql in prod stands where it stands because 3 of 5 pods are available."},
        {"adopting",
         "mysql in prod stands where it stands because its adoption is not finished: a StatefulSet has its "
         "pods, or nobody has them yet."},
        {"away",
         "mysql in prod stands where it stands because no neoset-controller is at work: it was last seen at "
         "2026-11-30T07:48:00Z as neoset-0 (renewing Lease neoset-system/neoset, every 5 s)."},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        CLEANUP_FREE char *text = why_of(history, scene_named(table[i].name), NULL);
        if (!str_starts_with(text, table[i].cause) || text[strlen(table[i].cause)] != '\n')
            fail_msg("%s: %s", table[i].name, text);
    }
}

static void what_is_known_besides_is_told(void **state)
{
    struct history *history = *state;
    CLEANUP_FREE char *crash = why_of(history, scene_named("crash-loop"), NULL);
    assert_non_null(strstr(crash, "  its log    kubectl logs --previous -c mysql mysql-3 -n prod\n"));
    assert_non_null(strstr(crash, "\nNext: kubectl logs --previous -c mysql mysql-3 -n prod   ("));
    CLEANUP_FREE char *recreated = why_of(history, scene_named("recreated"), NULL);
    assert_non_null(
        strstr(recreated, "  revision   pods are re-created: spec.containers[mysql].env changes\n"));
    CLEANUP_FREE char *adopting = why_of(history, scene_named("adopting"), NULL);
    assert_non_null(strstr(adopting, "\nNext: neosetctl continue -n prod   ("));
}

static void pods_that_stand_in_line_are_counted(void **state)
{
    struct history *history = *state;
    CLEANUP_FREE char *text = why_of(history, scene_named("hundred"), NULL);
    assert_non_null(strstr(text, "  pods       51 of 100 wait for their turn\n"));
    assert_non_null(strstr(text, "  pods       10 of 100 are held back by partition 10\n"));
    assert_true(ctl_rows_of(text, 1000) < 15);
}

/* An open wait with its budget, a refusal, and a step whose answer was lost. */
static void append_a_stuck_rollout(struct history *history)
{
    journal_fixture_open(&history->fixture);
    int64_t rollout =
        history_begin(history, "rollout", "mysql", "{\"from\":\"mysql:8.0\",\"to\":\"mysql:8.1\"}");
    int64_t refused = history_intent(history, rollout, "update-in-place", "mysql-4", "mysql-4: image");
    history_answer(history, JOURNAL_REJECTED, rollout, refused, 1, 403, "403 Forbidden: pods is forbidden");
    journal_wait_begin(history->fixture.journal, rollout, "ready", "Pod", "prod", "mysql-4", 330 * US_PER_S,
                       "until it is available");
    int64_t lost = history_intent(history, rollout, "gate", "mysql-3", "mysql-3: gate");
    history_pass(history, 10 * US_PER_S);
    history_answer(history, JOURNAL_UNKNOWN, rollout, lost, 1, 504, "504 Timeout: etcd is slow");
    history_pass(history, 10 * US_PER_S);
    journal_fixture_crash(&history->fixture);
    audit_close(&history->audit);
    const char *path = history->fixture.path;
    assert_int_equal(audit_open(&history->audit, &path, 1, NULL), 0);
}

static void the_journal_knows_budgets_refusals_and_doubts(void **state)
{
    struct history *history = *state;
    append_a_stuck_rollout(history);
    expect_golden(history, why_of(history, scene_named("rolling-out"), &history->audit),
                  "../neosetctl/why-stuck.txt");
    struct ctl_picture picture;
    make_picture(scene_named("rolling-out"), &picture);
    struct sheet_look look = {.format = SHEET_TABLE, .columns = 100};
    assert_int_equal(
        ctl_report_status(&history->out, &look, &picture.set, &picture.pods, NOW_US, &history->audit, NULL),
        0);
    ctl_picture_done(&picture);
    assert_int_equal(out_flush(&history->out, NULL), 0);
    expect_golden(history, history_take(history), "../neosetctl/status-journal.txt");
}

/* --- the end of -w --- */

static void it_is_watched_until_nothing_is_waited_for(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(scenes); i++) {
        struct ctl_picture picture;
        make_picture(&scenes[i], &picture);
        if (ctl_is_settled(&picture) != scenes[i].is_settled)
            fail_msg("%s", scenes[i].name);
        ctl_picture_done(&picture);
    }
    struct ctl_picture picture;
    make_picture(scene_named("completed"), &picture);
    picture.set.generation = 3; /* an undo that no controller has seen */
    assert_false(ctl_is_settled(&picture));
    picture.set.generation = 2;
    picture.set.is_deleting = true;
    assert_false(ctl_is_settled(&picture));
    ctl_picture_done(&picture);
}

static void a_change_is_one_line(void **state)
{
    (void)state;
    struct ctl_picture picture;
    make_picture(scene_named("rolling-out"), &picture);
    CLEANUP_FREE char *line = ctl_status_line(&picture.set, NULL);
    assert_string_equal(line,
                        "NeoSet mysql in prod: RollingOut, 1 of 5 updated, 4 ready, stage 3: mysql-3 is "
                        "updated, and not ready.");
    picture.set.away = "it was stopped";
    CLEANUP_FREE char *away = ctl_status_line(&picture.set, NULL);
    assert_true(
        str_starts_with(away, "no neoset-controller is at work: it was stopped; NeoSet mysql in prod: "));
    ctl_picture_done(&picture);
}

static void a_line_without_a_message_is_one_line_too(void **state)
{
    (void)state;
    struct ctl_picture picture;
    make_picture(scene_named("new"), &picture);
    CLEANUP_FREE char *line = ctl_status_line(&picture.set, NULL);
    assert_string_equal(line, "NeoSet mysql in prod: not looked at yet, 0 of 3 updated, 0 ready");
    ctl_picture_done(&picture);
    make_picture(scene_named("changed"), &picture);
    CLEANUP_FREE char *changed = ctl_status_line(&picture.set, NULL);
    assert_string_equal(changed, "NeoSet mysql in prod: changed, and no controller has seen that yet");
    ctl_picture_done(&picture);
}

static void rows_are_counted_as_a_terminal_breaks_them(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t columns, rows;
    } table[] = {
        {"", 80, 0},
        {"a", 80, 1},
        {"a\n", 80, 1},
        {"\n\n", 80, 2},
        {"1234567890\n", 10, 1},
        {"12345678901\n", 10, 2},
        {"\x1b[32m1234567890\x1b[0m\n", 10, 1},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++)
        assert_int_equal(ctl_rows_of(table[i].text, table[i].columns), table[i].rows);
}

#define history_test(function) cmocka_unit_test_setup_teardown(function, history_make, history_free)

int main(void)
{
    const struct CMUnitTest tests[] = {
        history_test(each_phase_is_a_picture_of_its_pods),
        history_test(colours_say_nothing_of_their_own),
        history_test(wide_shows_each_pod),
        history_test(any_width_and_any_number_can_be_drawn),
        history_test(marks_beyond_the_pods_are_told_above_them),
        history_test(the_first_sentence_is_the_cause),
        history_test(what_is_known_besides_is_told),
        history_test(pods_that_stand_in_line_are_counted),
        history_test(the_journal_knows_budgets_refusals_and_doubts),
        cmocka_unit_test(it_is_watched_until_nothing_is_waited_for),
        cmocka_unit_test(a_change_is_one_line),
        cmocka_unit_test(a_line_without_a_message_is_one_line_too),
        cmocka_unit_test(rows_are_counted_as_a_terminal_breaks_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
