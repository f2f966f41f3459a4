#include "log/log_config.h"

#include "log/log.h"

struct log_config log_config_default(void)
{
    return (struct log_config){
        .segment_bytes = 1 << 30,
        .segment_index_bytes = 10 << 20,
        .segment_ms = INT64_C(7) * 24 * 3600 * 1000,
        .segment_jitter_ms = 0,
        .index_interval_bytes = 4096,
        .flush_messages = INT64_MAX,
        .flush_ms = INT64_MAX,
        .retention_bytes = -1,
        .retention_ms = INT64_C(7) * 24 * 3600 * 1000,
        .file_delete_delay_ms = 60000,
        .max_message_bytes = 1048588,
        .cleanup_policy = CLEANUP_DELETE,
        .compression = COMPRESSION_PRODUCER,
        .gzip_level = CODEC_LEVEL_DEFAULT,
        .lz4_level = CODEC_LEVEL_DEFAULT,
        .zstd_level = CODEC_LEVEL_DEFAULT,
        .log_append_time = false,
        .timestamp_before_max_ms = INT64_MAX,
        .timestamp_after_max_ms = INT64_MAX,
        .preallocate = false,
        .down_conversion = true,
        .min_insync_replicas = 1,
        .unclean_leader_election = false,
        .min_cleanable_ratio = 0.5,
        .min_compaction_lag_ms = 0,
        .max_compaction_lag_ms = INT64_MAX,
        .delete_retention_ms = INT64_C(24) * 3600 * 1000,
        .producer_id_expiration_ms = INT64_C(24) * 3600 * 1000,
    };
}
