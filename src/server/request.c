/* request.c - dispatch of requests and their answers.
 *
 * A frame that is not a request this broker serves closes its connection with one line that says
 * why; the others do not notice. The one exception is ApiVersions in a version that is not served:
 * it is answered, so that the client can find out what is. */
#include "server/request.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/logline.h"
#include "base/utf8.h"
#include "server/broker.h"
#include "server/broker_metrics.h"
#include "server/first_news.h"
#include "server/handlers.h"
#include "server/request_quota.h"
#include "server/rights.h"

/* Decoding may take this many bytes for each byte of the frame, plus a little for small ones; more
 * is no message that a client would send. */
enum {
    DECODE_PER_BYTE = 64,
    DECODE_BASE = 64 << 10,
    DECODE_LARGE = 16 << 20, /* from here on only DECODE_PER_BYTE_LARGE */
    DECODE_PER_BYTE_LARGE = 4,
};

static size_t decode_cap(size_t frame_len)
{
    size_t cap = DECODE_BASE + frame_len * DECODE_PER_BYTE;
    size_t large = DECODE_LARGE + frame_len * DECODE_PER_BYTE_LARGE;
    return cap < large ? cap : large;
}

struct executor *request_executor(const struct request *req)
{
    return conn_executor(req->net->conn);
}

struct str request_listener(const struct request *req)
{
    return str_of(conn_listener_name(req->net->conn));
}

static void refuse_version(struct net_request *net, const struct api_desc *api, int version)
{
    const struct api_row *row = api ? api_row_find(api->key) : NULL;
    if (row)
        net_request_close_conn(net, "unsupported version %d of %s, served are %d to %d", version,
                               api->name, row->min, row->max);
    else
        net_request_close_conn(net, "%s (version %d) is not served", api->name, version);
}

/* The request behind a header; NULL when the connection was closed instead. */
static struct request *request_begin(struct broker *b, struct net_request *net, struct reader *r)
{
    struct request_header h;
    net->arena.cap = decode_cap(net->frame_len);
    int rc = request_header_decode(r, &h);
    if (rc == -EPROTO) {
        net_request_close_conn(net, "malformed request header in a frame of %u bytes",
                               net->frame_len);
        return NULL;
    }
    const struct api_desc *api = api_find(h.api_key);
    if (!api) {
        net_request_close_conn(net, "unknown API key %d (version %d)", h.api_key, h.api_version);
        return NULL;
    }
    const struct api_row *row = api_row_find(h.api_key);
    bool served = rc == 0 && row && h.api_version >= row->min && h.api_version <= row->max;
    if (!served && !(row && h.api_key == API_API_VERSIONS)) {
        refuse_version(net, api, h.api_version);
        return NULL;
    }
    struct request *req = arena_new(&net->arena, struct request);
    if (!req || utf8_mend(&h.client_id, &net->arena) != 0) {
        net_request_close_conn(net, "out of memory");
        return NULL;
    }
    *req = (struct request){
        .broker = b, .net = net, .row = row, .api = api, .header = h, .arena = &net->arena};
    if (!served) {
        handle_api_versions_unsupported(req);
        return NULL;
    }
    return req;
}

/* A field of an answer; NULL: it has none of that name. */
static void *field_of(const struct struct_desc *d, void *response, const char *name)
{
    for (int i = 0; i < d->fields_n; i++)
        if (strcmp(d->fields[i].name, name) == 0)
            return (char *)response + d->fields[i].offset;
    return NULL;
}

/* Without its handler. */
static void refuse(struct request *req)
{
    const struct msg_desc *desc = req->api->response;
    void *out = arena_calloc(req->arena, 1, desc->body->size);
    if (!out) {
        request_no_memory(req);
        return;
    }
    msg_init(desc, out);
    req->refused = KERR_CLUSTER_AUTHORIZATION_FAILED;
    *(int16_t *)field_of(desc->body, out, "error_code") = KERR_CLUSTER_AUTHORIZATION_FAILED;
    struct str *text = field_of(desc->body, out, "error_message");
    if (text)
        *text = str_of(kerr_text(KERR_CLUSTER_AUTHORIZATION_FAILED));
    request_respond(req, out);
}

/* An order of some cluster's controller, or a report to it; there is no cluster here, and whoever
 * says that he is one is a stranger. */
static void refuse_stranger(struct request *req)
{
    say_warn("KafkaApis",
             "%s of %s refused: this broker is by itself (zookeeper.connect is not set)",
             req->api->name, conn_peer(req->net->conn));
    refuse(req);
}

/* The whole right that the API needs is in its row. */
static bool lacks_right(struct request *req)
{
    if (!req->row->needs || authorize_cluster(req, (enum acl_operation)req->row->needs))
        return false;
    req->refused = KERR_CLUSTER_AUTHORIZATION_FAILED;
    return true;
}

void request_dispatch(struct broker *b, struct net_request *net)
{
    struct reader r = reader_of(net->frame, net->frame_len);
    struct request *req = request_begin(b, net, &r);
    if (!req)
        return;
    const struct msg_desc *desc = req->api->request;
    void *body = arena_calloc(req->arena, 1, desc->body->size);
    if (!body) {
        request_no_memory(req);
        return;
    }
    int rc = msg_decode(desc, req->header.api_version, &r, req->arena, body);
    if (rc) {
        request_close(req, "malformed %s request, version %d%s", req->api->name,
                      req->header.api_version,
                      rc == -ENOMEM ? " (needs more memory than its size justifies)" : "");
        return;
    }
    req->body = body;
    req->arena->cap = req->arena->used + REQUEST_ANSWER_MAX;
    if (req->row->flags & API_LARGE_ANSWER)
        net_request_reserve(net, REQUEST_ANSWER_LARGE);
    if ((req->row->flags & API_MEMBERS_ONLY) && !broker_on_zookeeper(b))
        refuse_stranger(req);
    else if (lacks_right(req) && !(req->row->flags & API_TELLS_EACH))
        refuse(req);
    else if (!(req->row->flags & API_TELLS_CLUSTER) || !first_news_awaited(req))
        request_handle(req);
}

void request_handle(struct request *req)
{
    struct request_run run;
    request_run_begin(&run, req);
    req->row->handle(req);
    request_run_end(&run);
}

/* Whoever works on the request must not touch it any more. */
static void finishing(struct request *req)
{
    if (req->run)
        req->run->req = NULL;
}

/* The client is answered at once, and read again only later. */
static void hold_back(struct request *req, void *response)
{
    int64_t ms = req->throttle_ms < INT32_MAX ? req->throttle_ms : INT32_MAX;
    int32_t *told =
        response ? field_of(req->api->response->body, response, "throttle_time_ms") : NULL;
    if (told)
        *told = (int32_t)ms;
    conn_mute_for(req->net->conn, ms);
}

void request_respond(struct request *req, void *response)
{
    int version = req->header.api_version;
    struct request_sending sending;
    struct metrics_answer measured;
    request_time_throttle_ms(req);
    if (req->throttle_ms > 0)
        hold_back(req, response);
    request_sending_begin(&sending, req);
    metrics_answer_begin(&measured, req, response);
    struct writer w = WRITER_INIT;
    struct chain c;
    response_header_encode(&w, api_response_header_version(req->api, version),
                           req->header.correlation_id);
    msg_encode(req->api->response, version, &w, response);
    chain_init(&c);
    if (w.buf.failed || chain_add_writer(&c, &w, true) != 0) {
        writer_free(&w);
        chain_free(&c);
        request_no_memory(req);
        return;
    }
    if (w.unsupported)
        say_error("KafkaApis", "an answer of %s holds more than its version %d can carry",
                  req->api->name, version);
    finishing(req);
    net_request_answer(req->net, &c);
    request_sending_end(&sending);
    metrics_answer_end(&measured);
}

void request_respond_none(struct request *req)
{
    if (req->throttle_ms > 0)
        hold_back(req, NULL);
    metrics_answer_begin(&(struct metrics_answer){0}, req, NULL);
    finishing(req);
    net_request_no_answer(req->net);
}

void request_close(struct request *req, const char *fmt, ...)
{
    char why[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why, sizeof(why), fmt, ap);
    va_end(ap);
    finishing(req);
    net_request_close_conn(req->net, "%s", why);
}

void request_no_memory(struct request *req)
{
    request_close(req, "no memory for the answer of %s", req->api->name);
}
