/* queues.c - which queues may go: each lies in one of three lists of its partition's leader, or in
 * none while nothing of it may go. So neither a record nor an answer costs a look at all
 * partitions.
 */
#include <stdlib.h>

#include "client/txn.h"

struct pleader *producer_leader(kafka_producer_t *p, int32_t id)
{
    list_each (it, &p->leaders) {
        struct pleader *l = list_entry(it, struct pleader, link);
        if (l->id == id)
            return l;
    }
    struct pleader *l = calloc(1, sizeof *l);
    if (!l)
        return NULL;
    l->id = id;
    list_init(&l->ready);
    list_init(&l->lingering);
    list_init(&l->resting);
    list_push_back(&p->leaders, &l->link);
    return l;
}

void producer_free_leaders(kafka_producer_t *p)
{
    while (!list_empty(&p->leaders))
        free(list_entry(list_pop(&p->leaders), struct pleader, link));
}

static struct pbatch *first_batch(const struct pqueue *q)
{
    return list_entry(q->waiting.next, struct pbatch, link);
}

/* Lingering queues lie in the order of their batches' times. New ones belong at the end, or near.
 */
static void place_lingering(struct pqueue *q)
{
    struct list *at = &q->leader->lingering;
    int64_t created = first_batch(q)->created_ms;
    while (at->prev != &q->leader->lingering &&
           first_batch(list_entry(at->prev, struct pqueue, link))->created_ms > created)
        at = at->prev;
    list_push_back(at, &q->link);
}

void queue_place(kafka_producer_t *p, struct pqueue *q)
{
    list_remove(&q->link);
    if (q->lost_count && list_empty(&q->in_flight))
        idempotence_restart(p, q);
    if (list_empty(&q->in_flight))
        q->retrying = false;
    if (q->waiting_n == 0 || q->retrying || q->lost_count || (p->txn && !q->in_txn))
        return;
    if (!list_empty(&q->in_flight) && q->sent_to != q->leader)
        return;
    const struct pbatch *b = first_batch(q);
    if (b->retry_at_ms > 0)
        list_push_back(&q->leader->resting, &q->link);
    else if (p->linger_ms == 0 || q->waiting_n > 1 || b->closed || b->attempts > 0)
        list_push_back(&q->leader->ready, &q->link);
    else
        place_lingering(q);
}

static void shrink(int64_t *wait_ms, int64_t to)
{
    if (to < *wait_ms)
        *wait_ms = to;
}

void leader_wake_due(kafka_producer_t *p, struct pleader *l, int64_t now_ms, int64_t *wait_ms)
{
    list_each_safe (it, &l->resting) {
        struct pqueue *q = list_entry(it, struct pqueue, link);
        struct pbatch *b = first_batch(q);
        if (b->retry_at_ms > now_ms) {
            shrink(wait_ms, b->retry_at_ms - now_ms);
            continue;
        }
        b->retry_at_ms = 0;
        queue_place(p, q);
    }
    if (p->flushing || p->closing || p->memory_waiters || (p->txn && txn_hurries(p->txn)))
        list_splice(&l->ready, &l->lingering);
    while (!list_empty(&l->lingering)) {
        struct pqueue *q = list_entry(l->lingering.next, struct pqueue, link);
        int64_t due = first_batch(q)->created_ms + p->linger_ms;
        if (due > now_ms) {
            shrink(wait_ms, due - now_ms);
            break;
        }
        list_remove(&q->link);
        list_push_back(&l->ready, &q->link);
    }
}

/* ---- metadata ---- */

static void take_leader(kafka_producer_t *p, struct pqueue *q)
{
    struct leader_info leader = {-1, -1};
    cluster_leader(p->cluster, q->topic->name, q->partition, &leader);
    if (leader.leader == q->leader->id)
        return;
    struct pleader *l = producer_leader(p, leader.leader);
    if (!l)
        return; /* no memory: the old one answers NOT_LEADER, and we come here again */
    q->leader = l;
    if (list_linked(&q->link))
        queue_place(p, q);
}

static void take_topic(kafka_producer_t *p, struct ptopic *t)
{
    int32_t count = cluster_partition_count(p->cluster, t->name, &t->available);
    t->known = count > 0;
    if (count > t->queues_n)
        producer_topic(p, t->name, count);
    for (int32_t i = 0; i < t->queues_n; i++)
        take_leader(p, t->queues[i]);
}

/* Nothing of it waits, and nothing was sent to it for metadata.max.idle.ms: it is asked about no
 * more until the next record. */
static bool is_idle(const kafka_producer_t *p, const struct ptopic *t, int64_t now_ms)
{
    if (!t->known || now_ms - t->used_ms < p->topic_max_idle_ms)
        return false;
    for (int32_t i = 0; i < t->queues_n; i++)
        if (t->queues[i]->waiting_n > 0 || !list_empty(&t->queues[i]->in_flight))
            return false;
    return true;
}

static void take_or_drop(kafka_producer_t *p, struct ptopic *t)
{
    if (is_idle(p, t, executor_now_ms(cluster_executor(p->cluster)))) {
        t->known = false;
        cluster_unfollow_topic(p->cluster, t->name);
    } else {
        take_topic(p, t);
    }
}

void producer_take_metadata(kafka_producer_t *p)
{
    pthread_mutex_lock(&p->lock);
    for (struct hnode *n = hmap_first(&p->topics); n; n = hmap_next(&p->topics, n))
        take_or_drop(p, container_of(n, struct ptopic, hnode));
    pthread_mutex_unlock(&p->lock);
}
