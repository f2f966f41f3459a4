/* fetchers.c - see fetchers.h. */
#include "replica/fetchers.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/logline.h"
#include "replica/partition_private.h"

struct source_fetcher {
    struct list link;
    int32_t source;
    int number;
    struct str host; /* owned */
    int port;
    struct fetcher *fetcher; /* NULL after the stop */
    int parts;               /* that it has been given */
};

struct fetchers {
    struct fetchers_options o;
    pthread_mutex_t lock;
    struct list all; /* of source_fetcher; under lock */
    bool leaving;    /* under lock */
    bool stopped;    /* under lock */
};

static void source_free(struct source_fetcher *s)
{
    free((char *)s->host.p);
    free(s);
}

struct fetchers *fetchers_new(const struct fetchers_options *o)
{
    struct fetchers *fs = calloc(1, sizeof(*fs));
    if (!fs)
        return NULL;
    fs->o = *o;
    if (fs->o.per_source < 1)
        fs->o.per_source = 1;
    pthread_mutex_init(&fs->lock, NULL);
    list_init(&fs->all);
    return fs;
}

void fetchers_free(struct fetchers *fs)
{
    if (!fs)
        return;
    for (struct list *it; (it = list_pop(&fs->all)) != NULL;)
        source_free(list_entry(it, struct source_fetcher, link));
    pthread_mutex_destroy(&fs->lock);
    free(fs);
}

/* Java's hash of the topic's name (which is ASCII), as in every broker. */
int fetchers_number_of(struct topic_partition tp, int n)
{
    uint32_t h = 0;
    for (int32_t i = 0; i < tp.topic.len; i++)
        h = 31 * h + (uint8_t)tp.topic.p[i];
    int32_t v = (int32_t)(31 * h + (uint32_t)tp.partition);
    if (v == INT32_MIN)
        v = 0;
    return (v < 0 ? -v : v) % n;
}

static void ended(void *arg, struct fetch_place place)
{
    struct fetchers *fs = arg;
    fs->o.places.close(fs->o.places.arg, place);
}

/* Another address of the same broker. */
static void move_source(struct source_fetcher *s, struct str host, int port)
{
    if (!s->fetcher || (s->port == port && str_eq(s->host, host)))
        return;
    struct str copy = {str_dup(host), host.len};
    if (!copy.p || fetcher_move_to(s->fetcher, host, port)) {
        say_error("ReplicaFetchers", "no memory for the address of broker %d", (int)s->source);
        free((char *)copy.p);
        return;
    }
    free((char *)s->host.p);
    s->host = copy;
    s->port = port;
}

/* Under the lock. NULL (logged): it cannot be made. */
static struct source_fetcher *make(struct fetchers *fs, int32_t source, struct str host, int port,
                                   int number)
{
    char name[32]; /* of a thread, which is cut to its length */
    struct fetcher_options o = {.settings = &fs->o.settings,
                                .source = source,
                                .host = host,
                                .port = port,
                                .number = number,
                                .ended = ended,
                                .arg = fs};
    snprintf(name, sizeof(name), "fetch-%d-%d", (int)source, number);
    if (!fs->o.places.open(fs->o.places.arg, name, &o.place))
        return NULL;
    struct source_fetcher *s = calloc(1, sizeof(*s));
    if (s) {
        *s = (struct source_fetcher){
            .source = source, .number = number, .host = {str_dup(host), host.len}, .port = port};
        s->fetcher = s->host.p ? fetcher_new(&o) : NULL;
    }
    if (!s || !s->fetcher) {
        say_error("ReplicaFetchers", "no memory for a fetcher from broker %d", (int)source);
        fs->o.places.close(fs->o.places.arg, o.place);
        if (s)
            source_free(s);
        return NULL;
    }
    list_push_back(&fs->all, &s->link);
    return s;
}

static struct source_fetcher *find_or_make(struct fetchers *fs, int32_t source, struct str host,
                                           int port, int number)
{
    list_each (it, &fs->all) {
        struct source_fetcher *s = list_entry(it, struct source_fetcher, link);
        if (s->source != source || s->number != number)
            continue;
        move_source(s, host, port);
        return s;
    }
    return make(fs, source, host, port, number);
}

static void unfollow_locked(struct partition *p)
{
    struct source_fetcher *s = p->fetched_by;
    if (!s)
        return;
    if (s->fetcher)
        fetcher_forget(s->fetcher, p);
    s->parts--;
    p->fetched_by = NULL;
}

void fetchers_follow(struct fetchers *fs, struct partition *p, int32_t source, struct str host,
                     int port, int32_t leader_epoch, struct uuid id)
{
    pthread_mutex_lock(&fs->lock);
    int number = fetchers_number_of(partition_tp(p), fs->o.per_source);
    struct source_fetcher *to = NULL;
    if (!fs->stopped && (!fs->leaving || p->fetched_by))
        to = find_or_make(fs, source, host, port, number);
    if (to != p->fetched_by)
        unfollow_locked(p);
    if (to && !p->fetched_by) {
        p->fetched_by = to;
        to->parts++;
    }
    p->fetched_id = id;
    if (to && fetcher_follow(to->fetcher, p, leader_epoch, id))
        say_error("ReplicaFetchers", "no memory to follow %s-%d", p->topic, (int)p->number);
    pthread_mutex_unlock(&fs->lock);
}

void fetchers_set_id(struct fetchers *fs, struct partition *p, int32_t leader_epoch, struct uuid id)
{
    pthread_mutex_lock(&fs->lock);
    p->fetched_id = id;
    if (p->fetched_by && p->fetched_by->fetcher)
        fetcher_follow(p->fetched_by->fetcher, p, leader_epoch, id);
    pthread_mutex_unlock(&fs->lock);
}

void fetchers_unfollow(struct fetchers *fs, struct partition *p)
{
    pthread_mutex_lock(&fs->lock);
    unfollow_locked(p);
    pthread_mutex_unlock(&fs->lock);
}

static void close_locked(struct source_fetcher *s)
{
    list_remove(&s->link);
    if (s->fetcher)
        fetcher_close(s->fetcher);
    source_free(s);
}

void fetchers_set_per_source(struct fetchers *fs, int per_source)
{
    pthread_mutex_lock(&fs->lock);
    fs->o.per_source = per_source < 1 ? 1 : per_source;
    pthread_mutex_unlock(&fs->lock);
}

void fetchers_close_idle(struct fetchers *fs)
{
    pthread_mutex_lock(&fs->lock);
    list_each_safe (it, &fs->all) {
        struct source_fetcher *s = list_entry(it, struct source_fetcher, link);
        if (s->parts == 0)
            close_locked(s);
    }
    pthread_mutex_unlock(&fs->lock);
}

void fetchers_leave(struct fetchers *fs)
{
    pthread_mutex_lock(&fs->lock);
    fs->leaving = true;
    pthread_mutex_unlock(&fs->lock);
}

void fetchers_stop(struct fetchers *fs)
{
    pthread_mutex_lock(&fs->lock);
    fs->stopped = true;
    list_each (it, &fs->all) { /* partitions still point there */
        struct source_fetcher *s = list_entry(it, struct source_fetcher, link);
        if (s->fetcher)
            fetcher_close(s->fetcher);
        s->fetcher = NULL;
    }
    pthread_mutex_unlock(&fs->lock);
}

void fetchers_see_broker(struct fetchers *fs, int32_t source, struct str host, int port)
{
    pthread_mutex_lock(&fs->lock);
    list_each (it, &fs->all) {
        struct source_fetcher *s = list_entry(it, struct source_fetcher, link);
        if (s->source == source)
            move_source(s, host, port);
    }
    pthread_mutex_unlock(&fs->lock);
}

int fetchers_count(struct fetchers *fs)
{
    int n = 0;
    pthread_mutex_lock(&fs->lock);
    list_each (it, &fs->all)
        n++;
    pthread_mutex_unlock(&fs->lock);
    return n;
}

int fetchers_failed_count(struct fetchers *fs)
{
    int n = 0;
    pthread_mutex_lock(&fs->lock);
    list_each (it, &fs->all) {
        const struct source_fetcher *s = list_entry(it, struct source_fetcher, link);
        n += s->fetcher ? fetcher_failed_count(s->fetcher) : 0;
    }
    pthread_mutex_unlock(&fs->lock);
    return n;
}

static struct fetcher_figures figures_of(const struct source_fetcher *s)
{
    const struct fetcher_counts *c = fetcher_counts(s->fetcher);
    struct fetcher_figures f = {.source = s->source,
                                .number = s->number,
                                .port = s->port,
                                .requests = metric_read(&c->requests),
                                .bytes = metric_read(&c->bytes)};
    snprintf(f.host, sizeof(f.host), "%.*s", STR_ARG(s->host));
    return f;
}

int fetchers_look(struct fetchers *fs, struct fetcher_figures *out, int most)
{
    int n = 0;
    pthread_mutex_lock(&fs->lock);
    list_each (it, &fs->all) {
        const struct source_fetcher *s = list_entry(it, struct source_fetcher, link);
        if (s->fetcher && n < most)
            out[n++] = figures_of(s);
    }
    pthread_mutex_unlock(&fs->lock);
    return n;
}

int fetchers_number_for(struct fetchers *fs, struct topic_partition tp)
{
    pthread_mutex_lock(&fs->lock);
    int number = fetchers_number_of(tp, fs->o.per_source);
    pthread_mutex_unlock(&fs->lock);
    return number;
}
