/* peer_private.h - a peer's parts, shared by the files that make it.
 *
 *   peer.c            life, the public calls
 *   peer_request.c    requests: waiting, in flight, finished, timed out
 *   peer_link.c       the connection: socket to answers, requests to socket
 *   peer_login.c      who we are (peer_auth.h)
 *   peer_handshake.c  ApiVersions
 *
 * STATES  IDLE -> DIALING -> (SECURING ->) HANDSHAKE -> READY; back to IDLE from each when it
 * fails. SECURING: TLS makes itself ready, no request is on the link. In HANDSHAKE the login comes
 * first, if there is one. READY with an exchange: the login is renewed, requests wait.
 *
 * THREADS  the peer's loop. */
#ifndef NET_PEER_PRIVATE_H
#define NET_PEER_PRIVATE_H

#include "net/dialer.h"
#include "net/framing.h"
#include "net/peer.h"
#include "net/peer_auth.h"
#include "net/tls.h"
#include "net/transport.h"

enum peer_state { PEER_IDLE, PEER_DIALING, PEER_SECURING, PEER_HANDSHAKE, PEER_READY };

struct peer_range {
    int16_t min, max; /* min > max = not offered */
};

/* One connection. It outlives its place in the peer by a turn of the loop, for libuv. */
struct peer_link {
    struct peer *peer;
    uv_poll_t poll;
    struct transport transport;
    int events;
    bool full;  /* the socket took less than all */
    int broken; /* -errno of sending: the next poll closes */
    struct framing in;
    struct chain out;
    uint64_t sent; /* bytes ever */
};

struct peer_request {
    struct list link;  /* in one of the peer's lists */
    struct peer *peer; /* NULL: the peer is gone, the posted task frees */
    peer_cb cb;
    void *arg;
    const struct api_desc *api;
    int min_version, max_version;
    int version;
    int32_t correlation_id;
    bool has_response;
    bool handshake; /* ours: see peer_handshake.c */
    bool login;     /* ours, and a frame of the exchange: see peer_login.c */
    uint64_t end;   /* link->sent when its last byte has left */
    struct timer timeout;
    /* while it waits for a connection */
    void *body; /* in the arena */
    struct arena arena;
    /* on `posted` and `ending` */
    struct task task;
    int status;
};

struct peer {
    int dial_failures; /* in a row */
    uv_loop_t *loop;
    struct executor *ex;
    char *host;
    int port;
    struct peer_options options; /* its strings are ours */
    enum peer_state state;
    bool answered;                  /* READY, ever */
    struct dialer *dialer;          /* DIALING */
    struct peer_link *link;         /* SECURING, HANDSHAKE, READY */
    struct timer secure;            /* SECURING: it may last so long */
    struct tls_session *session;    /* of the last connection; owned */
    struct peer_exchange *exchange; /* logging in, also again; owned */
    struct login_work *login_work;  /* of the exchange: it is not to be touched meanwhile */
    int64_t login_again_ms;         /* when the login is to be renewed; 0 = never */
    char failure[320];              /* see peer_failure; "" = none */
    struct peer_range ranges[API_KEY_MAX + 1];
    int32_t next_correlation_id;
    struct frame_pool frames;
    /* of peer_request */
    struct list waiting; /* for READY */
    struct list sent;    /* answers due, in this order */
    struct list leaving; /* no answer due; bytes not all sent */
    struct list posted;  /* their tasks are */
    struct list ending;  /* being failed, one by one */
    int requests_n;      /* the caller's, in all lists */
    /* The answer being given: see peer_keep_response. */
    struct frame_mem *answer_frame;
    struct arena *answer_arena;
    int busy;   /* callbacks on the stack */
    bool freed; /* goes when busy is 0 */
};

/* A callback may free the peer: between enter and leave it stays. leave: false when it is gone. */
void peer_enter(struct peer *p);
bool peer_leave(struct peer *p);

/* ---- requests ---- */

/* NULL without memory; on no list. */
struct peer_request *peer_request_new(struct peer *p, const struct api_desc *api, int min_version,
                                      int max_version, bool has_response, peer_cb cb, void *arg);
void peer_request_arm(struct peer_request *r, int64_t timeout_ms);
/* Off its list, calls back, frees. */
void peer_request_finish(struct peer_request *r, int status, const void *response);
/* The same in the loop's next round. */
void peer_request_finish_later(struct peer_request *r, int status);
/* Encodes `body` at r->version and queues it on the link. 0 or -errno; then r is on no list. */
int peer_request_write(struct peer_request *r, const void *body);
/* All that were sent or wait: `first` (if given, one of them) with status, the others with others.
 */
void peer_fail_all(struct peer *p, struct peer_request *first, int status, int others);
/* All there are, also those already failing. */
void peer_cancel_all(struct peer *p);
/* The version to use with this broker; -1 = none. */
int peer_choose_version(const struct peer *p, const struct api_desc *api, int min_version,
                        int max_version);
/* READY: what waited goes out. Calls nobody back. */
void peer_send_waiting(struct peer *p);

/* ---- connection ---- */

/* Calls nobody back. */
void peer_connect(struct peer *p);
/* What the next connection that is made is given. */
int64_t peer_connect_timeout(const struct peer *p);
void peer_secure_timed_out(struct timer *t);
/* Sends what the socket takes, sets the poll. Calls nobody back, so it does not close either: if
 * the socket is broken, the poll tells at once. */
void peer_link_flush(struct peer *p);
/* Closes whatever there is of a connection; the state is IDLE. */
void peer_disconnect(struct peer *p);
/* Disconnects and fails all: with status if the connection was not READY or `first` is NULL; else
 * `first` with status, the others with -ECONNRESET. */
void peer_break(struct peer *p, struct peer_request *first, int status);
/* The same, and what has not left this machine never does. */
void peer_reset(struct peer *p, struct peer_request *first, int status);

/* Tells, in the log and by peer_failure, what is wrong with the connection. */
void peer_say_failed(struct peer *p, const char *what, const char *why);

/* ---- login ---- */

/* The connection is there: logs in if that is asked for, then the handshake begins. */
void peer_login_begin(struct peer *p);
/* Is it time to renew it? Then _again; calls nobody back. */
bool peer_login_due(struct peer *p);
void peer_login_again(struct peer *p);
/* A frame that answers one of the exchange's. */
void peer_login_answer(struct peer *p, struct peer_request *r, const void *frame, size_t n);
/* The connection is gone. */
void peer_login_forget(struct peer *p);

/* ---- handshake ---- */

void peer_handshake_begin(struct peer *p);
/* The answer, behind its header. */
void peer_handshake_answer(struct peer *p, struct peer_request *r, struct reader *in);

#endif
