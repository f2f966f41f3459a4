/* broker_mover.c - moves of logs between log dirs, by the broker's settings. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "server/broker_private.h"
#include "server/dynamic_config.h"

/* A rate so great is none. */
static double max_rate(void *arg)
{
    struct broker *b = arg;
    const struct config *c = dynamic_config_ref(b->dynamic);
    int64_t v = config_int(c, "replica.alter.log.dirs.io.max.bytes.per.second");
    config_unref(c);
    return v == INT64_MAX ? INFINITY : (double)v;
}

static struct cleaner *cleaner_of(void *arg)
{
    return ((struct broker *)arg)->cleaner;
}

int broker_make_mover(struct broker *b, char *err, size_t err_n)
{
    const struct config *c = b->config;
    int64_t threads = config_int(c, "num.replica.alter.log.dirs.threads");
    struct log_mover_options o = {
        .replicas = broker_replicas(b),
        .logs = b->logs,
        .clock = b->clock,
        .threads = threads == INT64_MIN ? c->log_dirs_n : (int)threads,
        .window = {(int)config_int(c, "alter.log.dirs.replication.quota.window.num"),
                   config_int(c, "alter.log.dirs.replication.quota.window.size.seconds") * 1000},
        .max_rate = max_rate,
        .cleaner = cleaner_of,
        .arg = b};
    int rc = log_mover_new(&o, &b->mover);
    if (!rc)
        rc = log_mover_start(b->mover);
    if (rc)
        snprintf(err, err_n, "cannot start the moves of logs: %s", strerror(-rc));
    return rc;
}
