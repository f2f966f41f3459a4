/* log.c - what a log is and the positions it publishes. */
#include "log/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "log/log_open.h"
#include "log/log_private.h"
#include "log/partition_metadata.h"

static struct config_box *config_new(const struct log_config *c)
{
    struct config_box *box = malloc(sizeof(*box));
    if (box) {
        box->c = *c;
        atomic_init(&box->refs, 1);
    }
    return box;
}

void log_config_unref(const struct log_config *c)
{
    struct config_box *box = container_of(c, struct config_box, c);
    if (atomic_fetch_sub_explicit(&box->refs, 1, memory_order_acq_rel) == 1)
        free(box);
}

const struct log_config *log_config_ref(struct log *log)
{
    spin_lock(&log->spin);
    struct config_box *box = log->config;
    atomic_fetch_add_explicit(&box->refs, 1, memory_order_relaxed);
    spin_unlock(&log->spin);
    return &box->c;
}

void log_set_config(struct log *log, const struct log_config *c)
{
    struct config_box *box = config_new(c);
    if (!box)
        return;                     /* the old settings stay in force */
    pthread_mutex_lock(&log->lock); /* appends read it without a reference */
    spin_lock(&log->spin);
    struct config_box *old = log->config;
    log->config = box;
    spin_unlock(&log->spin);
    pthread_mutex_unlock(&log->lock);
    log_config_unref(&old->c);
}

bool log_is_compacted(struct log *log)
{
    const struct log_config *c = log_config_ref(log);
    bool compacted = c->cleanup_policy & CLEANUP_COMPACT;
    log_config_unref(c);
    return compacted;
}

struct log *log_new(struct log_dir *dir, const char *folder, struct topic_partition tp,
                    const struct log_config *c)
{
    char path[LOG_PATH_MAX];
    struct log *log = calloc(1, sizeof(*log));
    if (!log)
        return NULL;
    log_path_join(path, dir->path, folder);
    log->folder.dir = dir;
    atomic_init(&log->folder.path, strdup(path));
    log->topic = str_dup(tp.topic);
    log->partition = tp.partition;
    log->config = config_new(c);
    atomic_init(&log->refs, 1);
    atomic_init(&log->first_unstable, INT64_MAX);
    atomic_init(&log->cleaned_saved, true);
    atomic_init(&log->last_flush_ms, clock_wall_ms(dir->clock));
    producer_state_init(&log->producers);
    txn_guards_init(&log->guards);
    epoch_cache_init(&log->epochs);
    pthread_mutex_init(&log->flush_lock, NULL);
    pthread_mutex_init(&log->lock, NULL);
    atomic_fetch_add(&dir->logs, 1);
    if (!log_path(log) || !log->topic || !log->config) {
        log_unref(log);
        return NULL;
    }
    return log;
}

struct log *log_ref(struct log *log)
{
    atomic_fetch_add_explicit(&log->refs, 1, memory_order_relaxed);
    return log;
}

void log_unref(struct log *log)
{
    if (!log || atomic_fetch_sub_explicit(&log->refs, 1, memory_order_acq_rel) != 1)
        return;
    atomic_fetch_sub(&log->folder.dir->logs, 1);
    segment_list_unpin(log->segments.now);
    producer_state_free(&log->producers);
    txn_guards_free(&log->guards);
    epoch_cache_free(&log->epochs);
    if (log->config)
        log_config_unref(&log->config->c);
    pthread_mutex_destroy(&log->lock);
    pthread_mutex_destroy(&log->flush_lock);
    free(log->folder.old_paths[0]);
    free(log->folder.old_paths[1]);
    free(atomic_load(&log->folder.path));
    free(log->topic);
    free(log);
}

/* ---- facts ---- */

struct topic_partition log_topic_partition(const struct log *log)
{
    return (struct topic_partition){str_of(log->topic), log->partition};
}

int64_t log_start_offset(const struct log *log)
{
    return atomic_load_explicit(&log->start, memory_order_acquire);
}

int64_t log_end_offset(const struct log *log)
{
    return atomic_load_explicit(&log->end, memory_order_acquire);
}

int64_t log_high_watermark(const struct log *log)
{
    return atomic_load_explicit(&log->high_watermark, memory_order_acquire);
}

int64_t log_last_stable_offset(const struct log *log)
{
    /* The watermark first: a transaction that opens below a later one shows before it can move. */
    int64_t hw = log_high_watermark(log);
    int64_t unstable = atomic_load_explicit(&log->first_unstable, memory_order_acquire);
    if (unstable >= hw)
        return hw;
    int64_t start = log_start_offset(log);
    return unstable > start ? unstable : start;
}

int64_t log_recovery_point(const struct log *log)
{
    return atomic_load_explicit(&log->recovery_point, memory_order_acquire);
}

struct log_dir *log_dir_of(const struct log *log)
{
    return log->folder.dir;
}

bool log_is_future(const struct log *log)
{
    return atomic_load_explicit(&log->future, memory_order_relaxed);
}

bool log_offline(const struct log *log)
{
    return log_dir_offline(log->folder.dir);
}

int64_t log_cleaned_to(const struct log *log)
{
    return atomic_load(&log->cleaned_to);
}

int64_t log_last_flush_ms(const struct log *log)
{
    return atomic_load_explicit(&log->last_flush_ms, memory_order_relaxed);
}

int64_t log_size(const struct log *log)
{
    struct segment_list *l = log_pin(log);
    int64_t n = 0;
    for (int i = 0; i < l->n; i++)
        n += segment_size(l->v[i]);
    segment_list_unpin(l);
    return n;
}

int log_segment_count(const struct log *log)
{
    struct segment_list *l = log_pin(log);
    int n = l->n;
    segment_list_unpin(l);
    return n;
}

enum kerr log_usable(const struct log *log)
{
    if (log_offline(log))
        return KERR_KAFKA_STORAGE_ERROR;
    /* Deleted, or the broker stops: the client looks for another leader. */
    return atomic_load(&log->gone) ? KERR_NOT_LEADER_OR_FOLLOWER : KERR_NONE;
}

enum kerr log_kerr(int err)
{
    return err ? KERR_KAFKA_STORAGE_ERROR : KERR_NONE;
}

int log_failed(struct log *log, int err, const char *doing, const char *name)
{
    if (err && !log_error_is_shortage(err))
        log_dir_fail(log->folder.dir, err, "%s %s%s%s", doing, log_path(log), name ? "/" : "",
                     name ? name : "");
    return err;
}

void log_await_change(struct log *log)
{
    pthread_mutex_lock(&log->lock);
    pthread_mutex_unlock(&log->lock);
}

/* ---- topic id ---- */

struct uuid log_topic_id(const struct log *log)
{
    struct log *l = (struct log *)(uintptr_t)log;
    spin_lock(&l->spin);
    struct uuid id = l->topic_id;
    spin_unlock(&l->spin);
    return id;
}

int log_flush_metadata(struct log *log)
{
    if (!log->metadata_pending)
        return 0;
    int err = partition_metadata_write(log_fs(log), log_path(log), log->topic_id, true);
    if (!err)
        log->metadata_pending = false;
    return log_failed(log, err, "write", PARTITION_METADATA_NAME);
}

enum kerr log_set_topic_id(struct log *log, struct uuid id)
{
    pthread_mutex_lock(&log->lock);
    enum kerr err = log_usable(log);
    if (!err && !uuid_is_zero(log->topic_id)) {
        if (!uuid_eq(log->topic_id, id))
            err = KERR_INCONSISTENT_TOPIC_ID;
    } else if (!err && !uuid_is_zero(id)) {
        spin_lock(&log->spin);
        log->topic_id = id;
        spin_unlock(&log->spin);
        log->metadata_pending = true;
        err = log_kerr(log_flush_metadata(log));
    }
    pthread_mutex_unlock(&log->lock);
    return err;
}

/* ---- positions that others move ---- */

void log_update_unstable(struct log *log)
{
    producer_on_high_watermark(&log->producers, log_high_watermark(log));
    atomic_store(&log->unreplicated, producer_has_unreplicated(&log->producers));
    atomic_store_explicit(&log->first_unstable, producer_first_unstable(&log->producers),
                          memory_order_release);
}

void log_bound_high_watermark(struct log *log)
{
    int64_t hw = atomic_load(&log->high_watermark);
    int64_t end;
    while (hw > (end = atomic_load(&log->end)))
        if (atomic_compare_exchange_strong(&log->high_watermark, &hw, end))
            break;
}

int64_t log_set_high_watermark(struct log *log, int64_t hw)
{
    int64_t start = atomic_load(&log->start), end = atomic_load(&log->end);
    if (hw < start)
        hw = start;
    if (hw > end)
        hw = end;
    atomic_store(&log->high_watermark, hw);
    log_bound_high_watermark(log); /* a truncation may have come between */
    if (atomic_load(&log->unreplicated)) {
        pthread_mutex_lock(&log->lock);
        log_update_unstable(log);
        pthread_mutex_unlock(&log->lock);
    }
    return atomic_load(&log->high_watermark);
}

static void raise(_Atomic int64_t *v, int64_t to)
{
    int64_t now = atomic_load(v);
    while (now < to && !atomic_compare_exchange_weak(v, &now, to))
        ;
}

void log_move_start(struct log *log, int64_t start)
{
    if (start <= atomic_load(&log->start))
        return;
    raise(&log->high_watermark, start);
    raise(&log->recovery_point, start);
    atomic_store(&log->start, start);
    if (epoch_cache_cut_start(&log->epochs, start))
        (void)log_save_epochs(log, true);
    log_update_unstable(log);
}

int log_save_epochs(struct log *log, bool sync)
{
    return log_failed(log, epoch_cache_write(&log->epochs, log_fs(log), log_path(log), sync),
                      "write", EPOCH_FILE_NAME);
}

enum kerr log_raise_start_offset(struct log *log, int64_t offset)
{
    pthread_mutex_lock(&log->lock);
    enum kerr err = log_usable(log);
    if (!err && offset > log_high_watermark(log))
        err = KERR_OFFSET_OUT_OF_RANGE;
    if (!err) {
        log_move_start(log, offset);
        err = log_usable(log);
    }
    pthread_mutex_unlock(&log->lock);
    return err;
}

enum kerr log_begin_epoch(struct log *log, int32_t leader_epoch)
{
    pthread_mutex_lock(&log->lock);
    enum kerr err = log_usable(log);
    if (!err)
        err = log_kerr(log_failed(log,
                                  epoch_cache_assign(&log->epochs, log_fs(log), log_path(log),
                                                     leader_epoch, log_end_offset(log)),
                                  "write", EPOCH_FILE_NAME));
    pthread_mutex_unlock(&log->lock);
    return err;
}

void log_end_offset_for_epoch(struct log *log, int32_t epoch, int32_t *found_epoch,
                              int64_t *end_offset)
{
    epoch_cache_end_offset(&log->epochs, epoch, log_end_offset(log), found_epoch, end_offset);
}

int32_t log_latest_epoch(struct log *log)
{
    return epoch_cache_latest(&log->epochs);
}

void log_expire_producers(struct log *log, int64_t now_ms)
{
    pthread_mutex_lock(&log->lock);
    producer_expire(&log->producers, now_ms, log->config->c.producer_id_expiration_ms);
    txn_guards_expire(&log->guards, now_ms, log->config->c.producer_id_expiration_ms);
    pthread_mutex_unlock(&log->lock);
}
