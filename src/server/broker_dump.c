#include "server/broker_dump.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/logline.h"
#include "log/log_dir.h"
#include "metadata/metadata_cache.h"
#include "server/broker_private.h"

static const char component[] = "dump";

static void dump_process(void)
{
    long pages = 0, resident = 0, descriptors = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f && fscanf(f, "%ld %ld", &pages, &resident) != 2)
        resident = 0;
    if (f)
        fclose(f);
    DIR *d = opendir("/proc/self/fd");
    while (d && readdir(d))
        descriptors++;
    if (d)
        closedir(d);
    say_info(component, "memory %ld MiB, %ld descriptors",
             resident * (sysconf(_SC_PAGESIZE) / 1024) / 1024,
             descriptors > 3 ? descriptors - 3 : 0);
}

static void dump_network(struct broker *b)
{
    pthread_mutex_lock(&b->listeners_lock);
    if (b->net)
        say_info(component, "%d connections", net_server_connections(b->net));
    pthread_mutex_unlock(&b->listeners_lock);
    pthread_mutex_lock(&b->lock);
    int async = b->async;
    pthread_mutex_unlock(&b->lock);
    say_info(component, "%d requests and other work not over", async);
}

struct dir_sum {
    struct log_dir *dir;
    int logs;
    int64_t bytes;
};

static void add_log(void *arg, struct log *log)
{
    struct dir_sum *s = arg;
    if (log_dir_of(log) != s->dir)
        return;
    s->logs++;
    s->bytes += log_size(log);
}

static void dump_logs(struct broker *b)
{
    enum { DIRS_MAX = 64 };
    struct log_dir *dirs[DIRS_MAX];
    int n = log_manager_dirs(b->logs, dirs, DIRS_MAX);
    for (int i = 0; i < n && i < DIRS_MAX; i++) {
        struct dir_sum s = {.dir = dirs[i]};
        log_manager_each(b->logs, add_log, &s);
        say_info(component, "%s: %s, %d logs of %" PRId64 " MiB", log_dir_path(dirs[i]),
                 log_dir_offline(dirs[i]) ? "offline" : "online", s.logs, s.bytes >> 20);
    }
    say_info(component, "%d logs move between dirs", log_mover_count(b->mover));
}

/* What a partition's state means to its users, by what this broker has been told. */
struct health {
    int partitions, leaderless,
        lacking;          /* of the cluster; lacking: ISR smaller than the replicas */
    int led, led_lacking; /* by this broker */
};

static void add_topic(struct health *h, const struct topic_info *t, int32_t self)
{
    for (int i = 0; i < t->partitions_n; i++) {
        const struct partition_info *p = &t->partitions[i];
        if (p->replicas_n == 0)
            continue; /* a gap in the numbers */
        bool lacking = p->isr_n < p->replicas_n, led = p->leader == self;
        h->partitions++;
        h->leaderless += p->leader < 0;
        h->lacking += lacking;
        h->led += led;
        h->led_lacking += led && lacking;
    }
}

static void dump_partitions(struct broker *b, const struct metadata_snapshot *s)
{
    struct arena a;
    struct health h = {0};
    arena_init(&a, 0);
    const struct topic_info **topics = metadata_topics(s, &a);
    for (int i = 0; topics && i < metadata_topics_n(s); i++)
        add_topic(&h, topics[i], b->id);
    arena_free(&a);
    say_info(component,
             "%d partitions in the cluster: %d without a leader, %d under-replicated; %d are led "
             "here: %d under-replicated",
             h.partitions, h.leaderless, h.lacking, h.led, h.led_lacking);
}

static void dump_cluster(struct broker *b)
{
    const struct metadata_snapshot *s = metadata_acquire(b->metadata);
    say_info(component, "%d topics are known; controller is %d; broker epoch %" PRId64,
             metadata_topics_n(s), (int)metadata_controller(s),
             broker_registrar_epoch(b->registrar));
    dump_partitions(b, s);
    metadata_release(s);
}

void broker_dump(struct broker *b)
{
    dump_process();
    dump_network(b);
    dump_logs(b);
    dump_cluster(b);
}
