/* coordinator_append.c - see coordinator_append.h. */
#include "coordinator/coordinator_append.h"

#include "log/log_manager.h"

static struct append_policy policy_of(const struct log_config *c, int64_t now_ms)
{
    return (struct append_policy){.origin = APPEND_COORDINATOR,
                                  .produce_version = -1,
                                  .max_message_bytes = c->max_message_bytes,
                                  .compression = c->compression,
                                  .level = CODEC_LEVEL_DEFAULT,
                                  .log_append_time = c->log_append_time,
                                  .keys_required = c->cleanup_policy & CLEANUP_COMPACT,
                                  .before_max_ms = c->timestamp_before_max_ms,
                                  .after_max_ms = c->timestamp_after_max_ms,
                                  .now_ms = now_ms};
}

enum kerr coordinator_append(struct partition *p, struct buf *bytes, uint64_t txn_guard,
                             int16_t acks, int64_t now_ms, struct partition_append *out,
                             int64_t *flush_messages)
{
    struct log *log = partition_log(p);
    if (!log)
        return KERR_NOT_LEADER_OR_FOLLOWER;
    const struct log_config *c = log_config_ref(log);
    struct append_policy policy = policy_of(c, now_ms);
    *flush_messages = c->flush_messages;
    log_config_unref(c);
    log_unref(log);
    struct arena a;
    struct prepared pr;
    arena_init(&a, 0);
    enum kerr e = records_prepare(&policy, bytes->p, bytes->len, &a, &pr);
    pr.txn_guard = txn_guard;
    if (e == KERR_NONE)
        e = partition_append(p, &pr, APPEND_COORDINATOR, acks, out);
    prepared_free(&pr);
    arena_free(&a);
    return e;
}
