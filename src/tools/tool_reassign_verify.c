/* tool_reassign_verify.c - kafka-reassign-partitions --verify and --list: how far moves are. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/errors.h"
#include "tools/tool_reassign.h"

static int by_name(const void *key, const void *element)
{
    const struct reassign_part *p = key;
    const kafka_moving_partition_t *x = element;
    int order = strcmp(p->topic, x->topic);
    return order ? order : (p->partition > x->partition) - (p->partition < x->partition);
}

static bool is_moving(const kafka_moving_partitions_t *moving, const struct reassign_part *p)
{
    return moving->n && bsearch(p, moving->v, moving->n, sizeof *moving->v, by_name);
}

/* Where partitions are; their lists are info's. Topics that are not there have none. */
static struct reassign_plan replicas_now(struct reassign *r, const kafka_cluster_info_t *info)
{
    size_t n = 0;
    for (size_t t = 0; t < info->topics_n; t++)
        n += info->topics[t].partitions_n;
    struct reassign_plan now = {reassign_need(arena_array(&r->mem, struct reassign_part, n)), 0};
    for (size_t t = 0; t < info->topics_n; t++) {
        const kafka_topic_info_t *topic = &info->topics[t];
        if (topic->err != KAFKA_OK && topic->err != KERR_UNKNOWN_TOPIC_OR_PARTITION)
            reassign_fail_of(r, topic->err, kafka_err_text(topic->err));
        for (size_t i = 0; i < topic->partitions_n; i++) {
            const kafka_partition_info_t *p = &topic->partitions[i];
            now.v[now.n++] =
                (struct reassign_part){.topic = topic->name,
                                       .partition = p->partition,
                                       .replicas = {(int32_t *)p->replicas, (int)p->replicas_n}};
        }
    }
    reassign_plan_sort(&now);
    return now;
}

static void print_part(struct reassign *r, const struct reassign_part *p,
                       const kafka_moving_partitions_t *moving, const struct reassign_plan *all)
{
    if (is_moving(moving, p)) {
        printf("Reassignment of partition %s-%d is still in progress.\n", p->topic, p->partition);
        return;
    }
    const struct reassign_part *found = reassign_plan_find(all, p->topic, p->partition);
    struct id_list now = found ? found->replicas : (struct id_list){NULL, 0};
    if (id_list_eq(now, p->replicas))
        printf("Reassignment of partition %s-%d is completed.\n", p->topic, p->partition);
    else
        printf("There is no active reassignment of partition %s-%d, but replica set is %s rather "
               "than %s.\n",
               p->topic, p->partition, (char *)reassign_need(reassign_format_ids(now, &r->mem)),
               (char *)reassign_need(reassign_format_ids(p->replicas, &r->mem)));
}

static void print_dir_move(const struct reassign_dir_move *m, const struct reassign_dir_found *f)
{
    switch (f->state) {
    case DIR_COMPLETED:
        printf("Reassignment of replica %s-%d-%d completed successfully.\n", m->topic, m->partition,
               m->broker);
        break;
    case DIR_MOVING:
        printf("Reassignment of replica %s-%d-%d is still in progress.\n", m->topic, m->partition,
               m->broker);
        break;
    case DIR_MOVING_ELSEWHERE:
        printf("Partition %s-%d on broker %d is being moved to log dir %s instead of %s.\n",
               m->topic, m->partition, m->broker, f->future, m->dir);
        break;
    case DIR_NOT_MOVING:
        printf("Partition %s-%d on broker %d is not being moved from log dir %s to %s.\n", m->topic,
               m->partition, m->broker, f->current, m->dir);
        break;
    case DIR_REPLICA_MISSING:
        printf("Partition %s-%d cannot be found in any live log directory on broker %d.\n",
               m->topic, m->partition, m->broker);
        break;
    case DIR_MISSING:
        printf("Partition %s-%d is not found in any live log dir on broker %d. There is likely an "
               "offline log directory on the broker.\n",
               m->topic, m->partition, m->broker);
        break;
    }
}

/* Is any of them on its way, or not to be found (then it may be)? */
static bool print_dir_moves(struct reassign *r, const struct reassign_dir_moves *m)
{
    struct reassign_dir_found *found = reassign_look_at_dirs(r, m);
    bool open = false;
    for (int i = 0; i < m->n; i++) {
        print_dir_move(&m->v[i], &found[i]);
        open |= found[i].state != DIR_COMPLETED && found[i].state != DIR_NOT_MOVING;
    }
    if (m->n == 0)
        putchar('\n');
    return open;
}

void reassign_verify(struct reassign *r)
{
    size_t n;
    struct reassign_plan plan = reassign_read_plan(r);
    struct reassign_dir_moves dirs = reassign_plan_dirs(&plan, &r->mem);
    reassign_need(dirs.v);
    kafka_moving_partitions_t *moving = reassign_moving(r, NULL);
    const char **topics = reassign_need(reassign_plan_topics(&plan, &r->mem, &n));
    kafka_cluster_info_t *info = reassign_describe(r, topics, n);
    puts("Status of partition reassignment:");
    struct reassign_plan now = replicas_now(r, info);
    for (int i = 0; i < plan.n; i++)
        print_part(r, &plan.v[i], moving, &now);
    bool open = moving->n > 0;
    kafka_cluster_info_free(info);
    kafka_moving_partitions_free(moving);
    open |= print_dir_moves(r, &dirs);
    if (!open && !r->args->preserve_throttles)
        reassign_clear_throttles(r, &plan);
}

/* ---- listing ---- */

static void print_ids(const char *title, const int32_t *v, size_t n)
{
    if (n == 0)
        return;
    fputs(title, stdout);
    for (size_t i = 0; i < n; i++)
        printf("%s%d", i ? "," : "", v[i]);
    putchar('.');
}

void reassign_list(struct reassign *r)
{
    kafka_moving_partitions_t *moving = reassign_moving(r, NULL);
    puts(moving->n ? "Current partition reassignments:" : "No partition reassignments found.");
    for (size_t i = 0; i < moving->n; i++) {
        const kafka_moving_partition_t *p = &moving->v[i];
        printf("%s-%d:", p->topic, p->partition);
        print_ids(" replicas: ", p->replicas, p->replicas_n);
        print_ids(" adding: ", p->adding, p->adding_n);
        print_ids(" removing: ", p->removing, p->removing_n);
        putchar('\n');
    }
    kafka_moving_partitions_free(moving);
}
