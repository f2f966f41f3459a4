/* sim_run.c - see sim_run.h. */
#include "sim_run.h"

#include <stdio.h>

#include "sim_broker.h"
#include "sim_faults.h"
#include "sim_model.h"
#include "sim_net.h"
#include "sim_zk.h"

enum { HEAL_S = 180 };

static struct sim_work work_of_seed(void)
{
    struct sim_work w = {.topics = 3, .partitions = 3};
    w.admin = sim_chance(0.6);
    w.deletes = !sim_cluster.ibp && sim_chance(0.6);
    w.groups = sim_chance(0.6);
    w.unclean = sim_chance(0.2);
    w.memberships = sim_chance(0.7) ? 1 + sim_chance(0.4) : 0;
    w.modern = !sim_cluster.ibp; /* before it topics have no ids */
    w.transactions = sim_chance(0.6) ? 1 + (int)sim_below(3) : 0;
    return w;
}

static void set_up(const struct sim_run *r)
{
    struct sim_options o = {
        .seed = r->seed, .verbose = r->verbose, .requests = r->requests, .look = sim_model_look};
    sim_init(&o);
    sim_zk_init();
    sim_set_preempt(sim_chance(0.5) ? 0.002 : sim_chance(0.5) ? 0.03 : 0);
    sim_cluster.brokers = sim_chance(0.8) ? 3 : sim_chance(0.5) ? 4 : 5;
    sim_cluster.dirs = sim_chance(0.8) ? 1 : 2;
    sim_cluster.flush_each = sim_chance(0.4);
    sim_cluster.min_insync = sim_chance(0.5) ? "1" : "2";
    sim_cluster.preferred = sim_chance(0.5);
    if (sim_chance(0.2))
        sim_cluster.ibp = sim_chance(0.5) ? "2.3" : "2.6";
}

static void run_until(int64_t end)
{
    while (sim_now() < end && sim_step())
        ;
}

/* Until the cluster is whole and the clients are through. Seconds that it took. */
static int64_t heal(void)
{
    int64_t began = sim_now(), end = began + HEAL_S * SIM_S;
    sim_say("all is mended");
    sim_faults_end();
    sim_work_end();
    do {
        if (sim_now() > end) {
            const char *why = sim_model_unhealed();
            sim_violation("L1: %d s after the last fault: %s", HEAL_S,
                          why ? why : "clients are not through");
        }
        run_until(sim_now() + SIM_S);
    } while (!sim_work_is_over() || sim_model_unhealed());
    return (sim_now() - began) / SIM_S;
}

struct sim_summary sim_run(const struct sim_run *r)
{
    set_up(r);
    struct sim_work w = work_of_seed();
    for (int i = 1; i <= sim_cluster.brokers; i++)
        sim_broker_start(sim_host(i));
    sim_work_begin(&w);
    sim_faults_begin();
    int64_t began = sim_now(), end = began + r->seconds * SIM_S;
    while (r->steps ? sim_steps() < r->steps : sim_now() < end)
        sim_step();
    struct sim_summary s = {.heal_seconds = heal()};
    sim_model_check_end();
    s.steps = sim_steps();
    s.trace = sim_trace_hash();
    s.frames = sim_net_frames();
    s.expired = sim_zk_expired();
    s.committed = sim_model_records();
    s.faults = sim_faults_count();
    s.seconds = (sim_now() - began) / SIM_S;
    s.work = sim_work_counts();
    s.brokers = sim_cluster.brokers;
    snprintf(s.what, sizeof(s.what), "level %s, %d dirs%s, min.insync %s; %s",
             sim_cluster.ibp ? sim_cluster.ibp : "3.9", sim_cluster.dirs,
             sim_cluster.flush_each ? ", flushed" : "", sim_cluster.min_insync, sim_faults_text());
    return s;
}

void sim_summary_print(uint64_t seed, const struct sim_summary *s)
{
    printf("seed %llu: %d brokers, %s; %llu steps, %lld s (%lld to heal), %llu frames, %llu "
           "sessions expired; %llu acknowledged, %llu tried again, %llu committed, %llu consumed, "
           "%llu group commits (%llu too late), %llu generations, %llu tenures, %llu changes; "
           "transactions: %llu committed, %llu aborted, %llu ended by others, %llu in doubt, %llu "
           "zombies; trace "
           "%016llx\n",
           (unsigned long long)seed, s->brokers, s->what, (unsigned long long)s->steps,
           (long long)s->seconds, (long long)s->heal_seconds, (unsigned long long)s->frames,
           (unsigned long long)s->expired, (unsigned long long)s->work.acked,
           (unsigned long long)s->work.retried, (unsigned long long)s->committed,
           (unsigned long long)s->work.consumed, (unsigned long long)s->work.commits,
           (unsigned long long)s->work.late, (unsigned long long)s->work.generations,
           (unsigned long long)s->work.tenures, (unsigned long long)s->work.changes,
           (unsigned long long)s->work.txn_committed, (unsigned long long)s->work.txn_aborted,
           (unsigned long long)s->work.txn_fenced, (unsigned long long)s->work.txn_doubtful,
           (unsigned long long)s->work.zombies, (unsigned long long)s->trace);
    fflush(stdout);
}

void sim_summary_add(struct sim_summary *to, const struct sim_summary *s)
{
    to->steps += s->steps;
    to->seconds += s->seconds;
    to->faults += s->faults;
    to->frames += s->frames;
    to->work.acked += s->work.acked;
    to->work.consumed += s->work.consumed;
    to->work.commits += s->work.commits;
    to->work.changes += s->work.changes;
    to->work.generations += s->work.generations;
    to->work.tenures += s->work.tenures;
    to->work.late += s->work.late;
    to->work.txn_committed += s->work.txn_committed;
    to->work.txn_aborted += s->work.txn_aborted;
    to->work.txn_fenced += s->work.txn_fenced;
    to->work.txn_doubtful += s->work.txn_doubtful;
    to->work.zombies += s->work.zombies;
}
