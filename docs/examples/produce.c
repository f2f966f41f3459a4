/* produce.c - sends each argument as a record.
 *
 *   cc produce.c $(pkg-config --cflags --libs kafkad-client) -o produce
 *   ./produce 127.0.0.1:9092 hello one two three */
#include <kafka/producer.h>
#include <stdio.h>
#include <string.h>

static void on_delivery(const kafka_delivery_t *d, void *arg)
{
    int *failed = arg; /* callbacks come on one thread, the producer's */
    if (d->err == KAFKA_OK) {
        printf("%s-%d at offset %lld\n", d->topic, d->partition, (long long)d->offset);
        return;
    }
    fprintf(stderr, "%s: %s\n", kafka_err_name(d->err), d->error_message);
    (*failed)++;
}

int main(int argc, char **argv)
{
    char err[256];
    int failed = 0;
    if (argc < 4) {
        fprintf(stderr, "usage: %s host:port topic value...\n", argv[0]);
        return 1;
    }
    kafka_conf_t *conf = kafka_conf_new();
    kafka_conf_set(conf, "bootstrap.servers", argv[1], err, sizeof err);
    kafka_producer_t *p = kafka_producer_new(conf, err, sizeof err);
    kafka_conf_free(conf);
    if (!p) {
        fprintf(stderr, "%s\n", err);
        return 1;
    }
    for (int i = 3; i < argc; i++) {
        kafka_record_t r = {.topic = argv[2],
                            .partition = KAFKA_PARTITION_ANY,
                            .timestamp = KAFKA_TIMESTAMP_NOW,
                            .value = argv[i],
                            .value_len = strlen(argv[i])};
        kafka_err_t rc = kafka_producer_send(p, &r, on_delivery, &failed);
        if (rc != KAFKA_OK) {
            fprintf(stderr, "%s: %s\n", kafka_err_name(rc), kafka_last_error());
            failed++;
        }
    }
    kafka_producer_flush(p, -1);
    kafka_producer_close(p, -1);
    return failed ? 1 : 0;
}
