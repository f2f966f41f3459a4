/* handle_find_coordinator.c - FindCoordinator: the leader of the partition of __consumer_offsets
 * that a group belongs to, or of __transaction_state for a transactional id, at its address on the
 * listener that the client uses. The topic is made when the first client asks.
 *
 * LAYOUT   versions 0-3 ask for one key and answer in flat fields; from 4 on there is a list of
 *          keys, and one entry for each. */
#include <stdlib.h>

#include "base/logline.h"
#include "coordinator/group_manager.h"
#include "coordinator/key_partition.h"
#include "coordinator/txn_manager.h"
#include "protocol/msg/find_coordinator.h"
#include "server/auto_create.h"
#include "server/broker.h"
#include "server/handlers.h"
#include "server/rights.h"

enum { FIRST_VERSION_LIST = 4, FIRST_VERSION_SHARE = 6 };
enum key_type { KEY_GROUP = 0, KEY_TRANSACTION = 1, KEY_SHARE = 2 };

/* ---- making the topic ---- */

struct creation { /* its own memory, since nobody waits for it */
    struct auto_topic topic;
};

/* auto_create has logged what went wrong. */
static void created(void *arg)
{
    free(arg);
}

static void create_topic(struct request *req, struct str name)
{
    struct creation *c = calloc(1, sizeof(*c));
    if (!c)
        return; /* the client asks again */
    c->topic.name = name;
    auto_create_topics(broker_auto_create(req->broker), &c->topic, 1, request_executor(req),
                       created, c);
}

/* ---- one key ---- */

struct found {
    enum kerr error;
    int32_t node;
    struct str host;
    int32_t port;
};

static struct found nobody(enum kerr error)
{
    return (struct found){.error = error, .node = -1, .host = STR_LIT(""), .port = -1};
}

static struct str topic_of(int8_t type)
{
    return type == KEY_GROUP ? STR_LIT("__consumer_offsets") : STR_LIT("__transaction_state");
}

/* *missing: there is no such topic yet. */
static struct found find(struct request *req, const struct metadata_snapshot *s, int8_t type,
                         struct str key, bool *missing)
{
    if (type == KEY_SHARE)
        return nobody(KERR_COORDINATOR_NOT_AVAILABLE);
    int32_t n = type == KEY_GROUP ? group_manager_partitions(broker_groups(req->broker))
                                  : txn_manager_partitions(broker_txns(req->broker));
    const struct partition_info *p = metadata_partition(s, topic_of(type), key_partition(key, n));
    *missing = !metadata_topic(s, topic_of(type));
    const struct broker_info *leader = p && p->leader >= 0 ? metadata_broker(s, p->leader) : NULL;
    const struct endpoint *e = leader ? broker_endpoint(leader, request_listener(req)) : NULL;
    if (!e)
        return nobody(KERR_COORDINATOR_NOT_AVAILABLE);
    return (struct found){
        .node = p->leader, .host = arena_str(req->arena, e->host), .port = e->port};
}

static bool is_known(const struct request *req, int8_t type)
{
    return type == KEY_GROUP || type == KEY_TRANSACTION ||
           (type == KEY_SHARE && request_version(req) >= FIRST_VERSION_SHARE);
}

/* What the client lacks; KERR_NONE: nothing. */
static enum kerr refusal(const struct request *req, int8_t type, struct str key)
{
    if (type == KEY_GROUP && !rights_group(req, ACL_DESCRIBE, key))
        return KERR_GROUP_AUTHORIZATION_FAILED;
    if (type == KEY_TRANSACTION && !rights_txn(req, ACL_DESCRIBE, key))
        return KERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED;
    if (type == KEY_SHARE && !authorize_cluster(req, ACL_CLUSTER_ACTION))
        return KERR_CLUSTER_AUTHORIZATION_FAILED;
    return KERR_NONE;
}

/* ---- the answers ---- */

static void answer_flat(struct request *req, const struct found *f)
{
    struct find_coordinator_response out;
    find_coordinator_response_init(&out);
    out.error_code = (int16_t)f->error;
    if (f->error != KERR_NONE)
        out.error_message = str_of(kerr_text((int16_t)f->error));
    out.node_id = f->node;
    out.host = f->host;
    out.port = f->port;
    request_respond(req, &out);
}

static void put_entry(struct find_coordinator_response_coordinator *to, struct str key,
                      const struct found *f)
{
    to->key = key;
    to->error_code = (int16_t)f->error;
    to->node_id = f->node;
    to->host = f->host;
    to->port = f->port;
}

void handle_find_coordinator(struct request *req)
{
    const struct find_coordinator_request *in = req->body;
    bool list = request_version(req) >= FIRST_VERSION_LIST, known = is_known(req, in->key_type);
    int32_t n = list ? in->coordinator_keys.n : 1;
    struct find_coordinator_response out;
    struct found f = {0}; /* of the last key */
    bool create = false;
    find_coordinator_response_init(&out);
    out.coordinators.v = find_coordinator_response_coordinator_new(req->arena, n);
    if (!out.coordinators.v) {
        request_no_memory(req);
        return;
    }
    const struct metadata_snapshot *s = metadata_acquire(broker_metadata(req->broker));
    for (int32_t i = 0; i < n; i++) {
        bool missing = false;
        struct str key = list ? in->coordinator_keys.v[i] : in->key;
        enum kerr refused = known ? refusal(req, in->key_type, key) : KERR_INVALID_REQUEST;
        f = refused ? nobody(refused) : find(req, s, in->key_type, key, &missing);
        put_entry(&out.coordinators.v[i], key, &f);
        create = create || missing;
    }
    metadata_release(s);
    if (create)
        create_topic(req, topic_of(in->key_type));
    out.coordinators.n = n;
    if (list)
        request_respond(req, &out);
    else
        answer_flat(req, &f);
}
