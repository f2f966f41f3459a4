/* config.c - loading a broker's settings: every given key against its row, then what concerns
 * several keys at once. Listeners and log defaults have files of their own. */
#include "server/config.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/logline.h"
#include "base/wipe.h"
#include "server/config_private.h"

enum {
    PROBLEM_MAX = 1024, /* bytes of one line about several keys */
    LISTENER_KEY_MAX = 512,
};

/* ---- values ---- */

static size_t row_index(const struct config_row *row)
{
    int n;
    return (size_t)(row - config_rows(&n));
}

static const struct config_value *value_of(const struct config *c, const char *name)
{
    const struct config_row *row = config_find(str_of(name));
    if (!row) {
        say_fatal("config", "no setting is called %s", name);
        abort();
    }
    return &c->values[row_index(row)];
}

bool config_bool(const struct config *c, const char *name)
{
    return value_of(c, name)->b;
}

int64_t config_int(const struct config *c, const char *name)
{
    const struct config_value *v = value_of(c, name);
    return v->text ? v->i : INT64_MIN;
}

double config_double(const struct config *c, const char *name)
{
    return value_of(c, name)->d;
}

const char *config_string(const struct config *c, const char *name)
{
    return value_of(c, name)->text;
}

bool config_is_given(const struct config *c, const char *name)
{
    return value_of(c, name)->given;
}

const char *config_text(const struct config *c, const struct config_row *row)
{
    return c->values[row_index(row)].text;
}

/* What a listener has of its own; the key is left in `key`. NULL = nothing. */
static const char *listener_text(const struct config *c, const char *listener,
                                 const char *mechanism, const char *name, char *key, size_t key_n)
{
    int prefix = snprintf(key, key_n, LISTENER_PREFIX "%s.%s%s", listener,
                          mechanism ? mechanism : "", mechanism ? "." : "");
    if (prefix < 0 || prefix + strlen(name) >= key_n)
        return NULL;
    for (char *p = key; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    memcpy(key + prefix, name, strlen(name) + 1);
    return props_get(c->effective, key);
}

const char *config_listener_string(const struct config *c, const char *listener,
                                   const char *mechanism, const char *name)
{
    char key[LISTENER_KEY_MAX];
    const char *text =
        mechanism ? listener_text(c, listener, mechanism, name, key, sizeof(key)) : NULL;
    if (!text)
        text = listener_text(c, listener, NULL, name, key, sizeof(key));
    return text ? text : config_string(c, name);
}

int64_t config_listener_int(const struct config *c, const char *listener, const char *name,
                            int64_t otherwise)
{
    char key[LISTENER_KEY_MAX];
    const struct config_row *row = config_find(str_of(name));
    const char *text = listener_text(c, listener, NULL, name, key, sizeof(key));
    struct config_value v;
    if (!text || !row)
        return otherwise;
    char *problem = config_value_parse(key, row->type, &row->valid, text, &v);
    int64_t found = !problem && v.text ? v.i : otherwise;
    free(problem);
    free(v.text);
    return found;
}

/* ---- dynamic settings on top ---- */

static const char *const families[][4] = {
    {"log.flush.interval.ms", "log.flush.scheduler.interval.ms"},
    {"log.retention.ms", "log.retention.minutes", "log.retention.hours"},
    {"log.roll.jitter.ms", "log.roll.jitter.hours"},
    {"log.roll.ms", "log.roll.hours"},
};

const char *const *config_family(const char *name)
{
    for (size_t i = 0; i < sizeof(families) / sizeof(*families); i++)
        for (int k = 0; families[i][k]; k++)
            if (strcmp(families[i][k], name) == 0)
                return families[i];
    return NULL;
}

static int put_over(struct props *to, const struct props *layer)
{
    for (size_t i = 0; i < props_count(layer); i++) {
        const char *key, *value;
        props_at(layer, i, &key, &value);
        const char *const *family = config_family(key);
        for (int k = 0; family && family[k]; k++)
            props_remove(to, family[k]);
        if (props_set(to, key, value) != 0)
            return -1;
    }
    return 0;
}

/* ---- loading ---- */

bool config_is_alone(const struct config *c)
{
    const char *zk = props_get(c->effective, "zookeeper.connect");
    return !zk || !*zk;
}

const char *config_default(const struct config *c, const struct config_row *row)
{
    return row->alone_text && config_is_alone(c) ? row->alone_text : row->default_text;
}

static int load_value(struct config *c, const struct config_row *row, char *err, size_t err_n)
{
    const char *text = props_get(c->effective, row->name);
    bool given = text != NULL;
    if (!text)
        text = config_default(c, row);
    struct config_value *v = &c->values[row_index(row)];
    if (!text)
        return 0;
    char *problem = config_value_parse(row->name, row->type, &row->valid, text, v);
    if (problem) {
        config_add_problem(err, err_n, problem);
        free(problem);
        return -EINVAL;
    }
    if (!v->text)
        return -ENOMEM;
    v->given = given;
    return 0;
}

static int load_values(struct config *c, char *err, size_t err_n)
{
    int n;
    const struct config_row *rows = config_rows(&n);
    c->values = calloc((size_t)n, sizeof(*c->values));
    if (!c->values)
        return -ENOMEM;
    int rc = 0;
    for (int i = 0; i < n && config_goes_on(c, rc); i++)
        rc = config_first(rc, load_value(c, &rows[i], err, err_n));
    return rc;
}

/* ---- what concerns several keys ---- */

static int refuse(char *err, size_t err_n, const char *key, int64_t value, const char *allowed)
{
    snprintf(err, err_n, "Invalid value %lld for configuration %s: must be %s", (long long)value,
             key, allowed);
    return -EINVAL;
}

static int load_broker_id(struct config *c, char *err, size_t err_n)
{
    int64_t id = config_int(c, "broker.id"), node = config_int(c, "node.id");
    if (config_is_given(c, "broker.id") && config_is_given(c, "node.id") && id != node)
        return refuse(err, err_n, "node.id", node, "the same as broker.id");
    if (!config_is_given(c, "broker.id"))
        id = node;
    const char *key = config_is_given(c, "broker.id") ? "broker.id" : "node.id";
    int64_t most = config_int(c, "reserved.broker.max.id");
    if (id < -1)
        return refuse(err, err_n, key, id, "at least 0, or -1 for a generated one");
    if (config_bool(c, "broker.id.generation.enable") && id > most) {
        snprintf(err, err_n,
                 "Invalid value %lld for configuration %s: must be from -1 to %lld "
                 "(reserved.broker.max.id) while broker.id.generation.enable is true",
                 (long long)id, key, (long long)most);
        return -EINVAL;
    }
    if (!config_bool(c, "broker.id.generation.enable") && id < 0)
        return refuse(err, err_n, key, id, "at least 0 while broker.id.generation.enable is false");
    c->broker_id = (int)id;
    return 0;
}

/* The path by which two names of one folder are told: resolved as far as it exists. */
static char *canonical_path(const char *path)
{
    char *real = realpath(path, NULL);
    if (real)
        return real;
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    return strndup(path, n);
}

static int check_same_dir(const struct config *c, const char *key, char *err, size_t err_n)
{
    int rc = 0;
    for (int i = 0; i < c->log_dirs_n && !rc; i++) {
        char *a = canonical_path(c->log_dirs[i]);
        for (int j = 0; j < i && !rc; j++) {
            char *b = canonical_path(c->log_dirs[j]);
            if (!a || !b)
                rc = -ENOMEM;
            else if (strcmp(a, b) == 0)
                rc = -EINVAL;
            free(b);
        }
        free(a);
        if (rc == -EINVAL)
            snprintf(err, err_n,
                     "Invalid value %s for configuration %s: must be folders that differ",
                     config_string(c, key), key);
    }
    return rc;
}

static int load_log_dirs(struct config *c, char *err, size_t err_n)
{
    const char *key = config_string(c, "log.dirs") ? "log.dirs" : "log.dir";
    const char *text = config_string(c, key);
    struct str e;
    for (const char *at = text; config_list_next(&at, &e);) {
        if (e.len == 0)
            continue;
        char **more = realloc(c->log_dirs, sizeof(*more) * (size_t)(c->log_dirs_n + 1));
        if (!more)
            return -ENOMEM;
        c->log_dirs = more;
        c->log_dirs[c->log_dirs_n] = str_dup(e);
        if (!c->log_dirs[c->log_dirs_n++])
            return -ENOMEM;
    }
    if (c->log_dirs_n == 0) {
        snprintf(err, err_n,
                 "Invalid value '%s' for configuration %s: must name at least one folder", text,
                 key);
        return -EINVAL;
    }
    return check_same_dir(c, key, err, err_n);
}

static int load_level(struct config *c, char *err, size_t err_n)
{
    int major, minor;
    config_level_parse(config_string(c, "inter.broker.protocol.version"), &major, &minor,
                       &c->ibp_iv);
    c->ibp = major * 100 + minor;
    return 0;
}

/* a <= b, both whole numbers. */
static int check_order(const struct config *c, const char *a, const char *b, char *err,
                       size_t err_n)
{
    if (config_int(c, a) <= config_int(c, b))
        return 0;
    snprintf(err, err_n,
             "Invalid value %lld for configuration %s: must be at most %s, which is %lld",
             (long long)config_int(c, a), a, b, (long long)config_int(c, b));
    return -EINVAL;
}

static int check_network(const struct config *c, char *err, size_t err_n)
{
    int64_t memory = config_int(c, "queued.max.request.bytes");
    if (memory > 0 && memory < config_int(c, "socket.request.max.bytes"))
        return refuse(err, err_n, "queued.max.request.bytes", memory,
                      "at least socket.request.max.bytes, or -1 for no limit");
    int64_t delay = config_int(c, "connection.failed.authentication.delay.ms");
    int64_t idle = config_int(c, "connections.max.idle.ms");
    if (idle > 0 && delay >= idle)
        return refuse(err, err_n, "connection.failed.authentication.delay.ms", delay,
                      "less than connections.max.idle.ms");
    if (config_int(c, "max.connections.per.ip") == 0 &&
        !*config_string(c, "max.connections.per.ip.overrides"))
        return refuse(err, err_n, "max.connections.per.ip", 0,
                      "at least 1 unless max.connections.per.ip.overrides names exceptions");
    return 0;
}

static int check_cleaner(const struct config *c, char *err, size_t err_n)
{
    int64_t threads = config_int(c, "log.cleaner.threads");
    int64_t memory = config_int(c, "log.cleaner.dedupe.buffer.size");
    if (config_bool(c, "log.cleaner.enable") && threads > 0 && memory / threads <= 1048576)
        return refuse(err, err_n, "log.cleaner.dedupe.buffer.size", memory,
                      "more than 1048576 for each of log.cleaner.threads");
    return 0;
}

static int check_offsets(const struct config *c, char *err, size_t err_n)
{
    int64_t acks = config_int(c, "offsets.commit.required.acks");
    if (acks < -1 || acks > config_int(c, "offsets.topic.replication.factor"))
        return refuse(err, err_n, "offsets.commit.required.acks", acks,
                      "from -1 to offsets.topic.replication.factor");
    return 0;
}

/* Allowed, since it is Kafka's own default; but the topic cannot be made. */
static int report_too_many_replicas(const struct config *c, char *err, size_t err_n)
{
    static const struct {
        const char *key, *topic, *who;
    } internal[] = {
        {"offsets.topic.replication.factor", "__consumer_offsets", "consumer group"},
        {"transaction.state.log.replication.factor", "__transaction_state", "transaction"},
        {"transaction.state.log.min.isr", "__transaction_state", "transaction"},
    };
    (void)err;
    (void)err_n;
    for (size_t i = 0; i < sizeof(internal) / sizeof(*internal); i++) {
        int64_t n = config_int(c, internal[i].key);
        if (config_is_alone(c) && !c->again && n > 1)
            say_warn("config",
                     "%s is %lld, but a broker without zookeeper.connect is the only one: at most "
                     "1 is allowed, so no %s works until the key is 1 or left out (%s)",
                     internal[i].key, (long long)n, internal[i].who, internal[i].topic);
    }
    return 0;
}

static int check_replication(const struct config *c, char *err, size_t err_n)
{
    int rc = check_order(c, "replica.fetch.wait.max.ms", "replica.socket.timeout.ms", err, err_n);
    if (!rc)
        rc = check_order(c, "replica.fetch.wait.max.ms", "replica.lag.time.max.ms", err, err_n);
    return rc;
}

/* ---- all of it ---- */

void config_add_problem(char *err, size_t err_n, const char *line)
{
    size_t at = strnlen(err, err_n);
    if (at < err_n)
        snprintf(err + at, err_n - at, "%s%s", at ? "\n" : "", line);
}

int config_first(int rc, int more)
{
    return rc && more != -ENOMEM ? rc : more;
}

bool config_goes_on(const struct config *c, int rc)
{
    return rc == 0 || (rc == -EINVAL && !c->again);
}

static int load_groups(struct config *c, char *err, size_t err_n)
{
    static int (*const loads[])(struct config *, char *, size_t) = {
        load_broker_id, load_log_dirs, load_level, config_listeners_load, config_log_defaults_load};
    int rc = 0;
    for (size_t i = 0; i < sizeof(loads) / sizeof(*loads) && config_goes_on(c, rc); i++) {
        char line[PROBLEM_MAX] = "";
        rc = config_first(rc, loads[i](c, line, sizeof(line)));
        if (*line)
            config_add_problem(err, err_n, line);
    }
    return rc;
}

static int check_groups(const struct config *c, char *err, size_t err_n)
{
    static int (*const checks[])(const struct config *, char *, size_t) = {
        check_network, check_replication, check_cleaner, check_offsets, report_too_many_replicas};
    int rc = 0;
    for (size_t i = 0; i < sizeof(checks) / sizeof(*checks) && config_goes_on(c, rc); i++) {
        char line[PROBLEM_MAX] = "";
        rc = config_first(rc, checks[i](c, line, sizeof(line)));
        if (*line)
            config_add_problem(err, err_n, line);
    }
    return rc;
}

/* Goes on behind a value that is refused, so that all of them are told at once. */
static int load_all(struct config *c, char *err, size_t err_n)
{
    int rc = config_keys_mode(c, err, err_n);
    if (rc)
        return rc; /* the rest of a file of another mode means little */
    rc = load_values(c, err, err_n);
    if (config_goes_on(c, rc))
        rc = config_first(rc, config_keys_check(c, err, err_n));
    if (rc)
        return rc; /* what looks at several values needs all of them */
    rc = load_groups(c, err, err_n);
    if (config_goes_on(c, rc))
        rc = config_first(rc, check_groups(c, err, err_n));
    return rc;
}

/* Takes all props; NULL ones are a lack of memory. */
static int load(struct props *given, struct props *effective, struct props *const dynamic[LAYERS],
                bool again, struct config **out, char *err, size_t err_n)
{
    struct config *c = calloc(1, sizeof(*c));
    bool complete = given && effective;
    for (int i = 0; i < LAYERS; i++)
        complete &= dynamic[i] != NULL;
    if (!c) {
        props_free(given);
        props_free(effective);
        for (int i = 0; i < LAYERS; i++)
            props_free(dynamic[i]);
        return -ENOMEM;
    }
    atomic_init(&c->refs, 1);
    c->given = given;
    c->effective = effective;
    memcpy(c->dynamic, dynamic, sizeof(c->dynamic));
    c->again = again;
    int rc = complete ? load_all(c, err, err_n) : -ENOMEM;
    if (rc == 0) {
        *out = c;
        return 0;
    }
    if (rc == -ENOMEM)
        snprintf(err, err_n, "out of memory while reading the settings");
    config_free(c);
    return rc;
}

int config_load(struct props *given, struct config **out, char *err, size_t err_n)
{
    *out = NULL;
    if (err_n)
        *err = 0;
    struct props *none[LAYERS] = {props_new(), props_new()};
    return load(given, props_copy(given), none, false, out, err, err_n);
}

int config_with_dynamic(const struct config *base, const struct props *const layers[LAYERS],
                        struct config **out, char *err, size_t err_n)
{
    *out = NULL;
    if (err_n)
        *err = 0;
    struct props *dynamic[LAYERS], *effective = props_copy(base->given);
    for (int i = LAYERS - 1; i >= 0; i--) { /* the last one wins */
        dynamic[i] = layers[i] ? props_copy(layers[i]) : props_new();
        if (effective && dynamic[i] && put_over(effective, dynamic[i]) != 0) {
            props_free(effective);
            effective = NULL;
        }
    }
    return load(props_copy(base->given), effective, dynamic, true, out, err, err_n);
}

const struct config *config_ref(const struct config *c)
{
    atomic_fetch_add(&((struct config *)c)->refs, 1);
    return c;
}

static void free_all(struct config *c)
{
    int n;
    config_rows(&n);
    for (int i = 0; c->values && i < n; i++)
        text_wipe_free(c->values[i].text);
    free(c->values);
    config_listeners_free(c);
    for (int i = 0; i < c->log_dirs_n; i++)
        free(c->log_dirs[i]);
    free(c->log_dirs);
    props_free(c->given);
    props_free(c->effective);
    for (int i = 0; i < LAYERS; i++)
        props_free(c->dynamic[i]);
    free(c);
}

void config_unref(const struct config *c)
{
    struct config *own = (struct config *)c;
    if (own && atomic_fetch_sub(&own->refs, 1) == 1)
        free_all(own);
}

void config_free(struct config *c)
{
    config_unref(c);
}
