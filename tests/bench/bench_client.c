/* bench_client.c - the client library's speed: sends records to a topic, or reads them back.
 *
 *   bench_client produce BOOTSTRAP TOPIC RECORDS SIZE [key=value]...
 *   bench_client consume BOOTSTRAP TOPIC RECORDS SIZE [key=value]...
 *
 * Prints one line of JSON: MB/s, records/s, CPU seconds per GB, peak memory. bench_rdkafka.c does
 * the same with librdkafka. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <kafka/consumer.h>
#include <kafka/producer.h>

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void report(const char *what, long records, long size, double seconds)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    double bytes = (double)records * (double)size;
    double cpu = (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
                 (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
    printf("{\"client\": \"kafkad\", \"what\": \"%s\", \"mb_s\": %.1f, \"records_s\": %.0f, "
           "\"cpu_s_per_gb\": %.2f, \"rss_mb\": %ld}\n",
           what, bytes / seconds / 1e6, (double)records / seconds, cpu / bytes * 1e9,
           u.ru_maxrss / 1024);
}

static void on_delivery(const kafka_delivery_t *d, void *arg)
{
    if (d->err != KAFKA_OK)
        ++*(long *)arg;
}

static int produce(const kafka_conf_t *conf, const char *topic, long records, long size)
{
    char err[256] = "", *value = malloc((size_t)size);
    long failed = 0;
    kafka_producer_t *p = kafka_producer_new(conf, err, sizeof err);
    if (!p || !value) {
        fprintf(stderr, "%s\n", err);
        return 1;
    }
    for (long i = 0; i < size; i++) /* text that compresses about as logs do */
        value[i] = (char)('a' + (i * 7 + (i >> 5) * 13) % 26);
    double begun = now_s();
    for (long i = 0; i < records; i++) {
        snprintf(value, (size_t)size, "%016lx", (unsigned long)i * 0x9e3779b97f4a7c15u);
        kafka_record_t r = {.topic = topic,
                            .partition = KAFKA_PARTITION_ANY,
                            .timestamp = -1,
                            .value = value,
                            .value_len = (size_t)size};
        if (kafka_producer_send(p, &r, on_delivery, &failed) != KAFKA_OK) {
            fprintf(stderr, "%s\n", kafka_last_error());
            return 1;
        }
    }
    kafka_producer_flush(p, -1);
    double seconds = now_s() - begun;
    kafka_producer_close(p, -1);
    free(value);
    if (failed)
        fprintf(stderr, "%ld failed\n", failed);
    report("produce", records, size, seconds);
    return failed != 0;
}

static kafka_err_t assign_all(kafka_consumer_t *c, const char *topic)
{
    int32_t n;
    kafka_topic_partition_t tps[256];
    kafka_err_t err = kafka_consumer_partition_count(c, topic, &n);
    for (int32_t i = 0; err == KAFKA_OK && i < n && i < 256; i++)
        tps[i] = (kafka_topic_partition_t){topic, i};
    return err == KAFKA_OK ? kafka_consumer_assign(c, tps, (size_t)n) : err;
}

static int consume(const kafka_conf_t *conf, const char *topic, long records, long size)
{
    char err[256] = "";
    unsigned long sum = 0;
    kafka_consumer_t *c = kafka_consumer_new(conf, err, sizeof err);
    if (!c || assign_all(c, topic) != KAFKA_OK) {
        fprintf(stderr, "%s %s\n", err, kafka_last_error());
        return 1;
    }
    double begun = now_s();
    for (long got = 0; got < records;) {
        kafka_messages_t *m;
        if (kafka_consumer_poll(c, 10000, &m) != KAFKA_OK || !m) {
            fprintf(stderr, "%ld records, then none: %s\n", got, kafka_last_error());
            return 1;
        }
        size_t n = kafka_messages_count(m);
        for (size_t i = 0; i < n; i++) /* as an application would look at it */
            sum +=
                kafka_messages_at(m, i)->value_len + *(const char *)kafka_messages_at(m, i)->value;
        got += (long)n;
        kafka_messages_free(m);
    }
    double seconds = now_s() - begun;
    kafka_consumer_close(c);
    report("consume", records, size, seconds);
    return sum == 0;
}

int main(int argc, char **argv)
{
    char err[256];
    if (argc < 6)
        return 2;
    kafka_conf_t *conf = kafka_conf_new();
    kafka_conf_set(conf, "bootstrap.servers", argv[2], err, sizeof err);
    kafka_conf_set(conf, "auto.offset.reset", "earliest", err, sizeof err);
    for (int i = 6; i < argc; i++) {
        char *value = strchr(argv[i], '=');
        if (!value)
            return 2;
        *value++ = 0;
        if (kafka_conf_set(conf, argv[i], value, err, sizeof err) != KAFKA_OK) {
            fprintf(stderr, "%s\n", err);
            return 2;
        }
    }
    int status = strcmp(argv[1], "produce") == 0
                     ? produce(conf, argv[3], atol(argv[4]), atol(argv[5]))
                     : consume(conf, argv[3], atol(argv[4]), atol(argv[5]));
    kafka_conf_free(conf);
    return status;
}
