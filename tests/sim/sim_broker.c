/* sim_broker.c - see sim_broker.h: what kafkad_main.c does, and how a life ends. */
#include "sim_broker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/broker.h"
#include "server/config.h"
#include "sim_net.h"
#include "sim_zk.h"

struct sim_cluster sim_cluster;

struct program {
    struct broker *broker; /* while it serves */
    bool stop, dead;       /* wished, by itself */
    bool stopping;
    enum sim_crash how; /* it dies so, at a change of a file */
};
static struct program programs[SIM_HOSTS];

static void set(struct props *p, const char *key, const char *value)
{
    props_set(p, key, value);
}

static struct config *settings_of(const struct sim_host *h)
{
    static const char *const common[][2] = {
        {"zookeeper.connect", "zk:2181"},
        {"zookeeper.session.timeout.ms", "6000"},
        {"num.network.threads", "2"},
        {"num.io.threads", "2"},
        {"background.threads", "2"},
        {"num.recovery.threads.per.data.dir", "1"},
        {"log.cleaner.threads", "1"},
        {"log.cleaner.dedupe.buffer.size", "1100000"},
        {"log.cleaner.io.buffer.size", "65536"},
        {"log.cleaner.backoff.ms", "15000"},
        {"group.coordinator.threads", "1"},
        {"group.consumer.migration.policy", "bidirectional"},
        {"group.consumer.min.session.timeout.ms", "6000"},
        {"group.consumer.session.timeout.ms", "6000"},
        {"group.consumer.min.heartbeat.interval.ms", "1000"},
        {"group.consumer.heartbeat.interval.ms", "1000"},
        {"offsets.topic.num.partitions", "2"},
        {"offsets.topic.replication.factor", "3"},
        {"offsets.topic.segment.bytes", "16384"},
        {"offsets.retention.minutes", "10080"},
        {"transaction.state.log.num.partitions", "2"},
        {"transaction.state.log.replication.factor", "3"},
        {"transaction.state.log.segment.bytes", "16384"},
        {"transaction.abort.timed.out.transaction.cleanup.interval.ms", "2000"},
        {"group.initial.rebalance.delay.ms", "0"},
        {"log.segment.bytes", "16384"},
        {"log.index.size.max.bytes", "4096"},
        {"log.index.interval.bytes", "512"},
        {"log.roll.hours", "1"},
        {"log.initial.task.delay.ms", "5000"},
        {"log.flush.offset.checkpoint.interval.ms", "7000"},
        {"log.segment.delete.delay.ms", "5000"},
        {"replica.lag.time.max.ms", "8000"},
        {"replica.high.watermark.checkpoint.interval.ms", "3000"},
        {"replica.socket.timeout.ms", "10000"},
        {"controller.socket.timeout.ms", "10000"},
        {"request.timeout.ms", "10000"},
        {"controlled.shutdown.retry.backoff.ms", "2000"},
        {"leader.imbalance.check.interval.seconds", "20"},
        {"auto.create.topics.enable", "false"},
        {"default.replication.factor", "3"},
    };
    struct props *p = props_new();
    char text[128], err[512];
    for (size_t i = 0; i < sizeof(common) / sizeof(*common); i++)
        set(p, common[i][0], common[i][1]);
    snprintf(text, sizeof(text), "%d", h->id);
    set(p, "broker.id", text);
    snprintf(text, sizeof(text), "PLAINTEXT://%s:%d", h->name, SIM_PORT);
    set(p, "listeners", text);
    set(p, "log.dirs", sim_cluster.dirs == 2 ? "/data0,/data1" : "/data0");
    set(p, "min.insync.replicas", sim_cluster.min_insync ? sim_cluster.min_insync : "1");
    set(p, "transaction.state.log.min.isr", sim_cluster.min_insync ? sim_cluster.min_insync : "1");
    set(p, "auto.leader.rebalance.enable", sim_cluster.preferred ? "true" : "false");
    if (sim_cluster.flush_each)
        set(p, "log.flush.interval.messages", "1");
    if (sim_cluster.ibp)
        set(p, "inter.broker.protocol.version", sim_cluster.ibp);
    struct config *config;
    if (config_load(p, &config, err, sizeof(err)) != 0)
        sim_violation("settings of the simulator: %s", err);
    return config;
}

static void on_fatal(void *arg, const char *why)
{
    struct program *p = arg;
    sim_say("a broker cannot go on: %s", why);
    p->dead = true;
    fiber_wake_all(sim_here(), p);
}

static void *program_main(void *arg)
{
    struct sim_host *h = arg;
    struct program *p = &programs[h->id];
    struct broker *broker;
    char err[1024] = "";
    if (broker_start(settings_of(h), &broker, err, sizeof(err)) != 0) {
        sim_say("%s: start refused: %s", h->name, err);
        sim_broker_kill(h, CRASH_PROCESS);
    }
    broker_on_fatal(broker, on_fatal, p);
    p->broker = broker;
    while (!p->stop && !p->dead)
        fiber_block(p);
    p->broker = NULL;
    p->stopping = true;
    broker_stop(broker);
    sim_say("%s has stopped", h->name);
    sim_broker_kill(h, CRASH_PROCESS);
    return NULL;
}

void sim_broker_start(struct sim_host *h)
{
    if (!h->fs)
        h->fs = sim_fs_new(h);
    programs[h->id] = (struct program){0};
    h->up = h->powered = true;
    sim_say("%s starts", h->name);
    fiber_start(h, "main", program_main, h);
}

void sim_broker_stop(struct sim_host *h)
{
    programs[h->id].stop = true;
    fiber_wake_all(h, &programs[h->id]);
}

void sim_broker_kill(struct sim_host *h, enum sim_crash how)
{
    sim_say("%s dies (%s)", h->name,
            how == CRASH_PROCESS ? "its process"
            : how == CRASH_DROP  ? "its power"
                                 : "torn");
    programs[h->id].broker = NULL;
    bool self = sim_here() == h;
    h->up = false;
    h->life++; /* for those who look while it ends */
    h->powered = how == CRASH_PROCESS;
    sim_net_host_died(h, how == CRASH_PROCESS);
    sim_zk_host_died(h);
    sim_fs_crash(h->fs, how);
    sim_fs_break(h->fs, NULL);
    (void)self;
    sim_host_die(h);
}

static void died_at(struct sim_host *h)
{
    sim_broker_kill(h, programs[h->id].how);
}

void sim_broker_kill_at(struct sim_host *h, enum sim_crash how, uint64_t changes)
{
    programs[h->id].how = how;
    sim_fs_die_at(h->fs, changes, died_at);
}

struct broker *sim_broker(const struct sim_host *h)
{
    return h->up ? programs[h->id].broker : NULL;
}

bool sim_broker_serves(const struct sim_host *h)
{
    return sim_broker(h) != NULL;
}

bool sim_broker_stops(const struct sim_host *h)
{
    return programs[h->id].stopping || programs[h->id].stop;
}
