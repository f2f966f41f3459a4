/* metrics_quotas.c - families of quotas: of clients, where one is set, and of replication. */
#include <stdio.h>

#include "server/broker_private.h"
#include "server/metrics_page_private.h"
#include "server/replication_throttle.h"

/* ---- clients ---- */

struct quota_look {
    struct page *page;
    enum quota_kind kind;
};

static void take_quota(void *arg, struct str user, struct str client, double rate,
                       int64_t throttle_ms)
{
    struct quota_look *k = arg;
    struct page *p = k->page;
    if (p->failed || !page_grow(&p->quotas, p->quotas_n, &p->quotas_cap, sizeof(*p->quotas))) {
        p->failed = true;
        return;
    }
    struct page_quota *q = &p->quotas[p->quotas_n++];
    *q = (struct page_quota){.kind = k->kind,
                             .has_user = !str_is_null(user),
                             .has_client = !str_is_null(client),
                             .rate = rate,
                             .throttle_ms = throttle_ms};
    if (q->has_user)
        snprintf(q->user, sizeof(q->user), "%.*s", STR_ARG(user));
    if (q->has_client)
        snprintf(q->client, sizeof(q->client), "%.*s", STR_ARG(client));
}

void look_at_quotas(struct page *p)
{
    static const enum quota_kind kinds[] = {QUOTA_PRODUCE, QUOTA_FETCH, QUOTA_REQUEST};
    int64_t now = clock_mono_ms(p->broker->clock);
    for (size_t i = 0; p->broker->quotas && i < sizeof(kinds) / sizeof(*kinds); i++) {
        struct quota_look k = {p, kinds[i]};
        client_quotas_each(p->broker->quotas, kinds[i], now, take_quota, &k);
    }
}

static const char *resource_of(enum quota_kind kind)
{
    return kind == QUOTA_PRODUCE ? "Produce" : kind == QUOTA_FETCH ? "Fetch" : "Request";
}

enum { QUOTA_BYTES, QUOTA_TIME, QUOTA_THROTTLE };

static size_t quota_items(const struct page *p)
{
    return p->quotas_n;
}

/* `which`: bytes and time are the rates of their own resources. */
static void put_quota(const struct page *p, const struct family *f, size_t item, struct buf *out)
{
    const struct page_quota *q = &p->quotas[item];
    struct metric_label l[3] = {{"resource", str_of(resource_of(q->kind))}};
    int n = 1;
    if (f->which != QUOTA_THROTTLE && (f->which == QUOTA_TIME) != (q->kind == QUOTA_REQUEST))
        return;
    if (q->has_user)
        l[n++] = (struct metric_label){"user", str_of(q->user)};
    if (q->has_client)
        l[n++] = (struct metric_label){"client_id", str_of(q->client)};
    metrics_sample(out, f->name, "", l, n,
                   f->which == QUOTA_THROTTLE ? (double)q->throttle_ms : q->rate);
}

/* ---- replication ---- */

static void put_replication(const struct page *p, const struct family *f, size_t item,
                            struct buf *out)
{
    static const char *const names[THROTTLE_SIDES] = {
        [THROTTLE_LEADER] = "LeaderReplication", [THROTTLE_FOLLOWER] = "FollowerReplication"};
    (void)item;
    for (int side = 0; p->broker->throttle && side < THROTTLE_SIDES; side++) {
        struct metric_label l = {"resource", str_of(names[side])};
        metrics_sample(out, f->name, "", &l, 1,
                       replication_throttle_rate(p->broker->throttle, (enum throttle_side)side));
    }
}

/* clang-format off */
static const struct family families[] = {
    ITEMS("kafka_server_quota_byte_rate", GAUGE, quota_items, put_quota, QUOTA_BYTES, "Bytes a second of those who share a quota."),
    ITEMS("kafka_server_quota_request_time", GAUGE, quota_items, put_quota, QUOTA_TIME, "Time of threads that they take, in percent of one."),
    ITEMS("kafka_server_quota_throttle_time", GAUGE, quota_items, put_quota, QUOTA_THROTTLE, "How long they would be held back now, in ms."),
    ITEMS("kafka_server_quota_replication_byte_rate", GAUGE, one_item, put_replication, 0, "Bytes a second of throttled replicas."),
};
/* clang-format on */
const struct family_set metrics_quotas = {families, sizeof(families) / sizeof(*families)};
