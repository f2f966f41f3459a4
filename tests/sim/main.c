/* main.c - kafkad-sim: runs seeds.
 *
 *   kafkad-sim --seed N [--steps M] [--seconds S] [--verbose]   one run, which replays exactly
 *   kafkad-sim --fresh SECONDS [--first N]                      new seeds for so long (real time)
 *   kafkad-sim --file FILE                                      the seeds in it, a line each
 *
 * A run: S simulated seconds of work and faults (or M steps), then all is mended, and the cluster
 * must become whole by itself. Each of several runs is a process of its own. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim.h"
#include "sim_broker.h"
#include "sim_faults.h"
#include "sim_model.h"
#include "sim_net.h"
#include "sim_work.h"
#include "sim_zk.h"

enum { HEAL_S = 180 };

struct run {
    uint64_t seed, steps;
    int64_t seconds;
    bool verbose;
};

static void set_up(const struct run *r)
{
    struct sim_options o = {.seed = r->seed, .verbose = r->verbose, .look = sim_model_look};
    sim_init(&o);
    sim_zk_init();
    sim_set_preempt(sim_chance(0.5) ? 0.002 : sim_chance(0.5) ? 0.03 : 0);
    sim_cluster.brokers = sim_chance(0.8) ? 3 : sim_chance(0.5) ? 4 : 5;
    sim_cluster.dirs = sim_chance(0.8) ? 1 : 2;
    sim_cluster.flush_each = sim_chance(0.4);
    sim_cluster.min_insync = sim_chance(0.5) ? "1" : "2";
    sim_cluster.preferred = sim_chance(0.5);
}

/* Until the cluster is whole, and stays so while clients end their work. */
static void heal(const struct run *r)
{
    int64_t end = sim_now() + HEAL_S * SIM_S;
    const char *why;
    sim_say("all is mended");
    sim_faults_end();
    sim_work_end();
    do {
        if (sim_now() > end) {
            why = sim_model_unhealed();
            sim_violation("L1: %d s after the last fault: %s", HEAL_S,
                          why ? why : "clients are not through");
        }
        int64_t look = sim_now() + SIM_S;
        while (sim_now() < look && sim_step())
            ;
    } while (!sim_work_is_over() || sim_model_unhealed());
    sim_model_check_end();
    (void)r;
}

static void run(const struct run *r)
{
    struct sim_work w = {.topics = 3, .partitions = 3};
    set_up(r);
    for (int i = 1; i <= sim_cluster.brokers; i++)
        sim_broker_start(sim_host(i));
    sim_work_begin(&w);
    sim_faults_begin();
    int64_t end = sim_now() + r->seconds * SIM_S;
    while (r->steps ? sim_steps() < r->steps : sim_now() < end)
        sim_step();
    heal(r);
    struct sim_work_counts c = sim_work_counts();
    printf("seed %llu: %llu steps, %lld s, %llu frames, %llu sessions expired, %llu acknowledged "
           "(%llu tries more), %llu consumed, %llu committed; faults: %s; trace %016llx\n",
           (unsigned long long)r->seed, (unsigned long long)sim_steps(),
           (long long)((sim_now() - 1000 * SIM_S) / SIM_S), (unsigned long long)sim_net_frames(),
           (unsigned long long)sim_zk_expired(), (unsigned long long)c.acked,
           (unsigned long long)c.retried, (unsigned long long)c.consumed,
           (unsigned long long)sim_model_records(), sim_faults_text(),
           (unsigned long long)sim_trace_hash());
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"seed", required_argument, 0, 's'},
        {"steps", required_argument, 0, 'm'},
        {"seconds", required_argument, 0, 't'},
        {"verbose", no_argument, 0, 'v'},
        {0},
    };
    struct run r = {.seed = 1, .seconds = 120};
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (c == 's')
            r.seed = strtoull(optarg, NULL, 10);
        else if (c == 'm')
            r.steps = strtoull(optarg, NULL, 10);
        else if (c == 't')
            r.seconds = strtoll(optarg, NULL, 10);
        else if (c == 'v')
            r.verbose = true;
        else
            return 2;
    }
    run(&r);
    return 0;
}
