/* sim.h - the simulator's world: one clock, one source of chance, hosts, and the threads of their
 * programs as fibers of the one real thread.
 *
 * A broker runs here as it is, threads and all. What it stands on is replaced when it is linked:
 *   threads, locks, time, chance   sim_threads.c (--wrap), sim_executor_uv.c
 *   files                          sim_fs.c      sockets          sim_net.c
 *   the ZooKeeper library          sim_zk.c
 *
 * STEP     the earliest event happens, then every fiber that can go on does, until all wait; then
 *          the invariants are looked at (sim_check.c). Time moves only between steps.
 * CHANCE   all of it comes from one generator, so a seed decides everything: which fiber goes next,
 *          whether a lock is the place where a thread loses the processor, delays, faults.
 * DEATH    of a host takes its fibers where they stand; its memory is left (a run is short, and a
 *          process of its own). What it had at others (files, connections, a session) they end.
 * THREADS  one. */
#ifndef TESTS_SIM_SIM_H
#define TESTS_SIM_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"

enum { SIM_BROKERS_MAX = 5, SIM_CLIENTS = 6, SIM_ZK = 0, SIM_HOSTS = SIM_BROKERS_MAX + 2 };
#define SIM_MS 1000000LL
#define SIM_S (1000 * SIM_MS)

struct fiber;
struct sim_fs;

/* A machine. 0 is the ZooKeeper server (no fibers), 1.. the brokers, SIM_CLIENTS the clients'. */
struct sim_host {
    int id;
    char name[8]; /* as in addresses */
    bool up;      /* its program runs */
    bool powered; /* its kernel answers: refuses connections when the program does not run */
    uint32_t life;
    bool paused;
    int64_t skew_ms; /* of its wall clock */
    struct list fibers;
    struct list held;        /* fibers that could go on, events that are due: while it is paused */
    struct list held_events; /* of struct event */
    int locks_held;
    bool moved; /* something ran since the last look */
    struct sim_fs *fs;
};

struct sim_host *sim_host(int id);
struct sim_host *sim_host_named(const char *name); /* NULL */
struct sim_host *sim_here(void);                   /* of the fiber that runs; NULL outside */

/* ---- time and chance ---- */
int64_t sim_now(void);     /* ns */
int64_t sim_wall_ms(void); /* of a clock that is right */
uint64_t sim_random(void);
uint64_t sim_below(uint64_t n);
int64_t sim_between(int64_t low, int64_t high); /* both included */
bool sim_chance(double p);
/* Mixes into the hash that tells whether two runs were the same. */
void sim_trace(uint64_t v);
uint64_t sim_trace_hash(void);
uint64_t sim_steps(void);

/* ---- events ---- */
/* fn(arg) after this time, outside of all fibers; not if the host (NULL: none) has died by then. */
void sim_after(int64_t ns, struct sim_host *h, void (*fn)(void *arg), void *arg);

/* ---- fibers ---- */
struct fiber *fiber_start(struct sim_host *h, const char *name, void *(*run)(void *), void *arg);
struct fiber *fiber_self(void); /* NULL outside */
/* Waits until somebody wakes those that wait for this address. */
void fiber_block(const void *on);
/* The same, but not longer than this; false: the time was over. */
bool fiber_block_for(const void *on, int64_t ns);
void fiber_wake_one(struct sim_host *h, const void *on);
void fiber_wake_all(struct sim_host *h, const void *on);
void fiber_yield(void);
void fiber_sleep(int64_t ns);
void *fiber_join(struct fiber *f);
bool fiber_is_done(const struct fiber *f);
const char *fiber_name(const struct fiber *f);
/* Now and then, where a thread could lose the processor. */
void fiber_maybe_yield(void);

/* ---- hosts ---- */
/* All that runs there ends here and now. From within one of its own fibers it does not return. */
void sim_host_die(struct sim_host *h);
void sim_host_pause(struct sim_host *h, bool paused);

/* ---- the loop ---- */
struct sim_options {
    uint64_t seed;
    bool verbose;       /* the brokers' log lines go to standard error */
    bool requests;      /* and what hosts ask each other */
    void (*look)(void); /* after each step */
};
void sim_init(const struct sim_options *o);
/* Chance that a thread loses the processor at a lock. */
void sim_set_preempt(double p);
bool sim_step(void); /* false: nothing will ever happen again */
bool sim_verbose(void);
bool sim_shows_requests(void);

/* Something that must not be: says so with seed and step, and ends the process (status 1). */
void sim_violation(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
/* A line of the simulator's own when verbose. */
void sim_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
