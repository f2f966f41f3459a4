/* request_quota.c - see request_quota.h. */
#include "server/request_quota.h"

#include "server/broker.h"
#include "server/broker_metrics.h"
#include "server/client_quotas.h"

static struct client_quotas *quotas_of(const struct request *req)
{
    return req->broker ? broker_quotas(req->broker) : NULL;
}

static bool timed(const struct request *req)
{
    return quotas_of(req) && client_quotas_any(quotas_of(req), QUOTA_REQUEST);
}

static int64_t now_ns(const struct request *req)
{
    return clock_mono_ns(broker_clock(req->broker));
}

int64_t request_now_ms(const struct request *req)
{
    return now_ns(req) / 1000000;
}

void request_run_begin(struct request_run *run, struct request *req)
{
    *run = (struct request_run){req, timed(req) ? now_ns(req) : 0};
    req->run = run;
}

void request_run_end(struct request_run *run)
{
    struct request *req = run->req;
    if (!req)
        return;
    if (run->began_ns)
        req->worked_ns += now_ns(req) - run->began_ns;
    metrics_request_waits(req);
    req->run = NULL;
}

/* Of one thread's second, in percent. */
static double percent(int64_t ns)
{
    return (double)ns * 100 / 1e9;
}

static bool held_back_for_time(const struct request *req)
{
    bool exempt = req->untimed || (req->row->flags & API_CLUSTER_ACTION);
    return !exempt || req->refused != KERR_NONE;
}

int64_t request_time_throttle_ms(struct request *req)
{
    if (req->time_counted || !timed(req) || !held_back_for_time(req))
        return req->time_throttle_ms;
    int64_t ns = req->worked_ns;
    if (req->run && req->run->began_ns)
        ns += now_ns(req) - req->run->began_ns;
    req->time_counted = true;
    req->time_throttle_ms =
        client_quotas_record(quotas_of(req), QUOTA_REQUEST, request_user(req), request_client(req),
                             percent(ns), request_now_ms(req));
    request_throttle(req, req->time_throttle_ms);
    return req->time_throttle_ms;
}

void request_throttle(struct request *req, int64_t ms)
{
    if (ms > req->throttle_ms)
        req->throttle_ms = ms;
}

void request_count_produced(struct request *req, double bytes)
{
    struct client_quotas *q = quotas_of(req);
    if (q && client_quotas_any(q, QUOTA_PRODUCE))
        request_throttle(req,
                         client_quotas_record(q, QUOTA_PRODUCE, request_user(req),
                                              request_client(req), bytes, request_now_ms(req)));
}

/* ---- the answer's way out ---- */

void request_sending_begin(struct request_sending *s, const struct request *req)
{
    struct str user = request_user(req), client = request_client(req);
    *s = (struct request_sending){0};
    if (!req->time_counted || (size_t)user.len + (size_t)client.len > sizeof(s->names))
        return;
    s->broker = req->broker;
    s->user_len = user.len;
    s->client_len = client.len;
    memcpy(s->names, user.p, (size_t)user.len);
    memcpy(s->names + user.len, client.p, (size_t)client.len);
    s->began_ns = now_ns(req);
}

void request_sending_end(const struct request_sending *s)
{
    if (!s->broker)
        return;
    int64_t now = clock_mono_ns(broker_clock(s->broker));
    client_quotas_record(broker_quotas(s->broker), QUOTA_REQUEST,
                         (struct str){s->names, s->user_len},
                         (struct str){s->names + s->user_len, s->client_len},
                         percent(now - s->began_ns), now / 1000000);
}
