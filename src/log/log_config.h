/* log_config.h - the settings of one log: the topic's overrides on top of the broker's values.
 * Immutable once published; a change publishes a new one (log_set_config). */
#ifndef LOG_LOG_CONFIG_H
#define LOG_LOG_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

enum cleanup_policy { CLEANUP_DELETE = 1, CLEANUP_COMPACT = 2 }; /* bits */

struct log_config {
    int32_t segment_bytes;
    int32_t segment_index_bytes;
    int64_t segment_ms, segment_jitter_ms;
    int32_t index_interval_bytes;
    int64_t flush_messages, flush_ms;      /* INT64_MAX = never */
    int64_t retention_bytes, retention_ms; /* -1 = no limit */
    int64_t file_delete_delay_ms;
    int32_t max_message_bytes;
    int cleanup_policy; /* enum cleanup_policy bits */
    int compression;    /* enum codec, or COMPRESSION_PRODUCER */
    int32_t gzip_level, lz4_level, zstd_level;
    bool log_append_time; /* message.timestamp.type */
    int64_t timestamp_before_max_ms, timestamp_after_max_ms;
    bool preallocate;
    bool down_conversion; /* message.downconversion.enable */
    int32_t min_insync_replicas;
    bool unclean_leader_election;
    double min_cleanable_ratio;
    int64_t min_compaction_lag_ms, max_compaction_lag_ms, delete_retention_ms;
    /* broker-wide, the same for every log */
    int64_t producer_id_expiration_ms;
};

/* Kafka's defaults. */
struct log_config log_config_default(void);

#endif
