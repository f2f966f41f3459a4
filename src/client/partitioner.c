/* partitioner.c - which partition a record goes to: by key (murmur2, as every Kafka client), else
 * sticky; or as partitioner.class or the application says. */
#include <string.h>
#include <strings.h>

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

/* Has a leader that takes what is sent to it. */
static bool is_available(const kafka_producer_t *p, const struct pqueue *q, int64_t now_ms)
{
    if (q->leader->id < 0)
        return false;
    if (p->availability_timeout_ms == 0 || list_empty(&q->waiting))
        return true;
    const struct pbatch *first = list_entry(q->waiting.next, struct pbatch, link);
    return now_ms - first->created_ms <= p->availability_timeout_ms;
}

/* Adaptive choice: partitions with shorter queues are likelier (weight = longest + 1 - length). -1:
 * they are all alike. */
static int32_t choose_by_load(kafka_producer_t *p, struct ptopic *t)
{
    int longest = 0, shortest = INT32_MAX, left_out = 0;
    int64_t total = 0, now = p->availability_timeout_ms ? clock_mono_ms(clock_real()) : 0;
    for (int32_t i = 0; i < t->queues_n; i++) {
        int n = t->queues[i]->waiting_n;
        if (!is_available(p, t->queues[i], now)) {
            left_out++;
            continue;
        }
        longest = n > longest ? n : longest;
        shortest = n < shortest ? n : shortest;
    }
    if (left_out == t->queues_n || (longest == shortest && left_out == 0))
        return -1;
    for (int32_t i = 0; i < t->queues_n; i++)
        if (is_available(p, t->queues[i], now))
            total += longest + 1 - t->queues[i]->waiting_n;
    int64_t at = next_random(p) % total;
    for (int32_t i = 0; i < t->queues_n; i++)
        if (is_available(p, t->queues[i], now) && (at -= longest + 1 - t->queues[i]->waiting_n) < 0)
            return i;
    return -1;
}

static int32_t choose_any(kafka_producer_t *p, struct ptopic *t)
{
    int32_t chosen = -1;
    if (t->available > 0 && t->available < t->queues_n)
        chosen = kth_available(t, (int32_t)(next_random(p) % (unsigned)t->available));
    return chosen >= 0 ? chosen : (int32_t)(next_random(p) % (unsigned)t->queues_n);
}

/* Never the one before, if there is another. */
static int32_t choose_another(kafka_producer_t *p, struct ptopic *t)
{
    int32_t chosen = choose_any(p, t);
    if (chosen == t->last_sticky && t->available > 1)
        for (int32_t i = 1; i <= t->queues_n; i++) {
            chosen = (t->last_sticky + i) % t->queues_n;
            if (t->queues[chosen]->leader->id >= 0 || t->available == t->queues_n)
                break;
        }
    t->last_sticky = chosen;
    return chosen;
}

static int32_t choose_sticky(kafka_producer_t *p, struct ptopic *t)
{
    if (t->queues_n == 1)
        return 0;
    if (p->partitioner == PARTITIONER_UNIFORM_STICKY)
        return choose_another(p, t);
    int32_t chosen = p->adaptive ? choose_by_load(p, t) : -1;
    return chosen >= 0 ? chosen : choose_any(p, t);
}

bool partitioner_parse(const char *name, enum partitioner *out)
{
    static const struct {
        const char *name;
        enum partitioner partitioner;
    } names[] = {
        {"DefaultPartitioner", PARTITIONER_STICKY},
        {"RoundRobinPartitioner", PARTITIONER_ROUND_ROBIN},
        {"UniformStickyPartitioner", PARTITIONER_UNIFORM_STICKY},
        {"RandomPartitioner", PARTITIONER_RANDOM},
        {"murmur2", PARTITIONER_STICKY},
        {"sticky", PARTITIONER_STICKY},
        {"roundrobin", PARTITIONER_ROUND_ROBIN},
        {"uniform-sticky", PARTITIONER_UNIFORM_STICKY},
        {"random", PARTITIONER_RANDOM},
    };
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcasecmp(dot ? dot + 1 : name, names[i].name) == 0) {
            *out = names[i].partitioner;
            return true;
        }
    return false;
}

int32_t partitioner_choose(kafka_producer_t *p, struct ptopic *t, const kafka_record_t *r)
{
    if (p->hooks->partitioner)
        return p->hooks->partitioner(r, t->queues_n, p->hooks->partitioner_arg);
    if (p->partitioner == PARTITIONER_RANDOM)
        return choose_any(p, t);
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
    if (batch_full && p->partitioner == PARTITIONER_UNIFORM_STICKY)
        t->sticky_bytes = 2 * p->batch_size;
    if ((t->sticky_bytes >= p->batch_size && batch_full) || t->sticky_bytes >= 2 * p->batch_size) {
        t->sticky = -1;
        t->sticky_bytes = 0;
    }
}
