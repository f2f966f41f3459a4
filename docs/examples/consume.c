/* consume.c - prints the first records of a topic's partition 0.
 *
 *   cc consume.c $(pkg-config --cflags --libs kafkad-client) -o consume
 *   ./consume 127.0.0.1:9092 hello 3 */
#include <kafka/consumer.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    char err[256];
    if (argc != 4) {
        fprintf(stderr, "usage: %s host:port topic count\n", argv[0]);
        return 1;
    }
    kafka_conf_t *conf = kafka_conf_new();
    kafka_conf_set(conf, "bootstrap.servers", argv[1], err, sizeof err);
    kafka_conf_set(conf, "auto.offset.reset", "earliest", err, sizeof err);
    kafka_consumer_t *c = kafka_consumer_new(conf, err, sizeof err);
    kafka_conf_free(conf);
    if (!c) {
        fprintf(stderr, "%s\n", err);
        return 1;
    }
    kafka_topic_partition_t from = {argv[2], 0};
    kafka_err_t rc = kafka_consumer_assign(c, &from, 1);
    for (long left = atol(argv[3]); left > 0 && rc == KAFKA_OK;) {
        kafka_messages_t *m;
        rc = kafka_consumer_poll(c, 10000, &m);
        if (rc == KAFKA_OK && !m) {
            fprintf(stderr, "nothing for 10 s\n");
            break;
        }
        for (size_t i = 0; i < kafka_messages_count(m) && left > 0; i++, left--) {
            const kafka_message_t *one = kafka_messages_at(m, i);
            printf("%lld %.*s\n", (long long)one->offset, (int)one->value_len, (char *)one->value);
        }
        kafka_messages_free(m);
    }
    if (rc != KAFKA_OK)
        fprintf(stderr, "%s: %s\n", kafka_err_name(rc), kafka_last_error());
    kafka_consumer_close(c);
    return rc == KAFKA_OK ? 0 : 1;
}
