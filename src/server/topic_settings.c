/* topic_settings.c - see topic_settings.h. */
#include "server/topic_settings.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

int8_t config_type_code(enum config_type type)
{
    static const int8_t codes[] = {
        [CONFIG_BOOL] = 1,  [CONFIG_STRING] = 2, [CONFIG_INT] = 3,
        [CONFIG_SHORT] = 4, [CONFIG_LONG] = 5,   [CONFIG_DOUBLE] = 6,
        [CONFIG_LIST] = 7,  [CONFIG_CLASS] = 8,  [CONFIG_PASSWORD] = 9,
    };
    return codes[type];
}

static void add_synonym(struct setting *s, const char *name, const char *value,
                        enum config_source source)
{
    if (s->synonyms_n < SETTING_SYNONYMS_MAX)
        s->synonyms[s->synonyms_n++] =
            (struct setting_synonym){name, s->sensitive ? NULL : value, source};
}

static void add_from(const struct props *p, const char *const *names, enum config_source source,
                     struct setting *s)
{
    for (int i = 0; names[i]; i++) {
        const char *text = props_get(p, names[i]);
        if (text)
            add_synonym(s, names[i], text, source);
    }
}

/* Broker keys, the one that wins first, by where they are set: here, for all brokers, in the file,
 * and the defaults. */
static void add_broker_synonyms(const struct config *c, const char *const *names, struct setting *s)
{
    add_from(c->dynamic[LAYER_BROKER], names, SOURCE_BROKER_DYNAMIC, s);
    add_from(c->dynamic[LAYER_CLUSTER], names, SOURCE_BROKERS_DYNAMIC, s);
    add_from(c->given, names, SOURCE_STATIC, s);
    for (int i = 0; names[i]; i++) {
        const char *text = config_default(c, config_find(str_of(names[i])));
        if (text)
            add_synonym(s, names[i], text, SOURCE_DEFAULT);
    }
}

/* Milliseconds whose broker keys come in several units. */
static bool ms_of(const struct log_config *d, const char *name, int64_t *out)
{
    if (strcmp(name, "segment.ms") == 0)
        *out = d->segment_ms;
    else if (strcmp(name, "segment.jitter.ms") == 0)
        *out = d->segment_jitter_ms;
    else if (strcmp(name, "retention.ms") == 0)
        *out = d->retention_ms;
    else if (strcmp(name, "flush.ms") == 0)
        *out = d->flush_ms;
    else if (strcmp(name, "message.timestamp.before.max.ms") == 0)
        *out = d->timestamp_before_max_ms;
    else if (strcmp(name, "message.timestamp.after.max.ms") == 0)
        *out = d->timestamp_after_max_ms;
    else
        return false;
    return true;
}

/* What holds for topics without an override. */
static int inherited(const struct config *c, const struct topic_config_row *row, struct arena *a,
                     const char **out)
{
    int64_t ms;
    if (ms_of(&c->log_defaults, row->name, &ms)) {
        *out = arena_printf(a, "%" PRId64, ms);
        return *out ? 0 : -ENOMEM;
    }
    *out = row->synonyms[0] ? config_text(c, config_find(str_of(row->synonyms[0])))
                            : row->default_text;
    return 0;
}

int topic_setting(const struct config *c, const struct topic_config_row *row,
                  const struct props *overrides, struct arena *a, struct setting *out)
{
    *out = (struct setting){.name = row->name, .sensitive = row->type == CONFIG_PASSWORD};
    const char *own = overrides ? props_get(overrides, row->name) : NULL;
    if (own)
        add_synonym(out, row->name, own, SOURCE_TOPIC);
    add_broker_synonyms(c, row->synonyms, out);
    out->source = out->synonyms_n ? out->synonyms[0].source : SOURCE_DEFAULT;
    int rc = 0;
    if (own)
        out->value = own;
    else
        rc = inherited(c, row, a, &out->value);
    if (out->sensitive)
        out->value = NULL;
    return rc;
}

/* A key's own row begins with the key itself: what wins over it is told where that is described. */
static void drop_others_in_front(struct setting *s)
{
    int k = 0;
    while (k < s->synonyms_n && strcmp(s->synonyms[k].name, s->name) != 0)
        k++;
    s->synonyms_n -= k;
    memmove(s->synonyms, s->synonyms + k, sizeof(*s->synonyms) * (size_t)s->synonyms_n);
}

void broker_setting(const struct config *c, const struct config_row *row, struct setting *out)
{
    *out = (struct setting){.name = row->name, .sensitive = row->type == CONFIG_PASSWORD};
    const char *const alone[] = {row->name, NULL};
    const char *const *family = config_family(row->name);
    add_broker_synonyms(c, family ? family : alone, out);
    drop_others_in_front(out);
    out->source = out->synonyms_n ? out->synonyms[0].source : SOURCE_DEFAULT;
    out->value = out->sensitive ? NULL : config_text(c, row);
}

/* Who knows the type knows whether it is a secret. */
static bool is_secret(const char *key)
{
    const struct config_row *row = config_row_of(key, NULL);
    return !row || row->type == CONFIG_PASSWORD;
}

static void first_of(struct setting *s)
{
    s->source = s->synonyms_n ? s->synonyms[0].source : SOURCE_DEFAULT;
    s->value = s->synonyms_n ? s->synonyms[0].value : NULL;
}

void broker_other_setting(const struct config *c, const char *key, struct setting *out)
{
    const char *const alone[] = {key, NULL};
    *out = (struct setting){.name = key, .sensitive = is_secret(key)};
    add_from(c->dynamic[LAYER_BROKER], alone, SOURCE_BROKER_DYNAMIC, out);
    add_from(c->dynamic[LAYER_CLUSTER], alone, SOURCE_BROKERS_DYNAMIC, out);
    add_from(c->given, alone, SOURCE_STATIC, out);
    first_of(out);
}

void cluster_setting(const struct config *c, const char *key, struct setting *out)
{
    const char *const alone[] = {key, NULL};
    *out = (struct setting){.name = key, .sensitive = is_secret(key)};
    add_from(c->dynamic[LAYER_CLUSTER], alone, SOURCE_BROKERS_DYNAMIC, out);
    first_of(out);
}
