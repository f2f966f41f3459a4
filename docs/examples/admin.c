/* admin.c - looking after a cluster: makes a topic, shows groups with their lag, sets a group's
 * offsets back to the beginning, removes both.
 *
 *   admin BOOTSTRAP create TOPIC PARTITIONS
 *   admin BOOTSTRAP lag GROUP
 *   admin BOOTSTRAP rewind GROUP TOPIC PARTITIONS
 *   admin BOOTSTRAP delete TOPIC GROUP */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kafka/admin.h>
#include <kafka/consumer.h>

enum { TIMEOUT_MS = 30000 };

static int fail(const char *what, kafka_err_t err)
{
    fprintf(stderr, "%s: %s (%s)\n", what, kafka_err_text(err), kafka_err_name(err));
    return 1;
}

static int create(kafka_admin_t *a, const char *topic, int partitions)
{
    char message[256] = "";
    kafka_config_t configs[] = {{"cleanup.policy", "delete"}, {"retention.ms", "86400000"}};
    kafka_err_t err = kafka_admin_create_topic(a, topic, partitions, -1, NULL, 0, configs, 2,
                                               TIMEOUT_MS, message, sizeof message);
    if (err != KAFKA_OK) {
        fprintf(stderr, "%s: %s (%s)\n", topic, *message ? message : kafka_err_text(err),
                kafka_err_name(err));
        return 1;
    }
    printf("created %s with %d partitions\n", topic, partitions);
    return 0;
}

static void print_members(const kafka_group_info_t *g)
{
    printf("group %s: %s, %zu members, coordinator %d\n", g->group_id, g->state, g->members_n,
           g->coordinator.id);
    for (size_t i = 0; i < g->members_n; i++)
        printf("  %s at %s has %zu partitions\n", g->members[i].client_id, g->members[i].host,
               g->members[i].assigned_n);
}

/* The ends of the partitions come from a consumer: it may ask without being in any group. */
static int print_lag(kafka_admin_t *a, kafka_consumer_t *c, const char *group)
{
    kafka_offset_list_t *committed;
    kafka_err_t err = kafka_admin_group_offsets(a, group, NULL, 0, 0, TIMEOUT_MS, &committed);
    if (err != KAFKA_OK)
        return fail(group, err);
    for (size_t i = 0; i < committed->n; i++) {
        const kafka_offset_t *o = &committed->v[i];
        kafka_topic_partition_t tp = {o->topic, o->partition};
        int64_t when = KAFKA_OFFSET_END, end;
        kafka_err_t part_err;
        err = kafka_consumer_list_offsets(c, &tp, &when, 1, TIMEOUT_MS, &end, NULL, &part_err);
        if (err == KAFKA_OK && part_err == KAFKA_OK)
            printf("%s-%d: committed %lld, end %lld, lag %lld\n", o->topic, o->partition,
                   (long long)o->offset, (long long)end, (long long)(end - o->offset));
    }
    kafka_offset_list_free(committed);
    return 0;
}

static int lag(kafka_admin_t *a, kafka_consumer_t *c, const char *group)
{
    kafka_group_infos_t *infos;
    kafka_err_t err = kafka_admin_describe_groups(a, &group, 1, TIMEOUT_MS, &infos);
    if (err == KAFKA_OK && infos->v[0].err == KAFKA_OK)
        print_members(&infos->v[0]);
    else
        return fail(group, err != KAFKA_OK ? err : infos->v[0].err);
    kafka_group_infos_free(infos);
    return print_lag(a, c, group);
}

static int rewind_group(kafka_admin_t *a, const char *group, const char *topic, int partitions)
{
    kafka_offset_t *offsets = calloc((size_t)partitions, sizeof *offsets);
    for (int i = 0; i < partitions; i++)
        offsets[i] = (kafka_offset_t){.topic = topic, .partition = i, .leader_epoch = -1};
    kafka_err_t err =
        kafka_admin_alter_group_offsets(a, group, offsets, (size_t)partitions, TIMEOUT_MS, NULL);
    free(offsets);
    if (err != KAFKA_OK) /* UNKNOWN_MEMBER_ID: it has members: stop them first */
        return fail(group, err);
    printf("group %s begins %s anew\n", group, topic);
    return 0;
}

static int delete_both(kafka_admin_t *a, const char *topic, const char *group)
{
    char message[256] = "";
    kafka_err_t err = kafka_admin_delete_groups(a, &group, 1, TIMEOUT_MS, NULL);
    if (err != KAFKA_OK)
        return fail(group, err);
    err = kafka_admin_delete_topic(a, topic, TIMEOUT_MS, message, sizeof message);
    if (err != KAFKA_OK)
        return fail(message, err);
    printf("deleted group %s and topic %s\n", group, topic);
    return 0;
}

int main(int argc, char **argv)
{
    char err[512] = "";
    if (argc < 4) {
        fprintf(stderr, "usage: %s BOOTSTRAP create|lag|rewind|delete ...\n", argv[0]);
        return 2;
    }
    kafka_conf_t *conf = kafka_conf_new();
    kafka_conf_set(conf, "bootstrap.servers", argv[1], err, sizeof err);
    kafka_admin_t *a = kafka_admin_new(conf, err, sizeof err);
    kafka_consumer_t *c = a ? kafka_consumer_new(conf, err, sizeof err) : NULL;
    kafka_conf_free(conf);
    int status = 2;
    if (!a || !c)
        fprintf(stderr, "%s\n", err);
    else if (strcmp(argv[2], "create") == 0 && argc == 5)
        status = create(a, argv[3], atoi(argv[4]));
    else if (strcmp(argv[2], "lag") == 0)
        status = lag(a, c, argv[3]);
    else if (strcmp(argv[2], "rewind") == 0 && argc == 6)
        status = rewind_group(a, argv[3], argv[4], atoi(argv[5]));
    else if (strcmp(argv[2], "delete") == 0 && argc == 5)
        status = delete_both(a, argv[3], argv[4]);
    kafka_consumer_close(c);
    kafka_admin_close(a);
    return status;
}
