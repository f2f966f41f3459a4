/* net_request.c - one request: its memory, and the three ways to finish it.
 *
 * STATES  IN_WORK -> ANSWERED | CLOSES   by the handler, while the connection lives; it then only
 *                                        keeps its place in the line
 *         IN_WORK -> ABORTED             the connection closed; the handler still holds it
 * The frame and the arena go back when the handler is done, not when the answer is out; the frame
 * earlier if the handler says so. */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/logline.h"
#include "net/server_private.h"

enum { SPARE_MAX = 64, ARENA_KEEP = 4096, REASON_MAX = 512 };

static struct net_request *get_spare(struct net_shard *sh)
{
    struct list *link = list_pop(&sh->spare);
    if (!link)
        return calloc(1, sizeof(struct net_request));
    sh->spare_n--;
    return list_entry(link, struct net_request, link);
}

struct net_request *request_new(struct conn *c, struct frame_mem *mem, uint32_t len)
{
    struct net_shard *sh = c->shard;
    const struct net_limits *limits = &sh->server->limits;
    struct net_request *r = get_spare(sh);
    if (!r) {
        frame_pool_put(shard_frames(sh), mem);
        shard_uncharge(sh, len);
        return NULL;
    }
    r->conn = c;
    r->frame = mem->p;
    r->frame_cap = mem->cap;
    r->frame_len = r->charged = len;
    r->received_ns = clock_mono_ns(shard_executor(sh)->clock);
    r->waited_ns = reactor_round_ns(sh->reactor, r->received_ns);
    r->arena.cap = limits->arena_cap;
    r->aborted = r->hurried = NULL;
    r->user = NULL;
    r->gone = false;
    r->hurry = c->ended;
    r->reserved = 0;
    r->state = REQUEST_IN_WORK;
    chain_init(&r->answer);
    list_init(&r->link);
    list_push_back(&c->requests, &r->link);
    c->requests_n++;
    c->work_bytes += len;
    conn_ref(c);
    return r;
}

static void release_frame(struct net_request *r)
{
    struct net_shard *sh = r->conn->shard;
    struct frame_mem mem = {r->frame, r->frame_cap, false};
    if (!r->frame)
        return;
    r->frame = NULL;
    frame_pool_put(shard_frames(sh), &mem);
    shard_uncharge(sh, r->charged);
    r->conn->work_bytes -= r->charged;
    r->charged = 0;
}

/* The handler is done with the frame and the arena. */
static void release_memory(struct net_request *r)
{
    release_frame(r);
    if (r->arena.used <= ARENA_KEEP)
        arena_reset(&r->arena);
    else
        arena_free(&r->arena);
    r->conn->unsent -= r->reserved;
    conn_count_memory(r->conn, -(int64_t)r->reserved);
    r->reserved = 0;
}

static void unlink_request(struct net_request *r)
{
    if (list_linked(&r->link))
        r->conn->requests_n--;
    list_remove(&r->link);
}

void request_free(struct net_request *r)
{
    struct conn *c = r->conn;
    struct net_shard *sh = c->shard;
    unlink_request(r);
    release_memory(r); /* unless it was answered */
    c->unsent -= r->answer.left;
    conn_count_memory(c, -(int64_t)r->answer.memory);
    chain_free(&r->answer);
    if (sh->spare_n < SPARE_MAX) {
        list_push_back(&sh->spare, &r->link);
        sh->spare_n++;
    } else {
        arena_free(&r->arena);
        free(r);
    }
    conn_unref(c);
}

void request_hurry(struct net_request *r)
{
    void (*hurried)(struct net_request *) = r->hurried;
    r->hurried = NULL;
    if (hurried && r->state == REQUEST_IN_WORK)
        hurried(r); /* may finish and so free it */
}

void request_abort(struct net_request *r)
{
    unlink_request(r);
    if (r->state != REQUEST_IN_WORK) {
        request_free(r);
        return;
    }
    r->state = REQUEST_ABORTED;
    r->gone = true;
    void (*aborted)(struct net_request *) = r->aborted;
    r->aborted = NULL;
    if (aborted)
        aborted(r); /* may finish and so free it */
}

/* The request gets its final state; whatever its turn lets out goes out. */
static void finish(struct net_request *r, enum request_state state, struct chain *answer)
{
    struct conn *c = r->conn;
    assert(executor_on_thread(conn_executor(c)));
    assert(r->state == REQUEST_IN_WORK || r->state == REQUEST_ABORTED);
    if (r->state == REQUEST_ABORTED) {
        if (answer)
            chain_free(answer);
        request_free(r);
        return;
    }
    conn_ref(c);
    if (answer && answers_refuse(c->shard->server, answer->memory)) {
        conn_say(c, LOGLINE_WARN,
                 "closing connection of %s: too many answers wait for clients to take them, this "
                 "one has %llu bytes",
                 conn_peer(c), (unsigned long long)answer->memory);
        chain_free(answer);
        state = REQUEST_CLOSES;
        conn_read_no_more(c);
    }
    r->state = (int)state;
    if (answer) {
        c->unsent += answer->left;
        conn_count_memory(c, (int64_t)answer->memory);
        chain_append(&r->answer, answer);
    }
    release_memory(r);
    conn_collect(c);
    conn_settle(c);
    conn_unref(c);
}

void net_request_release_frame(struct net_request *r)
{
    release_frame(r);
    conn_settle(r->conn);
}

void net_request_reserve(struct net_request *r, uint32_t bytes)
{
    r->conn->unsent += bytes;
    conn_count_memory(r->conn, bytes);
    r->reserved += bytes;
}

void net_request_answer(struct net_request *r, struct chain *c)
{
    finish(r, REQUEST_ANSWERED, c);
}

void net_request_no_answer(struct net_request *r)
{
    finish(r, REQUEST_ANSWERED, NULL);
}

static void close_conn(struct net_request *r, struct chain *answer, const char *fmt, va_list args)
{
    struct conn *c = r->conn;
    if (r->state != REQUEST_ABORTED) {
        char why[REASON_MAX];
        vsnprintf(why, sizeof(why), fmt, args);
        conn_say(c, LOGLINE_WARN, "closing connection of %s: %s", conn_peer(c), why);
        conn_read_no_more(c);
    }
    finish(r, REQUEST_CLOSES, answer);
}

void net_request_close_conn(struct net_request *r, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    close_conn(r, NULL, fmt, args);
    va_end(args);
}

void net_request_answer_and_close(struct net_request *r, struct chain *c, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    close_conn(r, c, fmt, args);
    va_end(args);
}
