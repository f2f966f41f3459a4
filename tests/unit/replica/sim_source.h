/* sim_source.h - brokers that follow each other in one process: benches that share a clock and an
 * executor, whose fetchers' connections lead straight to the partitions of another bench.
 *
 * The leader's side of Fetch is a model: sessions as KIP-227 has them, kept by what the requests
 * told, and checked; waiting is answered as soon as the log has grown, or by the deadline. Each
 * request goes through its bytes. */
#ifndef TESTS_REPLICA_SIM_SOURCE_H
#define TESTS_REPLICA_SIM_SOURCE_H

#include "bench.h"
#include "replica/fetchers.h"

enum { NODES_MAX = 3, SIM_PARTS_MAX = 64 };

struct sim_node;

/* A session at a leader. */
struct sim_session {
    int32_t id, epoch; /* epoch: the one expected next */
    bool ids;
    int n;
    struct sim_session_part {
        char topic[16];
        struct uuid id;
        int32_t partition;
        struct partition_read_args args;
        int64_t sent_hw, sent_start;
    } parts[SIM_PARTS_MAX];
};

struct sim_node {
    struct bench b;
    struct sim_net *net;
    int32_t id;
    struct sim_session sessions[8];
    int sessions_n;
    struct list remotes; /* towards it */
    /* Faults and counts, as a source. */
    bool down;             /* refuses */
    bool hold;             /* its answers stay on the way until sim_net_release */
    int moves;             /* it is at another port now: see bench.moves */
    int16_t session_error; /* the next Fetch gets it */
    int16_t part_error;    /* each partition of a Fetch gets it, part_errors times */
    int part_errors;
    int corrupt; /* so many answers with records have a bit flipped */
    int fetches, full_fetches, epoch_questions, offset_questions, parts_told, parts_sent;
    int last_version;
    int max_ids_mixed;
    int places, places_closed; /* of its own fetchers */
    int64_t rate_held;         /* may_fetch says no while > 0 */
};

struct sim_net {
    struct sim_node nodes[NODES_MAX]; /* ids 1.. */
    int n;
    int ibp;
};

void sim_net_open(struct sim_net *net, int nodes, int ibp);
void sim_net_close(struct sim_net *net);
/* t-`number` on all nodes: led by this one in this epoch. */
void sim_net_lead(struct sim_net *net, int32_t number, int32_t leader, int32_t leader_epoch,
                  int32_t partition_epoch, uint8_t topic_id);
void sim_net_drain(struct sim_net *net);
/* The answers that this node holds arrive, at once. Returns how many. */
int sim_net_release(struct sim_net *net, int32_t node);
void sim_net_advance(struct sim_net *net, int64_t ms);
struct partition *sim_net_partition(struct sim_net *net, int32_t node, int32_t number); /* shared */
/* Appends to the leader as a client. */
void sim_net_append(struct sim_net *net, int32_t node, int32_t number, int records);
int64_t sim_net_end(struct sim_net *net, int32_t node, int32_t number);
int64_t sim_net_hw(struct sim_net *net, int32_t node, int32_t number);
/* Same bytes from log start to log end? */
bool sim_net_same(struct sim_net *net, int32_t a, int32_t b, int32_t number);

#endif
