/* producer.c - the public face of the producer. See kafka/producer.h; the work is in accumulator.c
 * and sender.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "client/cluster_private.h"
#include "client/txn.h"
#include "protocol/errors.h"

static int64_t conf_int(const kafka_producer_t *p, const char *key)
{
    return client_conf_int(p->conf, SCOPE_PRODUCER, key);
}

static const char *conf_string(const kafka_producer_t *p, const char *key)
{
    return client_conf_string(p->conf, SCOPE_PRODUCER, key);
}

static int compression_level(const kafka_producer_t *p, enum codec codec)
{
    static const char *const keys[CODECS] = {[CODEC_GZIP] = "compression.gzip.level",
                                             [CODEC_LZ4] = "compression.lz4.level",
                                             [CODEC_ZSTD] = "compression.zstd.level"};
    return keys[codec] && client_conf_is_set(p->conf, keys[codec]) ? (int)conf_int(p, keys[codec])
                                                                   : CODEC_LEVEL_DEFAULT;
}

/* Idempotence needs acks=all, retries and at most 5 in flight: an error when it was asked for, off
 * otherwise. */
static bool read_idempotence(kafka_producer_t *p, char *err, size_t err_n)
{
    const char *broken = p->acks != -1     ? "acks=all"
                         : p->retries == 0 ? "retries above 0"
                         : p->max_in_flight > 5
                             ? "max.in.flight.requests.per.connection of at most 5"
                             : NULL;
    bool wanted = client_conf_bool(p->conf, SCOPE_PRODUCER, "enable.idempotence");
    p->idempotence = wanted && !broken ? IDEMPOTENCE_NEEDS_ID : IDEMPOTENCE_OFF;
    if (p->batch_options.transactional && p->idempotence == IDEMPOTENCE_OFF) {
        snprintf(err, err_n, "transactional.id needs %s",
                 wanted ? broken : "enable.idempotence=true");
        return false;
    }
    if (!wanted || !broken || !client_conf_is_set(p->conf, "enable.idempotence"))
        return true;
    snprintf(err, err_n, "enable.idempotence=true needs %s", broken);
    return false;
}

static bool read_timeouts(kafka_producer_t *p, char *err, size_t err_n)
{
    int64_t least = p->linger_ms + conf_int(p, "request.timeout.ms");
    if (p->delivery_timeout_ms >= least)
        return true;
    if (!client_conf_is_set(p->conf, "delivery.timeout.ms")) {
        p->delivery_timeout_ms = least;
        return true;
    }
    snprintf(err, err_n,
             "delivery.timeout.ms=%lld: must be at least linger.ms + request.timeout.ms (%lld)",
             (long long)p->delivery_timeout_ms, (long long)least);
    return false;
}

static bool read_settings(kafka_producer_t *p, char *err, size_t err_n)
{
    const char *acks = conf_string(p, "acks");
    p->acks = strcasecmp(acks, "all") == 0 ? -1 : (int16_t)atoi(acks);
    p->batch_size = (size_t)conf_int(p, "batch.size");
    p->batch_size += p->batch_size == 0;
    p->buffer_memory = (size_t)conf_int(p, "buffer.memory");
    p->max_request_size = (size_t)conf_int(p, "max.request.size");
    p->linger_ms = conf_int(p, "linger.ms");
    p->max_block_ms = conf_int(p, "max.block.ms");
    p->delivery_timeout_ms = conf_int(p, "delivery.timeout.ms");
    p->topic_max_idle_ms = conf_int(p, "metadata.max.idle.ms");
    p->retries = (int)conf_int(p, "retries");
    p->max_in_flight = (int)conf_int(p, "max.in.flight.requests.per.connection");
    p->ignore_keys = client_conf_bool(p->conf, SCOPE_PRODUCER, "partitioner.ignore.keys");
    p->adaptive =
        client_conf_bool(p->conf, SCOPE_PRODUCER, "partitioner.adaptive.partitioning.enable");
    p->availability_timeout_ms = conf_int(p, "partitioner.availability.timeout.ms");
    p->hooks = client_conf_hooks(p->conf);
    const char *partitioner = conf_string(p, "partitioner.class");
    if (partitioner && *partitioner && !partitioner_parse(partitioner, &p->partitioner)) {
        snprintf(err, err_n,
                 "partitioner.class=%s: not one of DefaultPartitioner, RoundRobinPartitioner, "
                 "UniformStickyPartitioner, random; for one of your own use "
                 "kafka_conf_set_partitioner",
                 partitioner);
        return false;
    }
    p->batch_options = BATCH_OPTIONS_DEFAULT;
    p->batch_options.transactional = client_conf_is_set(p->conf, "transactional.id");
    codec_parse(str_of(conf_string(p, "compression.type")), &p->batch_options.codec);
    p->batch_options.level = compression_level(p, p->batch_options.codec);
    return read_idempotence(p, err, err_n) && read_timeouts(p, err, err_n);
}

static void producer_free(kafka_producer_t *p)
{
    txn_free(p->txn);
    for (struct hnode *n = hmap_first(&p->topics), *next; n; n = next) {
        next = hmap_next(&p->topics, n);
        struct ptopic *t = container_of(n, struct ptopic, hnode);
        for (int32_t i = 0; i < t->queues_n; i++)
            free(t->queues[i]);
        free(t->queues);
        free(t->name);
        free(t);
    }
    hmap_free(&p->topics);
    producer_free_leaders(p);
    pthread_cond_destroy(&p->room);
    pthread_cond_destroy(&p->progress);
    pthread_mutex_destroy(&p->lock);
    kafka_conf_free(p->conf);
    free(p);
}

static bool start(kafka_producer_t *p, char *err, size_t err_n)
{
    const char *id = conf_string(p, "client.id"), *txn_id = conf_string(p, "transactional.id");
    char made_id[300];
    if (txn_id)
        snprintf(made_id, sizeof made_id, "producer-%s", txn_id);
    else
        snprintf(made_id, sizeof made_id, "producer-%d", (int)getpid());
    if (txn_id && !(p->txn = txn_new(p, txn_id, (int32_t)conf_int(p, "transaction.timeout.ms")))) {
        snprintf(err, err_n, "out of memory");
        return false;
    }
    p->cluster = cluster_start(p->conf, SCOPE_PRODUCER, id && *id ? id : made_id, err, err_n);
    if (!p->cluster)
        return false;
    if (p->txn)
        txn_start(p->txn);
    sender_init(p);
    return true;
}

kafka_producer_t *kafka_producer_new(const kafka_conf_t *conf, char *err, size_t err_n)
{
    kafka_producer_t *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    pthread_mutex_init(&p->lock, NULL);
    client_cond_init(&p->room);
    client_cond_init(&p->progress);
    hmap_init(&p->topics);
    list_init(&p->leaders);
    list_init(&p->incomplete);
    p->producer_id = -1;
    p->random = (unsigned)clock_mono_ns(clock_real());
    p->conf = client_conf_copy(conf);
    if (!p->conf || client_conf_check(p->conf, SCOPE_PRODUCER, err, err_n) != KAFKA_OK ||
        !read_settings(p, err, err_n)) {
        producer_free(p);
        return NULL;
    }
    if (!start(p, err, err_n)) {
        producer_free(p);
        return NULL;
    }
    return p;
}

static kafka_err_t check_open(const kafka_producer_t *p)
{
    if (p->closing)
        return client_fail(KAFKA_ERR_CLOSED, "the producer is being closed");
    if (p->fatal != KAFKA_OK)
        return client_fail(p->fatal, "the producer cannot go on: %s (%s): make a new one",
                           kafka_err_text(p->fatal), kafka_err_name(p->fatal));
    return p->txn ? txn_check_send(p->txn) : KAFKA_OK;
}

/* Waits for room in buffer.memory; not on the background thread, which alone could make some. Lock
 * held. */
static kafka_err_t buffer_is_full(kafka_producer_t *p, const char *topic)
{
    char why[500];
    return client_fail(KAFKA_ERR_QUEUE_FULL,
                       "topic %s: buffer.memory=%zu is used up, and no room came within "
                       "max.block.ms=%lld%s",
                       topic, p->buffer_memory, (long long)p->max_block_ms,
                       cluster_why(p->cluster, why, sizeof why));
}

static kafka_err_t wait_for_room(kafka_producer_t *p, size_t size, const char *topic,
                                 int64_t begun_ms)
{
    int64_t deadline = begun_ms + p->max_block_ms;
    while (p->memory_used + size > p->buffer_memory && !p->closing && !p->fatal) {
        if (executor_on_thread(cluster_executor(p->cluster)))
            return buffer_is_full(p, topic);
        p->memory_waiters++;
        sender_wake(p);
        bool in_time = client_cond_wait(&p->room, &p->lock, deadline);
        p->memory_waiters--;
        if (!in_time && p->memory_used + size > p->buffer_memory)
            return buffer_is_full(p, topic);
    }
    return check_open(p);
}

/* The record's topic, if metadata has it and the partition. Lock held. */
static struct ptopic *known_topic(kafka_producer_t *p, const kafka_record_t *r)
{
    struct ptopic *t = p->last_topic;
    if (!t || strcmp(t->name, r->topic) != 0)
        t = p->last_topic = producer_find_topic(p, r->topic);
    return t && t->known && r->partition < t->queues_n ? t : NULL;
}

/* Waits for metadata. Lock held, but not while it waits. */
static kafka_err_t await_topic(kafka_producer_t *p, const kafka_record_t *r, struct ptopic **out)
{
    int32_t count, least = r->partition < 0 ? 0 : r->partition;
    bool may_wait = !executor_on_thread(cluster_executor(p->cluster));
    pthread_mutex_unlock(&p->lock);
    kafka_err_t err =
        cluster_wait_topic(p->cluster, r->topic, least, may_wait ? p->max_block_ms : 0, &count);
    pthread_mutex_lock(&p->lock);
    if (cluster_topic_error_is_final(err))
        return err; /* max.block.ms had nothing to do with it */
    if (err != KAFKA_OK) {
        char line[512];
        snprintf(line, sizeof line, "%s (max.block.ms=%lld)", kafka_last_error(),
                 (long long)p->max_block_ms);
        return client_fail(err, "%s", line);
    }
    struct ptopic *t = producer_topic(p, r->topic, count);
    if (!t)
        return KAFKA_ERR_NO_MEMORY;
    if (!t->known)
        cluster_partition_count(p->cluster, r->topic, &t->available);
    t->known = true;
    t->used_ms = client_now_ms();
    *out = t;
    return KAFKA_OK;
}

static kafka_err_t append(kafka_producer_t *p, struct ptopic *t, const kafka_record_t *r,
                          size_t size, int64_t timestamp, struct thunk thunk)
{
    bool chosen = r->partition < 0, wake, full;
    int32_t partition = chosen ? partitioner_choose(p, t, r) : r->partition;
    if (partition < 0 || partition >= t->queues_n)
        return client_fail(KAFKA_ERR_INVALID_ARG,
                           "topic %s: the partitioner chose %d of %d partitions", t->name,
                           partition, t->queues_n);
    kafka_err_t err =
        accumulator_append(p, t->queues[partition], r, size, timestamp, thunk, &wake, &full);
    if (err != KAFKA_OK)
        return err;
    if (p->txn)
        txn_add_partition(p->txn, t->queues[partition]);
    if (chosen && (!r->key || p->ignore_keys))
        partitioner_appended(p, t, partition, size, full);
    if (wake)
        sender_wake(p);
    return KAFKA_OK;
}

/* Lock held. */
static kafka_err_t send_locked(kafka_producer_t *p, const kafka_record_t *r, size_t size,
                               int64_t timestamp, struct thunk thunk)
{
    struct ptopic *t = known_topic(p, r);
    bool room = p->memory_used + size <= p->buffer_memory;
    int64_t begun_ms = t && room ? 0 : client_now_ms();
    kafka_err_t err = check_open(p);
    if (err == KAFKA_OK && !t)
        err = await_topic(p, r, &t);
    if (err == KAFKA_OK)
        err = wait_for_room(p, size, r->topic, begun_ms);
    return err == KAFKA_OK ? append(p, t, r, size, timestamp, thunk) : err;
}

static kafka_err_t send_record(kafka_producer_t *p, const kafka_record_t *r, kafka_delivery_cb cb,
                               void *arg)
{
    if (!r->topic || r->value_len > INT32_MAX || r->key_len > INT32_MAX ||
        r->partition < KAFKA_PARTITION_ANY)
        return client_fail(KAFKA_ERR_INVALID_ARG, "topic %s, partition %d: no legal record",
                           r->topic ? r->topic : "(none)", r->partition);
    size_t size = accumulator_record_size(r);
    if (size + BATCH_HEAD > p->max_request_size || size > p->buffer_memory)
        return client_fail(KERR_MESSAGE_TOO_LARGE,
                           "topic %s: a record may take %zu bytes, more than max.request.size=%zu "
                           "or buffer.memory=%zu",
                           r->topic, size + BATCH_HEAD, p->max_request_size, p->buffer_memory);
    int64_t timestamp = r->timestamp >= 0 ? r->timestamp : clock_wall_ms(clock_real());
    pthread_mutex_lock(&p->lock);
    kafka_err_t err = send_locked(p, r, size, timestamp, (struct thunk){cb, arg, timestamp});
    pthread_mutex_unlock(&p->lock);
    return err;
}

/* Interceptors see the record first, and its refusal. */
static kafka_err_t send_intercepted(kafka_producer_t *p, const kafka_record_t *r,
                                    kafka_delivery_cb cb, void *arg)
{
    const struct client_hooks *h = p->hooks;
    kafka_record_t record = *r;
    for (size_t i = 0; i < h->producer_n; i++)
        if (h->producer[i].on_send)
            h->producer[i].on_send(&record, h->producer[i].arg);
    kafka_err_t err = send_record(p, &record, cb, arg);
    kafka_delivery_t d = {.err = err,
                          .error_message = kafka_last_error(),
                          .topic = record.topic,
                          .partition = record.partition,
                          .offset = -1,
                          .timestamp = record.timestamp};
    for (size_t i = 0; err != KAFKA_OK && i < h->producer_n; i++)
        if (h->producer[i].on_acknowledgement)
            h->producer[i].on_acknowledgement(&d, h->producer[i].arg);
    return err;
}

kafka_err_t kafka_producer_send(kafka_producer_t *p, const kafka_record_t *r, kafka_delivery_cb cb,
                                void *arg)
{
    return p->hooks->producer_n ? send_intercepted(p, r, cb, arg) : send_record(p, r, cb, arg);
}

struct sync_result {
    pthread_mutex_t lock;
    pthread_cond_t cond;
    bool done;
    kafka_err_t err;
    int64_t offset;
    char message[512];
};

static void on_sync(const kafka_delivery_t *d, void *arg)
{
    struct sync_result *s = arg;
    pthread_mutex_lock(&s->lock);
    s->done = true;
    s->err = d->err;
    s->offset = d->offset;
    if (d->err != KAFKA_OK)
        snprintf(s->message, sizeof s->message, "%s", d->error_message);
    pthread_cond_signal(&s->cond);
    pthread_mutex_unlock(&s->lock);
}

kafka_err_t kafka_producer_send_sync(kafka_producer_t *p, const kafka_record_t *record,
                                     int64_t *offset)
{
    struct sync_result s = {.offset = -1};
    if (executor_on_thread(cluster_executor(p->cluster)))
        return client_fail(KAFKA_ERR_STATE, "a callback cannot wait: its outcome would come on "
                                            "this thread");
    pthread_mutex_init(&s.lock, NULL);
    client_cond_init(&s.cond);
    kafka_err_t err = kafka_producer_send(p, record, on_sync, &s);
    pthread_mutex_lock(&s.lock);
    while (err == KAFKA_OK && !s.done)
        pthread_cond_wait(&s.cond, &s.lock);
    pthread_mutex_unlock(&s.lock);
    if (offset)
        *offset = s.offset;
    pthread_cond_destroy(&s.cond);
    pthread_mutex_destroy(&s.lock);
    if (err == KAFKA_OK && s.err != KAFKA_OK)
        client_fail(s.err, "%s", s.message);
    return err == KAFKA_OK ? s.err : err;
}

/* Is a batch made before or as `number` still under way? Lock held. Batches lie in the order of
 * their numbers. */
static bool unfinished(kafka_producer_t *p, uint64_t number)
{
    return !list_empty(&p->incomplete) &&
           list_entry(p->incomplete.next, struct pbatch, all_link)->number <= number;
}

kafka_err_t kafka_producer_flush(kafka_producer_t *p, int64_t timeout_ms)
{
    int64_t deadline = client_deadline(timeout_ms);
    kafka_err_t err = KAFKA_OK;
    if (executor_on_thread(cluster_executor(p->cluster)))
        return client_fail(KAFKA_ERR_STATE, "flush would wait for the callback that calls it");
    pthread_mutex_lock(&p->lock);
    uint64_t last = p->last_number;
    p->flushing++;
    sender_wake(p);
    while (err == KAFKA_OK && unfinished(p, last))
        if (!client_cond_wait(&p->progress, &p->lock, deadline))
            err = unfinished(p, last) ? KAFKA_ERR_TIMED_OUT : KAFKA_OK;
    p->flushing--;
    pthread_mutex_unlock(&p->lock);
    char why[500];
    return err == KAFKA_OK
               ? err
               : client_fail(err, "flush: records are under way after %lld ms%s",
                             (long long)timeout_ms, cluster_why(p->cluster, why, sizeof why));
}

kafka_err_t kafka_producer_partition_count(kafka_producer_t *p, const char *topic, int32_t *count)
{
    return cluster_wait_topic(p->cluster, topic, 0, p->max_block_ms, count);
}

static void close_sender(void *arg)
{
    kafka_producer_t *p = arg;
    sender_stop(p);
    outcome_fail_all(p, KAFKA_ERR_CLOSED);
    if (p->txn)
        txn_stop(p->txn);
}

void kafka_producer_close(kafka_producer_t *p, int64_t timeout_ms)
{
    if (!p)
        return;
    int64_t deadline = client_deadline(timeout_ms < 0 ? p->delivery_timeout_ms : timeout_ms);
    if (timeout_ms != 0)
        kafka_producer_flush(p, timeout_ms);
    if (timeout_ms != 0 && p->txn)
        txn_close(p->txn, deadline);
    pthread_mutex_lock(&p->lock);
    p->closing = true;
    pthread_cond_broadcast(&p->room);
    pthread_mutex_unlock(&p->lock);
    cluster_call(p->cluster, close_sender, p);
    cluster_stop(p->cluster);
    producer_free(p);
}
