/* isr_store.c - see isr_store.h. */
#include "replica/isr_store.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/logline.h"
#include "metadata/paths.h"
#include "metadata/znode.h"

enum { LOOK_MS = 2500, QUIET_MS = 5000, AT_MOST_MS = 60000, READ_AGAIN_MS = 1000 };

/* A partition that the controller is to hear of. */
struct noted {
    struct list link;
    struct partition *partition;
};

struct isr_store {
    struct isr_writer writer;
    struct isr_store_options o;
    pthread_mutex_t lock;
    struct list changes; /* on their way; under lock */
    /* The executor's. */
    struct list noted;
    int64_t last_change_ms, last_notice_ms; /* monotonic */
    struct timer timer;
    bool stopped;
};

/* One change on its way. */
struct change {
    struct list link; /* isr_store.changes */
    struct isr_store *s;
    struct partition *partition; /* one reference; NULL after the stop: nobody is answered */
    struct isr_proposal *q;
    struct partition_node node;
    const char *path;
    struct store_request request;
    struct store_op op;
    struct timer again; /* armed: nothing is asked of the store */
    struct arena arena;
};

static void change_free(struct change *c)
{
    pthread_mutex_lock(&c->s->lock);
    list_remove(&c->link);
    pthread_mutex_unlock(&c->s->lock);
    store_request_clear(&c->request);
    partition_unref(c->partition);
    isr_proposal_free(c->q);
    arena_free(&c->arena);
    free(c);
}

static void answer(struct change *c, enum kerr error, int32_t partition_epoch)
{
    struct isr_answer a = {.error = error,
                           .leader_epoch = c->q->leader_epoch,
                           .partition_epoch = partition_epoch,
                           .isr = c->q->isr,
                           .isr_n = c->q->isr_n};
    if (c->partition)
        partition_isr_answered(c->partition, c->q->number, &a);
    change_free(c);
}

/* ---- notices ---- */

static void note(struct isr_store *s, struct partition *p)
{
    s->last_change_ms = executor_now_ms(s->o.ex);
    list_each (it, &s->noted)
        if (list_entry(it, struct noted, link)->partition == p)
            return;
    struct noted *n = calloc(1, sizeof(*n));
    if (!n)
        return; /* the controller hears of it with the next change */
    n->partition = partition_ref(p);
    list_push_back(&s->noted, &n->link);
    if (!timer_armed(&s->timer) && !s->stopped)
        executor_timer_start(s->o.ex, &s->timer, LOOK_MS);
}

struct notice {
    struct isr_store *s;
    struct store_request request;
    struct store_op op;
    struct arena arena;
};

static void notice_written(struct store_request *r)
{
    struct notice *n = container_of(r, struct notice, request);
    if (r->status)
        say_warn("IsrManager", "the controller cannot be told of ISR changes: %s",
                 strerror(-r->status));
    store_request_clear(r);
    arena_free(&n->arena);
    free(n);
}

static void forget_noted(struct isr_store *s)
{
    for (struct list *it; (it = list_pop(&s->noted)) != NULL;) {
        struct noted *n = list_entry(it, struct noted, link);
        partition_unref(n->partition);
        free(n);
    }
}

static void write_notice(struct isr_store *s)
{
    struct notice *n = calloc(1, sizeof(*n));
    size_t count = 0;
    if (!n)
        return; /* the next round */
    arena_init(&n->arena, 0);
    list_each (it, &s->noted)
        count++;
    struct named_partitions l = {arena_array(&n->arena, struct named_partition, count), 0};
    list_each (it, &s->noted) {
        struct topic_partition tp = partition_tp(list_entry(it, struct noted, link)->partition);
        if (l.v)
            l.v[l.n++] = (struct named_partition){.topic = tp.topic, .partition = tp.partition};
    }
    struct bytes data = l.v ? znode_partitions_encode(l, &n->arena) : BYTES_NULL;
    if (!data.p) {
        arena_free(&n->arena);
        free(n);
        return;
    }
    n->s = s;
    n->op = store_op_create(PATH_ISR_CHANGE_PREFIX, data, STORE_SEQUENTIAL);
    n->request = (struct store_request){
        .ops = &n->op, .ops_n = 1, .done_on = s->o.ex, .done = notice_written};
    store_submit(s->o.store, &n->request);
    s->last_notice_ms = executor_now_ms(s->o.ex);
    forget_noted(s);
}

static void look(struct timer *t)
{
    struct isr_store *s = container_of(t, struct isr_store, timer);
    int64_t now = executor_now_ms(s->o.ex);
    if (now - s->last_change_ms >= QUIET_MS || now - s->last_notice_ms >= AT_MOST_MS)
        write_notice(s);
    if (!list_empty(&s->noted) && !s->stopped)
        executor_timer_start(s->o.ex, &s->timer, LOOK_MS);
}

/* ---- changes ---- */

static void written(struct change *c, int32_t version)
{
    if (c->partition)
        note(c->s, c->partition);
    answer(c, KERR_NONE, version);
}

static bool is_ours(const struct change *c, const struct partition_node *now)
{
    return now->leader == c->node.leader && now->leader_epoch == c->node.leader_epoch &&
           now->controller_epoch == c->node.controller_epoch && id_list_eq(now->isr, c->node.isr);
}

static void failed(struct change *c, int status);

static void submit(struct change *c, struct store_op op, void (*done)(struct store_request *r))
{
    c->op = op;
    c->request =
        (struct store_request){.ops = &c->op, .ops_n = 1, .done_on = c->s->o.ex, .done = done};
    store_submit(c->s->o.store, &c->request);
}

/* What the store holds tells what came of the write. As long as it is the version of before,
 * nothing did: then no LeaderAndIsr need be under way either. */
static void on_read(struct store_request *r)
{
    struct change *c = container_of(r, struct change, request);
    struct partition_node now;
    int32_t version = c->op.stat.version;
    if (r->status)
        failed(c, r->status);
    else if (!znode_partition_decode(c->op.result, &c->arena, &now) && is_ours(c, &now))
        written(c, version);
    else
        answer(c,
               version == c->q->partition_epoch ? KERR_OPERATION_NOT_ATTEMPTED
                                                : KERR_INVALID_UPDATE_VERSION,
               -1);
}

static void read_now(struct change *c)
{
    submit(c, store_op_get(c->path, false), on_read);
}

static void read_again(struct timer *t)
{
    read_now(container_of(t, struct change, again));
}

/* The topic went: a StopReplica follows. Anything else leaves open what the store holds, and nobody
 * tells but the store. So does the end of our session: while no controller saw it, none will tell
 * us anything, and the next one leaves a leader that is there as it is. */
static void failed(struct change *c, int status)
{
    if (status == -ENOENT) {
        answer(c, KERR_UNKNOWN_TOPIC_OR_PARTITION, -1);
    } else if (c->s->stopped) {
        answer(c, KERR_INVALID_UPDATE_VERSION, -1);
    } else {
        say_warn("IsrManager", "%s: the ISR cannot be written: %s; looking what is there", c->path,
                 strerror(-status));
        store_request_clear(&c->request);
        executor_timer_start(c->s->o.ex, &c->again, READ_AGAIN_MS);
    }
}

static void on_written(struct store_request *r)
{
    struct change *c = container_of(r, struct change, request);
    if (r->status == 0) {
        written(c, c->op.stat.version);
    } else if (r->status == STORE_BAD_VERSION) {
        store_request_clear(r);
        read_now(c);
    } else {
        failed(c, r->status);
    }
}

static void refuse(struct partition *p, struct isr_proposal *q)
{
    struct isr_answer a = {.error = KERR_OPERATION_NOT_ATTEMPTED};
    partition_isr_answered(p, q->number, &a);
    isr_proposal_free(q);
}

static void propose(struct isr_writer *w, struct partition *p, struct isr_proposal *q)
{
    struct isr_store *s = container_of(w, struct isr_store, writer);
    struct topic_partition tp = partition_tp(p);
    struct change *c = calloc(1, sizeof(*c));
    if (!c) {
        refuse(p, q);
        return;
    }
    arena_init(&c->arena, 0);
    c->node = (struct partition_node){.controller_epoch = q->controller_epoch,
                                      .leader = s->o.broker_id,
                                      .leader_epoch = q->leader_epoch,
                                      .isr = {q->isr, q->isr_n}};
    struct bytes data = znode_partition_encode(&c->node, &c->arena);
    char *path = path_state(&c->arena, tp.topic, tp.partition);
    if (!data.p || !path) {
        refuse(p, q);
        arena_free(&c->arena);
        free(c);
        return;
    }
    c->s = s;
    c->q = q;
    c->path = path;
    timer_init(&c->again, read_again);
    c->partition = partition_ref(p);
    pthread_mutex_lock(&s->lock);
    list_push_back(&s->changes, &c->link);
    pthread_mutex_unlock(&s->lock);
    submit(c, store_op_set(path, data, q->partition_epoch), on_written);
}

/* ---- life ---- */

struct isr_store *isr_store_new(const struct isr_store_options *o)
{
    struct isr_store *s = calloc(1, sizeof(*s));
    if (!s)
        return NULL;
    s->writer.propose = propose;
    s->o = *o;
    s->last_notice_ms = executor_now_ms(o->ex);
    pthread_mutex_init(&s->lock, NULL);
    list_init(&s->changes);
    list_init(&s->noted);
    timer_init(&s->timer, look);
    return s;
}

void isr_store_stop(struct isr_store *s)
{
    s->stopped = true;
    executor_timer_stop(s->o.ex, &s->timer);
    forget_noted(s); /* they hold logs, as do the changes */
    struct list idle = LIST_INIT(idle);
    pthread_mutex_lock(&s->lock);
    list_each_safe (it, &s->changes) {
        struct change *c = list_entry(it, struct change, link);
        partition_unref(c->partition);
        c->partition = NULL;
        if (!timer_armed(&c->again))
            continue;
        list_remove(it);
        list_push_back(&idle, it);
    }
    pthread_mutex_unlock(&s->lock);
    while (!list_empty(&idle)) {
        struct change *c = list_entry(idle.next, struct change, link);
        executor_timer_stop(s->o.ex, &c->again);
        change_free(c);
    }
}

void isr_store_free(struct isr_store *s)
{
    if (!s)
        return;
    forget_noted(s);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

struct isr_writer *isr_store_writer(struct isr_store *s)
{
    return &s->writer;
}
