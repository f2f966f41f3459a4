/* txn_markers.c - see txn_markers.h.
 *
 * An item is one partition of one sending. It is in one list at any time: without a leader, in the
 * queue of a broker, or in the request that is out; or in none, when it is done. */
#include "coordinator/txn_markers.h"

#include <errno.h>
#include <stdlib.h>

#include "base/logline.h"
#include "coordinator/dial.h"
#include "protocol/msg/write_txn_markers.h"

#define MARKERS_TAG "TransactionMarkers"

enum { RETRY_MS = 100, REQUEST_ITEMS_MAX = 1000, GONE_MS = 30000 };

struct item {
    struct list link;
    struct sending *of;
    struct str topic; /* the id's */
    int32_t partition;
    bool out, missing;        /* in the request that is out; the metadata did not have it */
    int64_t missing_since_ms; /* monotonic */
};

struct sending {
    struct list link;
    struct txn *t; /* one reference */
    uint64_t token;
    int32_t coordinator_epoch;
    bool over;        /* nothing more is to be sent */
    int n, left, out; /* items: all, not done, in a request */
    struct item items[];
};

struct destination { /* a broker */
    struct list link;
    struct txn_markers *owner;
    int32_t broker;
    struct dial dial;
    struct list queue;
    /* The request that is out. */
    bool busy;
    struct list sent;
    struct arena arena;
};

struct txn_markers {
    struct txn_markers_options o;
    struct list sendings;
    struct list homeless; /* items whose leader is to be looked up */
    struct list refused;  /* that become homeless when there are news, or after RETRY_MS */
    struct list destinations;
    struct timer retry;
    struct task task;
    bool posted, stopped;
    int waiting;
};

static void look_soon(struct txn_markers *m)
{
    if (m->posted || m->stopped)
        return;
    m->posted = true;
    executor_post(m->o.ex, &m->task);
}

/* ---- items ---- */

/* The last word on a sending, when nothing of it is out any more. */
static void settle(struct txn_markers *m, struct sending *s)
{
    if (s->out > 0 || (s->left > 0 && !s->over))
        return;
    struct txn *t = s->t;
    uint64_t token = s->token;
    bool over = s->over;
    list_remove(&s->link);
    free(s);
    if (!over)
        m->o.written(m->o.arg, t, token);
    txn_unref(t);
}

static void item_done(struct txn_markers *m, struct item *i)
{
    i->of->left--;
    m->waiting--;
    settle(m, i->of);
}

/* What is not out is forgotten now, the rest when its answer comes. */
static void end_sending(struct txn_markers *m, struct sending *s)
{
    if (s->over)
        return;
    s->over = true;
    m->waiting -= s->left;
    for (int i = 0; i < s->n; i++)
        if (!s->items[i].out)
            list_remove(&s->items[i].link);
}

/* ---- leaders ---- */

static struct destination *find_destination(struct txn_markers *m, int32_t broker)
{
    list_each (l, &m->destinations) {
        struct destination *d = list_entry(l, struct destination, link);
        if (d->broker == broker)
            return d;
    }
    struct destination *d = calloc(1, sizeof(*d));
    if (!d)
        return NULL;
    d->owner = m;
    d->broker = broker;
    list_init(&d->queue);
    list_init(&d->sent);
    arena_init(&d->arena, 0);
    list_push_back(&m->destinations, &d->link);
    return d;
}

/* A connection to where the broker is now; not before what is out is answered. */
static bool reach(struct destination *d, const struct endpoint *e)
{
    const struct txn_markers_options *o = &d->owner->o;
    return d->busy || dial_to(&d->dial, &o->opener, e, o->client_id, o->timeout_ms);
}

enum place { PLACE_GONE, PLACE_NOWHERE, PLACE_FOUND };

/* A broker that has just come is told of the cluster piece by piece, and may have loaded its
 * transactions before it knows of their partitions. One that is taken for deleted and is not would
 * be without its marker for ever: so it must stay away for a while. */
static enum place find_missing(const struct txn_markers *m, struct item *i)
{
    int64_t now = executor_now_ms(m->o.ex);
    if (!i->missing) {
        i->missing = true;
        i->missing_since_ms = now;
    }
    return now - i->missing_since_ms >= GONE_MS ? PLACE_GONE : PLACE_NOWHERE;
}

static enum place find_leader(struct txn_markers *m, const struct metadata_snapshot *s,
                              struct item *i, struct destination **d)
{
    const struct partition_info *p = metadata_partition(s, i->topic, i->partition);
    if (!p)
        return find_missing(m, i);
    i->missing = false;
    const struct broker_info *b = p->leader >= 0 ? metadata_broker(s, p->leader) : NULL;
    const struct endpoint *e = b ? broker_endpoint(b, m->o.listener) : NULL;
    *d = e ? find_destination(m, b->id) : NULL;
    return *d && reach(*d, e) ? PLACE_FOUND : PLACE_NOWHERE;
}

static void place_items(struct txn_markers *m)
{
    struct list todo, *l;
    list_init(&todo);
    list_splice(&todo, &m->homeless);
    if (list_empty(&todo))
        return;
    const struct metadata_snapshot *s = metadata_acquire(m->o.metadata);
    while ((l = list_pop(&todo)) != NULL) {
        struct item *i = list_entry(l, struct item, link);
        struct destination *d = NULL;
        switch (find_leader(m, s, i, &d)) {
        case PLACE_FOUND:
            list_push_back(&d->queue, &i->link);
            break;
        case PLACE_NOWHERE:
            list_push_back(&m->homeless, &i->link);
            break;
        case PLACE_GONE:
            say_info(MARKERS_TAG, "%.*s-%d is gone: no marker of %.*s's transaction",
                     STR_ARG(i->topic), (int)i->partition, STR_ARG(i->of->t->id));
            item_done(m, i);
            break;
        }
    }
    metadata_release(s);
    if (!list_empty(&m->homeless) && !timer_armed(&m->retry))
        executor_timer_start(m->o.ex, &m->retry, RETRY_MS);
}

/* ---- requests ---- */

typedef struct write_txn_markers_request_marker marker;
typedef struct write_txn_markers_request_topic marker_topic;

static int take_items(struct destination *d)
{
    int n = 0;
    while (n < REQUEST_ITEMS_MAX && !list_empty(&d->queue)) {
        struct item *i = list_entry(list_pop(&d->queue), struct item, link);
        list_push_back(&d->sent, &i->link);
        i->out = true;
        i->of->out++;
        n++;
    }
    return n;
}

static void fill_marker(marker *to, const struct sending *s, marker_topic *topics)
{
    to->producer_id = s->t->now.producer_id;
    to->producer_epoch = s->t->now.epoch;
    to->transaction_result = s->t->now.state == TXN_PREPARE_COMMIT;
    to->coordinator_epoch = s->coordinator_epoch;
    to->topics.v = topics;
    to->topics.n = 0;
}

/* The items that are `sent`, n of them: those of one transaction, and of one topic, stand together
 * as far as they did in the queue. */
static struct write_txn_markers_request *build(struct destination *d, int n)
{
    struct arena *a = &d->arena;
    struct write_txn_markers_request *req = arena_new(a, struct write_txn_markers_request);
    marker *markers = write_txn_markers_request_marker_new(a, n);
    marker_topic *topics = write_txn_markers_request_topic_new(a, n), *topic = NULL;
    int32_t *numbers = arena_array(a, int32_t, (size_t)n);
    const struct sending *of = NULL;
    if (!req || !markers || !topics || !numbers)
        return NULL;
    write_txn_markers_request_init(req);
    req->markers.v = markers;
    list_each (l, &d->sent) {
        const struct item *i = list_entry(l, struct item, link);
        if (i->of != of) {
            of = i->of;
            topic = NULL;
            fill_marker(&markers[req->markers.n++], of, topics);
        }
        if (!topic || !str_eq(topic->name, i->topic)) {
            topic = topics++;
            topic->name = i->topic;
            topic->partition_indexes.v = numbers;
            topic->partition_indexes.n = 0;
            markers[req->markers.n - 1].topics.n++;
        }
        *numbers++ = i->partition;
        topic->partition_indexes.n++;
    }
    return req;
}

/* ---- answers ---- */

enum outcome { OUTCOME_AGAIN, OUTCOME_DONE, OUTCOME_FENCED };

static enum outcome outcome_of(enum kerr e)
{
    static const struct {
        enum kerr error;
        enum outcome outcome;
    } table[] = {
        {KERR_NONE, OUTCOME_DONE},
        {KERR_UNSUPPORTED_FOR_MESSAGE_FORMAT, OUTCOME_DONE},
        {KERR_UNSUPPORTED_VERSION, OUTCOME_DONE},
        {KERR_INVALID_PRODUCER_EPOCH, OUTCOME_FENCED},
        {KERR_TRANSACTION_COORDINATOR_FENCED, OUTCOME_FENCED},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        if (table[i].error == e)
            return table[i].outcome;
    return OUTCOME_AGAIN; /* another leader, too few replicas, a disk, a connection: it passes */
}

/* The answer for one item; what the answer leaves out did not happen. */
static enum kerr error_in(const void *response, struct item *i)
{
    const struct write_txn_markers_response *r = response;
    for (int32_t k = 0; r && k < r->markers.n; k++) {
        const struct write_txn_markers_response_marker *m = &r->markers.v[k];
        if (m->producer_id != i->of->t->now.producer_id)
            continue;
        for (int32_t t = 0; t < m->topics.n; t++) {
            const struct write_txn_markers_response_topic *topic = &m->topics.v[t];
            if (!str_eq(topic->name, i->topic))
                continue;
            for (int32_t p = 0; p < topic->partitions.n; p++)
                if (topic->partitions.v[p].partition_index == i->partition)
                    return (enum kerr)topic->partitions.v[p].error_code;
        }
    }
    return KERR_NETWORK_EXCEPTION;
}

static void fenced(struct txn_markers *m, struct item *i, enum kerr e)
{
    if (!i->of->over)
        say_info(MARKERS_TAG, "%.*s-%d answers %s for %.*s: another coordinator ends it",
                 STR_ARG(i->topic), (int)i->partition, kerr_name((int16_t)e),
                 STR_ARG(i->of->t->id));
    end_sending(m, i->of);
}

static void item_answered(struct txn_markers *m, struct item *i, enum kerr e)
{
    struct sending *s = i->of;
    enum outcome outcome = outcome_of(e);
    i->out = false;
    s->out--;
    if (outcome == OUTCOME_FENCED)
        fenced(m, i, e);
    if (s->over) {
        settle(m, s);
    } else if (outcome == OUTCOME_DONE) {
        item_done(m, i);
    } else {
        list_push_back(&m->refused, &i->link);
        if (!timer_armed(&m->retry))
            executor_timer_start(m->o.ex, &m->retry, RETRY_MS);
    }
}

static void each_sent(struct destination *d, enum kerr (*error)(const void *arg, struct item *i),
                      const void *arg)
{
    struct list sent, *l;
    list_init(&sent);
    list_splice(&sent, &d->sent);
    while ((l = list_pop(&sent)) != NULL) {
        struct item *i = list_entry(l, struct item, link);
        item_answered(d->owner, i, error(arg, i));
    }
}

static void answered(void *arg, int status, int version, const void *response)
{
    struct destination *d = arg;
    (void)version;
    d->busy = false;
    each_sent(d, error_in, status ? NULL : response);
    arena_reset(&d->arena);
    if (status && !d->owner->stopped)
        dial_hang_up(&d->dial);
    look_soon(d->owner);
}

static void send_queue(struct destination *d)
{
    if (d->busy || list_empty(&d->queue))
        return;
    int n = take_items(d);
    struct write_txn_markers_request *req = d->dial.remote ? build(d, n) : NULL;
    d->busy = true;
    if (req && remote_send(d->dial.remote, API_WRITE_TXN_MARKERS, -1, -1, req,
                           d->owner->o.timeout_ms, answered, d) == 0)
        return;
    d->busy = false;
    each_sent(d, error_in, NULL);
    arena_reset(&d->arena);
}

static void look(struct txn_markers *m)
{
    place_items(m);
    list_each (l, &m->destinations)
        send_queue(list_entry(l, struct destination, link));
}

static void look_task(struct task *t)
{
    struct txn_markers *m = container_of(t, struct txn_markers, task);
    m->posted = false;
    if (!m->stopped)
        look(m);
}

static void retry(struct timer *t)
{
    struct txn_markers *m = container_of(t, struct txn_markers, retry);
    list_splice(&m->homeless, &m->refused);
    look(m);
}

/* ---- the interface ---- */

int txn_markers_send(struct txn_markers *m, struct txn *t, uint64_t token,
                     int32_t coordinator_epoch)
{
    const struct txn_partitions *p = &t->now.partitions;
    int n = txn_partitions_count(p);
    struct sending *s = calloc(1, sizeof(*s) + (size_t)n * sizeof(*s->items));
    if (!s)
        return -ENOMEM;
    s->t = txn_ref(t);
    s->token = token;
    s->coordinator_epoch = coordinator_epoch;
    list_push_back(&m->sendings, &s->link);
    for (int i = 0; i < p->n; i++)
        for (int j = 0; j < p->topics[i].n; j++) {
            struct item *it = &s->items[s->n++];
            *it =
                (struct item){.of = s, .topic = p->topics[i].name, .partition = p->topics[i].v[j]};
            list_push_back(&m->homeless, &it->link);
        }
    s->left = n;
    m->waiting += n;
    look_soon(m);
    return 0;
}

void txn_markers_drop(struct txn_markers *m, int32_t partition)
{
    list_each_safe (l, &m->sendings) {
        struct sending *s = list_entry(l, struct sending, link);
        if (partition != TXN_MARKERS_ALL && s->t->partition != partition)
            continue;
        end_sending(m, s);
        settle(m, s);
    }
}

void txn_markers_look_again(struct txn_markers *m)
{
    list_splice(&m->homeless, &m->refused);
    look_soon(m);
}

int txn_markers_homeless(const struct txn_markers *m)
{
    int n = 0;
    list_each (l, &m->homeless)
        n++;
    list_each (l, &m->refused)
        n++;
    return n;
}

int txn_markers_waiting(const struct txn_markers *m)
{
    return m->waiting;
}

void txn_markers_stop(struct txn_markers *m)
{
    if (m->stopped)
        return;
    m->stopped = true;
    txn_markers_drop(m, TXN_MARKERS_ALL);
    executor_timer_stop(m->o.ex, &m->retry);
    list_each (l, &m->destinations)
        dial_hang_up(&list_entry(l, struct destination, link)->dial);
}

/* ---- life ---- */

struct txn_markers *txn_markers_new(const struct txn_markers_options *o)
{
    struct txn_markers *m = calloc(1, sizeof(*m));
    char *client_id = str_dup(str_of(o->client_id));
    if (!m || !client_id) {
        free(m);
        free(client_id);
        return NULL;
    }
    m->o = *o;
    m->o.client_id = client_id;
    list_init(&m->sendings);
    list_init(&m->homeless);
    list_init(&m->refused);
    list_init(&m->destinations);
    timer_init(&m->retry, retry);
    task_init(&m->task, look_task);
    return m;
}

void txn_markers_free(struct txn_markers *m)
{
    struct list *l;
    if (!m)
        return;
    while ((l = list_pop(&m->destinations)) != NULL) {
        struct destination *d = list_entry(l, struct destination, link);
        arena_free(&d->arena);
        free(d);
    }
    free((char *)m->o.client_id);
    free(m);
}
