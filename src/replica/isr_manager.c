/* isr_manager.c - see isr_manager.h. */
#include "replica/isr_manager.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/hmap.h"
#include "base/logline.h"
#include "protocol/ibp.h"
#include "protocol/msg/alter_partition.h"

typedef struct alter_partition_request request_body;
typedef struct alter_partition_request_topic request_topic;
typedef struct alter_partition_request_partition request_part;
typedef struct alter_partition_response_partition answer_part;

enum { RETRY_MS = 50, VERSION_MAX = 3, VERSION_BY_NAME = 1, FIRST_VERSION_IDS = 2 };

struct item {
    struct hnode node; /* isr_manager.items, by topic and number */
    struct list link;  /* inbox, then isr_manager.order */
    struct partition *partition;
    struct isr_proposal *q;
    bool sent; /* is in the request that is out */
};

struct isr_manager {
    struct isr_writer writer;
    struct isr_manager_options o;
    pthread_mutex_t lock;
    struct list inbox; /* under lock */
    bool posted;       /* under lock */
    struct task task;

    /* The executor's. */
    struct hmap items;
    struct list order;
    struct timer retry;
    struct arena arena; /* of the request that is out */
    struct controller_request request;
    bool busy, stopped;
    int version; /* of the request: lowered when the controller does not know it */
};

/* ---- items ---- */

static struct topic_partition tp_of(const struct item *it)
{
    return partition_tp(it->partition);
}

static bool is_item(const struct hnode *node, const void *key)
{
    return topic_partition_eq(tp_of(hmap_entry(node, struct item, node)),
                              *(const struct topic_partition *)key);
}

static struct item *find(struct isr_manager *m, struct topic_partition tp)
{
    struct hnode *n = hmap_find(&m->items, topic_partition_hash(tp), is_item, &tp);
    return n ? hmap_entry(n, struct item, node) : NULL;
}

static void item_free(struct item *it)
{
    partition_unref(it->partition);
    isr_proposal_free(it->q);
    free(it);
}

static void drop(struct isr_manager *m, struct item *it)
{
    hmap_remove(&m->items, &it->node);
    list_remove(&it->link);
    item_free(it);
}

static void refuse(struct partition *p, const struct isr_proposal *q)
{
    struct isr_answer a = {.error = KERR_OPERATION_NOT_ATTEMPTED};
    partition_isr_answered(p, q->number, &a);
}

/* ---- the request ---- */

static void ask(struct isr_manager *m);

static int by_topic(const void *a, const void *b)
{
    const struct item *x = *(struct item *const *)a, *y = *(struct item *const *)b;
    struct topic_partition s = tp_of(x), t = tp_of(y);
    int32_t n = s.topic.len < t.topic.len ? s.topic.len : t.topic.len;
    int c = memcmp(s.topic.p, t.topic.p, (size_t)n);
    if (c)
        return c;
    if (s.topic.len != t.topic.len)
        return s.topic.len < t.topic.len ? -1 : 1;
    return (s.partition > t.partition) - (s.partition < t.partition);
}

static bool fill_part(struct isr_manager *m, const struct item *it, request_part *out)
{
    const struct isr_proposal *q = it->q;
    out->partition_index = tp_of(it).partition;
    out->leader_epoch = q->leader_epoch;
    out->partition_epoch = q->partition_epoch;
    if (m->version < 3) {
        out->new_isr.v = q->isr; /* the item stays until it is answered */
        out->new_isr.n = q->isr_n;
        return true;
    }
    struct alter_partition_request_new_isr_with_epoch *v =
        alter_partition_request_new_isr_with_epoch_new(&m->arena, q->isr_n);
    for (int32_t i = 0; v && i < q->isr_n; i++)
        v[i].broker_id = q->isr[i];
    out->new_isr_with_epochs.v = v;
    out->new_isr_with_epochs.n = q->isr_n;
    return v != NULL;
}

/* Items in order of topic; *by_id: all have a topic id. NULL without memory. */
static struct item **sorted(struct isr_manager *m, int *n, bool *by_id)
{
    *n = 0;
    *by_id = ibp_has_topic_ids(m->o.ibp);
    list_each (it, &m->order)
        ++*n;
    struct item **v = arena_array(&m->arena, struct item *, (size_t)*n);
    int i = 0;
    list_each (at, &m->order) {
        struct item *it = list_entry(at, struct item, link);
        *by_id &= !uuid_is_zero(it->q->topic_id);
        if (v)
            v[i++] = it;
    }
    if (v)
        qsort(v, (size_t)*n, sizeof(*v), by_topic);
    return v;
}

static request_body *build(struct isr_manager *m)
{
    int n;
    bool by_id;
    struct item **items = sorted(m, &n, &by_id);
    request_body *r = arena_new(&m->arena, request_body);
    request_topic *topics = alter_partition_request_topic_new(&m->arena, n);
    request_part *parts = alter_partition_request_partition_new(&m->arena, n);
    if (!items || !r || !topics || !parts)
        return NULL;
    if (!by_id && m->version > VERSION_BY_NAME)
        m->version = VERSION_BY_NAME;
    alter_partition_request_init(r);
    r->broker_id = m->o.broker_id;
    r->broker_epoch = m->o.broker_epoch(m->o.arg);
    r->topics.v = topics;
    for (int i = 0; i < n; i++) {
        struct str topic = tp_of(items[i]).topic;
        if (i == 0 || !str_eq(topics[r->topics.n - 1].topic_name, topic)) {
            request_topic *t = &topics[r->topics.n++];
            t->topic_name = topic;
            t->topic_id = items[i]->q->topic_id;
            t->partitions.v = parts;
        }
        if (!fill_part(m, items[i], parts++))
            return NULL;
        topics[r->topics.n - 1].partitions.n++;
        items[i]->sent = true;
    }
    return r;
}

static void ask_later(struct isr_manager *m)
{
    if (!timer_armed(&m->retry))
        executor_timer_start(m->o.ex, &m->retry, RETRY_MS);
}

/* ---- the answer ---- */

static bool says_not_controller(const struct alter_partition_response *r)
{
    if (r->error_code == KERR_NOT_CONTROLLER)
        return true;
    for (int32_t t = 0; t < r->topics.n; t++)
        for (int32_t i = 0; i < r->topics.v[t].partitions.n; i++)
            if (r->topics.v[t].partitions.v[i].error_code == KERR_NOT_CONTROLLER)
                return true;
    return false;
}

/* By id, an answer names no topic: the request did. */
static struct str topic_of(const request_body *q, struct uuid id)
{
    for (int32_t t = 0; t < q->topics.n; t++)
        if (uuid_eq(q->topics.v[t].topic_id, id))
            return q->topics.v[t].topic_name;
    return STR_NULL;
}

/* true: an item must be tried again. */
static bool take_part(struct isr_manager *m, struct item *it, const answer_part *p)
{
    struct isr_answer a = {.error = (enum kerr)p->error_code,
                           .leader_epoch = p->leader_epoch,
                           .partition_epoch = p->partition_epoch,
                           .isr = p->isr.v,
                           .isr_n = p->isr.n};
    bool again = partition_isr_answered(it->partition, it->q->number, &a) == ISR_AGAIN;
    if (!again)
        drop(m, it);
    return again;
}

static bool take_answer(struct isr_manager *m, int version,
                        const struct alter_partition_response *r)
{
    bool again = false;
    for (int32_t t = 0; t < r->topics.n; t++) {
        const struct alter_partition_response_topic *topic = &r->topics.v[t];
        struct str name = version >= FIRST_VERSION_IDS
                              ? topic_of(m->request.request, topic->topic_id)
                              : topic->topic_name;
        for (int32_t i = 0; i < topic->partitions.n && !str_is_null(name); i++) {
            const answer_part *p = &topic->partitions.v[i];
            struct item *it = find(m, (struct topic_partition){name, p->partition_index});
            if (it && it->sent)
                again |= take_part(m, it, p);
        }
    }
    return again;
}

static bool on_answer(struct controller_request *request, int status, int version,
                      const void *response)
{
    struct isr_manager *m = container_of(request, struct isr_manager, request);
    const struct alter_partition_response *r = response;
    bool again = status != 0;
    if (status == 0 && says_not_controller(r))
        return true;
    if (status == -ENOTSUP && m->version > 0) {
        m->version--; /* an older controller; at once */
        again = false;
    } else if (status == 0 && r->error_code) {
        say_warn("IsrManager", "the controller answers AlterPartition with %s",
                 kerr_name(r->error_code));
        again = true;
    } else if (status == 0) {
        again = take_answer(m, version, r);
    }
    list_each (it, &m->order)
        list_entry(it, struct item, link)->sent = false;
    if (status != -ENOTSUP || again)
        m->version = VERSION_MAX;
    m->busy = false;
    arena_reset(&m->arena);
    if (m->stopped)
        return false;
    if (again)
        ask_later(m);
    else
        ask(m);
    return false;
}

static void ask(struct isr_manager *m)
{
    if (m->busy || m->stopped || timer_armed(&m->retry) || list_empty(&m->order))
        return;
    request_body *body = build(m);
    if (!body) {
        say_error("IsrManager", "no memory for AlterPartition");
        arena_reset(&m->arena);
        ask_later(m);
        return;
    }
    m->busy = true;
    m->request = (struct controller_request){.api_key = API_ALTER_PARTITION,
                                             .min_version = m->version,
                                             .max_version = m->version,
                                             .request = body,
                                             .done = on_answer};
    controller_link_send(m->o.link, &m->request);
}

static void on_retry(struct timer *t)
{
    ask(container_of(t, struct isr_manager, retry));
}

/* ---- proposals ---- */

static void take_in(struct isr_manager *m, struct item *it)
{
    if (find(m, tp_of(it)) || hmap_put(&m->items, &it->node, topic_partition_hash(tp_of(it)))) {
        refuse(it->partition, it->q);
        item_free(it);
        return;
    }
    list_push_back(&m->order, &it->link);
}

static void run(struct task *t)
{
    struct isr_manager *m = container_of(t, struct isr_manager, task);
    struct list inbox = LIST_INIT(inbox);
    pthread_mutex_lock(&m->lock);
    m->posted = false;
    list_splice(&inbox, &m->inbox);
    pthread_mutex_unlock(&m->lock);
    for (struct list *it; (it = list_pop(&inbox)) != NULL;)
        take_in(m, list_entry(it, struct item, link));
    ask(m);
}

static void propose(struct isr_writer *w, struct partition *p, struct isr_proposal *q)
{
    struct isr_manager *m = container_of(w, struct isr_manager, writer);
    struct item *it = calloc(1, sizeof(*it));
    if (!it) {
        refuse(p, q);
        isr_proposal_free(q);
        return;
    }
    it->partition = partition_ref(p);
    it->q = q;
    pthread_mutex_lock(&m->lock);
    list_push_back(&m->inbox, &it->link);
    if (!m->posted)
        executor_post(m->o.ex, &m->task);
    m->posted = true;
    pthread_mutex_unlock(&m->lock);
}

/* ---- life ---- */

struct isr_manager *isr_manager_new(const struct isr_manager_options *o)
{
    struct isr_manager *m = calloc(1, sizeof(*m));
    if (!m)
        return NULL;
    m->writer.propose = propose;
    m->o = *o;
    m->version = VERSION_MAX;
    pthread_mutex_init(&m->lock, NULL);
    list_init(&m->inbox);
    list_init(&m->order);
    hmap_init(&m->items);
    arena_init(&m->arena, 0);
    task_init(&m->task, run);
    timer_init(&m->retry, on_retry);
    return m;
}

void isr_manager_stop(struct isr_manager *m)
{
    m->stopped = true;
    executor_timer_stop(m->o.ex, &m->retry);
}

void isr_manager_free(struct isr_manager *m)
{
    if (!m)
        return;
    for (struct list *it; (it = list_pop(&m->inbox)) != NULL;)
        item_free(list_entry(it, struct item, link));
    while (!list_empty(&m->order))
        drop(m, list_entry(m->order.next, struct item, link));
    hmap_free(&m->items);
    arena_free(&m->arena);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

struct isr_writer *isr_manager_writer(struct isr_manager *m)
{
    return &m->writer;
}
