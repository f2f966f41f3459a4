/* server_conn.h - accepted connections: framing, requests in order, answers in order,
 * back-pressure.
 *
 * FLOW      readable -> bytes into the frame's buffer (read directly where they stay; the buffer
 *           grows with what has really arrived) -> frame complete -> handler->request(). The
 *           handler answers at once or later; answers leave in the order of the requests, whatever
 *           order they are given in. While earlier requests wait, later ones of the same connection
 *           are read and handed over, up to max_pipelined.
 *
 * PRESSURE  reading stops while the connection has max_pipelined requests whose answers are not on
 *           their way, more than more than max_unsent bytes of answers unsent, or more than its
 * share of max_answer_bytes, while frames in memory over all connections pass max_inflight_bytes
 * (queued.max.request.bytes), while the server is held (net_server_hold), or while muted. A client
 * that does not read its answers thus stops being read; the broker's memory does not grow.
 *
 * CLOSE     a bad frame length, an error, the client's end, idleness, or the handler's wish.
 *           Requests being worked on stay valid until they are answered; their answers are then
 *           dropped. `aborted` tells those who asked.
 *
 * END       a client that ends its side (shutdown, or close: they look the same until something is
 *           sent to it) still gets the answers to all it has sent, then its connection closes.
 *           `hurried` tells those who wait for its sake only. One that breaks the connection (a
 *           reset, as on closing with unread answers, or on an answer to nobody) is closed at once.
 * Idle is a connection on which no byte moved
 *           for max_idle_ms and no request waits for its answer; a muted one, and one whose client
 *           does not take its answers, can be idle. While others wait for memory, one whose frame
 *           is announced and does not come is closed much sooner (max_stall_ms).
 *
 * THREADS   everything happens on the connection's reactor. */
#ifndef NET_SERVER_CONN_H
#define NET_SERVER_CONN_H

#include <netinet/in.h>

#include "base/arena.h"
#include "base/str.h"
#include "net/chain.h"
#include "net/net_counts.h"
#include "net/reactor.h"

struct conn;
struct listener;

struct net_request {
    struct conn *conn; /* valid as long as the request */
    uint8_t *frame;    /* the request's bytes without the length; writable; owned by the request.
                          NULL once they were released */
    uint32_t frame_len;
    int64_t received_ns; /* monotonic */
    int64_t waited_ns;   /* before that, for its turn (reactor_pool_measure) */
    struct arena arena;  /* lives as long as the request, capped */
    /* Set by the handler if it wants to hear that the connection closed before the answer; called
     * once, on the reactor, perhaps from within another call of this room. The request must still
     * be finished by one of the calls below (also from in here). */
    void (*aborted)(struct net_request *r);
    /* Set by a handler that waits for what only its client wants to hear of; called on the reactor,
     * perhaps from within another call of this room, and not again unless it is set again.
     * `hurry` says that the client has ended its side. It may listen still, or be gone altogether,
     * which only an answer would show: so the wait ends now, with an answer. Else as many requests
     * as are read stand in line behind this one: the wait should end, if that does no harm. Work
     * that changes something goes on as if nothing had happened. */
    void (*hurried)(struct net_request *r);
    void *user; /* the handler's, for both */
    /* The connection closed before the answer; the client has ended its side. Who begins to wait
     * only now is not told. */
    bool gone, hurry;
    /* private to net */
    struct list link;
    struct chain answer;
    int state;
    size_t frame_cap;
    uint32_t charged;  /* counted in the server's bytes in flight */
    uint32_t reserved; /* counted in the connection's unsent bytes */
};

/* Stands between a connection and the handler until the client has shown who it is (SASL), or again
 * for a while later. */
struct conn_gate {
    /* In the handler's place, with the same duties. May take itself away (conn_set_gate) and may
     * let the frame through (conn_pass). */
    void (*request)(void *arg, struct net_request *r);
    /* The connection is closed, after `aborted` of its requests; before the handler's `closed`. May
     * be NULL. */
    void (*closed)(void *arg, struct conn *c);
};

struct conn_handler {
    /* A new connection, before its first byte. Return false to close it (one log line is the
     * handler's; `closed` is not called). May be NULL. */
    bool (*opened)(void *arg, struct conn *c);
    /* A whole frame. Exactly one of net_request_answer / _no_answer / _close_conn must follow, now
     * or later. */
    void (*request)(void *arg, struct net_request *r);
    /* After `aborted` of the requests that were being worked on. May be NULL. */
    void (*closed)(void *arg, struct conn *c);
    void *arg;
};

/* Finishing a request: its frame and arena are gone, and r must not be touched, when the call
 * returns. All three @thread the connection's reactor */

/* Takes the chain, which is empty afterwards. */
void net_request_answer(struct net_request *r, struct chain *c);
/* The request has no answer (acks=0). */
void net_request_no_answer(struct net_request *r);
/* Closes the connection with one log line saying why. Answers of earlier requests go out first;
 * later requests are dropped. */
void net_request_close_conn(struct net_request *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* The answer goes out as any other; then the connection closes as by net_request_close_conn. */
void net_request_answer_and_close(struct net_request *r, struct chain *c, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The frame is not needed any more, though the request waits: its memory goes back, and does not
 * count. The connection may be read on within the call, or be closed. @thread the connection's
 * reactor */
void net_request_release_frame(struct net_request *r);
/* The answer will take so much memory: counted as unsent until the request is finished, so that a
 * client cannot have many large answers made at once. Once a request, while it is being worked on.
 * @thread the connection's reactor */
void net_request_reserve(struct net_request *r, uint32_t bytes);

struct executor *conn_executor(const struct conn *c);
/* As text: "127.0.0.1:53412". Borrowed from the connection. */
const char *conn_peer(const struct conn *c);
const char *conn_peer_host(const struct conn *c);
struct in6_addr conn_peer_ip(const struct conn *c); /* IPv4 as IPv4-mapped IPv6 */
/* The listener's name, upper case: "PLAINTEXT". */
const char *conn_listener_name(const struct conn *c);
uint64_t conn_id(const struct conn *c);
/* The handler's own pointer per connection. */
void conn_set_user(struct conn *c, void *user);
void *conn_user(const struct conn *c);
/* Stop and go on reading new frames after `ms` (throttling, KIP-219). A mute that ends later
 * stands. */
void conn_mute_for(struct conn *c, int64_t ms);
/* Frames may be this large from now on (a small cap before authentication). */
void conn_set_max_frame(struct conn *c, uint32_t bytes);
/* So many requests may be worked on at once from now on; 0 = net_limits.max_pipelined. One, while
 * each decides what the next one means. */
void conn_set_max_pipelined(struct conn *c, int requests);
/* Frames go to the gate from now on; NULL = to the handler. Borrows both. A gate that is replaced
 * is not told. */
void conn_set_gate(struct conn *c, const struct conn_gate *gate, void *arg);
/* To the handler, past the gate. */
void conn_pass(struct net_request *r);

/* ---- who the client is ---- */

/* The user's name (the principal's type is always User): what conn_set_principal said, else what
 * TLS found in the client's certificate, else "ANONYMOUS". Borrowed from the connection, until it
 * is set again. */
struct str conn_principal(const struct conn *c);
/* Copied. 0 or -ENOMEM. */
int conn_set_principal(struct conn *c, struct str name);
/* How it is known who that is. */
enum conn_login {
    CONN_NOBODY,   /* it is not: ANONYMOUS */
    CONN_KNOWN,    /* by a login, or a certificate */
    CONN_BY_TOKEN, /* by a delegation token */
};
/* Counts logins: NET_LOGINS to NET_EXPIRED. */
void conn_count(struct conn *c, enum net_count what);
enum conn_login conn_login(const struct conn *c);
/* The last login (conn_set_principal) was by a delegation token, or was not. */
void conn_set_by_token(struct conn *c, bool by_token);

/* ---- listeners ---- */

struct net_limits {
    uint32_t max_frame; /* socket.request.max.bytes */
    int max_pipelined;  /* requests of one connection unanswered */
    size_t
        max_pipelined_bytes; /* their frames: no further one is begun beyond this; 0 = no limit */
    size_t max_unsent;       /* bytes of answers unsent per connection before reading stops */
    size_t max_answer_bytes; /* memory of answers over all connections, of which each has a share;
                                0 = no limit. Answers can pass it, each by its own size */
    uint64_t max_inflight_bytes; /* frames in memory over all connections; 0 = no limit. A frame is
                                    counted at its declared length and begun while less is in use,
                                    so it can be passed by one frame, and one always fits */
    int64_t max_idle_ms;         /* connections.max.idle.ms; <= 0 = never */
    int64_t max_stall_ms; /* while others wait for memory, a frame that has begun brings a little in
                             each such time, or its connection closes (within three times that) */
    int64_t max_secure_ms; /* a TLS handshake that takes longer ends */
    int max_securing;      /* handshakes under way on each thread: beyond, the oldest end */
    int max_connections, max_connections_per_ip; /* INT_MAX = no limit */
    int send_buffer, receive_buffer;             /* socket.*.buffer.bytes; -1 = the system's */
    size_t arena_cap;                            /* per request, besides the frame; 0 = no cap */
    int backlog;                                 /* socket.listen.backlog.size */
    int rate_samples;                            /* quota.window.num, for rates of connections */
    int64_t rate_sample_ms;                      /* quota.window.size.seconds */
    bool count;                                  /* for net_server_look */
};
/* Kafka's defaults, and ours where Kafka has none. */
struct net_limits net_limits_default(void);

struct tls;
/* How a listener's connections are secured. */
struct listen_security {
    struct tls *tls; /* NULL = none. A reference is taken */
    /* Then, on the connection's reactor and before its first frame: who is it? Sets a gate. False
     * closes the connection, a log line is the callee's. NULL = nobody asks. */
    bool (*secured)(void *arg, struct conn *c);
    void *arg; /* borrowed until the listener's last connection is gone */
};

/* Limits on new connections; they may change while the server runs. */
struct net_ip_limit {   /* max.connections.per.ip.overrides */
    struct in6_addr ip; /* IPv4 as IPv4-mapped IPv6 (net_ip_of) */
    int max;
};
struct net_listener_limit {
    const char *listener;
    int max_connections; /* INT_MAX = no limit */
    double max_rate;     /* max.connection.creation.rate; INFINITY = no limit */
};
struct net_admission {
    int max_connections, max_connections_per_ip;
    const struct net_ip_limit *ip_limits;
    int ip_limits_n;
    double max_rate; /* over all listeners; INFINITY = no limit */
    const struct net_listener_limit *listeners;
    int listeners_n;
    /* What limits all listeners together never holds this one back (the brokers' own, where there
     * are others); if it goes beyond, connections of others that were idle longest are closed.
     * NULL = none. */
    const char *exempt_listener;
};

/* A name or an address as text. 0, or -errno when it is neither. @blocks on looking a name up */
int net_ip_of(const char *host, struct in6_addr *out);

struct net_server; /* all listeners and connections of a broker */

/* Borrows pool and handler (both outlive the server and every request). Copies the limits. 0 or
 * -errno. */
int net_server_new(struct reactor_pool *pool, const struct net_limits *limits,
                   const struct conn_handler *handler, struct net_server **out);
/* Binds and listens. host "" or "0.0.0.0" = all addresses. port 0 takes a free one; *bound_port
 * tells. Accepting begins with the next net_server_accept; clients wait until then. 0 or -errno
 * (EADDRINUSE, EADDRNOTAVAIL for an unknown host, ESHUTDOWN, ...). @blocks on looking a host name
 * up. @thread any but a reactor, one at a time */
int net_server_listen(struct net_server *s, const char *listener_name, const char *host, int port,
                      int *bound_port);
/* The same, secured; `security` is copied, NULL = not. */
int net_server_listen_secured(struct net_server *s, const char *listener_name, const char *host,
                              int port, const struct listen_security *security, int *bound_port);
/* The listener's port is free when this returns, and its connections end: those that wait for
 * something at once, the others when requests in work are answered. 0, -ENOENT, -ESHUTDOWN.
 * @thread as net_server_listen */
int net_server_unlisten(struct net_server *s, const char *listener_name);
/* After all listeners, and again after more of them. @thread as net_server_listen */
void net_server_accept(struct net_server *s);
/* Connections are dealt out to so many threads of the pool from now on, which are made if there are
 * too few; those on others stay where they are. 0 or -errno (then as before). @thread as
 * net_server_listen */
int net_server_set_threads(struct net_server *s, int n);
/* Could the address be bound now? 0 or -errno. @blocks @thread any */
int net_can_listen(const char *host, int port);
/* Takes the place of the limits of net_server_new and of earlier calls; listeners made later have
 * no limit of their own. All copied. 0 or -ENOMEM (then nothing has changed). @thread any */
int net_server_set_admission(struct net_server *s, const struct net_admission *limits);
/* New connections a second from an address; `ip` NULL = from each that has no rate of its own;
 * INFINITY = no limit. One over it is not read, and closed a little later. 0 or -ENOMEM. @thread
 * any
 */
int net_server_set_ip_rate(struct net_server *s, const struct in6_addr *ip, double rate);
/* hold: whoever does the handlers' work has too much of it: frames that begin from now on wait, and
 * their connections are not read; those under way come to their end. !hold: goes on. @thread any */
void net_server_hold(struct net_server *s, bool hold);
/* Graceful stop: no new connections, no new requests; requests in work are answered and sent, for
 * at most grace_ms; then all is closed. Once. @blocks @thread any but a reactor */
void net_server_stop(struct net_server *s, int64_t grace_ms);
/* Stops (without grace) if that was not done. Requests still being worked on keep what they need
 * until they are finished, which must be before the pool stops. @blocks as net_server_stop */
void net_server_free(struct net_server *s);
/* What it has counted for its present listeners: *out is owned (free()), returns how many; -errno.
 * None without net_limits.count. @blocks */
int net_server_look(struct net_server *s, struct net_figures **out);
int net_server_connections(const struct net_server *s); /* @thread any */

#endif
