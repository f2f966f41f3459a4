/* sim_executor.h - an executor without threads: it runs when told to, on a simulated clock. For
 * tests and the simulator. Several may share a clock; sim_world_* of the simulator interleaves
 * them.
 *
 * THREADS  one. */
#ifndef BASE_SIM_EXECUTOR_H
#define BASE_SIM_EXECUTOR_H

#include "base/executor.h"

struct sim_executor;

/* Borrows the clock. Returns owned; NULL without memory. */
struct sim_executor *sim_executor_new(struct sim_clock *clock);
/* Tasks and timers that are left are forgotten. */
void sim_executor_free(struct sim_executor *e);
struct executor *sim_executor_ex(struct sim_executor *e);
/* Runs one task, or one timer whose time has come. false: nothing to do now. */
bool sim_executor_step(struct sim_executor *e);
/* Runs until nothing is left to do at the present time. */
void sim_executor_drain(struct sim_executor *e);
/* Moves the clock on by ms in steps, firing each timer at its own time. */
void sim_executor_advance(struct sim_executor *e, int64_t ms);
/* Monotonic ms of the next timer, -1 without one. */
int64_t sim_executor_next_timer(const struct sim_executor *e);

#endif
