/* request.h - one client request on its way through the broker, and how handlers answer.
 *
 * LIFE     net hands over a frame -> header and API row -> body decoded into the arena ->
 *          row->handle(req) -> exactly one of request_respond / request_respond_none /
 *          request_close, at once or later (a pending).
 * MEMORY   the frame, the arena and the decoded body live until the answer is given; a handler's
 *          pendings allocate in the arena. The arena is capped: decoding gets a small multiple of
 *          the frame, then the answer may take REQUEST_ANSWER_MAX. A handler that gets NULL from it
 *          calls request_no_memory.
 * THREADS  handle runs on the connection's reactor, and so must the answer: work elsewhere posts
 *          back to request_executor(req).
 */
#ifndef SERVER_REQUEST_H
#define SERVER_REQUEST_H

#include "net/server_conn.h"
#include "protocol/api.h"
#include "protocol/errors.h"

struct broker;
struct request;
struct request_run;

enum { REQUEST_ANSWER_MAX = 128 << 20, REQUEST_ANSWER_LARGE = 2 << 20 };

enum api_flag {
    API_CLUSTER_ACTION = 1, /* broker to broker */
    API_CONTROLLER_ONLY = 2,
    API_BEFORE_AUTH = 4,
    API_LARGE_ANSWER =
        8, /* counts as that while it is worked on: a client has few of them at once */
    API_TELLS_CLUSTER = 16, /* waits for the first news of it (first_news.h) */
    API_MEMBERS_ONLY = 32,  /* a broker by itself hears it from no other: refused */
    API_TELLS_EACH = 64,    /* a refusal is told for each thing it names: by the handler */
};

struct api_row {
    int16_t key;
    int16_t min, max; /* versions served (within the protocol table's) */
    unsigned flags;
    int needs; /* the operation on the cluster that is all the right it needs; 0: rights.h */
    void (*handle)(struct request *req);
};
/* Rows of what this broker serves, by key. ApiVersions, dispatch and docs come from it. */
const struct api_row *api_row_find(int16_t key);
const struct api_row *api_served(int *n);

struct request {
    struct broker *broker;
    struct net_request *net;
    const struct api_row *row;
    const struct api_desc *api;
    struct request_header header;
    const void *body; /* the API's generated request struct, decoded */
    struct arena *arena;
    bool untimed;      /* the handler's word: never held back for the time it takes */
    bool of_follower;  /* a replica's Fetch */
    int64_t local_ns;  /* from its arrival until it began to wait; 0: it does not (metrics) */
    enum kerr refused; /* the client lacks the row's right (API_TELLS_EACH), or another */
    /* request_quota.c's */
    struct request_run *run; /* what works on it now */
    int64_t worked_ns;
    int64_t throttle_ms, time_throttle_ms;
    bool time_counted;
};

static inline int request_version(const struct request *req)
{
    return req->header.api_version;
}
/* Whose quotas hold: the user and the client id, empty when there is none. */
static inline struct str request_user(const struct request *req)
{
    return conn_principal(req->net->conn);
}
static inline struct str request_client(const struct request *req)
{
    return str_is_null(req->header.client_id) ? STR_LIT("") : req->header.client_id;
}
struct executor *request_executor(const struct request *req);
struct str request_listener(const struct request *req);

/* A frame from the network: dispatches it. The handler (or a refusal) finishes `net`. @thread the
 * connection's reactor */
void request_dispatch(struct broker *b, struct net_request *net);

/* Has the row's handler work on it: for who held it back from request_dispatch. */
void request_handle(struct request *req);

/* Encodes the API's response struct at the request's version and sends it; file ranges in records
 * fields go by sendfile. When a quota holds the client back, throttle_time_ms is filled in, and the
 * connection not read for that time (KIP-219). The request is gone afterwards. */
void request_respond(struct request *req, void *response);
void request_respond_none(struct request *req);
void request_close(struct request *req, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The arena's cap or the machine's memory does not allow the answer: closes the connection. */
void request_no_memory(struct request *req);

#endif
