/* config_table.c - the tables of config_table.def and topic_config_table.def, and finding a row. */
#include <math.h>
#include <stdlib.h>

#include "server/config_value.h"

/* clang-format off */
#define ANY .min = -INFINITY, .max = INFINITY
#define AT_LEAST(n) .min = (n), .max = INFINITY
#define BETWEEN(a, b) .min = (a), .max = (b)
#define ONE_OF(list) ANY, .one_of = (list)
#define ONE_OF_ANY_CASE(list) ANY, .one_of = (list), .any_case = true
#define CHECK(f) ANY, .problem = (f)
#define LIVE .has_effect = true
#define IDLE .has_effect = false
#define LIVE_ALONE(text) .has_effect = true, .alone_text = (text)
#define IDLE_ALONE(text) .has_effect = false, .alone_text = (text)
#define OLD_LIVE .has_effect = true, .flags = CONFIG_OLD
#define OLD_IDLE .has_effect = false, .flags = CONFIG_OLD
#define OWN_LIVE .has_effect = true, .flags = CONFIG_OWN
#define OWN_IDLE .has_effect = false, .flags = CONFIG_OWN
#define HIDDEN_IDLE .has_effect = false, .flags = CONFIG_HIDDEN
#define DYNAMIC_LIVE .has_effect = true, .flags = CONFIG_DYNAMIC
#define DYNAMIC_IDLE .has_effect = false, .flags = CONFIG_DYNAMIC
#define SYNONYMS(...) {__VA_ARGS__}

static const struct config_row rows[] = {
#define ROW(n, t, def, val, upd, topic, effect, text)                                              \
    {.name = n, .type = CONFIG_##t, .default_text = def, .valid = {val}, .update = UPDATE_##upd,   \
     .topic_name = topic, effect, .doc = text},
#include "server/config_table.def"
#undef ROW
};

static const struct topic_config_row topic_rows[] = {
#define ROW(n, t, def, val, syn, effect, text)                                                     \
    {.name = n, .type = CONFIG_##t, .default_text = def, .valid = {val}, .synonyms = syn, effect,  \
     .doc = text},
#include "server/topic_config_table.def"
#undef ROW
};
/* clang-format on */

enum {
    ROWS_N = sizeof(rows) / sizeof(*rows),
    TOPIC_ROWS_N = sizeof(topic_rows) / sizeof(*topic_rows)
};

const struct config_row *config_rows(int *n)
{
    *n = ROWS_N;
    return rows;
}

const struct topic_config_row *topic_config_rows(int *n)
{
    *n = TOPIC_ROWS_N;
    return topic_rows;
}

static int compare_row(const void *key, const void *row)
{
    return str_cmp(*(const struct str *)key, str_of(((const struct config_row *)row)->name));
}

static int compare_topic_row(const void *key, const void *row)
{
    return str_cmp(*(const struct str *)key, str_of(((const struct topic_config_row *)row)->name));
}

const struct config_row *config_find(struct str name)
{
    return bsearch(&name, rows, ROWS_N, sizeof(*rows), compare_row);
}

const struct topic_config_row *topic_config_find(struct str name)
{
    return bsearch(&name, topic_rows, TOPIC_ROWS_N, sizeof(*topic_rows), compare_topic_row);
}
