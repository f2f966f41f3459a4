/* worker_threads.c - one consumer, several threads that work, each with a queue of its own. A
 * partition's records always go to the same thread, so their order is kept; only what is worked off
 * is committed, so nothing is lost.
 *
 *   worker_threads BOOTSTRAP GROUP TOPIC THREADS COUNT */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <kafka/consumer.h>

enum { QUEUE = 256, PARTITIONS = 1024 };

/* A poll's records are shared by the threads that work on them; the last one frees them. */
struct batch {
    kafka_messages_t *messages;
    int users;
};

struct job {
    const kafka_message_t *message;
    struct batch *batch;
};

struct worker {
    pthread_t thread;
    pthread_cond_t changed;
    struct job jobs[QUEUE];
    size_t first, n;
    struct pool *pool;
};

/* `lock` guards all of it. */
struct pool {
    pthread_mutex_t lock;
    pthread_cond_t room;
    struct worker *workers;
    int n, stop;
    long done;
    int64_t next[PARTITIONS]; /* offset behind the last record worked off; -1: none */
    int busy;                 /* jobs queued or being worked on */
    const char *topic;
};

static void work(const kafka_message_t *m)
{
    printf("%d %lld %.*s\n", m->partition, (long long)m->offset, (int)m->value_len,
           m->value ? (const char *)m->value : "");
}

static void release(struct batch *b)
{
    if (--b->users > 0)
        return;
    kafka_messages_free(b->messages);
    free(b);
}

static void *run(void *arg)
{
    struct worker *w = arg;
    struct pool *p = w->pool;
    pthread_mutex_lock(&p->lock);
    for (;;) {
        while (w->n == 0 && !p->stop)
            pthread_cond_wait(&w->changed, &p->lock);
        if (w->n == 0)
            break;
        struct job j = w->jobs[w->first];
        pthread_mutex_unlock(&p->lock);
        work(j.message);
        pthread_mutex_lock(&p->lock);
        w->first = (w->first + 1) % QUEUE;
        w->n--;
        p->next[j.message->partition] = j.message->offset + 1;
        p->done++;
        p->busy--;
        release(j.batch);
        pthread_cond_broadcast(&p->room);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* To the partition's thread; waits while its queue is full. (While that takes longer than
 * max.poll.interval.ms the group thinks us dead: then pause partitions instead, and keep polling.)
 */
static void hand_out(struct pool *p, kafka_messages_t *messages)
{
    struct batch *b = malloc(sizeof *b);
    size_t n = kafka_messages_count(messages);
    *b = (struct batch){messages, (int)n};
    pthread_mutex_lock(&p->lock);
    for (size_t i = 0; i < n; i++) {
        const kafka_message_t *m = kafka_messages_at(messages, i);
        struct worker *w = &p->workers[m->partition % p->n];
        while (w->n == QUEUE)
            pthread_cond_wait(&p->room, &p->lock);
        w->jobs[(w->first + w->n++) % QUEUE] = (struct job){m, b};
        p->busy++;
        pthread_cond_signal(&w->changed);
    }
    pthread_mutex_unlock(&p->lock);
}

/* What is worked off, as offsets to commit. */
static size_t take_offsets(struct pool *p, kafka_offset_t *to)
{
    size_t n = 0;
    pthread_mutex_lock(&p->lock);
    for (int32_t i = 0; i < PARTITIONS; i++) {
        if (p->next[i] < 0)
            continue;
        to[n++] = (kafka_offset_t){
            .topic = p->topic, .partition = i, .leader_epoch = -1, .offset = p->next[i]};
        p->next[i] = -1;
    }
    pthread_mutex_unlock(&p->lock);
    return n;
}

static void commit(kafka_consumer_t *c, struct pool *p)
{
    kafka_offset_t offsets[PARTITIONS];
    size_t n = take_offsets(p, offsets);
    if (n > 0 && kafka_consumer_commit(c, offsets, n, -1) != KAFKA_OK)
        fprintf(stderr, "%s\n", kafka_last_error()); /* they will come again: at least once */
}

static void wait_until_idle(struct pool *p)
{
    pthread_mutex_lock(&p->lock);
    while (p->busy > 0)
        pthread_cond_wait(&p->room, &p->lock);
    pthread_mutex_unlock(&p->lock);
}

/* Before a partition goes to another member its records here are worked off and committed. */
static void on_revoked(kafka_consumer_t *c, const kafka_topic_partition_t *tps, size_t n, void *arg)
{
    (void)tps, (void)n; /* all are waited for */
    wait_until_idle(arg);
    commit(c, arg);
}

static void start(struct pool *p, const char *topic, int threads)
{
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->room, NULL);
    p->topic = topic;
    p->n = threads;
    p->workers = calloc((size_t)threads, sizeof *p->workers);
    for (int i = 0; i < PARTITIONS; i++)
        p->next[i] = -1;
    for (int i = 0; i < threads; i++) {
        p->workers[i].pool = p;
        pthread_cond_init(&p->workers[i].changed, NULL);
        pthread_create(&p->workers[i].thread, NULL, run, &p->workers[i]);
    }
}

static void stop(struct pool *p)
{
    pthread_mutex_lock(&p->lock);
    p->stop = 1;
    for (int i = 0; i < p->n; i++)
        pthread_cond_signal(&p->workers[i].changed);
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < p->n; i++) {
        pthread_join(p->workers[i].thread, NULL);
        pthread_cond_destroy(&p->workers[i].changed);
    }
    pthread_cond_destroy(&p->room);
    pthread_mutex_destroy(&p->lock);
    free(p->workers);
}

static long done(struct pool *p)
{
    pthread_mutex_lock(&p->lock);
    long n = p->done;
    pthread_mutex_unlock(&p->lock);
    return n;
}

static kafka_consumer_t *connect_to(const char *bootstrap, const char *group)
{
    char err[512] = "";
    kafka_conf_t *conf = kafka_conf_new();
    kafka_conf_set(conf, "bootstrap.servers", bootstrap, err, sizeof err);
    kafka_conf_set(conf, "group.id", group, err, sizeof err);
    kafka_conf_set(conf, "enable.auto.commit", "false", err, sizeof err);
    kafka_conf_set(conf, "auto.offset.reset", "earliest", err, sizeof err);
    kafka_consumer_t *c = kafka_consumer_new(conf, err, sizeof err);
    kafka_conf_free(conf);
    if (!c)
        fprintf(stderr, "%s\n", err);
    return c;
}

int main(int argc, char **argv)
{
    static struct pool pool;
    if (argc != 6) {
        fprintf(stderr, "usage: %s BOOTSTRAP GROUP TOPIC THREADS COUNT\n", argv[0]);
        return 2;
    }
    kafka_consumer_t *c = connect_to(argv[1], argv[2]);
    if (!c)
        return 1;
    start(&pool, argv[3], atoi(argv[4]));
    const char *topics[] = {argv[3]};
    kafka_rebalance_listener_t listener = {.revoked = on_revoked, .arg = &pool};
    kafka_err_t err = kafka_consumer_subscribe(c, topics, 1, &listener);
    while (err == KAFKA_OK && done(&pool) < atol(argv[5])) {
        kafka_messages_t *m;
        err = kafka_consumer_poll(c, 100, &m);
        if (m)
            hand_out(&pool, m);
        commit(c, &pool);
    }
    if (err != KAFKA_OK)
        fprintf(stderr, "%s: %s\n", kafka_err_name(err), kafka_last_error());
    kafka_consumer_close(c); /* calls on_revoked */
    stop(&pool);
    return err == KAFKA_OK ? 0 : 1;
}
