/* config.h - the broker's settings: one table (config_table.def) with a row per key, and the values
 * of one broker.
 *
 * A row: name, type, default, valid values, importance of change (read-only, per-broker,
 * cluster-wide), topic-level name, whether it has an effect yet, doc. From it come parsing,
 * --check-config, docs/configuration.md, DescribeConfigs, topic config checks.
 *
 * DYNAMIC  Settings changed while running lie in two layers above the file's: those of all brokers,
 * and on top those of this one. With them a new struct config is made (config_with_dynamic).
 *
 * THREADS  struct config is immutable and counted; a change of dynamic settings makes another one
 * (dynamic_config.h says which is in force). */
#ifndef SERVER_CONFIG_H
#define SERVER_CONFIG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/props.h"
#include "log/log_config.h"
#include "protocol/api.h"

enum config_type {
    CONFIG_BOOL,
    CONFIG_INT,
    CONFIG_LONG,
    CONFIG_DOUBLE,
    CONFIG_STRING,
    CONFIG_LIST,
    CONFIG_PASSWORD,
    CONFIG_CLASS,
    CONFIG_SHORT
};
enum config_update { UPDATE_READ_ONLY, UPDATE_PER_BROKER, UPDATE_CLUSTER_WIDE };
enum config_flag {
    CONFIG_HIDDEN = 1, /* internal: accepted, never shown */
    CONFIG_OLD = 2,    /* of Kafka 2.3, gone in 3.9: shown only when given */
    CONFIG_OWN = 8,    /* no key of Kafka's brokers: shown only when given */
    CONFIG_DYNAMIC =
        4, /* only as a dynamic setting: no effect in the file, shown only when given */
};

/* What a value may be, besides being of its type. */
struct config_valid {
    double min, max;    /* numbers; infinite = the type's */
    const char *one_of; /* "a,b,c": a string, or each element of a list; NULL = anything */
    bool any_case;      /* one_of is compared without case */
    /* NULL = legal, else what is allowed (static). NULL function = no such check. */
    const char *(*problem)(const char *value);
};

struct config_row {
    const char *name;
    enum config_type type;
    const char *default_text; /* NULL = null */
    const char *alone_text;   /* default of a broker without zookeeper.connect; NULL = the same */
    struct config_valid valid;
    enum config_update update;
    const char *topic_name; /* topic-level name, or NULL */
    bool has_effect;        /* false: accepted, does nothing yet */
    unsigned flags;         /* enum config_flag */
    const char *doc;
};
/* All rows in order of name; the topic table likewise (topic settings with their broker synonyms).
 * Static. */
const struct config_row *config_rows(int *n);
const struct config_row *config_find(struct str name);
struct topic_config_row {
    const char *name;
    enum config_type type;
    const char *default_text;
    struct config_valid valid;
    const char *synonyms[4]; /* broker keys in order of priority; NULL-ended */
    bool has_effect;
    const char *doc;
};
const struct topic_config_row *topic_config_rows(int *n);
const struct topic_config_row *topic_config_find(struct str name);
/* NULL = legal; else malloc'ed text naming key, value and what is allowed. value null is refused.
 */
char *topic_config_check(void *arg, struct str name, struct str value);

enum security_protocol {
    PROTOCOL_PLAINTEXT,
    PROTOCOL_SSL,
    PROTOCOL_SASL_PLAINTEXT,
    PROTOCOL_SASL_SSL
};

struct listener_config {
    char *name;                /* upper case */
    char *host;                /* "" = all */
    int port;                  /* 0 = any free */
    int16_t security_protocol; /* enum security_protocol */
    char *advertised_host;     /* never ""; NULL: this listener is not advertised */
    int advertised_port;       /* 0: the bound one */
};

static inline bool listener_has_tls(const struct listener_config *l)
{
    return l->security_protocol == PROTOCOL_SSL || l->security_protocol == PROTOCOL_SASL_SSL;
}

struct config_value;

/* Of dynamic settings; the first wins. */
enum config_layer { LAYER_BROKER, LAYER_CLUSTER, LAYERS };

struct config {
    struct props *given;           /* what the file and overrides said */
    struct props *dynamic[LAYERS]; /* settings changed while running */
    int broker_id;                 /* broker.id or node.id; -1 = to be found out */
    int listeners_n;
    struct listener_config *listeners;
    const char *inter_broker_listener; /* a name of listeners */
    int log_dirs_n;
    char **log_dirs;
    int ibp;    /* inter.broker.protocol.version as major * 100 + minor, e.g. 309 */
    int ibp_iv; /* its step: 2 of 2.7-IV2 */
    struct log_config log_defaults;
    /* private to config.c */
    struct props *effective;     /* given, with the dynamic ones on top */
    struct config_value *values; /* one per row */
    bool again;                  /* made from another one: what is odd was said then */
    atomic_int refs;
};

/* Parses and checks everything. Unknown keys are warned of, with the known one that they are like.
 * 0, or -EINVAL with a line for each thing that is refused (separated by '\n'), naming key, value
 * and what is allowed. Takes `given` in both cases. */
int config_load(struct props *given, struct config **out, char *err, size_t err_n);
/* The settings of `base` with other dynamic layers (copied; NULL = none), checked as at the start;
 * a dynamic key hides those of the same family below it (log.roll.hours a log.roll.ms). As
 * config_load, but without log lines about keys, and err has one line only. */
int config_with_dynamic(const struct config *base, const struct props *const layers[LAYERS],
                        struct config **out, char *err, size_t err_n);
/* One more, one less reference; the last one frees. @thread any */
const struct config *config_ref(const struct config *c);
void config_unref(const struct config *c); /* NULL is fine */
void config_free(struct config *c);        /* the same */

/* Effective values by name (row must exist and be of the type): given, else the default; priorities
 * (ms over minutes over hours, ...) are resolved by config_load into log_defaults and are not seen
 * here. A number that is null is INT64_MIN. */
bool config_bool(const struct config *c, const char *name);
int64_t config_int(const struct config *c, const char *name);
double config_double(const struct config *c, const char *name);
const char *config_string(const struct config *c, const char *name); /* NULL = null; borrowed */
/* What the setting is when it is not given: a broker on the embedded store is alone for ever, which
 * changes some. NULL = null; static. */
const char *config_default(const struct config *c, const struct config_row *row);
/* Is it given, or the default? */
bool config_is_given(const struct config *c, const char *name);
/* What one listener has of a setting ("listener.name.<listener>.<name>"): its own value, else
 * `otherwise`. The setting is a whole number. */
int64_t config_listener_int(const struct config *c, const char *listener, const char *name,
                            int64_t otherwise);
/* The same as text, falling back to the setting without a prefix; with a SASL mechanism ("PLAIN";
 * NULL = none) "listener.name.<listener>.<mechanism>.<name>" comes first. NULL = null; borrowed. */
const char *config_listener_string(const struct config *c, const char *listener,
                                   const char *mechanism, const char *name);
/* The setting that a key sets: its own row, or that behind "listener.name.<listener>.", where
 * *listener is then true (may be NULL). NULL = none. Static. */
const struct config_row *config_row_of(const char *key, bool *listener);
/* The keys that stand in for one another (log.roll.ms, log.roll.hours), the one that wins first,
 * ended by NULL. NULL = the key is alone. Static. */
const char *const *config_family(const char *name);
/* The value of any row as text, in the form that DescribeConfigs shows. NULL = null; borrowed. */
const char *config_text(const struct config *c, const struct config_row *row);
/* The settings of a topic: the broker's, then the overrides name=value in `overrides` (may be
 * NULL). An override that is not legal is passed over. */
void config_topic(const struct config *c, const struct props *overrides, struct log_config *out);

/* The page docs/configuration.md. */
void config_docs_print(struct buf *out);

#endif
