/* topic_configs.h - the settings that topics override, kept beside the store so that any thread can
 * look them up, and the reader of /config/changes, which tells what to read again.
 *
 * A topic that is made gets its settings in the store without a notice: whoever makes its log calls
 * topic_configs_refresh first.
 * THREADS  stated at each function; the reader of notices runs on the executor. */
#ifndef METADATA_TOPIC_CONFIGS_H
#define METADATA_TOPIC_CONFIGS_H

#include "metadata/store.h"
#include "metadata/znode.h"

struct topic_configs;

struct topic_configs_options {
    struct store *store;
    struct executor *ex;
    const struct clock *clock;
    /* After a notice: the entity's settings in the store may differ, e.g. "topics/t" (then the new
     * overrides are in place already), "brokers/1", "users/u/clients/c". On ex. May be NULL. */
    void (*changed)(void *arg, struct str entity_path);
    void *arg;
};

/* Reads the overrides of all topics; 0 or -errno. @blocks, not on ex */
int topic_configs_open(const struct topic_configs_options *o, struct topic_configs **out);
/* Begins to follow notices; those that are there already are told first. What is kept of topics
 * that are long gone from the metadata cache (borrowed) is dropped now and then. @thread any, once
 */
void topic_configs_follow(struct topic_configs *t, struct metadata_cache *metadata);
/* Stops following; memory goes when what is under way at the store is answered. @thread ex's, or
 * any when ex no longer runs and the store is closed */
void topic_configs_close(struct topic_configs *t);

/* Overrides of one topic: immutable, counted. */
struct topic_overrides {
    struct config_list list;
};
/* Returns shared (unref); NULL = no overrides. @thread any */
const struct topic_overrides *topic_configs_get(struct topic_configs *t, struct str topic);
void topic_overrides_unref(const struct topic_overrides *o);
/* Value of one override, null when it is not overridden. Borrowed from o, which may be NULL. */
struct str topic_overrides_value(const struct topic_overrides *o, struct str name);

/* Reads the topic's overrides from the store now. 0 or -errno (then they are as before). @blocks,
 * not on ex @thread any */
int topic_configs_refresh(struct topic_configs *t, struct str topic);

#endif
