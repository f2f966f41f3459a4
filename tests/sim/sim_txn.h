/* sim_txn.h - transactional producers, for their reader: sim_txn.c. */
#ifndef TESTS_SIM_SIM_TXN_H
#define TESTS_SIM_SIM_TXN_H

#include "sim_client.h"

int txn_seats(void);
/* How many inputs of the seat's pipeline are committed (-1: none were), with no transaction in
 * between; waits for that. */
int64_t txn_committed_input(struct client *c, int seat);

#endif
