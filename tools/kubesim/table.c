/* SPDX-License-Identifier: Apache-2.0 */
#include "kubesim/table.h"

#include "kubesim/form.h"
#include "kubesim/jsonpath.h"

static const char name_description[] =
    "Name must be unique within a namespace. Is required when creating resources, although some resources "
    "may allow a "
    "client to request the generation of an appropriate name automatically. Name is primarily intended for "
    "creation "
    "idempotence and configuration definition. Cannot be updated. More info: "
    "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";

void table_columns_free(struct table_column *columns, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(columns[i].name);
        free(columns[i].type);
        free(columns[i].format);
        free(columns[i].description);
        free(columns[i].path);
    }
    free(columns);
}

int table_columns_from_definition(const cJSON *list, struct table_column **ret, size_t *ret_count,
                                  struct error **err)
{
    size_t count = (size_t)cJSON_GetArraySize(list);
    struct table_column *columns = xcalloc(count + 1, sizeof(columns[0]));
    size_t used = 0;
    int result = 0;
    const cJSON *item;
    cJSON_ArrayForEach (item, list) {
        const char *path = json_str(item, "jsonPath");
        if (!json_str(item, "name") || !json_str(item, "type") || !path) {
            result =
                error_set(err, ERROR_INVALID, "additionalPrinterColumns: name, type and jsonPath are needed");
            break;
        }
        if (!jsonpath_is_supported(path)) {
            result = error_set(err, ERROR_UNSUPPORTED,
                               "additionalPrinterColumns: kubesim cannot follow the path %s", path);
            break;
        }
        columns[used++] = (struct table_column){.name = xstrdup(json_str(item, "name")),
                                                .type = xstrdup(json_str(item, "type")),
                                                .format = xstrdup_or_null(json_str(item, "format")),
                                                .description = xstrdup_or_null(json_str(item, "description")),
                                                .priority = (int)json_int64_or(item, "priority", 0),
                                                .path = xstrdup(path)};
    }
    if (result < 0) {
        table_columns_free(columns, used);
        return result;
    }
    *ret = columns;
    *ret_count = used;
    return 0;
}

static void add_definition(cJSON *list, const char *name, const char *type, const char *format,
                           const char *description, int priority)
{
    cJSON *column = json_new_object();
    json_add_str(column, "name", name);
    json_add_str(column, "type", type);
    json_add_str(column, "format", format);
    json_add_str(column, "description", description);
    json_add_int64(column, "priority", priority);
    json_append_item(list, column);
}

static void add_builtin_definitions(cJSON *list, const char *columns)
{
    for (const char *at = columns; *at;) {
        size_t name_length = strcspn(at, "|");
        const char *type = at + name_length + 1;
        size_t type_length = strcspn(type, ";*");
        bool wide = type[type_length] == '*';
        CLEANUP_FREE char *name = xstrndup(at, name_length);
        CLEANUP_FREE char *type_text = xstrndup(type, type_length);
        add_definition(list, name, type_text, strcmp(name, "Name") == 0 ? "name" : "", "", wide);
        at = type + type_length + wide;
        at += *at == ';';
    }
}

cJSON *table_make(const struct kind *kind, bool columns)
{
    cJSON *table = json_new_object();
    json_add_str(table, "kind", "Table");
    json_add_str(table, "apiVersion", "meta.k8s.io/v1");
    json_add_object(table, "metadata");
    cJSON *list = json_add_array(table, "columnDefinitions");
    if (columns && kind->flags & KIND_CUSTOM) {
        add_definition(list, "Name", "string", "name", name_description, 0);
        for (size_t i = 0; i < kind->column_count; i++) {
            const struct table_column *column = &kind->columns[i];
            CLEANUP_FREE char *description =
                column->description
                    ? xstrdup(column->description)
                    : xasprintf("Custom resource definition column (in JSONPath format): %s", column->path);
            add_definition(list, column->name, column->type, column->format ? column->format : "",
                           description, column->priority);
        }
    } else if (columns) {
        add_builtin_definitions(list, table_builtin_find(kind)->columns);
    }
    json_add_array(table, "rows");
    return table;
}

char *table_age(const struct kubesim *sim, const char *timestamp)
{
    int64_t at_us;
    if (!timestamp || time_parse_rfc3339(timestamp, &at_us, NULL) < 0)
        return xstrdup("<unknown>");
    long long s = (sim_now_us(sim) - at_us) / US_PER_S;
    if (s < -1)
        return xstrdup("<invalid>");
    s = MAX(s, 0);
    if (s < 120)
        return xasprintf("%llds", s);
    long long minutes = s / 60;
    if (minutes < 10)
        return s % 60 ? xasprintf("%lldm%llds", minutes, s % 60) : xasprintf("%lldm", minutes);
    if (minutes < 180)
        return xasprintf("%lldm", minutes);
    long long hours = s / 3600;
    if (hours < 8)
        return minutes % 60 ? xasprintf("%lldh%lldm", hours, minutes % 60) : xasprintf("%lldh", hours);
    if (hours < 48)
        return xasprintf("%lldh", hours);
    if (hours < 192)
        return hours % 24 ? xasprintf("%lldd%lldh", hours / 24, hours % 24) : xasprintf("%lldd", hours / 24);
    if (hours < 24 * 365 * 2)
        return xasprintf("%lldd", hours / 24);
    return xasprintf("%lldy", hours / 24 / 365);
}

static cJSON *null_cell(void)
{
    cJSON *cell = cJSON_CreateNull();
    ENSURE(cell);
    return cell;
}

/* Absent values have a null cell; dates become ages; several matches are joined by commas. */
static cJSON *custom_cell(const struct kubesim *sim, const struct table_column *column, const cJSON *object)
{
    const cJSON *value = jsonpath_find(object, column->path);
    if (!value || cJSON_IsNull(value))
        return null_cell();
    if (strcmp(column->type, "date") == 0) {
        CLEANUP_FREE char *age = table_age(sim, cJSON_IsString(value) ? value->valuestring : NULL);
        return json_new_str(age);
    }
    int64_t number;
    if (strcmp(column->type, "integer") == 0)
        return json_node_int64(value, &number) ? json_new_int64(number) : null_cell();
    if (strcmp(column->type, "string") == 0 && !cJSON_IsString(value)) {
        CLEANUP_FREE char *text = json_print(value);
        return json_new_str(text);
    }
    return json_copy(value);
}

void table_add_row(const struct kubesim *sim, const struct kind *kind, cJSON *table, const cJSON *object,
                   const char *include)
{
    cJSON *row = json_new_object();
    cJSON *cells = json_add_array(row, "cells");
    if (kind->flags & KIND_CUSTOM) {
        json_append_str(cells, meta_str(object, "name"));
        for (size_t i = 0; i < kind->column_count; i++)
            json_append_item(cells, custom_cell(sim, &kind->columns[i], object));
    } else {
        table_builtin_find(kind)->cells(sim, object, cells);
    }
    if (str_equal(include, "Object"))
        json_add_item(row, "object", json_copy(object));
    else if (!str_equal(include, "None"))
        json_add_item(row, "object", form_metadata(object));
    json_append_item(json_get(table, "rows"), row);
}
