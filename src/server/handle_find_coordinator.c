/* handle_find_coordinator.c - FindCoordinator. There are no coordinators in this version: every key
 * of a known type gets COORDINATOR_NOT_AVAILABLE, which clients retry.
 *
 * LAYOUT   versions 0-3 ask for one key and answer in flat fields; from 4 on there is a list of
 *          keys, and one entry for each. */
#include "protocol/msg/find_coordinator.h"
#include "server/handlers.h"
#include "server/request.h"

enum key_type { KEY_GROUP = 0, KEY_TRANSACTION = 1, KEY_SHARE = 2 };

static enum kerr key_error(const struct request *req, int8_t type)
{
    bool known = type == KEY_GROUP || type == KEY_TRANSACTION ||
                 (type == KEY_SHARE && request_version(req) >= 6);
    return known ? KERR_COORDINATOR_NOT_AVAILABLE : KERR_INVALID_REQUEST;
}

static void answer_flat(struct request *req, enum kerr error)
{
    struct find_coordinator_response out;
    find_coordinator_response_init(&out);
    out.error_code = (int16_t)error;
    out.error_message = str_of(kerr_text((int16_t)error));
    out.node_id = -1;
    out.port = -1;
    request_respond(req, &out);
}

static void answer_list(struct request *req, const struct find_coordinator_request *in,
                        enum kerr error)
{
    struct find_coordinator_response out;
    find_coordinator_response_init(&out);
    out.coordinators.n = in->coordinator_keys.n;
    out.coordinators.v =
        find_coordinator_response_coordinator_new(req->arena, in->coordinator_keys.n);
    if (!out.coordinators.v) {
        request_no_memory(req);
        return;
    }
    for (int32_t i = 0; i < out.coordinators.n; i++) {
        struct find_coordinator_response_coordinator *c = &out.coordinators.v[i];
        c->key = in->coordinator_keys.v[i];
        c->error_code = (int16_t)error;
        c->node_id = -1;
        c->port = -1;
    }
    request_respond(req, &out);
}

void handle_find_coordinator(struct request *req)
{
    const struct find_coordinator_request *in = req->body;
    enum kerr error = key_error(req, in->key_type);
    if (request_version(req) >= 4)
        answer_list(req, in, error);
    else
        answer_flat(req, error);
}
