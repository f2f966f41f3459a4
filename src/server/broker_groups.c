/* broker_groups.c - see broker_groups.h. */
#include "server/broker_groups.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "coordinator/group_manager.h"
#include "metadata/paths.h"
#include "metadata/znode.h"
#include "server/broker_private.h"
#include "server/config_value.h"
#include "server/group_op.h"

enum { MS_PER_MINUTE = 60000, WORKERS_PER_LOAD = 4 };

static int fail(char *err, size_t err_n, int rc, const char *what)
{
    snprintf(err, err_n, "%s: %s", what, strerror(-rc));
    return rc;
}

int broker_internal_partitions(struct broker *b, const char *topic, const char *key, int32_t *out)
{
    struct arena a;
    struct bytes data;
    struct store_stat stat;
    struct topic_node node;
    arena_init(&a, 0);
    *out = (int32_t)config_int(b->config, key);
    char *path = path_topic(&a, str_of(topic));
    int rc = path ? store_get(b->store, path, &data, &stat) : -ENOMEM;
    if (rc == 0) {
        rc = znode_topic_decode(data, &a, &node);
        if (rc == 0 && node.partitions_n > 0)
            *out = node.partitions_n;
        free((void *)data.p);
    } else if (rc == -ENOENT) {
        rc = 0;
    }
    arena_free(&a);
    return rc;
}

static int64_t at_least_0(int64_t v)
{
    return v < 0 ? 0 : v;
}

/* ---- settings ---- */

static bool policy_is(const struct config *c, const char *a, const char *b)
{
    const char *policy = config_string(c, "group.consumer.migration.policy");
    return strcasecmp(policy, a) == 0 || strcasecmp(policy, b) == 0;
}

/* -EINVAL when there is none, too many, or one that is not known. */
static int load_assignors(const struct config *c, struct cgroup_config *out)
{
    struct str e;
    for (const char *at = config_string(c, "group.consumer.assignors");
         config_list_next(&at, &e);) {
        const struct assignor *a = assignor_of_class(e);
        if (!a || out->assignors_n == CGROUP_ASSIGNORS_MAX)
            return -EINVAL;
        out->assignors[out->assignors_n++] = a;
    }
    return out->assignors_n > 0 ? 0 : -EINVAL;
}

static struct cgroup_config consumers_config_of(const struct config *c)
{
    struct cgroup_config out = {
        .on = group_protocol_on(c, "consumer"),
        .session_ms = (int32_t)config_int(c, "group.consumer.session.timeout.ms"),
        .heartbeat_ms = (int32_t)config_int(c, "group.consumer.heartbeat.interval.ms"),
        .max_size = (int32_t)config_int(c, "group.consumer.max.size"),
        .upgrade = policy_is(c, "upgrade", "bidirectional"),
        .downgrade = policy_is(c, "downgrade", "bidirectional")};
    load_assignors(c, &out);
    return out;
}

static struct group_config group_config_of(const struct config *c)
{
    return (struct group_config){
        .consumers = consumers_config_of(c),
        .min_session_ms = (int32_t)config_int(c, "group.min.session.timeout.ms"),
        .max_session_ms = (int32_t)config_int(c, "group.max.session.timeout.ms"),
        .initial_delay_ms = at_least_0(config_int(c, "group.initial.rebalance.delay.ms")),
        .max_size = (int32_t)config_int(c, "group.max.size"),
        .metadata_max = (int32_t)config_int(c, "offset.metadata.max.bytes"),
        .retention_ms = config_int(c, "offsets.retention.minutes") * MS_PER_MINUTE,
        .versions = group_record_versions_of(c->ibp, c->ibp_iv)};
}

static int start_executors(struct broker *b)
{
    int n = (int)config_int(b->config, "group.coordinator.threads"), rc = 0;
    b->group_executors = calloc((size_t)n, sizeof(struct uv_executor *));
    if (!b->group_executors)
        return -ENOMEM;
    for (int i = 0; i < n && !rc; i++) {
        char name[16];
        snprintf(name, sizeof(name), "groups-%d", i % 1000);
        rc = uv_executor_start(name, &b->group_executors[i]);
        b->group_executors_n += rc == 0;
    }
    return rc;
}

static int make_manager(struct broker *b, int32_t partitions)
{
    const struct config *c = b->config;
    int loads = (int)config_int(c, "num.io.threads") / WORKERS_PER_LOAD;
    struct executor **executors = calloc((size_t)b->group_executors_n, sizeof(struct executor *));
    if (!executors)
        return -ENOMEM;
    for (int i = 0; i < b->group_executors_n; i++)
        executors[i] = uv_executor_ex(b->group_executors[i]);
    struct group_manager_options o = {
        .executors = executors,
        .shards = b->group_executors_n,
        .replicas = atomic_load(&b->replicas),
        .workers = b->workers,
        .clock = b->clock,
        .metadata = b->metadata,
        .config = group_config_of(c),
        .partitions_n = partitions,
        .check_interval_ms = config_int(c, "offsets.retention.check.interval.ms"),
        .codec = (enum codec)config_int(c, "offsets.topic.compression.codec"),
        .required_acks = (int16_t)config_int(c, "offsets.commit.required.acks"),
        .append_timeout_ms = config_int(c, "offsets.commit.timeout.ms"),
        .load_buffer_size = (size_t)config_int(c, "offsets.load.buffer.size"),
        .loads_at_once = loads > 1 ? loads : 1};
    int rc = group_manager_new(&o, &b->groups);
    free(executors);
    return rc;
}

static int check_within(const struct config *c, const char *what, char *err, size_t err_n)
{
    char key[64], low[64], high[64];
    snprintf(key, sizeof(key), "group.consumer.%s", what);
    snprintf(low, sizeof(low), "group.consumer.min.%s", what);
    snprintf(high, sizeof(high), "group.consumer.max.%s", what);
    int64_t v = config_int(c, key), from = config_int(c, low), to = config_int(c, high);
    if (v >= from && v <= to)
        return 0;
    snprintf(err, err_n,
             "Invalid value %lld for configuration %s: must be from %s (%lld) to %s (%lld)",
             (long long)v, key, low, (long long)from, high, (long long)to);
    return -EINVAL;
}

static int check_consumers(const struct config *c, char *err, size_t err_n)
{
    struct cgroup_config ignored = {0};
    if (!group_protocol_on(c, "classic") || group_protocol_on(c, "share") ||
        group_protocol_on(c, "unknown")) {
        snprintf(err, err_n,
                 "Invalid value %s for configuration group.coordinator.rebalance.protocols: must "
                 "be classic, or classic and consumer",
                 config_string(c, "group.coordinator.rebalance.protocols"));
        return -EINVAL;
    }
    if (load_assignors(c, &ignored) != 0) {
        snprintf(err, err_n,
                 "Invalid value %s for configuration group.consumer.assignors: must be %s, %s or "
                 "both",
                 config_string(c, "group.consumer.assignors"),
                 assignor_find(STR_LIT("uniform"))->class_name,
                 assignor_find(STR_LIT("range"))->class_name);
        return -EINVAL;
    }
    int rc = check_within(c, "session.timeout.ms", err, err_n);
    return rc ? rc : check_within(c, "heartbeat.interval.ms", err, err_n);
}

static int check_settings(const struct config *c, char *err, size_t err_n)
{
    int64_t codec = config_int(c, "offsets.topic.compression.codec");
    int64_t acks = config_int(c, "offsets.commit.required.acks");
    if (codec < 0 || codec >= CODECS) {
        snprintf(err, err_n,
                 "Invalid value %lld for configuration offsets.topic.compression.codec: must be 0 "
                 "(none), 1 (gzip), 2 (snappy), 3 (lz4) or 4 (zstd)",
                 (long long)codec);
        return -EINVAL;
    }
    if (acks < -1 || acks > config_int(c, "offsets.topic.replication.factor")) {
        snprintf(err, err_n,
                 "Invalid value %lld for configuration offsets.commit.required.acks: must be -1 to "
                 "offsets.topic.replication.factor",
                 (long long)acks);
        return -EINVAL;
    }
    return check_consumers(c, err, err_n);
}

int broker_groups_start(struct broker *b, char *err, size_t err_n)
{
    int32_t partitions;
    int rc = check_settings(b->config, err, err_n);
    if (rc)
        return rc;
    rc = broker_internal_partitions(b, "__consumer_offsets", "offsets.topic.num.partitions",
                                    &partitions);
    if (rc)
        return fail(err, err_n, rc, "cannot read the partitions of __consumer_offsets");
    rc = start_executors(b);
    if (!rc)
        rc = make_manager(b, partitions);
    return rc ? fail(err, err_n, rc, "cannot start the group coordinator") : 0;
}

void broker_groups_shut_down(struct broker *b)
{
    if (b->groups)
        group_manager_shut_down(b->groups);
}

void broker_groups_stop(struct broker *b)
{
    for (int i = 0; i < b->group_executors_n; i++)
        uv_executor_stop(b->group_executors[i]);
    free(b->group_executors);
    group_manager_free(b->groups);
    b->groups = NULL;
}
