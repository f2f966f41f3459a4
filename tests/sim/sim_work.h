/* sim_work.h - what the clients do: idempotent producers with acks=all, one with acks=1, consumers,
 * a group's commits, members of groups, an administrator. All of them try again until they are told
 * yes or no. */
#ifndef TESTS_SIM_SIM_WORK_H
#define TESTS_SIM_SIM_WORK_H

#include "sim.h"

struct sim_work {
    int topics, partitions;
    bool admin;       /* topics grow; replicas move; leaders are elected */
    bool deletes;     /* topics go and come */
    bool groups;      /* commits */
    int memberships;  /* groups with members */
    bool modern;      /* some of them of the new protocol */
    bool unclean;     /* one topic elects uncleanly */
    int transactions; /* transactional ids */
};
void sim_work_begin(const struct sim_work *w);
/* No new work from now on; what was begun is brought to its end. */
void sim_work_end(void);
bool sim_work_is_over(void);
struct sim_work_counts {
    uint64_t acked, retried, consumed, commits, changes, generations;
    uint64_t tenures, late; /* partitions given to members; their commits that came too late */
    uint64_t txn_committed, txn_aborted, txn_doubtful, txn_fenced, zombies;
};
struct sim_work_counts sim_work_counts(void);

#endif
