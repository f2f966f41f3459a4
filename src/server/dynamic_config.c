/* dynamic_config.c - see dynamic_config.h.
 *
 * A key is judged first by itself (may it change while running, at this level, to this value), then
 * all of them together by loading the settings anew. */
#include "server/dynamic_config.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "base/logline.h"
#include "server/config_value.h"

static const char component[] = "DynamicConfig";

struct dynamic_config {
    pthread_mutex_t lock;
    const struct config *now;
    char *(*check)(void *arg, const struct config *now, const struct config *then);
    void *check_arg;
};

struct dynamic_config *dynamic_config_new(const struct config *start)
{
    struct dynamic_config *d = calloc(1, sizeof(*d));
    if (!d)
        return NULL;
    pthread_mutex_init(&d->lock, NULL);
    d->now = config_ref(start);
    return d;
}

void dynamic_config_free(struct dynamic_config *d)
{
    if (!d)
        return;
    config_unref(d->now);
    pthread_mutex_destroy(&d->lock);
    free(d);
}

void dynamic_config_set_check(struct dynamic_config *d,
                              char *(*check)(void *arg, const struct config *now,
                                             const struct config *then),
                              void *arg)
{
    d->check = check;
    d->check_arg = arg;
}

const struct config *dynamic_config_ref(struct dynamic_config *d)
{
    pthread_mutex_lock(&d->lock);
    const struct config *c = config_ref(d->now);
    pthread_mutex_unlock(&d->lock);
    return c;
}

/* ---- one key ---- */

static bool among(const char *name, const char *const *names)
{
    for (; *names; names++)
        if (strcmp(name, *names) == 0)
            return true;
    return false;
}

/* Of TLS: changed for one listener only. */
static bool is_per_listener(const char *name)
{
    static const char *const names[] = {"ssl.key.password",
                                        "ssl.keystore.certificate.chain",
                                        "ssl.keystore.key",
                                        "ssl.keystore.location",
                                        "ssl.keystore.password",
                                        "ssl.keystore.type",
                                        "ssl.truststore.certificates",
                                        "ssl.truststore.location",
                                        "ssl.truststore.password",
                                        "ssl.truststore.type",
                                        NULL};
    return among(name, names);
}

/* Of a listener, and yet for all brokers. */
static bool is_cluster_wide_listener_key(const char *name)
{
    static const char *const names[] = {"max.connection.creation.rate", "max.connections",
                                        "num.network.threads", NULL};
    return among(name, names);
}

/* In order of being told; a key that fits several is told of the first. */
enum fault { FIXED, NEEDS_LISTENER, ONE_BROKER, PASSWORD, FAULTS, SOUND = FAULTS };

static const char *const fault_texts[FAULTS] = {
    [FIXED] = "Cannot update these configs dynamically",
    [NEEDS_LISTENER] = ("These security configs can be dynamically updated only per-listener using "
                        "the listener prefix"),
    [ONE_BROKER] =
        "Cannot update these configs at default cluster level, broker id must be specified",
    [PASSWORD] = "Passwords cannot be stored in this version, give them in the file",
};

static enum fault fault_of(enum config_layer layer, const char *key)
{
    bool listener;
    const struct config_row *row = config_row_of(key, &listener);
    if (!row)
        return SOUND; /* as in the file: somebody else's */
    if (row->update == UPDATE_READ_ONLY && !listener)
        return FIXED;
    if (!listener && is_per_listener(row->name))
        return NEEDS_LISTENER;
    bool own =
        listener ? !is_cluster_wide_listener_key(row->name) : row->update == UPDATE_PER_BROKER;
    if (layer == LAYER_CLUSTER && own)
        return ONE_BROKER;
    if (row->type == CONFIG_PASSWORD)
        return PASSWORD;
    return SOUND;
}

static char *value_problem(const char *key, const char *value)
{
    struct config_value v;
    const struct config_row *row = config_row_of(key, NULL);
    if (!row)
        return NULL;
    char *problem = config_value_parse(key, row->type, &row->valid, value, &v);
    free(v.text);
    return problem;
}

/* ---- a proposed layer ---- */

static char *keys_at_fault(enum config_layer layer, const struct props *p, enum fault fault)
{
    struct buf b = BUF_INIT;
    for (size_t i = 0; i < props_count(p); i++) {
        const char *key, *value;
        props_at(p, i, &key, &value);
        if (fault_of(layer, key) == fault)
            buf_printf(&b, "%s%s", b.len ? ", " : fault_texts[fault], b.len ? "" : ": ");
        else
            continue;
        buf_printf(&b, "%s", key);
    }
    if (b.len)
        buf_put_i8(&b, 0);
    return (char *)buf_take(&b, &(size_t){0});
}

static char *first_bad_value(const struct props *p)
{
    char *problem = NULL;
    for (size_t i = 0; i < props_count(p) && !problem; i++) {
        const char *key, *value;
        props_at(p, i, &key, &value);
        problem = value_problem(key, value);
    }
    return problem;
}

/* Numbers of threads grow and shrink by half at most, so that a slip does no harm. */
static char *thread_problem(const struct config *now, const struct config *then)
{
    static const char *const keys[] = {"background.threads",  "num.io.threads",
                                       "num.network.threads", "num.replica.fetchers",
                                       "log.cleaner.threads", "num.recovery.threads.per.data.dir"};
    char *text = NULL;
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
        int64_t old = config_int(now, keys[i]), new = config_int(then, keys[i]);
        const char *limit = new < 1         ? "value should be at least 1"
                            : new < old / 2 ? "value should be at least half the current value"
                            : new > old * 2 ? "value should not be greater than double the "
                                              "current value"
                                            : NULL;
        if (!limit || new == old)
            continue;
        if (asprintf(&text, "Dynamic thread count update validation failed for %s=%lld, %s %lld",
                     keys[i], (long long)new, limit, (long long)old) < 0)
            text = NULL;
        break;
    }
    return text;
}

static const struct listener_config *listener_named(const struct config *c, const char *name,
                                                    size_t len)
{
    for (int i = 0; i < c->listeners_n; i++)
        if (strlen(c->listeners[i].name) == len &&
            strncasecmp(c->listeners[i].name, name, len) == 0)
            return &c->listeners[i];
    return NULL;
}

/* A key of a listener that is and stays there, which only a new listener would take up. Its
 * listener's name, or NULL. */
static const char *fixed_listener(const struct config *now, const struct config *then,
                                  const char *key)
{
    static const char prefix[] = "listener.name.";
    bool listener;
    const struct config_row *row = config_row_of(key, &listener);
    if (!row || !listener || is_per_listener(row->name) || is_cluster_wide_listener_key(row->name))
        return NULL;
    const char *name = key + strlen(prefix);
    size_t len = strcspn(name, ".");
    const struct listener_config *l = listener_named(now, name, len);
    return l && listener_named(then, name, len) ? l->name : NULL;
}

/* Is there a key of `a` that `b` does not have, or has with another value, and must not? */
static const char *changed_listener(const struct config *now, const struct config *then,
                                    const struct props *a, const struct props *b)
{
    for (size_t i = 0; i < props_count(a); i++) {
        const char *key, *value;
        props_at(a, i, &key, &value);
        const char *other = props_get(b, key);
        const char *name =
            other && strcmp(other, value) == 0 ? NULL : fixed_listener(now, then, key);
        if (name)
            return name;
    }
    return NULL;
}

/* What cannot change of a listener that stays. */
static char *listener_problem(const struct config *now, const struct config *then)
{
    char *text = NULL;
    for (int i = 0; i < now->listeners_n; i++) {
        const struct listener_config *l = &now->listeners[i];
        const struct listener_config *same = listener_named(then, l->name, strlen(l->name));
        if (!same || same->security_protocol == l->security_protocol)
            continue;
        if (asprintf(&text, "Security protocol cannot be updated for existing listener %s",
                     l->name) < 0)
            text = NULL;
        return text;
    }
    const char *name = NULL;
    for (int layer = 0; layer < LAYERS && !name; layer++) {
        name = changed_listener(now, then, now->dynamic[layer], then->dynamic[layer]);
        if (!name)
            name = changed_listener(now, then, then->dynamic[layer], now->dynamic[layer]);
    }
    if (name && asprintf(&text,
                         "Configs cannot be updated dynamically for existing listener %s, restart "
                         "broker or create a new listener for update",
                         name) < 0)
        text = NULL;
    return text;
}

static int with_layer(const struct config *now, enum config_layer layer, const struct props *p,
                      struct config **out, char *err, size_t err_n)
{
    const struct props *layers[LAYERS] = {now->dynamic[LAYER_BROKER], now->dynamic[LAYER_CLUSTER]};
    layers[layer] = p;
    return config_with_dynamic(now, layers, out, err, err_n);
}

char *dynamic_config_check(struct dynamic_config *d, enum config_layer layer,
                           const struct props *proposed, bool *ok)
{
    char err[512], *problem = NULL;
    struct config *then = NULL;
    *ok = false;
    for (int fault = 0; fault < FAULTS && !problem; fault++)
        problem = keys_at_fault(layer, proposed, (enum fault)fault);
    if (!problem)
        problem = first_bad_value(proposed);
    if (problem)
        return problem;
    const struct config *now = dynamic_config_ref(d);
    if (with_layer(now, layer, proposed, &then, err, sizeof(err)) != 0)
        problem = strdup(err);
    else if (!(problem = thread_problem(now, then)) && !(problem = listener_problem(now, then)) &&
             d->check)
        problem = d->check(d->check_arg, now, then);
    *ok = then && !problem;
    config_unref(then);
    config_unref(now);
    return problem;
}

/* ---- what the store holds ---- */

static void ignore(const char *key, enum config_layer layer, const char *why)
{
    say_error(component, "%s of %s is ignored: %s", key,
              layer == LAYER_CLUSTER ? "all brokers" : "this broker", why);
}

/* 0, or -1 without memory. */
static int take_pair(struct props *p, enum config_layer layer, const struct config_pair *pair)
{
    char *key = str_dup(pair->name), *value = str_dup(pair->value), *problem = NULL;
    int rc = 0;
    if (!key || (!value && !str_is_null(pair->value))) {
        rc = -1;
    } else if (value) {
        enum fault fault = fault_of(layer, key);
        if (fault != SOUND)
            ignore(key, layer, fault_texts[fault]);
        else if ((problem = value_problem(key, value)))
            ignore(key, layer, problem);
        else
            rc = props_set(p, key, value);
    }
    free(problem);
    free(key);
    free(value);
    return rc;
}

static struct props *legal_part(enum config_layer layer, struct config_list list)
{
    struct props *p = props_new();
    for (int i = 0; p && i < list.n; i++) {
        if (take_pair(p, layer, &list.v[i]) != 0) {
            props_free(p);
            p = NULL;
        }
    }
    return p;
}

static bool same_props(const struct props *a, const struct props *b)
{
    if (props_count(a) != props_count(b))
        return false;
    for (size_t i = 0; i < props_count(a); i++) {
        const char *key, *value, *other;
        props_at(a, i, &key, &value);
        other = props_get(b, key);
        if (!other || strcmp(value, other) != 0)
            return false;
    }
    return true;
}

bool dynamic_config_set(struct dynamic_config *d, enum config_layer layer, struct config_list list)
{
    char err[512] = "out of memory";
    struct config *then = NULL;
    struct props *p = legal_part(layer, list);
    pthread_mutex_lock(&d->lock);
    const struct config *old = d->now;
    bool same = p && same_props(old->dynamic[layer], p);
    if (p && !same && with_layer(old, layer, p, &then, err, sizeof(err)) == 0)
        d->now = then;
    pthread_mutex_unlock(&d->lock);
    props_free(p);
    if (then)
        config_unref(old);
    else if (!same)
        say_error(component, "changed settings cannot be applied, the former ones stay: %s", err);
    return then != NULL;
}
