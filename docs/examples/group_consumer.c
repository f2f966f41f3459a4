/* group_consumer.c - a member of a consumer group that commits what it has worked off itself: each
 * record is handled at least once, also when members come, go or crash.
 *
 *   group_consumer BOOTSTRAP GROUP TOPIC COUNT
 *
 * Ends after at least COUNT records (all that a poll gave), with what it had committed. */
#include <stdio.h>
#include <stdlib.h>

#include <kafka/consumer.h>

static void on_assigned(kafka_consumer_t *c, const kafka_topic_partition_t *tps, size_t n,
                        void *arg)
{
    (void)c, (void)arg;
    for (size_t i = 0; i < n; i++)
        fprintf(stderr, "assigned %s-%d\n", tps[i].topic, tps[i].partition);
}

/* The last chance to commit: afterwards the partitions may be another member's. */
static void on_revoked(kafka_consumer_t *c, const kafka_topic_partition_t *tps, size_t n, void *arg)
{
    (void)arg;
    if (kafka_consumer_commit(c, NULL, 0, -1) != KAFKA_OK)
        fprintf(stderr, "%s\n", kafka_last_error());
    for (size_t i = 0; i < n; i++)
        fprintf(stderr, "revoked %s-%d\n", tps[i].topic, tps[i].partition);
}

static void handle(const kafka_message_t *m)
{
    printf("%s-%d@%lld %.*s\n", m->topic, m->partition, (long long)m->offset, (int)m->value_len,
           m->value ? (const char *)m->value : "");
}

static kafka_consumer_t *start(const char *bootstrap, const char *group)
{
    char err[512] = "";
    kafka_conf_t *conf = kafka_conf_new();
    kafka_conf_set(conf, "bootstrap.servers", bootstrap, err, sizeof err);
    kafka_conf_set(conf, "group.id", group, err, sizeof err);
    kafka_conf_set(conf, "enable.auto.commit", "false", err, sizeof err);
    kafka_conf_set(conf, "auto.offset.reset", "earliest", err, sizeof err);
    kafka_consumer_t *c = kafka_consumer_new(conf, err, sizeof err);
    kafka_conf_free(conf);
    if (!c)
        fprintf(stderr, "%s\n", err);
    return c;
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        fprintf(stderr, "usage: %s BOOTSTRAP GROUP TOPIC COUNT\n", argv[0]);
        return 2;
    }
    kafka_consumer_t *c = start(argv[1], argv[2]);
    if (!c)
        return 1;
    const char *topics[] = {argv[3]};
    kafka_rebalance_listener_t listener = {.assigned = on_assigned, .revoked = on_revoked};
    kafka_err_t err = kafka_consumer_subscribe(c, topics, 1, &listener);
    for (int left = atoi(argv[4]); left > 0 && err == KAFKA_OK;) {
        kafka_messages_t *m;
        err = kafka_consumer_poll(c, 1000, &m);
        for (size_t i = 0; i < kafka_messages_count(m); i++, left--)
            handle(kafka_messages_at(m, i));
        if (m)
            err = kafka_consumer_commit(c, NULL, 0, -1); /* all of it is worked off */
        kafka_messages_free(m);
    }
    if (err != KAFKA_OK)
        fprintf(stderr, "%s: %s\n", kafka_err_name(err), kafka_last_error());
    kafka_consumer_close(c);
    return err == KAFKA_OK ? 0 : 1;
}
