/* config_value.h - one value of a setting: parsing by type as Java does it, the check against what
 * is valid, and the words for it.
 *
 * THREADS  any: no state. A value belongs to whoever holds it. */
#ifndef SERVER_CONFIG_VALUE_H
#define SERVER_CONFIG_VALUE_H

#include "server/config.h"

struct config_value {
    bool given;
    char *text; /* trimmed and in normal form (lists joined by ","); NULL = null; owned */
    union {
        bool b;
        int64_t i;
        double d;
    };
};

/* Fills *out (its text is owned by the caller). NULL, or malloc'ed text naming key, value and what
 * is allowed; then *out is cleared. Without memory the text may be NULL and out->text is, too. */
char *config_value_parse(const char *name, enum config_type type, const struct config_valid *valid,
                         const char *text, struct config_value *out);
/* "a whole number (int) from 1 to 17": what a value may be, for messages and docs. */
void config_valid_describe(enum config_type type, const struct config_valid *valid,
                           struct buf *out);
/* Walks a comma-separated list: the next element without blanks around it; false at the end. Empty
 * text has no elements. `at` starts at the text. */
bool config_list_next(const char **at, struct str *element);

/* Checks of single values, for the tables. NULL = legal, else what is allowed (static). */
const char *config_gzip_level_problem(const char *value);
const char *config_throttled_replicas_problem(const char *value);
const char *config_host_counts_problem(const char *value);
const char *config_address_problem(const char *value);
const char *config_level_problem(const char *value);
const char *config_format_problem(const char *value);

/* "host:port", "[::1]:port", ":port" (all addresses). False when it is none. */
struct config_address {
    char host[256]; /* "" = all */
    int port;       /* 0 = any free one */
};
bool config_address_parse(const char *text, struct config_address *out);

/* "2.7-IV1", "2.7", "2.7.1" -> major, minor, step (the last of the release when not named). False
 * when no release of Kafka is called so. */
bool config_level_parse(const char *text, int *major, int *minor, int *iv);

/* Why a setting without effect has none; NULL: nobody has said so. Static. */
const char *config_idle_reason(const char *name);

#endif
