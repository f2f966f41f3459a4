/* sasl_gate.c - see sasl_gate.h. */
#include "server/sasl_gate.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/logline.h"
#include "base/wipe.h"
#include "protocol/errors.h"
#include "protocol/msg/api_versions.h"
#include "protocol/msg/sasl_authenticate.h"
#include "protocol/msg/sasl_handshake.h"
#include "server/handlers.h"
#include "server/request.h"
#include "server/sasl_listener.h"

enum { RENEWAL_LEAST_MS = 1000 };
/* What a frame may take besides itself. */
enum { ARENA_BASE = 64 << 10, ARENA_PER_BYTE = 64 };

enum gate_state { GATE_ASK, GATE_HANDSHAKE, GATE_TOKENS, GATE_OPEN, GATE_BAD, GATE_FAILED };

struct sasl_gate {
    const struct sasl_listener *listener;
    struct conn *conn;
    enum gate_state state;
    bool framed; /* tokens come in SaslAuthenticate */
    struct sasl_server *exchange;
    enum sasl_mechanism mechanism; /* of the exchange, or of the last one */
    /* after the first success */
    bool in;
    int64_t end_ms;     /* monotonic */
    int64_t renewed_ms; /* when the last renewal began; 0 = none yet */
    /* FAILED */
    struct net_request *failing;
    struct chain answer; /* empty: none */
    char why[300];
    struct timer delay;
};

/* One frame with its header. */
struct frame {
    struct net_request *net;
    struct reader body;
    struct request_header header;
    const struct api_desc *api; /* NULL: it is no request */
    bool known;                 /* the version, too */
};

static int64_t mono_ms(const struct sasl_gate *g)
{
    return clock_mono_ms(conn_executor(g->conn)->clock);
}

static int64_t wall_ms(const struct sasl_gate *g)
{
    return clock_wall_ms(conn_executor(g->conn)->clock);
}

/* ---- failing ---- */

static void close_failed(struct sasl_gate *g)
{
    struct net_request *r = g->failing;
    g->failing = NULL;
    if (g->answer.left > 0)
        net_request_answer_and_close(r, &g->answer, "%s", g->why);
    else
        net_request_close_conn(r, "%s", g->why);
}

static void on_delay(struct timer *t)
{
    close_failed(container_of(t, struct sasl_gate, delay));
}

static void on_aborted(struct net_request *r)
{
    struct sasl_gate *g = r->user;
    executor_timer_stop(conn_executor(g->conn), &g->delay);
    g->failing = NULL;
    net_request_no_answer(r);
}

/* The answer in g->answer, if any, and the close come a while later: who guesses has to wait. */
static void fail(struct sasl_gate *g, struct net_request *r, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void fail(struct sasl_gate *g, struct net_request *r, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(g->why, sizeof(g->why), fmt, args);
    va_end(args);
    conn_count(g->conn, NET_LOGINS_FAILED);
    g->state = GATE_FAILED;
    g->failing = r;
    if (g->listener->failed_delay_ms <= 0) {
        close_failed(g);
        return;
    }
    r->user = g;
    r->aborted = on_aborted;
    executor_timer_start(conn_executor(g->conn), &g->delay, g->listener->failed_delay_ms);
}

/* ---- answers ---- */

static bool encode(const struct frame *f, const void *body, struct chain *out)
{
    struct writer w = WRITER_INIT;
    int version = f->header.api_version;
    response_header_encode(&w, api_response_header_version(f->api, version),
                           f->header.correlation_id);
    msg_encode(f->api->response, version, &w, body);
    chain_init(out);
    bool made = !w.buf.failed && chain_add_writer(out, &w, true) == 0;
    writer_free(&w);
    return made;
}

static void answer(struct net_request *r, struct chain *c, bool made)
{
    if (made) {
        net_request_answer(r, c);
        return;
    }
    chain_free(c);
    net_request_close_conn(r, "no memory for an answer");
}

static void answer_framed(const struct frame *f, struct bytes token, int64_t lifetime_ms)
{
    struct sasl_authenticate_response out;
    struct chain c;
    sasl_authenticate_response_init(&out);
    out.error_message = STR_NULL;
    out.auth_bytes = token.p ? token : (struct bytes){(const uint8_t *)"", 0};
    out.session_lifetime_ms = lifetime_ms;
    bool made = encode(f, &out, &c);
    answer(f->net, &c, made);
}

static void answer_bare(struct net_request *r, struct bytes token)
{
    struct writer w = WRITER_INIT;
    struct chain c;
    chain_init(&c);
    if (token.len > 0)
        buf_put(&w.buf, token.p, (size_t)token.len);
    bool made = !w.buf.failed && chain_add_writer(&c, &w, true) == 0;
    writer_free(&w);
    answer(r, &c, made);
}

static void put_refusal(struct sasl_gate *g, const struct frame *f, enum kerr error,
                        const char *text)
{
    struct sasl_authenticate_response out;
    sasl_authenticate_response_init(&out);
    out.error_code = (int16_t)error;
    out.error_message = str_of(text);
    if (!encode(f, &out, &g->answer))
        chain_free(&g->answer);
}

/* ---- the handshake ---- */

static bool answer_handshake(const struct sasl_gate *g, const struct frame *f, enum kerr error,
                             struct chain *out)
{
    struct sasl_handshake_response m;
    struct str names[SASL_MECHANISMS];
    const struct sasl_listener *l = g->listener;
    for (int i = 0; i < l->offered_n; i++)
        names[i] = str_of(sasl_mechanism_name(l->offered[i]));
    sasl_handshake_response_init(&m);
    m.error_code = (int16_t)error;
    m.mechanisms.v = names;
    m.mechanisms.n = l->offered_n;
    return encode(f, &m, out);
}

static void take_handshake(struct sasl_gate *g, struct frame *f)
{
    struct sasl_handshake_request in;
    enum sasl_mechanism m;
    if (msg_decode(f->api->request, f->header.api_version, &f->body, &f->net->arena, &in)) {
        fail(g, f->net, "malformed SaslHandshake");
        return;
    }
    if (!sasl_mechanism_find(in.mechanism, &m) || !g->listener->configs[m]) {
        if (!answer_handshake(g, f, KERR_UNSUPPORTED_SASL_MECHANISM, &g->answer))
            chain_free(&g->answer);
        fail(g, f->net, "authentication failed: it wants the SASL mechanism %.*s",
             in.mechanism.len < 64 ? in.mechanism.len : 64, in.mechanism.p);
        return;
    }
    g->framed = f->header.api_version >= 1;
    g->state = GATE_TOKENS;
    if (g->in && m != g->mechanism) {
        g->state = GATE_BAD;
    } else if (!(g->exchange = sasl_server_new(g->listener->configs[m]))) {
        net_request_close_conn(f->net, "out of memory");
        return;
    }
    g->mechanism = m;
    struct chain c;
    bool made = answer_handshake(g, f, KERR_NONE, &c);
    answer(f->net, &c, made);
}

/* Answered as ever; one that is answered with what is served counts. */
static void take_versions(struct sasl_gate *g, struct frame *f)
{
    struct api_versions_request in;
    int version = f->header.api_version;
    if (f->known) {
        struct reader body = f->body;
        if (msg_decode(f->api->request, version, &body, &f->net->arena, &in)) {
            fail(g, f->net, "malformed ApiVersions");
            return;
        }
        if (api_versions_request_valid(&in, version))
            g->state = GATE_HANDSHAKE;
    }
    conn_pass(f->net);
}

/* ---- tokens ---- */

/* How long the session lasts from now on; -1: it has no end. */
static int64_t session_ms(const struct sasl_gate *g)
{
    int64_t most = g->listener->max_reauth_ms[g->mechanism];
    int64_t expires = sasl_server_expires_ms(g->exchange);
    int64_t left = expires ? expires - wall_ms(g) : -1;
    if (expires && left < 0)
        left = 0;
    if (most > 0 && (!expires || left > most))
        left = most;
    return left;
}

/* The exchange was a success: false, with the reason in g->why, when it does not count. */
static bool take_user(struct sasl_gate *g)
{
    struct str user = sasl_server_user(g->exchange), old = conn_principal(g->conn);
    *g->why = 0;
    if (g->in && !str_eq(user, old))
        snprintf(g->why, sizeof(g->why),
                 "Cannot change principals during re-authentication from User:%.*s: User:%.*s",
                 STR_ARG(old), STR_ARG(user));
    else if (!g->in && conn_set_principal(g->conn, user) != 0)
        snprintf(g->why, sizeof(g->why), "out of memory");
    else
        conn_set_by_token(g->conn, sasl_server_by_token(g->exchange));
    return !*g->why;
}

static void gate_free(struct sasl_gate *g)
{
    sasl_server_free(g->exchange);
    chain_free(&g->answer);
    free(g);
}

/* From here on it is a connection like any other. The gate goes if there is nothing to watch for.
 * Returns the session's lifetime for the answer. */
static int64_t open_gate(struct sasl_gate *g)
{
    int64_t ms = session_ms(g);
    sasl_server_free(g->exchange);
    g->exchange = NULL;
    conn_count(g->conn, g->in ? NET_LOGINS_AGAIN : NET_LOGINS);
    g->state = GATE_OPEN;
    g->in = true;
    g->end_ms = mono_ms(g) + (ms > 0 ? ms : 0);
    conn_set_max_frame(g->conn, g->listener->max_frame);
    conn_set_max_pipelined(g->conn, 0);
    if (ms >= 0)
        return ms;
    conn_set_gate(g->conn, NULL, NULL);
    gate_free(g);
    return 0;
}

static void tell_failure(struct sasl_gate *g, struct frame *f, const char *told,
                         const char *problem)
{
    char text[200];
    snprintf(text, sizeof(text),
             "Authentication failed during %s due to invalid credentials with SASL mechanism %s",
             g->in ? "re-authentication" : "authentication", sasl_mechanism_name(g->mechanism));
    if (f->api)
        put_refusal(g, f, KERR_SASL_AUTHENTICATION_FAILED, told ? told : text);
    fail(g, f->net, "authentication failed: %s: %s", sasl_mechanism_name(g->mechanism), problem);
}

static void answer_token(const struct frame *f, struct bytes token, int64_t lifetime_ms)
{
    if (f->api)
        answer_framed(f, token, lifetime_ms);
    else
        answer_bare(f->net, token);
}

/* The last token outlives the exchange. */
static bool keep_token(struct frame *f, struct bytes *token)
{
    struct str copy = arena_str(&f->net->arena, (struct str){(const char *)token->p, token->len});
    bool kept = copy.p || !token->p;
    *token = (struct bytes){(const uint8_t *)copy.p, copy.len};
    return kept;
}

/* f->api NULL: a bare token. */
static void take_token(struct sasl_gate *g, struct frame *f, struct bytes token)
{
    struct bytes out;
    struct sasl_server *exchange = g->exchange;
    enum sasl_result result = sasl_server_step(exchange, token, wall_ms(g), &out);
    mem_wipe((void *)token.p, token.len > 0 ? (size_t)token.len : 0); /* its frame is used again */
    switch (result) {
    case SASL_CONTINUE:
        answer_token(f, out, 0);
        return;
    case SASL_COMPLETE:
        break;
    default:
        tell_failure(g, f, sasl_server_told(exchange), sasl_server_problem(exchange));
        return;
    }
    if (!take_user(g)) {
        char why[sizeof(g->why)];
        memcpy(why, g->why, sizeof(why));
        tell_failure(g, f, why, why);
    } else if (!keep_token(f, &out)) {
        net_request_close_conn(f->net, "out of memory");
    } else {
        answer_token(f, out, open_gate(g)); /* the gate may be gone, and the connection soon */
    }
}

/* What else comes where a token is due. */
static void refuse_request(struct sasl_gate *g, const struct frame *f)
{
    const struct struct_desc *d = f->api->response->body;
    void *body = f->known ? arena_calloc(&f->net->arena, 1, d->size) : NULL;
    if (body)
        msg_init(f->api->response, body);
    for (int i = 0; body && i < d->fields_n; i++)
        if (strcmp(d->fields[i].name, "error_code") == 0)
            *(int16_t *)((char *)body + d->fields[i].offset) = KERR_ILLEGAL_SASL_STATE;
    if (body && !encode(f, body, &g->answer))
        chain_free(&g->answer);
    fail(g, f->net, "authentication failed: %s (version %d) comes where a token is due",
         f->api->name, f->header.api_version);
}

static void take_framed(struct sasl_gate *g, struct frame *f)
{
    struct sasl_authenticate_request in;
    if (!f->api)
        fail(g, f->net, "authentication failed: a frame that is no request");
    else if (f->header.api_key != API_SASL_AUTHENTICATE || !f->known)
        refuse_request(g, f);
    else if (msg_decode(f->api->request, f->header.api_version, &f->body, &f->net->arena, &in))
        fail(g, f->net, "malformed SaslAuthenticate");
    else
        take_token(g, f, in.auth_bytes);
}

/* ---- frames, by state ---- */

static void take_asking(struct sasl_gate *g, struct frame *f)
{
    bool versions = f->api && f->header.api_key == API_API_VERSIONS && g->state == GATE_ASK;
    bool handshake = f->api && f->header.api_key == API_SASL_HANDSHAKE && f->known;
    if (versions)
        take_versions(g, f);
    else if (handshake)
        take_handshake(g, f);
    else
        fail(g, f->net, "authentication failed: %s comes where SaslHandshake is due",
             f->api ? f->api->name : "a frame that is no request");
}

/* A client that comes again too soon is told by the API's own handler. */
static bool may_renew(const struct sasl_gate *g, const struct frame *f)
{
    return f->api && f->header.api_key == API_SASL_HANDSHAKE && f->known &&
           (!g->renewed_ms || mono_ms(g) - g->renewed_ms >= RENEWAL_LEAST_MS);
}

static void take_open(struct sasl_gate *g, struct frame *f)
{
    if (may_renew(g, f)) {
        g->renewed_ms = mono_ms(g);
        conn_set_max_frame(g->conn, g->listener->max_receive);
        conn_set_max_pipelined(g->conn, 1);
        take_handshake(g, f);
    } else if (mono_ms(g) > g->end_ms) {
        conn_count(g->conn, NET_EXPIRED);
        net_request_close_conn(f->net, "its session has ended, and it did not log in again");
    } else {
        conn_pass(f->net);
    }
}

static void read_header(struct net_request *r, struct frame *f)
{
    *f = (struct frame){.net = r, .body = reader_of(r->frame, r->frame_len)};
    int rc = request_header_decode(&f->body, &f->header);
    f->api = rc == -EPROTO ? NULL : api_find(f->header.api_key);
    f->known = rc == 0 && f->api;
}

static void on_frame(void *arg, struct net_request *r)
{
    struct sasl_gate *g = arg;
    struct frame f;
    r->arena.cap = ARENA_BASE + (size_t)r->frame_len * ARENA_PER_BYTE;
    if (g->state == GATE_TOKENS && !g->framed) {
        f = (struct frame){.net = r};
        take_token(g, &f, (struct bytes){r->frame, (int32_t)r->frame_len});
        return;
    }
    read_header(r, &f);
    switch (g->state) {
    case GATE_ASK:
    case GATE_HANDSHAKE:
        take_asking(g, &f);
        break;
    case GATE_TOKENS:
        take_framed(g, &f);
        break;
    case GATE_OPEN:
        take_open(g, &f);
        break;
    case GATE_BAD:
        fail(g, r, "authentication failed: a renewal by another SASL mechanism");
        break;
    case GATE_FAILED:
        net_request_close_conn(r, "authentication has failed"); /* none is read by then */
        break;
    }
}

static void on_closed(void *arg, struct conn *c)
{
    (void)c;
    gate_free(arg);
}

static const struct conn_gate gate = {.request = on_frame, .closed = on_closed};

bool sasl_gate_secured(void *arg, struct conn *c)
{
    const struct sasl_listener *l = arg;
    struct sasl_gate *g = calloc(1, sizeof(*g));
    if (!g) {
        say_error("SocketServer", "no memory for a login of %s", conn_peer(c));
        return false;
    }
    g->listener = l;
    g->conn = c;
    chain_init(&g->answer);
    timer_init(&g->delay, on_delay);
    conn_set_gate(c, &gate, g);
    conn_set_max_frame(c, l->max_receive);
    conn_set_max_pipelined(c, 1);
    return true;
}
