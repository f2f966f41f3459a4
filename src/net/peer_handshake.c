/* peer_handshake.c - which versions does the broker speak? The first request on each connection.
 *
 * It goes out at the highest version that we know. A broker that does not know that one answers
 * UNSUPPORTED_VERSION, always in the form of version 0, with its own range for ApiVersions (before
 * Kafka 2.4 with no range); then once more at the highest version of that, or 0. */
#include <errno.h>

#include "base/logline.h"
#include "net/peer_private.h"
#include "protocol/errors.h"
#include "protocol/msg/api_versions.h"

/* The connection's fate is told to those who wait for it, by peer_break. */
static void nobody(void *arg, int status, int version, const void *response)
{
}

static void ask(struct peer *p, int version)
{
    const struct api_desc *api = api_find(API_API_VERSIONS);
    struct peer_request *r = peer_request_new(p, api, version, version, true, nobody, NULL);
    if (!r) {
        peer_break(p, NULL, -ENOMEM);
        return;
    }
    r->handshake = true;
    r->version = version;
    struct api_versions_request body = {
        .client_software_name = str_of(p->options.software_name),
        .client_software_version = str_of(p->options.software_version),
    };
    int err = peer_request_write(r, &body);
    if (err) {
        peer_request_finish(r, err, NULL);
        peer_break(p, NULL, err);
        return;
    }
    peer_request_arm(r, p->options.request_timeout_ms);
    peer_link_flush(p);
}

void peer_handshake_begin(struct peer *p)
{
    for (int i = 0; i <= API_KEY_MAX; i++)
        p->ranges[i] = (struct peer_range){0, -1};
    ask(p, api_find(API_API_VERSIONS)->request->max);
}

static void take_ranges(struct peer *p, const struct api_versions_response *answer)
{
    for (int32_t i = 0; i < answer->api_keys.n; i++) {
        const struct api_versions_response_api_key *k = &answer->api_keys.v[i];
        if (k->api_key >= 0 && k->api_key <= API_KEY_MAX)
            p->ranges[k->api_key] = (struct peer_range){k->min_version, k->max_version};
    }
}

/* What to ask at after an UNSUPPORTED_VERSION at `tried`. */
static int lower_version(const struct peer *p, int tried)
{
    const struct peer_range *own = &p->ranges[API_API_VERSIONS];
    return own->max >= 0 && own->max < tried ? own->max : 0;
}

static void not_understood(struct peer *p, struct peer_request *r, int err, int16_t code)
{
    say_warn("peer", "%s:%d: ApiVersions v%d failed: %s", p->host, p->port, r->version,
             err ? "the answer does not decode" : kerr_name(code));
    peer_break(p, r, code == KERR_UNSUPPORTED_VERSION ? -ENOTSUP : -EPROTO);
}

void peer_handshake_answer(struct peer *p, struct peer_request *r, struct reader *in)
{
    struct api_versions_response answer;
    struct arena arena;
    struct reader peek = *in;
    int16_t code = reader_i16(&peek);
    bool refused = code == KERR_UNSUPPORTED_VERSION;
    int tried = r->version;
    arena_init(&arena, 0);
    int err = api_versions_response_decode(&answer, refused ? 0 : tried, in, &arena);
    if (!err)
        take_ranges(p, &answer);
    arena_free(&arena);

    if ((err && !refused) || (code && !refused) || (refused && tried == 0)) {
        not_understood(p, r, err, code);
        return;
    }
    peer_request_finish(r, 0, NULL);
    if (refused) {
        ask(p, lower_version(p, tried));
        return;
    }
    p->state = PEER_READY;
    p->answered = true;
    peer_send_waiting(p);
}
