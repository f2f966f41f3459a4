/* sim_zk.h - a ZooKeeper server, and its C library as the brokers know it (zookeeper.h), without
 * the wire between them: metadata/zookeeper_store.c runs on it as it is.
 *
 * SERVER   one tree (metadata/tree.h), sessions, watches. A request takes effect when it arrives;
 *          answers and events of a session come in the order in which they left. A session whose
 *          connection is gone for longer than its timeout expires.
 * LIBRARY  a completion thread per handle; a lost connection ends what is under way with
 *          ZCONNECTIONLOSS, whether or not it took effect; it connects again by itself, and hears
 *          then what its watches missed. */
#ifndef TESTS_SIM_SIM_ZK_H
#define TESTS_SIM_SIM_ZK_H

#include "base/str.h"
#include "metadata/tree.h"
#include "sim.h"

void sim_zk_init(void);
/* The tree, to be looked at. */
const struct tree *sim_zk_tree(void);
/* Data of a node; null when there is none. Borrowed until it changes. */
struct bytes sim_zk_get(const char *path, int32_t *version);
/* Faults: the sessions of the host (all of them: NULL) lose their connection; or expire. */
void sim_zk_disconnect(struct sim_host *h);
void sim_zk_expire(struct sim_host *h);
void sim_zk_host_died(struct sim_host *h);
void sim_zk_host_paused(struct sim_host *h, bool paused);
/* Each change of the tree bumps this. */
uint64_t sim_zk_changes(void);
uint64_t sim_zk_expired(void); /* sessions so far */

#endif
