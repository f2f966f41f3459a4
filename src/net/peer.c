/* peer.c - a peer's life, and its public calls. */
#include "net/peer_private.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A full fetch answer; kept only while such answers keep coming. */
static const size_t frames_kept_max = 64 << 20;

static void destroy(struct peer *p)
{
    frame_pool_free(&p->frames);
    tls_session_free(p->session);
    free(p->host);
    free((char *)p->options.client_id);
    free((char *)p->options.software_name);
    free((char *)p->options.software_version);
    free(p);
}

static const char *copy_text(const char *text, const char *otherwise, bool *ok)
{
    const char *from = text ? text : otherwise;
    char *copy = from ? strdup(from) : NULL;
    *ok = *ok && (copy || !from);
    return copy;
}

struct peer *peer_new(uv_loop_t *loop, struct executor *ex, const char *host, int port,
                      const struct peer_options *o)
{
    struct peer *p = calloc(1, sizeof(*p));
    if (!p)
        return NULL;
    bool ok = true;
    p->loop = loop;
    p->ex = ex;
    p->port = port;
    p->options = *o;
    p->options.client_id = copy_text(o->client_id, NULL, &ok);
    p->options.software_name = copy_text(o->software_name, "kafkad", &ok);
    p->options.software_version = copy_text(o->software_version, KAFKAD_VERSION, &ok);
    p->host = (char *)copy_text(host, NULL, &ok);
    if (o->max_response == 0)
        p->options.max_response = 1 << 30;
    frame_pool_init(&p->frames, frames_kept_max, ex);
    p->frames.lent_max = SIZE_MAX; /* one connection, to a broker that we chose */
    timer_init(&p->secure, peer_secure_timed_out);
    list_init(&p->waiting);
    list_init(&p->sent);
    list_init(&p->leaving);
    list_init(&p->posted);
    list_init(&p->ending);
    if (!ok) {
        destroy(p);
        return NULL;
    }
    return p;
}

void peer_enter(struct peer *p)
{
    p->busy++;
}

bool peer_leave(struct peer *p)
{
    if (--p->busy > 0 || !p->freed)
        return !p->freed;
    destroy(p);
    return false;
}

void peer_free(struct peer *p)
{
    if (!p)
        return;
    assert(!p->freed);
    peer_enter(p);
    p->freed = true;
    peer_disconnect(p);
    peer_cancel_all(p);
    peer_leave(p);
}

int peer_send(struct peer *p, int16_t api_key, int min_version, int max_version,
              const void *request, int64_t timeout_ms, bool has_response, peer_cb cb, void *arg)
{
    assert(executor_on_thread(p->ex) && !p->freed);
    const struct api_desc *api = api_find(api_key);
    struct peer_request *r =
        peer_request_new(p, api, min_version, max_version, has_response, cb, arg);
    if (!r)
        return -ENOMEM;
    p->requests_n++;
    if (!api) {
        peer_request_finish_later(r, -ENOTSUP);
        return 0;
    }
    peer_request_arm(r, timeout_ms < 0 ? p->options.request_timeout_ms : timeout_ms);
    if (peer_login_due(p))
        peer_login_again(p);
    if (p->state == PEER_READY && !p->exchange) {
        r->version = peer_choose_version(p, api, min_version, max_version);
        int err = r->version < 0 ? -ENOTSUP : peer_request_write(r, request);
        if (err)
            peer_request_finish_later(r, err);
        else
            peer_link_flush(p);
        return 0;
    }
    r->body = msg_copy(api->request, &r->arena, request);
    if (!r->body) {
        peer_request_finish_later(r, -ENOMEM);
        return 0;
    }
    list_push_back(&p->waiting, &r->link);
    if (p->state == PEER_IDLE)
        peer_connect(p);
    return 0;
}

int peer_version(const struct peer *p, int16_t api_key, int min_version, int max_version)
{
    const struct api_desc *api = api_find(api_key);
    return api && p->state == PEER_READY ? peer_choose_version(p, api, min_version, max_version)
                                         : -1;
}

bool peer_connected(const struct peer *p)
{
    return p->state == PEER_READY;
}

bool peer_answered(const struct peer *p)
{
    return p->answered;
}

const char *peer_failure(const struct peer *p)
{
    return *p->failure ? p->failure : NULL;
}

int peer_in_flight(const struct peer *p)
{
    return p->requests_n;
}

bool peer_api_range(const struct peer *p, int16_t api_key, int16_t *min, int16_t *max)
{
    if (p->state != PEER_READY || api_key < 0 || api_key > API_KEY_MAX)
        return false;
    *min = p->ranges[api_key].min;
    *max = p->ranges[api_key].max;
    return *min <= *max;
}

/* ---- answers that are kept ---- */

struct peer_response {
    struct frame_mem frame;
    struct arena arena;
};

struct peer_response *peer_keep_response(struct peer *p)
{
    assert(p->answer_frame);
    struct peer_response *r = malloc(sizeof(*r));
    if (!r)
        return NULL;
    r->frame = *p->answer_frame;
    r->arena = *p->answer_arena;
    *p->answer_frame = (struct frame_mem){0};
    arena_init(p->answer_arena, 0);
    return r;
}

void peer_response_free(struct peer_response *r)
{
    if (!r)
        return;
    frame_mem_free(&r->frame);
    arena_free(&r->arena);
    free(r);
}

void peer_recycle_response(struct peer *p, struct peer_response *r)
{
    frame_pool_put(&p->frames, &r->frame);
    arena_free(&r->arena);
    free(r);
}
