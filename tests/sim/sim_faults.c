/* sim_faults.c - see sim_faults.h. */
#include "sim_faults.h"

#include <stdio.h>
#include <string.h>

#include "sim_broker.h"
#include "sim_net.h"
#include "sim_zk.h"

enum { KINDS = 15 }; /* see the table */

static struct {
    bool on[KINDS];
    uint64_t counts[KINDS], all;
    int64_t pause_ms; /* between faults, about */
    bool over;
    int down_max; /* brokers that may be away by force at once */
} F;

uint64_t sim_faults_count(void)
{
    return F.all;
}

static struct sim_host *any_broker(void)
{
    return sim_host(1 + (int)sim_below((uint64_t)sim_cluster.brokers));
}

static int down(void)
{
    int n = 0;
    for (int i = 1; i <= sim_cluster.brokers; i++)
        n += !sim_broker_serves(sim_host(i));
    return n;
}

/* ---- lives ---- */

static void restart(void *arg)
{
    struct sim_host *h = arg;
    if (!h->up)
        sim_broker_start(h);
}

/* Whatever ended it, it is started again by and by. */
static void watch_over(void *arg)
{
    (void)arg;
    for (int i = 1; i <= sim_cluster.brokers; i++) {
        struct sim_host *h = sim_host(i);
        if (!h->up && (F.over || sim_chance(0.2)))
            restart(h);
    }
    sim_after(500 * SIM_MS, NULL, watch_over, NULL);
}

static void resume(void *arg)
{
    struct sim_host *h = arg;
    if (!h->paused)
        return;
    sim_host_pause(h, false);
    sim_zk_host_paused(h, false);
    sim_say("%s goes on", h->name);
}

static void pause_host(struct sim_host *h)
{
    sim_say("%s stands still", h->name);
    sim_host_pause(h, true);
    sim_zk_host_paused(h, true);
    sim_after(sim_between(100, 14000) * SIM_MS, NULL, resume, h);
}

/* ---- network ---- */

struct cut {
    int from, to;
};
static struct cut cuts[1024];
static int cuts_n;

static void heal(void *arg)
{
    struct cut *c = arg;
    sim_net_cut(c->from, c->to, false);
}

static void cut(int from, int to, int64_t ms)
{
    if (cuts_n == 1024 || sim_net_is_cut(from, to))
        return;
    struct cut *c = &cuts[cuts_n++];
    *c = (struct cut){from, to};
    sim_say("cut from %s to %s for %lld ms", sim_host(from)->name, sim_host(to)->name,
            (long long)ms);
    sim_net_cut(from, to, true);
    sim_after(ms * SIM_MS, NULL, heal, c);
}

static int64_t cut_ms(void)
{
    return sim_chance(0.3) ? sim_between(5000, 25000) : sim_between(50, 5000);
}

static void cut_off(struct sim_host *h)
{
    int64_t ms = cut_ms();
    for (int i = 1; i <= sim_cluster.brokers; i++) {
        if (i == h->id)
            continue;
        cut(h->id, i, ms);
        cut(i, h->id, ms);
    }
    if (sim_chance(0.5)) {
        cut(h->id, SIM_ZK, ms);
        cut(SIM_ZK, h->id, ms);
    }
}

static void fair_weather(void *arg)
{
    (void)arg;
    *sim_net_weather() = (struct sim_net_weather){.delay_min = SIM_MS / 10, .delay_max = SIM_MS};
}

static void foul_weather(void)
{
    struct sim_net_weather *w = sim_net_weather();
    w->delay_max = sim_between(1, 50) * SIM_MS;
    w->spike = sim_chance(0.5) ? 0.02 : 0.2;
    w->spike_ns = sim_between(10, 3000) * SIM_MS;
    w->lose = sim_chance(0.5) ? 0.02 : 0;
    sim_after(sim_between(1000, 15000) * SIM_MS, NULL, fair_weather, NULL);
}

static void quick_disk(void *arg)
{
    sim_fs_slow(((struct sim_host *)arg)->fs, 0);
}

/* ---- one of them ---- */

static bool may_go(const struct sim_host *h)
{
    return sim_broker_serves(h) && !h->paused && down() < F.down_max;
}

/* kill -9 */
static bool do_kill(struct sim_host *h)
{
    if (!h->up || h->paused || (sim_broker_serves(h) && !may_go(h)))
        return false;
    sim_broker_kill(h, CRASH_PROCESS);
    return true;
}

static enum sim_crash power_cut(void)
{
    return sim_chance(0.5) ? CRASH_DROP : CRASH_TEAR;
}

/* In the middle of a change of a file. */
static bool do_kill_writing(struct sim_host *h)
{
    if (!may_go(h))
        return false;
    enum sim_crash how = sim_cluster.flush_each && sim_chance(0.5) ? power_cut() : CRASH_PROCESS;
    sim_broker_kill_at(h, how, 1 + sim_below(60));
    return true;
}

/* Of one machine. */
static bool do_power(struct sim_host *h)
{
    if (!sim_cluster.flush_each || !may_go(h))
        return false;
    sim_broker_kill(h, power_cut());
    return true;
}

/* SIGTERM */
static bool do_stop(struct sim_host *h)
{
    if (!may_go(h) || sim_broker_stops(h))
        return false;
    sim_broker_stop(h);
    return true;
}

/* SIGSTOP ... SIGCONT */
static bool do_pause(struct sim_host *h)
{
    if (!h->up || h->paused)
        return false;
    pause_host(h);
    return true;
}

/* Two hosts, both ways. */
static bool do_cut_pair(struct sim_host *h)
{
    struct sim_host *other = any_broker();
    int64_t ms = cut_ms();
    if (h == other)
        return false;
    cut(h->id, other->id, ms);
    cut(other->id, h->id, ms);
    return true;
}

static bool do_cut_one_way(struct sim_host *h)
{
    struct sim_host *other = any_broker();
    if (h == other)
        return false;
    cut(h->id, other->id, cut_ms());
    return true;
}

/* One host from all others. */
static bool do_cut_off(struct sim_host *h)
{
    cut_off(h);
    return true;
}

static bool do_cut_zk(struct sim_host *h)
{
    int64_t ms = cut_ms();
    cut(h->id, SIM_ZK, ms);
    if (sim_chance(0.7))
        cut(SIM_ZK, h->id, ms);
    return true;
}

/* Connections. */
static bool do_zk_drop(struct sim_host *h)
{
    sim_zk_disconnect(sim_chance(0.3) ? NULL : h);
    return true;
}

/* A session. */
static bool do_zk_expire(struct sim_host *h)
{
    if (!h->paused)
        sim_zk_expire(h);
    return !h->paused;
}

/* Connections of a host. */
static bool do_reset(struct sim_host *h)
{
    sim_net_reset(h);
    return true;
}

/* Delays, losses. */
static bool do_weather(struct sim_host *h)
{
    (void)h;
    foul_weather();
    return true;
}

static bool do_slow_disk(struct sim_host *h)
{
    if (!h->fs)
        return false;
    sim_fs_slow(h->fs, sim_between(1, 300) * SIM_MS);
    sim_after(sim_between(1000, 15000) * SIM_MS, NULL, quick_disk, h);
    return true;
}

/* EIO for a log dir, until the broker starts again. */
static bool do_dir_fails(struct sim_host *h)
{
    if (!may_go(h) || sim_fs_broken(h->fs))
        return false;
    sim_fs_break(h->fs, sim_cluster.dirs == 2 && sim_chance(0.5) ? "/data1" : "/data0");
    return true;
}

/* To a broker; false: not now. */
static const struct {
    const char *name;
    bool (*happen)(struct sim_host *h);
} kinds[KINDS] = {
    {"kill", do_kill},           {"kill-writing", do_kill_writing},
    {"power", do_power},         {"stop", do_stop},
    {"pause", do_pause},         {"cut-pair", do_cut_pair},
    {"cut-off", do_cut_off},     {"cut-one-way", do_cut_one_way},
    {"cut-zk", do_cut_zk},       {"zk-drop", do_zk_drop},
    {"zk-expire", do_zk_expire}, {"reset", do_reset},
    {"weather", do_weather},     {"slow-disk", do_slow_disk},
    {"dir-fails", do_dir_fails},
};

const char *sim_faults_text(void)
{
    static char text[512];
    size_t n = 0;
    text[0] = '\0';
    for (int i = 0; i < KINDS; i++)
        if (F.counts[i])
            n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s %llu", n ? ", " : "",
                                  kinds[i].name, (unsigned long long)F.counts[i]);
    return text;
}

static void next_fault(void *arg)
{
    (void)arg;
    if (F.over)
        return;
    size_t kind = sim_below(KINDS);
    if (F.on[kind] && kinds[kind].happen(any_broker())) {
        sim_say("fault: %s", kinds[kind].name);
        F.counts[kind]++;
        F.all++;
    }
    sim_after(sim_between(1, 2 * F.pause_ms) * SIM_MS, NULL, next_fault, NULL);
}

void sim_faults_begin(void)
{
    double each = sim_chance(0.3) ? 1.0 : 0.4; /* a run with all kinds, or with some */
    for (int i = 0; i < KINDS; i++)
        F.on[i] = sim_chance(each);
    F.pause_ms = sim_between(100, 2000);
    F.down_max = sim_chance(0.3) ? sim_cluster.brokers : (sim_cluster.brokers + 1) / 2;
    sim_after(500 * SIM_MS, NULL, watch_over, NULL);
    sim_after(5000 * SIM_MS, NULL, next_fault, NULL);
}

void sim_faults_end(void)
{
    F.over = true;
    for (int i = 0; i < SIM_HOSTS; i++) {
        for (int k = 0; k < SIM_HOSTS; k++)
            sim_net_cut(i, k, false);
        resume(sim_host(i));
        if (sim_host(i)->fs)
            sim_fs_slow(sim_host(i)->fs, 0);
        if (sim_host(i)->fs)
            sim_fs_die_at(sim_host(i)->fs, 0, NULL);
        if (sim_host(i)->fs && sim_host(i)->up && sim_fs_broken(sim_host(i)->fs))
            sim_broker_kill(sim_host(i), CRASH_PROCESS); /* only a start tries the dir again */
    }
    fair_weather(NULL);
}
