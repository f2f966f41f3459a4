/* sim_run.h - one run: set-up, work and faults, healing, the last look. */
#ifndef TESTS_SIM_SIM_RUN_H
#define TESTS_SIM_SIM_RUN_H

#include "sim.h"
#include "sim_work.h"

struct sim_run {
    uint64_t seed;
    uint64_t steps;  /* of work and faults; 0: by time */
    int64_t seconds; /* simulated */
    bool verbose, requests;
};

struct sim_summary {
    uint64_t steps, trace, frames, expired, committed, faults;
    int64_t seconds, heal_seconds;
    struct sim_work_counts work;
    int brokers;
    char what[400]; /* set-up and faults, for people */
};

/* Once in a process. Does not return when something is wrong. */
struct sim_summary sim_run(const struct sim_run *r);
void sim_summary_print(uint64_t seed, const struct sim_summary *s);
void sim_summary_add(struct sim_summary *to, const struct sim_summary *s);

#endif
