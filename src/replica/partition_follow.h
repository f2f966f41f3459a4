/* partition_follow.h - what a follower does to its log: appends what its leader sent, cuts what its
 * leader does not have, takes over the leader's marks.
 *
 * Each call names the leader epoch in which its caller was told to follow. If the partition is not
 * a follower in that epoch any more, nothing happens: so whoever fetches may be late to hear of a
 * change of roles and does no harm.
 * Each change also names what its caller saw of the log: if it ends elsewhere by now, or was cut
 * since (it may end there again), another fetcher of the same epoch was at work (their number
 * changed), and nothing happens.
 * ERRORS   NOT_LEADER_OR_FOLLOWER: not a follower in that epoch. OFFSET_OUT_OF_RANGE: it is not
 *          what was seen. KAFKA_STORAGE_ERROR: its dir failed.
 *          UNKNOWN_SERVER_ERROR: a shortage, try again. What the log says otherwise.
 * THREADS  any; @blocks on the disk. */
#ifndef REPLICA_PARTITION_FOLLOW_H
#define REPLICA_PARTITION_FOLLOW_H

#include "replica/partition.h"

/* How records of another log are looked at before they are appended here: as they are. */
extern const struct append_policy partition_replicated;

/* What the follower's log looks like, for its next fetch. */
struct follow_view {
    int64_t log_start, log_end, high_watermark;
    uint64_t cuts;        /* counts what was cut off, as a follower */
    int32_t latest_epoch; /* -1: it has none */
};
/* What a change goes by. */
struct follow_seen {
    int64_t end;
    uint64_t cuts;
};
enum kerr partition_follow_view(struct partition *p, int32_t leader_epoch, struct follow_view *out);

struct follow_append {
    int32_t leader_epoch;
    struct follow_seen seen; /* end: what was asked for */
    const uint8_t *records;
    int32_t len; /* 0: only the marks */
    int64_t leader_high_watermark, leader_log_start;
};
/* Appends, then takes over the high watermark (as far as the log goes; it may go down), then the
 * log start. *view is filled in on success. Also CORRUPT_MESSAGE and what else records_prepare
 * finds. */
enum kerr partition_follow_append(struct partition *p, const struct follow_append *a,
                                  struct follow_view *view);
/* Cuts the log to `offset` (at most its end); *view is what is left. */
enum kerr partition_follow_truncate(struct partition *p, int32_t leader_epoch,
                                    struct follow_seen seen, int64_t offset,
                                    struct follow_view *view);
/* Drops all and begins anew at `offset`. */
enum kerr partition_follow_restart(struct partition *p, int32_t leader_epoch,
                                   struct follow_seen seen, int64_t offset,
                                   struct follow_view *view);
/* The leader's log has its end of the epoch `their_epoch` at `their_end`, as the answer to our
 * latest epoch, when our log was as seen: cuts to what both may have in common. *sure: that is
 * all; else the next question, or fetch, tells more. their_epoch -1: the leader knows offsets only.
 */
enum kerr partition_follow_diverged(struct partition *p, int32_t leader_epoch,
                                    struct follow_seen seen, int32_t their_epoch, int64_t their_end,
                                    bool *sure, struct follow_view *view);

#endif
