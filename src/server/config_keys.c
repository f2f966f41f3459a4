/* config_keys.c - the keys of a settings file rather than their values: which row a key sets, keys
 * of other modes of Kafka, keys that are misspelt. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "base/logline.h"
#include "server/config_private.h"

enum { KEY_MAX = 120 /* bytes of a key that is compared with the known ones */ };

static const char *const foreign[] = {
#define FOREIGN(name) name,
#include "server/config_foreign.def"
#undef FOREIGN
};

static int compare_name(const void *key, const void *name)
{
    return strcmp(key, *(const char *const *)name);
}

static bool is_foreign(const char *key)
{
    return bsearch(key, foreign, sizeof(foreign) / sizeof(*foreign), sizeof(*foreign),
                   compare_name) != NULL;
}

/* A listener's key may name a SASL mechanism, too. */
const struct config_row *config_row_of(const char *key, bool *listener)
{
    bool prefixed = strncmp(key, LISTENER_PREFIX, strlen(LISTENER_PREFIX)) == 0;
    if (listener)
        *listener = prefixed;
    if (!prefixed)
        return config_find(str_of(key));
    const char *dot = strchr(key + strlen(LISTENER_PREFIX), '.');
    const struct config_row *row = dot ? config_find(str_of(dot + 1)) : NULL;
    if (!row && dot && (dot = strchr(dot + 1, '.')))
        row = config_find(str_of(dot + 1));
    return row;
}

/* ---- other modes ---- */

static bool given(const struct config *c, const char *key)
{
    const char *value = props_get(c->effective, key);
    return value && *value;
}

/* Who takes a file of a KRaft cluster for one of ours would get a broker that is alone, beside the
 * cluster that he meant. */
int config_keys_mode(const struct config *c, char *err, size_t err_n)
{
    static const char *const kraft[] = {"process.roles", "controller.quorum.voters",
                                        "controller.quorum.bootstrap.servers"};
    for (size_t i = 0; i < sizeof(kraft) / sizeof(*kraft); i++) {
        /* a member of a cluster on ZooKeeper may name the controllers it is to move to */
        if (!given(c, kraft[i]) || (i > 0 && !config_is_alone(c)))
            continue;
        snprintf(err, err_n,
                 "%s=%.200s: the settings are those of a KRaft cluster, and this broker has no "
                 "KRaft mode: remove process.roles and controller.*, and set zookeeper.connect for "
                 "a member of a cluster on ZooKeeper, or leave it out for a broker by itself",
                 kraft[i], props_get(c->effective, kraft[i]));
        return -EINVAL;
    }
    return 0;
}

/* ---- misspelt keys ---- */

static int least(int a, int b)
{
    return a < b ? a : b;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

/* Characters to add, remove, change or swap with their neighbour to make one of the other; case
 * does not count. KEY_MAX + 1 when one is too long. */
static int distance(const char *a, const char *b)
{
    int n = (int)strnlen(a, KEY_MAX + 1), m = (int)strnlen(b, KEY_MAX + 1);
    int rows[3][KEY_MAX + 1]; /* of i - 2, i - 1 and i characters of a */
    if (n > KEY_MAX || m > KEY_MAX)
        return KEY_MAX + 1;
    for (int j = 0; j <= m; j++)
        rows[0][j] = j;
    for (int i = 1; i <= n; i++) {
        int *now = rows[i % 3], *before = rows[(i + 2) % 3], *earlier = rows[(i + 1) % 3];
        now[0] = i;
        for (int j = 1; j <= m; j++) {
            char x = lower(a[i - 1]), y = lower(b[j - 1]);
            now[j] = least(before[j - 1] + (x != y), least(before[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && x == lower(b[j - 2]) && lower(a[i - 2]) == y)
                now[j] = least(now[j], earlier[j - 2] + 1);
        }
    }
    return rows[n % 3][m];
}

/* The broker's key behind a topic's one. */
static const char *broker_key_of(const struct topic_config_row *row)
{
    return row->synonyms[0];
}

const char *config_nearest(const char *key)
{
    int n, best = 2 + (int)(strnlen(key, KEY_MAX) / 8); /* so far is another word */
    const char *found = NULL;
    const struct topic_config_row *topic = topic_config_find(str_of(key));
    if (topic && broker_key_of(topic))
        return broker_key_of(topic);
    const struct config_row *rows = config_rows(&n);
    for (int i = 0; i < n; i++) {
        int d = rows[i].flags & CONFIG_HIDDEN ? best : distance(key, rows[i].name);
        if (d < best) {
            best = d;
            found = rows[i].name;
        }
    }
    return found;
}

/* ---- all keys of a file ---- */

/* Names all that are given and do nothing, in one line. */
static void report_idle(const struct config *c)
{
    struct buf b = BUF_INIT;
    for (size_t i = 0; i < props_count(c->effective); i++) {
        const char *key, *value;
        props_at(c->effective, i, &key, &value);
        const struct config_row *row = config_find(str_of(key));
        if (row && !row->has_effect)
            buf_printf(&b, "%s%s", b.len ? ", " : "", key);
    }
    if (b.len)
        say_info("config", "accepted, without effect in this version: %.*s", (int)b.len, b.p);
    buf_free(&b);
}

static void report_unknown(const char *key)
{
    const char *near = is_foreign(key) ? NULL : config_nearest(key);
    if (is_foreign(key))
        say_warn("config",
                 "%s belongs to KRaft, tiered storage or share groups, which this broker "
                 "does not have: ignored",
                 key);
    else
        say_warn("config", "unknown setting %s: ignored%s%s%s", key, near ? "; did you mean " : "",
                 near ? near : "", near ? "?" : "");
}

/* The value stays as it is meant: without blanks around it. */
static int check_listener_key(const struct config *c, const char *key, const struct config_row *row,
                              const char *value, char *err, size_t err_n)
{
    struct config_value v;
    char *problem = config_value_parse(key, row->type, &row->valid, value, &v);
    int rc = 0;
    if (!problem && v.text && strcmp(v.text, value) != 0)
        rc = props_set(c->effective, key, v.text);
    free(v.text);
    if (!problem)
        return rc;
    config_add_problem(err, err_n, problem);
    free(problem);
    return -EINVAL;
}

int config_keys_check(const struct config *c, char *err, size_t err_n)
{
    int rc = 0;
    for (size_t i = 0; i < props_count(c->effective) && config_goes_on(c, rc); i++) {
        const char *key, *value;
        bool listener;
        props_at(c->effective, i, &key, &value);
        const struct config_row *row = config_row_of(key, &listener);
        if (row && listener)
            rc = config_first(rc, check_listener_key(c, key, row, value, err, err_n));
        if (!row && !c->again)
            report_unknown(key);
    }
    if (!c->again)
        report_idle(c);
    return rc;
}
