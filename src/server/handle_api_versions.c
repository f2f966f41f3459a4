/* handle_api_versions.c - ApiVersions: what is served, by api_table.c. */
#include <ctype.h>

#include "protocol/msg/api_versions.h"
#include "server/broker.h"
#include "server/group_op.h"
#include "server/handlers.h"
#include "server/request.h"

/* [a-zA-Z0-9] at both ends, dots and dashes between. */
static bool software_text_valid(struct str s)
{
    if (s.len < 1 || !isalnum((unsigned char)s.p[0]) || !isalnum((unsigned char)s.p[s.len - 1]))
        return false;
    for (int32_t i = 0; i < s.len; i++)
        if (!isalnum((unsigned char)s.p[i]) && s.p[i] != '.' && s.p[i] != '-')
            return false;
    return true;
}

bool api_versions_request_valid(const struct api_versions_request *in, int version)
{
    return version < 3 || (software_text_valid(in->client_software_name) &&
                           software_text_valid(in->client_software_version));
}

/* Clients of the new group protocol need a version that came after 3.9; where that protocol is off
 * the broker says what a 3.9 broker says. */
static bool as_in_3_9(const struct request *req, const struct api_row *row)
{
    return (row->key == API_CONSUMER_GROUP_HEARTBEAT || row->key == API_CONSUMER_GROUP_DESCRIBE) &&
           !group_protocol_on(broker_config(req->broker), "consumer");
}

static void row_to_range(const struct request *req, const struct api_row *row,
                         struct api_versions_response_api_key *out)
{
    out->api_key = row->key;
    out->min_version = row->min;
    out->max_version = as_in_3_9(req, row) ? 0 : row->max;
}

void handle_api_versions(struct request *req)
{
    const struct api_versions_request *in = req->body;
    struct api_versions_response out;
    api_versions_response_init(&out);
    if (!api_versions_request_valid(in, request_version(req))) {
        out.error_code = KERR_INVALID_REQUEST;
        request_respond(req, &out);
        return;
    }
    int n;
    const struct api_row *rows = api_served(&n);
    out.api_keys.v = api_versions_response_api_key_new(req->arena, n);
    if (!out.api_keys.v) {
        request_no_memory(req);
        return;
    }
    out.api_keys.n = n;
    for (int i = 0; i < n; i++)
        row_to_range(req, &rows[i], &out.api_keys.v[i]);
    out.finalized_features_epoch = broker_features_epoch(req->broker);
    request_respond(req, &out);
}

void handle_api_versions_unsupported(struct request *req)
{
    struct api_versions_response out;
    struct api_versions_response_api_key range;
    api_versions_response_init(&out);
    api_versions_response_api_key_init(&range);
    row_to_range(req, req->row, &range);
    out.error_code = KERR_UNSUPPORTED_VERSION;
    out.api_keys.v = &range;
    out.api_keys.n = 1;
    req->header.api_version = 0;
    request_respond(req, &out);
}
