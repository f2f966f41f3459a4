/* fuzz_group_records.c - a partition of __consumer_offsets with any content: what loads becomes
 * groups whose invariants hold, and which can be described, expired and deleted.
 *
 * INPUT  record batches; their checksums are made right first.
 *
 * Rooms: coordinator */
#include <stdlib.h>

#include "base/checksum.h"
#include "base/logline.h"
#include "base/sim_executor.h"
#include "coordinator/group_loading.h"
#include "metadata/metadata_cache.h"
#include "protocol/msg/consumer_group_describe.h"
#include "protocol/msg/describe_groups.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void must(bool b)
{
    if (!b)
        abort();
}

/* A log that refuses everything but tombstones. */
struct refusing_log {
    struct group_log log;
    struct executor *ex;
};

static void refused(struct task *t)
{
    struct group_append *a = container_of(t, struct group_append, task);
    a->done(a);
}

static void append(struct group_log *log, struct group_append *a, const struct group_record *r,
                   int n)
{
    (void)r;
    (void)n;
    a->error = KERR_NOT_LEADER_OR_FOLLOWER;
    task_init(&a->task, refused);
    executor_post(container_of(log, struct refusing_log, log)->ex, &a->task);
}

static enum kerr append_now(struct group_log *log, int32_t partition, const struct group_record *r,
                            int n)
{
    (void)log;
    (void)partition;
    for (int i = 0; i < n; i++) {
        struct group_key k;
        must(group_key_decode(r[i].key, &k) == 0 && r[i].value.len < 0);
    }
    return KERR_NONE;
}

static void use(struct group *g, struct sim_executor *sim, struct sim_clock *clock)
{
    struct arena a;
    struct describe_groups_response_group out;
    arena_init(&a, 0);
    group_resume(g);
    must(group_check(g) == NULL);
    describe_groups_response_group_init(&out);
    if (group_consumers(g)) {
        struct consumer_group_describe_response_group consumers;
        consumer_group_describe_response_group_init(&consumers);
        cgroup_describe(g, &a, &consumers);
        must(consumers.members.n == cgroup_members_n(group_consumers(g)));
    } else {
        must(group_describe(g, &a, &out) == 0);
        must(out.members.n == group_members_n(g));
    }
    group_expire_offsets(g, clock->wall_ms + 1000000000);
    must(group_check(g) == NULL);
    sim_executor_drain(sim);
    sim_executor_advance(sim, 46000); /* no member is heard of */
    sim_executor_drain(sim);
    must(group_check(g) == NULL);
    group_delete(g);
    must(group_check(g) == NULL);
    group_unload(g);
    sim_executor_drain(sim);
    group_unref(g);
    arena_free(&a);
}

static void load(struct group_loading *l, uint8_t *p, size_t n)
{
    struct batch b;
    for (size_t at = 0; batch_decode(p + at, n - at, n - at, &b) == BATCH_OK; at += b.size) {
        if (b.magic == 2)
            put_be32(p + at + BATCH_AT_CRC,
                     crc32c(p + at + BATCH_AT_ATTRIBUTES, b.size - BATCH_AT_ATTRIBUTES));
        must(batch_decode(p + at, n - at, n - at, &b) == BATCH_OK);
        must(group_loading_add(l, &b) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    static const struct group_log_ops ops = {append, append_now};
    struct group_config config = {.max_size = 3, .retention_ms = 1000, .versions = {3, 3}};
    config.consumers = (struct cgroup_config){
        .session_ms = 45000, .heartbeat_ms = 5000, .max_size = 3, .assignors_n = 1};
    config.consumers.assignors[0] = assignor_find(STR_LIT("uniform"));
    struct metadata_cache *metadata = metadata_cache_new();
    atomic_ullong version;
    atomic_init(&version, 1);
    struct sim_clock clock;
    sim_clock_init(&clock, 1700000000000);
    struct sim_executor *sim = sim_executor_new(&clock);
    struct refusing_log log = {{&ops}, sim_executor_ex(sim)};
    struct group_env env = {.ex = log.ex,
                            .log = &log.log,
                            .config = &config,
                            .metadata = metadata,
                            .metadata_version = &version};
    struct group_loading *l = group_loading_new(0);
    uint8_t *copy = malloc(n ? n : 1);
    logline_set_level(LOGLINE_FATAL);
    must(sim && l && copy && metadata);
    memcpy(copy, p, n);
    load(l, copy, n);
    free(copy); /* nothing borrows from the batches */
    int groups_n = group_loading_groups(l);
    struct group **groups = calloc((size_t)groups_n + 1, sizeof(*groups));
    must(groups && group_loading_finish(l, &env, groups) == 0);
    group_loading_free(l);
    for (int i = 0; i < groups_n; i++)
        use(groups[i], sim, &clock);
    free(groups);
    sim_executor_free(sim);
    metadata_cache_free(metadata);
    return 0;
}
