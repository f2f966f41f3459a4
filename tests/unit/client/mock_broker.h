/* mock_broker.h - a small cluster of brokers in the test's process, for tests of the client
 * library: it keeps what is produced in memory, checks sequences as a broker does, and misbehaves
 * as told.
 *
 * Each API has a script: its next requests take one step each, then all is well again. A step of
 * -1 times holds until the script is changed.
 *
 *   struct mock *m = mock_start(1);
 *   mock_topic(m, "t", 1);
 *   mock_script(m, API_PRODUCE, MOCK_DO_AND_DROP, 0, 1);   written, but the answer is lost
 *
 * THREADS  one of its own; every function here may be called from any. Waits give up after 60 s,
 * which fails the test. */
#ifndef TESTS_CLIENT_MOCK_BROKER_H
#define TESTS_CLIENT_MOCK_BROKER_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/api.h"

enum mock_action {
    MOCK_ERROR,       /* answer with this error, for every partition or topic; do nothing */
    MOCK_DROP,        /* close the connection, do nothing */
    MOCK_DO_AND_DROP, /* do it, then close instead of answering */
    MOCK_HOLD,        /* do it (or meet this error), answer when mock_release is called */
    MOCK_IGNORE,      /* do nothing, never answer; nor what comes behind it on the connection */
    MOCK_FINE,        /* a step that leaves one request alone */
};

struct mock;

struct mock *mock_start(int nodes); /* ids 0.. */
void mock_stop(struct mock *m);
const char *mock_servers(struct mock *m); /* node 0's address; borrowed */
/* Metadata and FindCoordinator give this port for the node, as a proxy's; mock_port is the real
 * one. */
void mock_advertise(struct mock *m, int node, int port);
int mock_port(struct mock *m, int node);
void mock_topic(struct mock *m, const char *name, int partitions);
void mock_delete_topic(struct mock *m, const char *name);
/* Topics that Metadata asks for are made with one partition when it allows that. */
void mock_auto_create(struct mock *m);
/* Metadata answers this error for the topic, and never makes it. One topic. */
void mock_refuse_topic(struct mock *m, const char *name, int16_t error);
void mock_move_leader(struct mock *m, const char *topic, int partition, int node);
void mock_script(struct mock *m, int16_t api, enum mock_action action, int16_t error, int times);
void mock_release(struct mock *m);
/* Closes all connections to the node; answers that were held are lost. */
void mock_drop_node(struct mock *m, int node);
/* A batch of more bytes is MESSAGE_TOO_LARGE. */
void mock_max_batch(struct mock *m, size_t bytes);
/* Highest version offered of an API. */
void mock_cap_version(struct mock *m, int16_t api, int16_t max);
/* The leader sends readers to this node, which serves them; -1: no more. */
void mock_prefer(struct mock *m, const char *topic, int partition, int node);
/* Under the present leader everything from `offset` on is gone. */
void mock_cut(struct mock *m, const char *topic, int partition, int64_t offset);
/* Appended as a broker would have it, behind what is there. */
void mock_append(struct mock *m, const char *topic, int partition, const void *batches, size_t n);
/* Another byte stands at `at` of the partition's log. */
void mock_damage(struct mock *m, const char *topic, int partition, size_t at);
/* Listed in every Fetch answer of read_committed for the partition. */
void mock_aborted(struct mock *m, const char *topic, int partition, int64_t producer_id,
                  int64_t first_offset);
/* Forgets records below: they are out of range. */
void mock_log_start(struct mock *m, const char *topic, int partition, int64_t offset);

/* ---- a group: one member at a time, who joins at once and leads ---- */

void mock_move_coordinator(struct mock *m, int node);
/* The member is forgotten: its requests get UNKNOWN_MEMBER_ID until it joins again. */
void mock_expel_member(struct mock *m);
/* -1: none is committed. */
int64_t mock_committed(struct mock *m, const char *topic, int partition);
void mock_set_committed(struct mock *m, const char *topic, int partition, int64_t offset);
int mock_generation(struct mock *m);
/* Copies the member id of the last LeaveGroup; "" when there was none. */
void mock_left(struct mock *m, char *out, size_t n);

/* ---- transactions: one transactional id ---- */

struct mock_txn_view {
    int64_t producer_id; /* -1: none was given */
    int16_t epoch;
    int commits, aborts; /* EndTxns that ended one */
    bool open;
};
struct mock_txn_view mock_txn(struct mock *m);
void mock_move_txn_coordinator(struct mock *m, int node);
/* After this epoch comes another producer id. */
void mock_txn_last_epoch(struct mock *m, int16_t epoch);
/* A scripted error of AddPartitionsToTxn is this partition's alone, others are not attempted; one
 * of TxnOffsetCommit is the first partition's, others have this. */
void mock_txn_refuse_one(struct mock *m, int partition, int16_t others);
/* The broker knows no producer of the partition any more. */
void mock_forget_producers(struct mock *m, const char *topic, int partition);

/* Called with every request from now on that is understood, before it is done: under the mock's
 * lock, which every other function here takes, too. */
typedef void (*mock_see)(void *arg, const struct request_header *head, const void *request);
void mock_watch(struct mock *m, mock_see fn, void *arg);
int mock_seen(struct mock *m, int16_t api); /* requests so far */
/* Waits until that many requests of the API have come. */
void mock_await(struct mock *m, int16_t api, int count);
/* Until so many connections are there; until a Metadata request names so many topics. */
void mock_await_connections(struct mock *m, int count);
void mock_await_topics_asked(struct mock *m, int count);
int64_t mock_end(struct mock *m, const char *topic, int partition);
int mock_batches(struct mock *m, const char *topic, int partition);
/* Copies the value of the record at `offset` as text; false when there is none. */
bool mock_value(struct mock *m, const char *topic, int partition, int64_t offset, char *out,
                size_t n);

#endif
