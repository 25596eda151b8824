/* SPDX-License-Identifier: Apache-2.0
 *
 * What is printed as YAML is read back as the same tree, whatever a text holds. */
#include "base/yaml.h"
#include "cmd/neosetctl/yaml.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { TEXT_MAX = 1 << 16 };

static void texts_come_back_as_they_were(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "plain",
        "yes",
        "1e3",
        "- x",
        "a: b",
        "# c",
        "two\nlines",
        "two\nlines\n",
        "two\n\nlines\n",
        "  indented\nlines\n",
        "\tx\ny\n",
        "one line\n",
        "ends\nwith two\n\n",
        "\n",
        "\n\n",
        "\na\nb\n",
        "blanks at the end  \nof a line\n",
        "a\n   deeper\nb\n",
        "a\n \nb\n",
        "bell\a\nb\n",
        "carriage\r\nreturn\r\n",
        "#!/bin/sh\necho \"$x\" 'y' | z # c\n",
        "---\n...\n",
        "%a\nb\n",
        "\xc3\xa9\nx\n",

    };
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        CLEANUP_JSON cJSON *tree = json_new_object();
        json_add_str(tree, "key", texts[i]);
        json_append_str(json_add_array(json_add_object(tree, "deep"), "list"), texts[i]);
        json_add_str(tree, "last", "x");
        CLEANUP_BUF struct buf out = BUF_INIT(TEXT_MAX);
        ctl_yaml_print(&out, tree);
        CLEANUP_JSON cJSON *back = NULL;
        CLEANUP_ERROR struct error *err = NULL;
        if (yaml_parse_one(buf_text(&out), out.length, "printed", &back, &err) < 0 || !json_equal(tree, back))
            fail_msg("text %zu: %s\n%s", i, error_text(err), buf_text(&out));
    }
}

static void a_script_is_printed_to_be_read(void **state)
{
    (void)state;
    CLEANUP_JSON cJSON *tree = json_new_object();
    json_add_str(tree, "script", "set -eu\n\necho x\n");
    CLEANUP_BUF struct buf out = BUF_INIT(TEXT_MAX);
    ctl_yaml_print(&out, tree);
    assert_string_equal(buf_text(&out), "script: |\n  set -eu\n\n  echo x\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_come_back_as_they_were),
        cmocka_unit_test(a_script_is_printed_to_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
