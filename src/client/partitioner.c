/* partitioner.c - which partition a record goes to: by key (murmur2, as every Kafka client), else
 * sticky. */
#include "base/checksum.h"
#include "client/producer_private.h"

static unsigned next_random(kafka_producer_t *p)
{
    p->random = p->random * 1103515245u + 12345u;
    return p->random >> 1;
}

/* The k-th partition that has a leader. */
static int32_t kth_available(const struct ptopic *t, int32_t k)
{
    for (int32_t i = 0; i < t->queues_n; i++)
        if (t->queues[i]->leader->id >= 0 && k-- == 0)
            return i;
    return -1;
}

/* Adaptive choice: partitions with shorter queues are likelier (weight = longest + 1 - length). */
static int32_t choose_by_load(kafka_producer_t *p, struct ptopic *t)
{
    int longest = 0, shortest = INT32_MAX;
    int64_t total = 0;
    for (int32_t i = 0; i < t->queues_n; i++) {
        int n = t->queues[i]->waiting_n;
        longest = n > longest ? n : longest;
        shortest = n < shortest ? n : shortest;
    }
    if (longest == shortest)
        return -1;
    for (int32_t i = 0; i < t->queues_n; i++)
        total += longest + 1 - t->queues[i]->waiting_n;
    int64_t at = next_random(p) % total;
    for (int32_t i = 0; i < t->queues_n; i++)
        if ((at -= longest + 1 - t->queues[i]->waiting_n) < 0)
            return i;
    return -1;
}

static int32_t choose_sticky(kafka_producer_t *p, struct ptopic *t)
{
    int32_t available = t->available;
    if (t->queues_n == 1)
        return 0;
    int32_t chosen = -1;
    if (available == t->queues_n)
        chosen = choose_by_load(p, t);
    else if (available > 0)
        chosen = kth_available(t, (int32_t)(next_random(p) % (unsigned)available));
    return chosen >= 0 ? chosen : (int32_t)(next_random(p) % (unsigned)t->queues_n);
}

int32_t partitioner_choose(kafka_producer_t *p, struct ptopic *t, const kafka_record_t *r)
{
    if (p->partitioner == PARTITIONER_ROUND_ROBIN) {
        uint32_t n = t->round_robin++;
        int32_t chosen = t->available > 0 && t->available < t->queues_n
                             ? kth_available(t, (int32_t)(n % (uint32_t)t->available))
                             : -1;
        return chosen >= 0 ? chosen : (int32_t)(n % (uint32_t)t->queues_n);
    }
    if (r->key && !p->ignore_keys)
        return (int32_t)((murmur2(r->key, r->key_len) & 0x7fffffff) % (uint32_t)t->queues_n);
    if (t->sticky < 0 || t->sticky >= t->queues_n)
        t->sticky = choose_sticky(p, t);
    return t->sticky;
}

void partitioner_appended(kafka_producer_t *p, struct ptopic *t, int32_t partition, size_t bytes,
                          bool batch_full)
{
    if (partition != t->sticky)
        return;
    t->sticky_bytes += bytes;
    if ((t->sticky_bytes >= p->batch_size && batch_full) || t->sticky_bytes >= 2 * p->batch_size) {
        t->sticky = -1;
        t->sticky_bytes = 0;
    }
}
