/* SPDX-License-Identifier: Apache-2.0 */
#include "world.h"

#include "kubesim/cel.h"

static const char self_text[] = "{\"n\":3,\"big\":9007199254740993,\"f\":1.5,\"s\":\"hello\",\"t\":true,"
                                "\"list\":[1,2,3],\"names\":[{\"name\":\"a\",\"v\":1},"
                                "{\"name\":\"b\",\"v\":2}],\"map\":{\"x\":\"1\",\"y\":\"2\"},\"empty\":{},"
                                "\"none\":[],\"size\":\"10Gi\",\"in-dash\":4,"
                                "\"namespace\":\"ns\",\"pct\":\"30%\"}";
static const char old_text[] = "{\"n\":2,\"size\":\"5Gi\",\"list\":[1,2]}";

struct row {
    const char *rule;
    int result; /* 1, 0; -1: evaluation fails; -2: does not compile */
};

static const struct row rows[] = {
    {"true", 1},
    {"1 + 2 * 3 == 7", 1},
    {"(1 + 2) * 3 == 9", 1},
    {"7 / 2 == 3 && 7 % 2 == 1", 1},
    {"1 / 0 == 1", -1},
    {"-self.n == -3", 1},
    {"!self.t", 0},
    {"!!self.t", 1},
    {"self.n >= 3 && self.n < 4", 1},
    {"self.n != 3 || self.s == 'hello'", 1},
    {"self.n == 3.0", 1},
    {"self.big == 9007199254740993", 1},
    {"self.f > 1 && self.f < 2", 1},
    {"self.s == \"hello\"", 1},
    {"self.s + ' world' == 'hello world'", 1},
    {"r'\\d' == '\\\\d'", 1},
    {"self.t ? self.n == 3 : false", 1},
    {"self.t ? false : self.missing", 0},
    {"self.missing == 1", -1},
    {"self.missing == 1 || true", 1},
    {"true || self.missing == 1", 1},
    {"self.missing == 1 && false", 0},
    {"self.missing == 1 && true", -1},
    {"has(self.n)", 1},
    {"has(self.missing)", 0},
    {"has(self.map.x) && !has(self.map.z)", 1},
    {"!has(self.missing) || self.missing > 1", 1},
    {"2 in self.list", 1},
    {"5 in self.list", 0},
    {"'x' in self.map", 1},
    {"self.n in [1, 2, 3]", 1},
    {"self.list[0] == 1", 1},
    {"self.list[9] == 1", -1},
    {"self.map['y'] == '2'", 1},
    {"self.list == [1, 2, 3]", 1},
    {"self.list != [1, 3, 2]", 1},
    {"self.map == {'y': '2', 'x': '1'}", 1},
    {"size(self.list) == 3 && self.list.size() == 3", 1},
    {"self.s.size() == 5", 1},
    {"self.list.all(x, x > 0)", 1},
    {"self.list.all(x, x > 1)", 0},
    {"self.none.all(x, false)", 1},
    {"self.list.exists(x, x == 2)", 1},
    {"self.list.exists_one(x, x > 2)", 1},
    {"self.list.exists_one(x, x > 1)", 0},
    {"self.map.all(k, self.map[k] != '')", 1},
    {"self.names.all(a, self.names.exists_one(b, b.name == a.name))", 1},
    {"self.list.map(x, x * 2) == [2, 4, 6]", 1},
    {"self.list.filter(x, x > 1) == [2, 3]", 1},
    {"self.names.map(x, x.v > 1, x.name) == ['b']", 1},
    {"self.list + [4] == [1, 2, 3, 4]", 1},
    {"self.s.startsWith('he') && self.s.endsWith('lo') && self.s.contains('ell')", 1},
    {"self.s.matches('^h.*o$')", 1},
    {"self.pct.matches('^(100|[0-9]{1,2})%$')", 1},
    {"type(self.n) == int && type(self.s) == string && type(self.list) == list && type(self.map) == map", 1},
    {"type(self.n) == int ? self.n >= 0 : self.n.matches('x')", 1},
    {"int('12') == 12 && string(5) == '5' && double(2) == 2.0", 1},
    {"int('x') == 1", -1},
    {"quantity(self.size).isGreaterThan(quantity('9Gi'))", 1},
    {"quantity(self.size).compareTo(quantity('10240Mi')) == 0", 1},
    {"quantity('x').sign() > 0", -1},
    {"isQuantity('1Gi') && !isQuantity('x')", 1},
    {"quantity('2k').asInteger() == 2000", 1},
    {"self.?missing.orValue(7) == 7", 1},
    {"self.?n.orValue(7) == 3", 1},
    {"self.?missing.?deeper.hasValue() == false", 1},
    {"self.list[?9].orValue(0) == 0", 1},
    {"self.in__dash__dash == 4", 1},
    {"self.__namespace__ == 'ns'", 1},
    {"self.n > oldSelf.n", 1},
    {"self.size == oldSelf.size", 0},
    {"self.list.size() >= oldSelf.list.size() // and a comment", 1},
    {"'a,b'.split(',') == ['a', 'b'] && ['a', 'b'].join('-') == 'a-b' && ' A '.trim().lowerAscii() == 'a'",
     1},
    {"self.n + self.s == 1", -1},
    {"self.n", -1},
    {"self.n == 'x'", 0},
    {"", -2},
    {"self.", -2},
    {"self.n == ", -2},
    {"nobody", -2},
    {"self.frob()", -2},
    {"has(self)", -2},
    {"self.list.all(x)", -2},
    {"1 == 1 1", -2},
    {"'unfinished", -2},
    {"((((1)))", -2},
    {"self.s.matches('a', 'b')", -2},
};

static int run(const char *text, const cJSON *self, const cJSON *old)
{
    CLEANUP_JSON cJSON *item = json_new_object();
    json_add_str(item, "rule", text);
    struct cel_rule *rule = NULL;
    if (cel_rule_compile(item, &rule, NULL) < 0)
        return -2;
    int result = cel_rule_holds(rule, self, old, NULL);
    cel_rule_free(rule);
    return result < 0 ? -1 : result;
}

static void rules_mean_what_cel_says(void **state)
{
    (void)state;
    CLEANUP_JSON cJSON *self = NULL;
    CLEANUP_JSON cJSON *old = NULL;
    assert_int_equal(json_parse(self_text, strlen(self_text), &self, NULL), 0);
    assert_int_equal(json_parse(old_text, strlen(old_text), &old, NULL), 0);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        int result = run(rows[i].rule, self, old);
        if (result != rows[i].result)
            fail_msg("%s: %d, not %d", rows[i].rule, result, rows[i].result);
    }
}

static void too_deep_and_too_dear_rules_are_refused(void **state)
{
    (void)state;
    CLEANUP_JSON cJSON *self = NULL;
    CLEANUP_BUF struct buf text = BUF_INIT(1024 * 1024);
    for (int i = 0; i < 500; i++)
        buf_add_char(&text, '(');
    buf_add_text(&text, "1");
    for (int i = 0; i < 500; i++)
        buf_add_char(&text, ')');
    assert_int_equal(run(buf_text(&text), NULL, NULL), -2);
    buf_clear(&text);
    buf_add_text(&text, "[0");
    for (int i = 0; i < 300; i++)
        buf_add_text(&text, ",0");
    buf_add_char(&text, ']');
    assert_int_equal(json_parse(buf_text(&text), text.length, &self, NULL), 0);
    assert_int_equal(run("self.all(a, self.all(b, self.all(c, c == 0)))", self, NULL), -1);
}

static void messages_are_the_author_s(void **state)
{
    (void)state;
    static const struct {
        const char *item;
        const char *message;
    } messages[] = {
        {"{\"rule\":\"false\"}", "failed rule: false"},
        {"{\"rule\":\"false\",\"message\":\"no\"}", "no"},
        {"{\"rule\":\"false\",\"message\":\"no\",\"messageExpression\":\"'n is ' + string(self.n)\"}",
         "n is 3"},
        {"{\"rule\":\"false\",\"message\":\"no\",\"messageExpression\":\"self.missing\"}", "no"},
    };
    CLEANUP_JSON cJSON *self = NULL;
    assert_int_equal(json_parse(self_text, strlen(self_text), &self, NULL), 0);
    for (size_t i = 0; i < ARRAY_SIZE(messages); i++) {
        CLEANUP_JSON cJSON *item = NULL;
        assert_int_equal(json_parse(messages[i].item, strlen(messages[i].item), &item, NULL), 0);
        struct cel_rule *rule = NULL;
        assert_int_equal(cel_rule_compile(item, &rule, NULL), 0);
        CLEANUP_FREE char *text = cel_rule_message(rule, self, NULL);
        assert_string_equal(text, messages[i].message);
        cel_rule_free(rule);
    }
}

static void an_optional_old_self_runs_on_create_too(void **state)
{
    (void)state;
    static const char text[] =
        "{\"rule\":\"!oldSelf.hasValue() || oldSelf.value().n <= self.n\",\"optionalOldSelf\":true}";
    CLEANUP_JSON cJSON *item = NULL;
    CLEANUP_JSON cJSON *self = NULL;
    CLEANUP_JSON cJSON *old = NULL;
    assert_int_equal(json_parse(text, strlen(text), &item, NULL), 0);
    assert_int_equal(json_parse(self_text, strlen(self_text), &self, NULL), 0);
    assert_int_equal(json_parse(old_text, strlen(old_text), &old, NULL), 0);
    struct cel_rule *rule = NULL;
    assert_int_equal(cel_rule_compile(item, &rule, NULL), 0);
    assert_false(cel_rule_is_transition(rule));
    assert_int_equal(cel_rule_holds(rule, self, NULL, NULL), 1);
    assert_int_equal(cel_rule_holds(rule, self, old, NULL), 1);
    assert_int_equal(cel_rule_holds(rule, old, self, NULL), 0);
    cel_rule_free(rule);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_mean_what_cel_says),
        cmocka_unit_test(too_deep_and_too_dear_rules_are_refused),
        cmocka_unit_test(messages_are_the_author_s),
        cmocka_unit_test(an_optional_old_self_runs_on_create_too),
    };
    return cmocka_run_group_tests_name("kubesim cel", tests, NULL, NULL);
}
