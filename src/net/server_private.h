/* server_private.h - the parts of a net_server, shared by the files that make it.
 *
 *   net_server.c   building, limits, graceful stop
 *   listeners.c    those of a server, added and removed while it runs
 *   listener.c     accepting and dealing out
 *   admission.c    which new connections are let in, and when
 *   held_socks.c   refused ones whose closing is put off
 *   ip_count.c     connections per address
 *   seldom.c       lines that a client could fill the log with
 *   net_shard.c    a server's part on one reactor: idle close, turns, waiting for memory
 *   conn.c         a connection's life
 *   conn_read.c    bytes -> frames -> handler
 *   conn_write.c   answers -> bytes
 *   answer_memory.c  memory of answers that their clients have not taken, over all connections
 *   net_request.c  one request: memory, finishing
 *
 * THREADS  a shard and its connections belong to their reactor. Listeners belong to reactor 0. What
 * all share is atomic or has its lock. */
#ifndef NET_SERVER_PRIVATE_H
#define NET_SERVER_PRIVATE_H

#include <semaphore.h>
#include <stdatomic.h>

#include "net/admission.h"
#include "net/framing.h"
#include "net/held_socks.h"
#include "net/ip_count.h"
#include "net/reactor_private.h"
#include "net/seldom.h"
#include "net/server_conn.h"
#include "net/sock.h"
#include "net/tls.h"
#include "net/transport.h"

/* Bounds on what one connection may do before others get their turn. */
enum {
    TURN_READ_BYTES = 1 << 20,
    TURN_FRAMES = 64,
    TURN_SEND_BYTES = 1 << 20,
    TURN_NS = 2000000,
    ROUND_NS = 10000000, /* all turns of one round of the loop */
};

/* Waiting for a slot. ON -> PAUSED by a listener (reactor 0); PAUSED -> RESUMING by a
 * connection that closes (any thread), which posts accept_resume; RESUMING -> ON by that task. */
enum accepting { ACCEPT_ON, ACCEPT_PAUSED, ACCEPT_RESUMING };

/* Closing connections for others: BUSY while the task goes from shard to shard. */
enum shedding { SHED_NOT, SHED_BUSY, SHED_AGAIN };

struct net_server {
    /* fixed before the first connection */
    struct reactor_pool *pool;
    struct net_limits limits;
    struct conn_handler handler;
    struct list listeners;

    struct ip_count ips;        /* own lock */
    struct admission admission; /* own lock */
    struct seldom complaints;   /* own lock */
    /* one for the owner, one per connection that is not freed, one per posted wake */
    atomic_int refs;
    atomic_int connections; /* accepted and not closed */
    atomic_uint_fast64_t next_id;
    atomic_uint_fast64_t inflight; /* bytes of frames */
    atomic_int memory_waiters;     /* connections; see net_shard.c */
    atomic_int_fast64_t answers;   /* bytes of memory; see answer_memory.c */
    atomic_bool on_hold;           /* no frame begins; those that would wait with the hungry ones */
    atomic_int accepting;          /* enum accepting */
    struct task accept_resume;     /* posted by whoever made accepting RESUMING */
    atomic_int shedding;           /* enum shedding */
    struct task shed;
    int shed_at;            /* the shard whose turn it is */
    struct held_socks held; /* reactor 0's */

    /* the owner's */
    bool stopped;
    int64_t grace_ms;         /* set before the shards are told to stop */
    sem_t done;               /* listeners closed; each shard drained */
    struct task close_all;    /* posted once */
    int listeners_open;       /* reactor 0's: handles not yet closed */
    bool ended;               /* reactor 0's: there will be no more listeners */
    atomic_int shards_n;      /* grows */
    struct net_shard *shards; /* of the pool's capacity */
};

void net_server_ref(struct net_server *s);
void net_server_unref(struct net_server *s); /* the last one frees. @thread any */

/* ---- listener ---- */

/* On lines of its own. */
struct net_block {
    metric n[NET_COUNTS];
    char apart[2 * METRICS_CACHE_LINE - NET_COUNTS * sizeof(metric)];
};

struct listener {
    struct list link; /* in the server; not when it was removed */
    struct net_server *server;
    atomic_int
        refs; /* the server or the poll handle of a removed one, each connection, the sweep */
    struct admission_listener *limits;
    atomic_int connections; /* accepted and not closed */
    bool counted;           /* the next one is in the rates already */
    struct listen_security security;
    char *name;               /* owned, as all below */
    struct net_block *counts; /* for each reactor of the pool's capacity; NULL: nobody counts */
    int fd;
    int reserve_fd; /* given up to accept, and close, one more when descriptors have run out */
    uv_poll_t poll;
    bool has_poll, polling;
    bool told;            /* of running out; once until an accept succeeds */
    struct timer backoff; /* goes on after an error */
    struct task sweep;    /* ends its connections, shard by shard, when it was removed */
    int sweep_at;
};

/* Binds. *out is not in the server's list yet. */
int listener_new(struct net_server *s, const char *name, const char *host, int port,
                 const struct listen_security *security, struct listener **out);
void listener_ref(struct listener *l);
void listener_unref(struct listener *l); /* the last one, when it is closed or never began */
/* The rest on reactor 0. */
void listener_begin(struct listener *l);
void listener_close(struct listener *l); /* then posts nothing; counts listeners_open down */
/* Off the list: closes, and ends its connections. */
void listener_remove(struct listener *l);
void listener_resume(struct listener *l);
/* There may be slots again. @thread any */
void listeners_slot_free(struct net_server *s);
/* More are open than may be: closes idle ones, shard by shard. @thread any */
void net_server_shed(struct net_server *s);

/* ---- shard ---- */

struct net_shard {
    struct net_server *server;
    struct reactor *reactor;
    struct list conns;  /* all that are open, by conn.lru, longest idle first */
    struct timer idle;  /* armed while there are connections and idle ones are closed */
    struct list turns;  /* connections with work that no socket event announces, by conn.turn */
    struct task turn;   /* posted while turns is not empty */
    struct list hungry; /* connections waiting for memory, by conn.hungry */
    struct task fed;
    atomic_bool fed_posted;
    int64_t answers;       /* not yet counted in the server's */
    struct timer starving; /* armed while memory is short: who holds it? */
    struct task look_for_stalled;
    atomic_bool look_posted;
    struct list securing; /* connections in their TLS handshake, by conn.secure, oldest first */
    int securing_n;
    struct timer secure; /* armed while there are such */
    struct list spare;   /* of net_request */
    int spare_n;
    int handles; /* connections whose poll handle is not closed yet */
    bool stopping;
    struct task stop;
    struct timer grace;
};

void shard_init(struct net_shard *sh, struct net_server *s, struct reactor *r);
void shard_free(struct net_shard *sh); /* no connection, no request; @thread any */
struct executor *shard_executor(const struct net_shard *sh);
struct frame_pool *shard_frames(const struct net_shard *sh);
/* A connection joins, moves to the young end, leaves. */
void shard_add(struct net_shard *sh, struct conn *c);
void shard_touch(struct net_shard *sh, struct conn *c);
void shard_remove(struct net_shard *sh, struct conn *c);
/* Its TLS handshake begins; is over. Too many, or too old ones, are closed. */
void shard_secure_begin(struct net_shard *sh, struct conn *c);
void shard_secure_end(struct net_shard *sh, struct conn *c);
/* Its poll handle is closed. */
void shard_handle_closed(struct net_shard *sh);
/* Closes those that were idle longest and may be closed for others, while there are too many. */
void shard_shed(struct net_shard *sh);
/* Ends the connections of a listener that was removed. */
void shard_end_listener(struct net_shard *sh, const struct listener *l);
/* Gives the connection a turn (conn_take_turn) in the loop's next round. */
void shard_schedule(struct net_shard *sh, struct conn *c);
/* Counts n bytes of frames; false when the limit is reached, or the server is held: the connection
 * then waits on `hungry` and gets a turn when that is over. */
bool shard_charge(struct net_shard *sh, struct conn *c, uint32_t n);
void shard_uncharge(struct net_shard *sh, uint32_t n);
/* The hungry ones of all shards try again. @thread any */
void shards_feed(struct net_server *s);
/* Memory is short: looks after a while for those who keep it and do not move. */
void shard_look_later(struct net_shard *sh);
/* No more requests; closes what is done, after grace_ms all; then posts the server's `done`.
 * @thread any */
void shard_stop(struct net_shard *sh);

/* ---- connection ---- */

enum conn_state {
    CONN_SECURING, /* the TLS handshake is under way */
    CONN_OPEN,
    CONN_ENDING, /* reads nothing more; closes when its answers are out */
    CONN_CLOSED, /* the socket is; the memory stays for requests in work */
};

struct conn {
    struct net_shard *shard;
    struct listener *listener;
    struct transport transport;
    uv_poll_t poll;
    int events;               /* that the poll handle waits for */
    struct net_block *counts; /* the listener's on this reactor; NULL: nobody counts */
    int refs;                 /* the poll handle, each request, each function that calls out */
    enum conn_state state;
    int busy;    /* calls out of conn_take_turn: answers given meanwhile leave at its end */
    bool ended;  /* the client has ended its side, though we may not have read so far */
    bool broken; /* the socket is: nobody hears an answer */
    bool urgent; /* what the poll for a broken socket also reports has come: no more of it */
    bool muted;
    struct timer mute;

    /* in */
    struct framing in;
    uint8_t *held; /* bytes read that may not be handed over yet; malloc'ed */
    uint32_t held_at, held_len;
    /* requests whose answers are not in `out`, in order. The head is being worked on. */
    struct list requests;
    int requests_n;
    size_t work_bytes; /* frames that handlers still have */
    /* out */
    struct chain out;
    bool full;       /* the socket took less than all of `out`: wait for room */
    size_t unsent;   /* out, and answers that wait for earlier ones */
    uint64_t memory; /* of these (not of files), and what was reserved for more */

    struct list lru, turn, hungry, secure;
    int64_t opened_ms, active_ms;
    /* While others are hungry: what was there of the frame at the last look; 0 = not looked yet. */
    int64_t looked_ms;
    uint32_t looked_got;
    /* The same while answers take too much memory: what was sent since then. */
    int64_t answers_looked_ms;
    size_t answers_sent;
    uint64_t id;
    void *user;
    const struct conn_gate *gate; /* NULL: frames go to the handler */
    void *gate_arg;
    char *principal; /* owned; NULL: the transport's, or nobody's */
    bool by_token;   /* a delegation token's owner */
    int max_pipelined;
    struct task open; /* from the listener to the reactor */
    struct in6_addr ip;
    char host[SOCK_HOST_MAX];
    char name[SOCK_NAME_MAX];
};

/* Takes the socket; the connection counts in the server from now on. Then conn_open must follow on
 * the shard's reactor. NULL without memory (the socket is closed). @thread reactor 0 */
struct conn *conn_new(struct net_shard *sh, struct listener *listener, int fd,
                      const struct sockaddr_storage *from);
void conn_open(struct conn *c);
void conn_ref(struct conn *c);
void conn_unref(struct conn *c);
/* Closes now. `why` for a line in the log at `level`, NULL for none. Nothing when closed. */
void conn_close(struct conn *c, int level, const char *why);
/* An error of the socket: the client's doing, so only a debug line. */
void conn_close_errno(struct conn *c, int err);
/* Drops what is there of input; closes (conn_settle) as soon as the answers to requests in work are
 * out. */
void conn_read_no_more(struct conn *c);
/* The client has ended its side: requests that wait for its sake are hurried. */
void conn_hurry(struct conn *c);
/* As conn_read_no_more, but closes at once when a request waits for something that may take long.
 */
void conn_end(struct conn *c);
/* What the last thing that happened allows: sends, ends, sets the poll's events. Call it last. */
void conn_settle(struct conn *c);
/* Something that held reading back may be over. */
void conn_resume(struct conn *c);
/* Handed to the loop: reads what is there and hands frames over, within its bounds. */
void conn_take_turn(struct conn *c);
/* May there be one more request in its line? */
bool conn_has_room(const struct conn *c);
/* May bytes be turned into requests now? */
bool conn_may_read(const struct conn *c);
/* Bytes that were read and wait for may_read. */
static inline bool conn_holds(const struct conn *c)
{
    return c->held_at < c->held_len;
}
void conn_read(struct conn *c);
void conn_drop_input(struct conn *c);
/* Sends what the socket takes, unless it is known to be full. */
void conn_flush(struct conn *c);
/* Memory of answers is taken, or given back (negative). */
void conn_count_memory(struct conn *c, int64_t bytes);
/* What one connection may hold at most, now, if it is to be read on. */
uint64_t answers_share(const struct net_server *s);
/* So much is held that those who do not take their answers should go. */
bool answers_short(const struct net_server *s);
/* Is there no room even for this one? */
bool answers_refuse(const struct net_server *s, uint64_t bytes);
/* Answers whose turn has come move to `out`. */
void conn_collect(struct conn *c);
void conn_say(const struct conn *c, int level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* A warning that the client causes as often as it likes to: said seldom (seldom.h), as "<what>
 * <client><then>: <why>". */
void conn_complain(const struct conn *c, const char *what, const char *then, const char *why);

static inline void conn_add(struct conn *c, enum net_count what, uint64_t n)
{
    if (c->counts)
        metric_add_own(&c->counts->n[what], n);
}

/* ---- request ---- */

enum request_state {
    REQUEST_IN_WORK,
    REQUEST_ANSWERED, /* waits for earlier ones */
    REQUEST_CLOSES,   /* closes the connection when its turn comes */
    REQUEST_ABORTED,  /* in work, its connection is closed */
};

/* Takes the frame; in the connection's list. NULL without memory (the frame is freed). */
struct net_request *request_new(struct conn *c, struct frame_mem *mem, uint32_t len);
/* Off the list; frees. */
void request_free(struct net_request *r);
/* Tells the handler, if it is in work and asked for it. */
void request_hurry(struct net_request *r);
/* Off the list; tells the handler if it is in work, else frees. */
void request_abort(struct net_request *r);

#endif
