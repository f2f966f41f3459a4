/* mock_private.h - the inside of the mock: mock_broker.c has connections and scripts, mock_apis.c
 * what requests do. All under `lock`. */
#ifndef TESTS_CLIENT_MOCK_PRIVATE_H
#define TESTS_CLIENT_MOCK_PRIVATE_H

#include <pthread.h>

#include "base/list.h"
#include "client/mock_broker.h"
#include "protocol/record_batch.h"

enum { MOCK_NODES = 4, MOCK_CONNS = 64, MOCK_STEPS = 64, MOCK_TOPICS = 16, MOCK_PRODUCERS = 1024 };
enum { MOCK_LAST = 5, MOCK_TXN_PARTS = 64, MOCK_ACLS = 64 };

struct mock_producer {
    int64_t id;
    int16_t epoch;
    int32_t next_sequence;
    struct {
        int32_t first, last;
        int64_t offset;
    } batches[MOCK_LAST]; /* newest first */
    int batches_n;
};

struct mock_part {
    int leader, leader_epoch;
    int preferred; /* node + 1; 0: none */
    struct buf log;
    int64_t start, end;
    int batches;
    struct mock_producer producers[MOCK_PRODUCERS];
    int producers_n;
    struct {
        int64_t producer_id, first_offset;
    } aborted[8];
    int aborted_n;
};

struct mock_topic_state {
    char name[256];
    struct uuid id;
    struct mock_part *parts;
    int parts_n;
};

struct mock_answer { /* of one request, in order */
    struct list link;
    struct buf bytes;
    bool held, for_good;
    bool on_append; /* goes when something is appended, or at due_ms */
    int64_t due_ms;
};

struct mock_conn {
    int fd, node;
    bool doomed;
    struct buf in;
    struct list answers;
};

struct mock_step {
    enum mock_action action;
    int16_t error;
    int times;
};

struct mock_group { /* one, of one member, who leads it */
    int coordinator;
    int generation;
    char member_id[64], reason[128];
    struct buf assignment;
    int heartbeats, commits;
    struct {
        char topic[64];
        int partition;
        int64_t offset;
    } offsets[32];
    int offsets_n;
    char left[64]; /* member id of the last LeaveGroup */
};

struct mock_acl {
    int8_t resource_type, pattern_type, operation, permission;
    char name[64], principal[64], host[64];
};

enum mock_txn_state { MOCK_TXN_EMPTY, MOCK_TXN_ONGOING, MOCK_TXN_COMMITTED, MOCK_TXN_ABORTED };

struct mock_txn { /* of one transactional id */
    int coordinator;
    int64_t id; /* -1: none yet */
    int16_t epoch, last_epoch;
    enum mock_txn_state state;
    struct mock_txn_part {
        char topic[64];
        int partition;
        int64_t offset;
    } parts[MOCK_TXN_PARTS], offsets[MOCK_TXN_PARTS];
    int parts_n, offsets_n;
    bool group_added;
    int commits, aborts;
    int refused_partition; /* the only one that gets a scripted error; -1: all do */
    int16_t others;        /* TxnOffsetCommit: the error of others */
};

struct mock {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int wake; /* eventfd */
    bool stopping;
    int nodes, listeners[MOCK_NODES], ports[MOCK_NODES], told_ports[MOCK_NODES];
    char servers[64];
    struct mock_conn *conns[MOCK_CONNS];
    int conns_n;
    struct mock_step steps[API_KEY_MAX + 1][MOCK_STEPS];
    int steps_n[API_KEY_MAX + 1];
    int16_t caps[API_KEY_MAX + 1];
    int seen[API_KEY_MAX + 1];
    struct mock_topic_state topics[MOCK_TOPICS];
    int topics_n;
    bool auto_create;
    char refused[64]; /* topic; Metadata has this error for it: */
    int16_t refused_error;
    size_t max_batch;
    int64_t next_producer_id;
    int topics_asked; /* by the last Metadata request */
    struct mock_group group;
    struct mock_txn txn;
    struct mock_acl acls[MOCK_ACLS];
    int acls_n;
    mock_see see;
    void *see_arg;
};

struct mock_request {
    struct mock *m;
    int node;
    struct request_header head;
    struct reader body;
    struct arena *arena;
    int16_t error; /* to answer with, doing nothing; 0: do it */
    struct mock_answer *answer;
};

/* Decodes, does, and encodes the answer into r->answer->bytes (without length). false: no answer is
 * due (acks=0). */
bool mock_handle(struct mock_request *r);
typedef void (*mock_do)(struct mock_request *r, const void *request, void *response);
/* mock_groups.c, mock_txn.c, mock_acls.c, mock_tokens.c: what does the API, or NULL. */
mock_do mock_find_group_api(int16_t api);
mock_do mock_find_txn_api(int16_t api);
mock_do mock_find_acl_api(int16_t api);
mock_do mock_find_token_api(int16_t api);
void mock_put_offset(struct mock *m, struct str topic, int partition, int64_t offset);
/* Of a batch that is about to be written: 0, or why a transaction's may not. */
int16_t mock_check_txn_batch(struct mock_request *r, struct str topic, int partition,
                             const struct batch *b);
struct mock_topic_state *mock_find_topic(struct mock *m, struct str name);
struct mock_topic_state *mock_add_topic(struct mock *m, struct str name, int partitions);
struct mock_part *mock_find_part(struct mock *m, struct str topic, int partition);
/* Something was appended: fetches that wait are answered. */
void mock_appended(struct mock *m);
int64_t mock_now_ms(void);

#endif
