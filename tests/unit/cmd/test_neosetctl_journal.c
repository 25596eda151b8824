/* SPDX-License-Identifier: Apache-2.0
 *
 * neosetctl with a journal of the user's own that cannot be used, or that holds nothing yet: whatever the
 * command, the same exit code and the same way out, nothing is written, and with another journal it goes on.
 */
#include "converge_stage.h"

#include <sqlite3.h>

static int setup(void **state)
{
    static const char *const options[] = {"--crd", "deploy/crd.yaml", NULL};
    return setup_with(state, 1, options);
}

static int teardown(void **state)
{
    return stage_teardown(state);
}

/* --- journals that are of no use ------------------------------------------------------------------------ */

static void shell(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void shell(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    CLEANUP_FREE char *line = xvasprintf(format, args);
    va_end(args);
    assert_int_equal(system(line), 0);
}

static void run_sql(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    sqlite3_close(db);
}

/* Every page but the first, which says that it is a journal. */
static void overwrite_pages(const char *path)
{
    run_sql(path, "PRAGMA wal_checkpoint(TRUNCATE)");
    shell("size=$(stat -c %%s %s) && head -c $((size - 4096)) /dev/zero | tr '\\0' 'x' | dd of=%s bs=4096 "
          "seek=1 "
          "conv=notrunc status=none",
          path, path);
}

static void cut_short(const char *path)
{
    run_sql(path, "PRAGMA wal_checkpoint(TRUNCATE)");
    shell("truncate -s 4096 %s", path);
}

static void cut_to_nothing(const char *path)
{
    shell("truncate -s 0 %s && echo x >%s-wal", path, path);
}

static void be_a_text(const char *path)
{
    shell("rm -f %s-wal %s-shm && echo 'my shopping list' >%s", path, path, path);
}

static void be_of_another_program(const char *path)
{
    shell("rm -f %s %s-wal %s-shm", path, path, path);
    run_sql(path, "PRAGMA application_id=7; CREATE TABLE mail (text)");
}

static void be_newer(const char *path)
{
    run_sql(path, "PRAGMA user_version=99");
}

static void be_newer_for_readers_too(const char *path)
{
    run_sql(path, "PRAGMA user_version=99; UPDATE meta SET min_reader=99");
}

static void be_a_folder(const char *path)
{
    shell("rm -f %s %s-wal %s-shm && mkdir %s", path, path, path, path);
}

/* Whether it is there cannot be told: it is not taken for absent. */
static void be_behind_a_file(const char *path)
{
    CLEANUP_FREE char *folder = xstrdup(path);
    *strrchr(folder, '/') = '\0';
    shell("rm -rf %s && : >%s", folder, folder);
}

static const struct {
    void (*spoil)(const char *path);
    const char *words;
} spoilt[] = {
    {overwrite_pages, "damaged"},
    {cut_short, "damaged"},
    {cut_to_nothing, "somebody truncated it; restore a backup"},
    {be_a_text, "is not a journal (not even a SQLite file)"},
    {be_of_another_program, "another application's SQLite file"},
    {be_newer, "was written by a newer neoset"},
    {be_newer_for_readers_too, "was written by a newer neoset"},
    {be_behind_a_file, "Not a directory"},
    {be_a_folder, "is a directory"},
};

/* --- commands ------------------------------------------------------------------------------------------- */

static const char *const commands[] = {
    "resize converge -f %s/db.yaml" IN_TIME,
    "apply -f %s/db.yaml --field-manager me" IN_TIME,
    "continue -n default" IN_TIME,
    "adopt statefulset/db --yes" IN_TIME,
};

static void no_command_can_use_it(struct stage *stage, const char *words)
{
    for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
        struct buf line = BUF_INIT(4096);
        for (const char *at = commands[i]; *at; at++)
            if (str_starts_with(at, "%s")) {
                buf_add_text(&line, stage->folder);
                at++;
            } else {
                buf_add_char(&line, *at);
            }
        expect_run(stage, buf_text(&line), 1, NULL, "your journal cannot be used, so nothing is written");
        static const char *const way_out[] = {"move it away with its -wal and -shm", "XDG_STATE_HOME",
                                              "`neosetctl continue`"};
        for (size_t k = 0; k < ARRAY_SIZE(way_out); k++)
            if (!strstr(stage->run.errors, way_out[k]))
                fail_msg("%s: no \"%s\" in: %s", buf_text(&line), way_out[k], stage->run.errors);
        if (!strstr(stage->run.errors, words) || strstr(stage->run.errors, "--journal"))
            fail_msg("%s: no \"%s\", or an option that is none, in: %s", buf_text(&line), words,
                     stage->run.errors);
        buf_done(&line);
    }
}

static void with_a_journal_that_cannot_be_used_every_command_says_the_same(void **state)
{
    struct stage *stage = *state;
    expect_resize(stage, "converge", " --timeout 2s", 1, "waiting: db-", "goes on");
    wait_for_old_pods();
    CLEANUP_FREE char *pods = pods_text(stage, false);
    CLEANUP_FREE char *before = set_text(stage);
    shell("mkdir %s/good && cp %s* %s/good/", stage->folder, stage->journal, stage->folder);
    for (size_t i = 0; i < ARRAY_SIZE(spoilt); i++) {
        shell("cd %s && rm -rf neoset && mkdir neoset && cp good/* neoset/", stage->folder);
        spoilt[i].spoil(stage->journal);
        no_command_can_use_it(stage, spoilt[i].words);
        CLEANUP_FREE char *after = set_text(stage);
        assert_string_equal(after, before);
    }
    /* As the sentence says. */
    shell("mkdir %s/away && mv %s* %s/away/", stage->folder, stage->journal, stage->folder);
    expect_resize(stage, "converge", IN_TIME, 0, "the same 3 pods, none restarted", NULL);
    assert_converged(stage, pods, "2Gi");
    assert_history(stage);
}

/* --- one that goes while it is used ----------------------------------------------------------------------
 */

/* While converge waits for the young pods, its journal is spoilt with this (%s: its path). */
static void spoil_while_it_waits(struct stage *stage, const char *how, const char *words)
{
    CLEANUP_FREE char *pods = pods_text(stage, false);
    CLEANUP_FREE char *line = command(stage, "converge", IN_TIME);
    CLEANUP_FREE char *path = program_path("neosetctl");
    shell("exec >%s/out 2>&1; %s '%s' %s --kubeconfig %s & for i in $(seq 200); do grep -q 'waiting: db-' "
          "%s/out "
          "&& break; sleep 0.05; done; cd %s/neoset && %s; wait $!; test $? -eq 1",
          stage->folder, stage->state_variable, path, line, stage->kubeconfig, stage->folder, stage->folder,
          how);
    shell("grep -q 'StatefulSet db in namespace default: your journal takes nothing any more, so nothing "
          "more is "
          "written: .*%s.*the command that began it' %s/out || { cat %s/out; false; }",
          words, stage->folder, stage->folder);
    assert_int_equal(count_kept(stage), 0);
    wait_for_old_pods();
    expect_resize(stage, "converge", IN_TIME, 0, "the same 3 pods, none restarted", NULL);
    assert_converged(stage, pods, "2Gi");
    assert_history(stage);
}

static void a_journal_that_is_deleted_meanwhile_ends_it(void **state)
{
    spoil_while_it_waits(*state, "rm -f neosetctl.*", "neosetctl.db");
}

static void a_journal_that_is_replaced_meanwhile_ends_it(void **state)
{
    spoil_while_it_waits(
        *state, "mkdir old && cp neosetctl.db* old && mv old/neosetctl.db neosetctl.db && rm -rf old",
        "neosetctl.db");
}

/* --- one that holds nothing yet ------------------------------------------------------------------------- */

static void one_whose_first_opening_was_interrupted_is_none(void **state)
{
    struct stage *stage = *state;
    shell("mkdir -p %s/neoset && : >%s", stage->folder, stage->journal);
    expect_run(stage, "continue" IN_TIME, 0, "", "nothing is half done");
    run_sql(stage->journal, "PRAGMA application_id=1852141418");
    expect_run(stage, "continue" IN_TIME, 0, "", "nothing is half done");
    wait_for_old_pods();
    expect_resize(stage, "converge", IN_TIME, 0, "the same 3 pods, none restarted", NULL);
    assert_history(stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(with_a_journal_that_cannot_be_used_every_command_says_the_same, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_journal_that_is_deleted_meanwhile_ends_it, setup, teardown),
        cmocka_unit_test_setup_teardown(a_journal_that_is_replaced_meanwhile_ends_it, setup, teardown),
        cmocka_unit_test_setup_teardown(one_whose_first_opening_was_interrupted_is_none, setup, teardown),
    };
    return cmocka_run_group_tests_name("the user's journal", tests, NULL, NULL);
}
