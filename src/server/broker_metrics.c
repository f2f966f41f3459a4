/* broker_metrics.c - counting; see broker_metrics.h. */
#include "server/broker_metrics.h"

#include <stdlib.h>
#include <string.h>

#include "replica/partition.h"
#include "server/broker.h"
#include "server/request.h"

/* Of one kind of request, in one slot. */
struct kind_counts {
    metric versions[REQUEST_VERSIONS];
    metric errors[REQUEST_ERRORS]; /* by code, from REQUEST_ERROR_FIRST on */
    struct histogram histograms[REQUEST_HISTOGRAMS];
};

struct slot_counts {
    _Alignas(METRICS_CACHE_LINE) metric topics[TOPIC_COUNTS];
    metric broker[BROKER_COUNTS];
    metric waits[WAIT_KINDS], waited_for[WAIT_KINDS]; /* a slot may be below 0 */
    struct kind_counts *_Atomic kinds[REQUEST_KINDS]; /* owned; made when the first comes */
};

struct broker_metrics {
    struct slot_counts slots[METRICS_SLOTS];
    /* Where an API's answer has its error code; -1: only for its parts. Fixed. */
    int32_t error_at[API_KEY_MAX + 1];
};

static int32_t error_offset(int16_t key)
{
    const struct api_desc *api = api_find(key);
    const struct struct_desc *d = api ? api->response->body : NULL;
    for (int i = 0; d && i < d->fields_n; i++)
        if (strcmp(d->fields[i].name, "error_code") == 0)
            return (int32_t)d->fields[i].offset;
    return -1;
}

struct broker_metrics *broker_metrics_new(void)
{
    struct broker_metrics *m =
        aligned_alloc(METRICS_CACHE_LINE, (sizeof(*m) + METRICS_CACHE_LINE - 1) /
                                              METRICS_CACHE_LINE * METRICS_CACHE_LINE);
    if (!m)
        return NULL;
    memset(m, 0, sizeof(*m));
    for (int16_t key = 0; key <= API_KEY_MAX; key++)
        m->error_at[key] = error_offset(key);
    return m;
}

void broker_metrics_free(struct broker_metrics *m)
{
    if (!m)
        return;
    for (int s = 0; s < METRICS_SLOTS; s++)
        for (int k = 0; k < REQUEST_KINDS; k++)
            free(atomic_load(&m->slots[s].kinds[k]));
    free(m);
}

/* ---- traffic ---- */

void metrics_topic(struct broker_metrics *m, const struct partition *p, enum topic_count what,
                   uint64_t n)
{
    if (!m)
        return;
    metric_add(&m->slots[metrics_slot()].topics[what], n);
    struct topic_counts *c = p ? partition_counts(p) : NULL;
    if (c)
        topic_counts_add(c, what, n);
}

uint64_t metrics_topic_total(const struct broker_metrics *m, enum topic_count what)
{
    uint64_t n = 0;
    for (int s = 0; s < METRICS_SLOTS; s++)
        n += metric_read(&m->slots[s].topics[what]);
    return n;
}

void metrics_count(struct broker_metrics *m, enum broker_count what, uint64_t n)
{
    if (m)
        metric_add(&m->slots[metrics_slot()].broker[what], n);
}

uint64_t metrics_total(const struct broker_metrics *m, enum broker_count what)
{
    uint64_t n = 0;
    for (int s = 0; s < METRICS_SLOTS; s++)
        n += metric_read(&m->slots[s].broker[what]);
    return n;
}

/* ---- waits ---- */

void metrics_wait_begins(struct broker_metrics *m, enum wait_kind kind, int partitions)
{
    if (!m)
        return;
    struct slot_counts *s = &m->slots[metrics_slot()];
    metric_add(&s->waits[kind], 1);
    metric_add(&s->waited_for[kind], (uint64_t)partitions);
}

void metrics_wait_is_over(struct broker_metrics *m, enum wait_kind kind, int partitions)
{
    if (!m)
        return;
    struct slot_counts *s = &m->slots[metrics_slot()];
    metric_add(&s->waits[kind], (uint64_t)-1);
    metric_add(&s->waited_for[kind], -(uint64_t)partitions);
}

int64_t metrics_waiting(const struct broker_metrics *m, enum wait_kind kind, bool partitions)
{
    uint64_t n = 0;
    for (int s = 0; s < METRICS_SLOTS; s++)
        n += metric_read(partitions ? &m->slots[s].waited_for[kind] : &m->slots[s].waits[kind]);
    return (int64_t)n > 0 ? (int64_t)n : 0;
}

/* ---- requests ---- */

static struct broker_metrics *metrics_of(const struct request *req)
{
    return req->broker ? broker_metrics(req->broker) : NULL;
}

static int kind_of(const struct request *req)
{
    if (req->header.api_key != API_FETCH)
        return req->header.api_key;
    return req->of_follower ? REQUEST_FETCH_FOLLOWER : REQUEST_FETCH_CONSUMER;
}

/* The calling thread's; NULL without memory: then it is not counted. */
static struct kind_counts *counts_of(struct broker_metrics *m, int kind)
{
    struct kind_counts *_Atomic *at = &m->slots[metrics_slot()].kinds[kind];
    struct kind_counts *c = atomic_load_explicit(at, memory_order_acquire);
    if (c)
        return c;
    struct kind_counts *made = calloc(1, sizeof(*made));
    if (made && atomic_compare_exchange_strong(at, &c, made)) /* threads may share the slot */
        return made;
    free(made);
    return c;
}

static int64_t now_ns(const struct broker *b)
{
    return clock_mono_ns(broker_clock(b));
}

static uint64_t us(int64_t ns)
{
    return ns > 0 ? (uint64_t)ns / 1000 : 0;
}

void metrics_request_waits(struct request *req)
{
    if (metrics_of(req) && !req->local_ns)
        req->local_ns = now_ns(req->broker) - req->net->received_ns;
}

static void count_error(struct kind_counts *k, int16_t code)
{
    int at = code - REQUEST_ERROR_FIRST;
    if (at >= 0 && at < REQUEST_ERRORS)
        metric_add(&k->errors[at], 1);
}

void metrics_request_error(struct request *req, int16_t code)
{
    struct broker_metrics *m = metrics_of(req);
    struct kind_counts *k = m ? counts_of(m, kind_of(req)) : NULL;
    if (k)
        count_error(k, code);
}

void metrics_answer_begin(struct metrics_answer *a, struct request *req, const void *response)
{
    struct broker_metrics *m = metrics_of(req);
    *a = (struct metrics_answer){.kind = kind_of(req)};
    struct kind_counts *k = m ? counts_of(m, a->kind) : NULL;
    if (!k)
        return;
    a->broker = req->broker;
    a->began_ns = now_ns(req->broker);
    int64_t total = a->began_ns - req->net->received_ns;
    int64_t local = req->local_ns ? req->local_ns : total;
    int version = req->header.api_version;
    if (version >= 0 && version < REQUEST_VERSIONS)
        metric_add(&k->versions[version], 1);
    if (response && m->error_at[req->header.api_key] >= 0)
        count_error(k,
                    *(const int16_t *)((const char *)response + m->error_at[req->header.api_key]));
    histogram_add(&k->histograms[REQUEST_TOTAL_US], us(total + req->net->waited_ns));
    histogram_add(&k->histograms[REQUEST_QUEUE_US], us(req->net->waited_ns));
    histogram_add(&k->histograms[REQUEST_LOCAL_US], us(local));
    histogram_add(&k->histograms[REQUEST_REMOTE_US], us(total - local));
    histogram_add(&k->histograms[REQUEST_THROTTLE_US],
                  req->throttle_ms > 0 ? (uint64_t)req->throttle_ms * 1000 : 0);
    histogram_add(&k->histograms[REQUEST_BYTES], req->net->frame_len);
}

void metrics_answer_end(const struct metrics_answer *a)
{
    if (!a->broker)
        return;
    struct kind_counts *k = counts_of(broker_metrics(a->broker), a->kind);
    if (k)
        histogram_add(&k->histograms[REQUEST_SEND_US], us(now_ns(a->broker) - a->began_ns));
}

/* ---- reading ---- */

static const struct kind_counts *kind_at(const struct broker_metrics *m, int slot, int kind)
{
    return atomic_load_explicit(&m->slots[slot].kinds[kind], memory_order_acquire);
}

bool metrics_request_tally(const struct broker_metrics *m, int kind, enum request_histogram which,
                           struct tally *out)
{
    bool any = false;
    for (int s = 0; s < METRICS_SLOTS; s++) {
        const struct kind_counts *k = kind_at(m, s, kind);
        if (k)
            tally_add(out, &k->histograms[which]);
        any |= k != NULL;
    }
    return any;
}

static void add_all(uint64_t *out, const metric *from, int n)
{
    for (int i = 0; i < n; i++)
        out[i] += metric_read(&from[i]);
}

bool metrics_request_versions(const struct broker_metrics *m, int kind,
                              uint64_t out[REQUEST_VERSIONS])
{
    bool any = false;
    for (int s = 0; s < METRICS_SLOTS; s++) {
        const struct kind_counts *k = kind_at(m, s, kind);
        if (k)
            add_all(out, k->versions, REQUEST_VERSIONS);
        any |= k != NULL;
    }
    return any;
}

bool metrics_request_errors(const struct broker_metrics *m, int kind, uint64_t out[REQUEST_ERRORS])
{
    bool any = false;
    for (int s = 0; s < METRICS_SLOTS; s++) {
        const struct kind_counts *k = kind_at(m, s, kind);
        if (k)
            add_all(out, k->errors, REQUEST_ERRORS);
        any |= k != NULL;
    }
    return any;
}
