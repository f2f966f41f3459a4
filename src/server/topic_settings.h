/* topic_settings.h - the settings of a topic as clients see them: value, where it comes from, and
 * the values it stands before. For DescribeConfigs and the answer of CreateTopics.
 *
 * THREADS    any: no state.
 *
 * OWNERSHIP  a setting borrows from config, overrides and arena. */
#ifndef SERVER_TOPIC_SETTINGS_H
#define SERVER_TOPIC_SETTINGS_H

#include "base/arena.h"
#include "server/config.h"

/* Numbers on the wire. */
enum config_source {
    SOURCE_TOPIC = 1,
    SOURCE_BROKER_DYNAMIC = 2,
    SOURCE_BROKERS_DYNAMIC = 3,
    SOURCE_STATIC = 4,
    SOURCE_DEFAULT = 5,
};

struct setting_synonym {
    const char *name;
    const char *value; /* NULL = null */
    enum config_source source;
};
enum { SETTING_SYNONYMS_MAX = 13 }; /* a topic's own, and three keys in four places */

struct setting {
    const char *name;
    const char *value; /* NULL = null, or not to be shown */
    enum config_source source;
    bool sensitive;
    /* The value in force comes first. */
    struct setting_synonym synonyms[SETTING_SYNONYMS_MAX];
    int synonyms_n;
};

/* A topic's row; `overrides` are the topic's own settings (may be NULL). Texts are borrowed from
 * config and overrides, or made in the arena. 0 or -ENOMEM. */
int topic_setting(const struct config *c, const struct topic_config_row *row,
                  const struct props *overrides, struct arena *a, struct setting *out);
/* A broker's row. */
void broker_setting(const struct config *c, const struct config_row *row, struct setting *out);
/* A dynamic key without a row: a listener's, or one that only somebody else knows. */
void broker_other_setting(const struct config *c, const char *key, struct setting *out);
/* A key that is set for all brokers, as that and nothing else. */
void cluster_setting(const struct config *c, const char *key, struct setting *out);
/* The number of a type on the wire (DescribeConfigs v3). */
int8_t config_type_code(enum config_type type);

#endif
