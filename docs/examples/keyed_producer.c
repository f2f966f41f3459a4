/* keyed_producer.c - records with keys from standard input, "key<TAB>value" a line: all of one key
 * go to one partition, in order, compressed and in batches. Each outcome comes in a callback.
 *
 *   keyed_producer BOOTSTRAP TOPIC < lines */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kafka/producer.h>

struct totals { /* of the callbacks, which come on one thread: the producer's */
    long sent, failed;
};

static void on_delivery(const kafka_delivery_t *d, void *arg)
{
    struct totals *t = arg;
    if (d->err == KAFKA_OK) {
        t->sent++;
    } else {
        t->failed++;
        fprintf(stderr, "%s: %s\n", kafka_err_name(d->err), d->error_message);
    }
}

static kafka_producer_t *start(const char *bootstrap)
{
    static const char *const settings[][2] = {
        {"acks", "all"}, /* with idempotence, which is on: once, and in order */
        {"compression.type", "lz4"},
        {"linger.ms", "5"}, /* wait a little for fuller batches */
        {"delivery.timeout.ms", "60000"},
    };
    char err[512] = "";
    kafka_conf_t *conf = kafka_conf_new();
    kafka_conf_set(conf, "bootstrap.servers", bootstrap, err, sizeof err);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        kafka_conf_set(conf, settings[i][0], settings[i][1], err, sizeof err);
    kafka_producer_t *p = kafka_producer_new(conf, err, sizeof err);
    kafka_conf_free(conf);
    if (!p)
        fprintf(stderr, "%s\n", err);
    return p;
}

/* The producer copies the record: the line may be used again at once. */
static kafka_err_t send_line(kafka_producer_t *p, const char *topic, char *line, size_t n,
                             struct totals *t)
{
    char *tab = memchr(line, '\t', n);
    kafka_record_t r = {.topic = topic,
                        .partition = KAFKA_PARTITION_ANY,
                        .timestamp = KAFKA_TIMESTAMP_NOW,
                        .key = tab ? line : NULL,
                        .key_len = tab ? (size_t)(tab - line) : 0,
                        .value = tab ? tab + 1 : line};
    r.value_len = n - (size_t)((const char *)r.value - line);
    return kafka_producer_send(p, &r, on_delivery, t);
}

int main(int argc, char **argv)
{
    struct totals totals = {0, 0};
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;
    if (argc != 3) {
        fprintf(stderr, "usage: %s BOOTSTRAP TOPIC < lines of key<TAB>value\n", argv[0]);
        return 2;
    }
    kafka_producer_t *p = start(argv[1]);
    if (!p)
        return 1;
    kafka_err_t err = KAFKA_OK;
    while (err == KAFKA_OK && (n = getline(&line, &cap, stdin)) > 0) {
        size_t len = (size_t)n - (line[n - 1] == '\n');
        err = send_line(p, argv[2], line, len, &totals);
    }
    if (err != KAFKA_OK)
        fprintf(stderr, "%s: %s\n", kafka_err_name(err), kafka_last_error());
    free(line);
    kafka_producer_close(p, 60000); /* waits for what is under way; the callbacks are over then */
    printf("%ld sent, %ld failed\n", totals.sent, totals.failed);
    return err == KAFKA_OK && totals.failed == 0 ? 0 : 1;
}
