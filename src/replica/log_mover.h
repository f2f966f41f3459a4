/* log_mover.h - moves logs between log dirs (AlterReplicaLogDirs): copies a partition's log into
 * its future (log_manager.h) batch by batch, follows it while it grows and is cut, and at the end
 * lets the future take its place.
 *
 * A thread has one partition at a time and takes them in order of topic and number. The copy keeps
 * offsets, epochs and bytes. Before each piece the copy is cut to where both logs are known to be
 * the same, by their epochs: so a log that was truncated meanwhile, or a copy that a crash left
 * behind, does no harm.
 *
 * FAILURE  of the copy's dir, or the partition's end here, gives the move up. When it is the log's
 *          dir that fails, the copy is kept: it may be all that is left.
 * THREADS  stated at each function. */
#ifndef REPLICA_LOG_MOVER_H
#define REPLICA_LOG_MOVER_H

#include "base/rate.h"
#include "log/cleaner.h"
#include "log/log_names.h"
#include "replica/replica_manager.h"

struct log_mover;

struct log_mover_options {
    struct replica_manager *replicas; /* borrowed, as all */
    struct log_manager *logs;
    const struct clock *clock;
    int threads;
    struct rate_window window;
    /* Bytes a second of all threads together; INFINITY = no limit. Asked before each piece. */
    double (*max_rate)(void *arg);
    /* Nobody compacts a log while it is moved. May return NULL. */
    struct cleaner *(*cleaner)(void *arg);
    void *arg;
    uint32_t piece_bytes; /* copied at a time; 0 = the default */
};
/* 0 or -ENOMEM. No threads yet. */
int log_mover_new(const struct log_mover_options *o, struct log_mover **out);
/* Goes on with the futures that the log manager has loaded. Once. 0 or -errno. */
int log_mover_start(struct log_mover *m);
/* Ends the threads; moves go on at the next start. @blocks for one piece */
void log_mover_stop(struct log_mover *m);
void log_mover_free(struct log_mover *m); /* after stop, or never started; NULL is fine */

/* Moves the partition's log to the dir with this path. NONE when the move has begun, goes on, or
 * has nothing to do; a move to another dir is given up first, and asking for the dir where the log
 * is gives up any. LOG_DIR_NOT_FOUND, KAFKA_STORAGE_ERROR, INVALID_TOPIC_EXCEPTION (the copy's name
 * would be too long), REPLICA_NOT_AVAILABLE (not here; but it will be made in that dir). @blocks
 * @thread any but the mover's */
enum kerr log_mover_move(struct log_mover *m, struct topic_partition tp, const char *path);
/* Moves under way, for tests. @thread any */
int log_mover_count(struct log_mover *m);

#endif
