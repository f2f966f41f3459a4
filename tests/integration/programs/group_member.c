/* group_member.c - a consumer that does what lines on its input say, and tells what happens, one
 * line an event. For tests of groups on real brokers.
 *
 *   group_member key=value...          settings; "assignor=custom" adds one of its own
 *
 * Input:  subscribe T [T]... | pattern RE | assign T P | unsubscribe | commit | commit_async |
 *         committed T P | position T P | seek T P OFFSET | pause T P | resume T P | lag T P |
 *         hang MS (no poll) | rebalance | quit (no close) | close
 * Output: assigned T-P..., revoked T-P..., lost T-P..., record T-P OFFSET VALUE, and an answer to
 *         each line: its word, then the error's name or the value. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <kafka/consumer.h>

static void print_set(const char *what, const kafka_topic_partition_t *tps, size_t n)
{
    printf("%s", what);
    for (size_t i = 0; i < n; i++)
        printf(" %s-%d", tps[i].topic, tps[i].partition);
    printf("\n");
}

static void on_assigned(kafka_consumer_t *c, const kafka_topic_partition_t *tps, size_t n,
                        void *arg)
{
    print_set("assigned", tps, n);
}

static void on_revoked(kafka_consumer_t *c, const kafka_topic_partition_t *tps, size_t n, void *arg)
{
    print_set("revoked", tps, n);
}

static void on_lost(kafka_consumer_t *c, const kafka_topic_partition_t *tps, size_t n, void *arg)
{
    print_set("lost", tps, n);
}

static const kafka_rebalance_listener_t listener = {on_assigned, on_revoked, on_lost, NULL};

static void on_committed(kafka_consumer_t *c, kafka_err_t err, const kafka_offset_t *offsets,
                         size_t n, void *arg)
{
    printf("committed_async %s %zu\n", kafka_err_name(err), n);
}

/* All to the last member, so that a test can tell it from others. */
static kafka_err_t assign_last(const kafka_group_member_t *members, size_t members_n,
                               const kafka_topic_size_t *topics, size_t topics_n,
                               kafka_assignment_t *out, void *arg)
{
    for (size_t t = 0; t < topics_n; t++)
        for (int32_t p = 0; p < topics[t].partitions; p++)
            kafka_assignment_add(out, members_n - 1, topics[t].name, p);
    return KAFKA_OK;
}

static const char *name(kafka_err_t err)
{
    return err == KAFKA_OK ? "NONE" : kafka_err_name(err);
}

static int32_t number(const char *text)
{
    return text ? (int32_t)atoi(text) : -1;
}

static void committed(kafka_consumer_t *c, const char *topic, int32_t partition)
{
    kafka_topic_partition_t tp = {topic, partition};
    kafka_offset_list_t *list;
    kafka_err_t err = kafka_consumer_committed(c, &tp, 1, -1, &list);
    if (err != KAFKA_OK)
        printf("committed %s\n", name(err));
    else
        printf("committed %lld\n", list->n ? (long long)list->v[0].offset : -2);
    kafka_offset_list_free(list);
}

/* By its address: arguments are worked out in no order. */
static void print_value(const char *what, kafka_err_t err, const int64_t *value)
{
    printf("%s %s %lld\n", what, name(err), (long long)*value);
}

/* One line. false: the end. */
static int obey(kafka_consumer_t *c, char *line)
{
    const char *word[16] = {0};
    size_t n = 0;
    for (char *at = strtok(line, " \n"); at && n < 16; at = strtok(NULL, " \n"))
        word[n++] = at;
    if (n == 0)
        return 1;
    const char *topic = word[1];
    int32_t partition = number(word[2]);
    kafka_topic_partition_t tp = {topic, partition};
    int64_t value = -1;
    if (strcmp(word[0], "subscribe") == 0)
        printf("subscribe %s\n", name(kafka_consumer_subscribe(c, word + 1, n - 1, &listener)));
    else if (strcmp(word[0], "pattern") == 0)
        printf("pattern %s\n", name(kafka_consumer_subscribe_pattern(c, topic, &listener)));
    else if (strcmp(word[0], "assign") == 0)
        printf("assign %s\n", name(kafka_consumer_assign(c, &tp, 1)));
    else if (strcmp(word[0], "unsubscribe") == 0)
        printf("unsubscribe %s\n", name(kafka_consumer_unsubscribe(c)));
    else if (strcmp(word[0], "commit") == 0)
        printf("commit %s\n", name(kafka_consumer_commit(c, NULL, 0, -1)));
    else if (strcmp(word[0], "commit_async") == 0)
        printf("commit_async %s\n",
               name(kafka_consumer_commit_async(c, NULL, 0, on_committed, NULL)));
    else if (strcmp(word[0], "committed") == 0)
        committed(c, topic, partition);
    else if (strcmp(word[0], "position") == 0)
        print_value("position", kafka_consumer_position(c, topic, partition, 30000, &value),
                    &value);
    else if (strcmp(word[0], "seek") == 0)
        printf("seek %s\n", name(kafka_consumer_seek(c, topic, partition, atoll(word[3]))));
    else if (strcmp(word[0], "pause") == 0)
        printf("pause %s\n", name(kafka_consumer_pause(c, topic, partition)));
    else if (strcmp(word[0], "resume") == 0)
        printf("resume %s\n", name(kafka_consumer_resume(c, topic, partition)));
    else if (strcmp(word[0], "lag") == 0)
        print_value("lag", kafka_consumer_lag(c, topic, partition, &value), &value);
    else if (strcmp(word[0], "hang") == 0)
        printf("hang %d\n", poll(NULL, 0, atoi(topic)));
    else if (strcmp(word[0], "rebalance") == 0)
        printf("rebalance %s\n", name(kafka_consumer_enforce_rebalance(c)));
    else if (strcmp(word[0], "quit") == 0)
        _exit(0);
    else
        return 0;
    return 1;
}

static int has_line(void)
{
    struct pollfd in = {0, POLLIN, 0};
    return poll(&in, 1, 0) > 0;
}

static void poll_once(kafka_consumer_t *c)
{
    kafka_messages_t *m;
    kafka_err_t err = kafka_consumer_poll(c, 20, &m);
    if (err == KAFKA_ERR_STATE) { /* nothing subscribed to yet */
        poll(NULL, 0, 20);
        return;
    }
    if (err != KAFKA_OK)
        printf("poll %s %s\n", name(err), kafka_last_error());
    for (size_t i = 0; i < kafka_messages_count(m); i++) {
        const kafka_message_t *r = kafka_messages_at(m, i);
        printf("record %s-%d %lld %.*s\n", r->topic, r->partition, (long long)r->offset,
               (int)r->value_len, r->value ? (const char *)r->value : "");
    }
    kafka_messages_free(m);
}

static void on_log(int level, const char *line, void *arg)
{
    if (level >= atoi(arg))
        fprintf(stderr, "%d %s\n", level, line);
}

int main(int argc, char **argv)
{
    char err[512], line[4096];
    const char *level = getenv("GROUP_MEMBER_LOG");
    kafka_conf_t *conf = kafka_conf_new();
    kafka_assignor_t custom = {.name = "custom", .assign = assign_last};
    kafka_log_set_sink(on_log, (void *)(level ? level : "2"));
    setvbuf(stdin, NULL, _IONBF, 0); /* what poll sees is what is there */
    setvbuf(stdout, NULL, _IOLBF, 0);
    kafka_conf_add_assignor(conf, &custom);
    for (int i = 1; i < argc; i++) {
        char *value = strchr(argv[i], '=');
        if (value)
            *value++ = 0;
        if (!value || kafka_conf_set(conf, argv[i], value, err, sizeof err) != KAFKA_OK)
            return 2;
    }
    kafka_consumer_t *c = kafka_consumer_new(conf, err, sizeof err);
    kafka_conf_free(conf);
    if (!c) {
        printf("refused %s\n", err);
        return 1;
    }
    for (;;) {
        if (has_line() && (!fgets(line, sizeof line, stdin) || !obey(c, line)))
            break;
        poll_once(c);
    }
    kafka_consumer_close(c);
    printf("closed\n");
    return 0;
}
