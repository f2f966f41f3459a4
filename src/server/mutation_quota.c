/* mutation_quota.c - see mutation_quota.h. */
#include "server/mutation_quota.h"

#include "server/broker.h"
#include "server/client_quotas.h"
#include "server/request_quota.h"

bool mutation_quota_take(struct mutation_quota *m, int32_t partitions)
{
    bool refused;
    int64_t now = request_now_ms(m->req);
    int64_t ms = client_quotas_mutate(broker_quotas(m->req->broker), request_user(m->req),
                                      request_client(m->req), partitions, m->strict, now, &refused);
    if (ms > 0) {
        m->wait_ms = ms;
        m->waits_since_ms = now;
    }
    return !refused;
}

static bool take(void *arg, int32_t partitions)
{
    return mutation_quota_take(arg, partitions);
}

void mutation_quota_init(struct mutation_quota *m, const struct request *req, int strict_since)
{
    *m = (struct mutation_quota){.req = req, .strict = request_version(req) >= strict_since};
    m->permit = (struct topic_permit){take, m};
}

void mutation_quota_end(const struct mutation_quota *m, struct request *req)
{
    int64_t left = m->wait_ms ? m->wait_ms - (request_now_ms(req) - m->waits_since_ms) : 0;
    if (left > 0)
        request_throttle(req, left);
}
