/* broker_upkeep.c - which work on the logs comes round, and how often. */
#include <stdio.h>
#include <string.h>

#include "server/broker_private.h"

enum {
    DELETE_TICK_MS = 1000, /* how often deferred deletions are looked at */
    FLUSH_TICK_MS = 1000,  /* flush.ms of topics, when no interval is set */
    HEAP_TICK_MS = 5000,
    UPKEEP_LEAST_MS = 10, /* an interval of 0 must not spin */
};

static void do_retention(void *arg)
{
    log_manager_retention(((struct broker *)arg)->logs);
}

static void do_flush(void *arg)
{
    log_manager_flush_due(((struct broker *)arg)->logs);
}

static void do_recovery_points(void *arg)
{
    log_manager_checkpoint_recovery_points(((struct broker *)arg)->logs);
}

static void do_start_offsets(void *arg)
{
    log_manager_checkpoint_start_offsets(((struct broker *)arg)->logs);
}

static void do_high_watermarks(void *arg)
{
    log_manager_checkpoint_high_watermarks(((struct broker *)arg)->logs);
}

static void do_shrink_isrs(void *arg)
{
    replica_manager_shrink_isrs(atomic_load(&((struct broker *)arg)->replicas));
}

static void do_expire_producers(void *arg)
{
    log_manager_expire_producers(((struct broker *)arg)->logs);
}

static void do_delete(void *arg)
{
    struct broker *b = arg;
    int64_t due = log_manager_next_delete_ms(b->logs);
    if (due >= 0 && due <= clock_mono_ms(b->clock))
        log_manager_delete_due(b->logs);
}

static void do_give_back(void *arg)
{
    heap_give_back(&((struct broker *)arg)->heap);
}

/* Topics may set flush.ms though the broker sets nothing. */
static int64_t flush_interval(const struct config *c)
{
    if (config_is_given(c, "log.flush.scheduler.interval.ms"))
        return config_int(c, "log.flush.scheduler.interval.ms");
    int64_t ms = config_int(c, "log.flush.interval.ms");
    return ms != INT64_MIN && ms < FLUSH_TICK_MS ? ms : FLUSH_TICK_MS;
}

int broker_start_upkeep(struct broker *b, char *err, size_t err_n)
{
    const struct config *c = b->config;
    int64_t delay = config_int(c, "log.initial.task.delay.ms");
    int64_t lag = config_int(c, "replica.lag.time.max.ms");
    int64_t checkpoint = config_int(c, "replica.high.watermark.checkpoint.interval.ms");
    int64_t tokens =
        b->tokens ? config_int(c, "delegation.token.expiry.check.interval.ms") : INT64_MAX;
    const struct {
        int64_t delay, interval;
        void (*work)(void *arg);
    } kinds[] = {
        {delay, config_int(c, "log.retention.check.interval.ms"), do_retention},
        {0, flush_interval(c), do_flush},
        {delay, config_int(c, "log.flush.offset.checkpoint.interval.ms"), do_recovery_points},
        {delay, config_int(c, "log.flush.start.offset.checkpoint.interval.ms"), do_start_offsets},
        {checkpoint, checkpoint, do_high_watermarks},
        {delay, config_int(c, "producer.id.expiration.check.interval.ms"), do_expire_producers},
        {DELETE_TICK_MS, DELETE_TICK_MS, do_delete},
        {HEAP_TICK_MS, HEAP_TICK_MS, do_give_back},
        {lag / 2, lag / 2, do_shrink_isrs},
        {tokens, tokens, broker_tokens_upkeep},
    };
    int rc = upkeep_new(uv_executor_ex(b->background), b->background_workers, &b->upkeep);
    for (size_t i = 0; !rc && i < sizeof(kinds) / sizeof(*kinds); i++) {
        int64_t ms = kinds[i].interval < UPKEEP_LEAST_MS ? UPKEEP_LEAST_MS : kinds[i].interval;
        rc = upkeep_add(b->upkeep, kinds[i].delay, ms, kinds[i].work, b);
    }
    if (rc) {
        snprintf(err, err_n, "cannot start the upkeep of the logs: %s", strerror(-rc));
        return rc;
    }
    upkeep_start(b->upkeep);
    b->upkeep_runs = true;
    return 0;
}
