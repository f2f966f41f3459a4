/* transactions.c - a transactional producer that does what lines on its input say. For tests of
 * transactions on real brokers.
 *
 *   transactions key=value...          settings
 *
 * Input:  init | begin | send T P VALUE | flush | offset GROUP T P OFFSET | commit | abort | quit
 * (no close) | close Output: an answer to each line: its word, the error's name, the status (fine,
 * abort, fatal); for each record "delivered VALUE ERROR". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kafka/producer.h>

static const char *const statuses[] = {"fine", "abort", "fatal"};

static void on_delivery(const kafka_delivery_t *d, void *arg)
{
    printf("delivered %s %s\n", (char *)arg, kafka_err_name(d->err));
    free(arg);
}

static kafka_err_t send_value(kafka_producer_t *p, const char *topic, int partition,
                              const char *value)
{
    char *tag = strdup(value);
    kafka_record_t r = {.topic = topic,
                        .partition = partition,
                        .timestamp = KAFKA_TIMESTAMP_NOW,
                        .value = value,
                        .value_len = strlen(value)};
    kafka_err_t err = kafka_producer_send(p, &r, on_delivery, tag);
    if (err != KAFKA_OK)
        free(tag);
    return err;
}

static kafka_err_t send_offset(kafka_producer_t *p, const char *group, const char *topic,
                               int partition, int64_t offset)
{
    kafka_offset_t o = {
        .topic = topic, .partition = partition, .offset = offset, .leader_epoch = -1};
    kafka_group_metadata_t *g = kafka_group_metadata_new(group);
    kafka_err_t err = kafka_producer_send_offsets_to_transaction(p, &o, 1, g, -1);
    kafka_group_metadata_free(g);
    return err;
}

static kafka_err_t obey(kafka_producer_t *p, char *line)
{
    char *w[6] = {line, "", "", "", "", ""};
    int n = 0;
    for (char *save, *at = strtok_r(line, " \n", &save); at && n < 6;
         at = strtok_r(NULL, " \n", &save))
        w[n++] = at;
    if (strcmp(w[0], "init") == 0)
        return kafka_producer_init_transactions(p, -1);
    if (strcmp(w[0], "begin") == 0)
        return kafka_producer_begin_transaction(p);
    if (strcmp(w[0], "send") == 0)
        return send_value(p, w[1], atoi(w[2]), w[3]);
    if (strcmp(w[0], "flush") == 0)
        return kafka_producer_flush(p, -1);
    if (strcmp(w[0], "offset") == 0)
        return send_offset(p, w[1], w[2], atoi(w[3]), atoll(w[4]));
    if (strcmp(w[0], "commit") == 0)
        return kafka_producer_commit_transaction(p, -1);
    if (strcmp(w[0], "abort") == 0)
        return kafka_producer_abort_transaction(p, -1);
    if (strcmp(w[0], "quit") == 0)
        _exit(0);
    return KAFKA_ERR_INVALID_ARG;
}

int main(int argc, char **argv)
{
    char err[512], line[1024];
    kafka_conf_t *conf = kafka_conf_new();
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 1; i < argc; i++) {
        char *eq = strchr(argv[i], '=');
        *eq = 0;
        if (kafka_conf_set(conf, argv[i], eq + 1, err, sizeof err) != KAFKA_OK) {
            fprintf(stderr, "%s\n", err);
            return 1;
        }
    }
    kafka_producer_t *p = kafka_producer_new(conf, err, sizeof err);
    kafka_conf_free(conf);
    if (!p) {
        fprintf(stderr, "%s\n", err);
        return 1;
    }
    while (fgets(line, sizeof line, stdin) && strncmp(line, "close", 5) != 0) {
        kafka_err_t rc = obey(p, line);
        if (rc != KAFKA_OK)
            fprintf(stderr, "%s\n", kafka_last_error());
        printf("%s %s %s\n", line, kafka_err_name(rc),
               statuses[kafka_producer_transaction_status(p)]);
    }
    kafka_producer_close(p, 30000);
    printf("closed\n");
    return 0;
}
