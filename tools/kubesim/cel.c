/* SPDX-License-Identifier: Apache-2.0 */
#include "kubesim/cel.h"

#include "kubesim/cel_parts.h"

struct cel_rule {
    char *text;
    char *message;
    char *field;
    char *reason;
    struct cel_node *node;
    struct cel_node *message_node;
    bool old;          /* mentions oldSelf */
    bool optional_old; /* oldSelf is an optional, and the rule runs on create too */
};

void cel_rule_free(struct cel_rule *rule)
{
    if (!rule)
        return;
    cel_node_free(rule->node);
    cel_node_free(rule->message_node);
    free(rule->text);
    free(rule->message);
    free(rule->field);
    free(rule->reason);
    free(rule);
}

int cel_rule_compile(const cJSON *item, struct cel_rule **ret, struct error **err)
{
    const char *text = json_str(item, "rule");
    const char *expression = json_str(item, "messageExpression");
    if (!text || !*text)
        return error_set(err, ERROR_INVALID, "rule: Required value");
    struct cel_rule *rule = xcalloc(1, sizeof(*rule));
    bool ignored;
    rule->text = xstrdup(text);
    rule->message = xstrdup_or_null(json_str(item, "message"));
    rule->field = xstrdup_or_null(json_str(item, "fieldPath"));
    rule->reason = xstrdup_or_null(json_str(item, "reason"));
    rule->optional_old = json_bool_or(item, "optionalOldSelf", false);
    int result = cel_parse(text, &rule->node, &rule->old, err);
    if (result == 0 && expression)
        result = cel_parse(expression, &rule->message_node, &ignored, err);
    if (result < 0) {
        cel_rule_free(rule);
        return result;
    }
    *ret = rule;
    return 0;
}

bool cel_rule_is_transition(const struct cel_rule *rule)
{
    return rule->old && !rule->optional_old;
}

static void bind(struct cel_run *run, const struct cel_rule *rule, const cJSON *self, const cJSON *old_self)
{
    struct cel_value old = cel_from_json(old_self);
    if (rule->optional_old) {
        struct cel_value *inner = cel_alloc(run, sizeof(*inner));
        *inner = old;
        old = (struct cel_value){
            .type = CEL_OPTIONAL, .boolean = old_self != NULL, .values = inner, .count = 1};
    }
    run->variables[0].name = "self";
    run->variables[0].value = cel_from_json(self);
    run->variables[1].name = "oldSelf";
    run->variables[1].value = old;
    run->variable_count = 2;
}

int cel_rule_holds(const struct cel_rule *rule, const cJSON *self, const cJSON *old_self, struct error **err)
{
    struct cel_run run = {0};
    bind(&run, rule, self, old_self);
    struct cel_value value = {.type = CEL_NULL};
    int result = cel_evaluate(&run, rule->node, &value);
    if (result == 0 && value.type != CEL_BOOL)
        result = cel_fail(&run, "the rule must return a boolean");
    result = result < 0 ? error_set(err, ERROR_FAILED, "%s evaluating rule: %s", run.problem, rule->text)
                        : value.boolean;
    cel_run_done(&run);
    return result;
}

char *cel_rule_message(const struct cel_rule *rule, const cJSON *self, const cJSON *old_self)
{
    char *message = NULL;
    if (rule->message_node) {
        struct cel_run run = {0};
        bind(&run, rule, self, old_self);
        struct cel_value value;
        if (cel_evaluate(&run, rule->message_node, &value) == 0 && value.type == CEL_STRING && *value.text)
            message = xstrdup(value.text);
        cel_run_done(&run);
    }
    if (message)
        return message;
    return rule->message ? xstrdup(rule->message) : xasprintf("failed rule: %s", rule->text);
}

const char *cel_rule_field(const struct cel_rule *rule)
{
    return rule->field;
}

const char *cel_rule_reason(const struct cel_rule *rule)
{
    return rule->reason;
}
