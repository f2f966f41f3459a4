/* bench_rdkafka.c - bench_client.c's work done with librdkafka, to compare. Built where librdkafka
 * is installed; settings are librdkafka's. */
#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

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
    printf("{\"client\": \"librdkafka\", \"what\": \"%s\", \"mb_s\": %.1f, \"records_s\": %.0f, "
           "\"cpu_s_per_gb\": %.2f, \"rss_mb\": %ld}\n",
           what, bytes / seconds / 1e6, (double)records / seconds, cpu / bytes * 1e9,
           u.ru_maxrss / 1024);
}

static void on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *m, void *arg)
{
    if (m->err)
        ++*(long *)arg;
}

static int produce(rd_kafka_conf_t *conf, const char *topic, long records, long size)
{
    char err[256] = "", *value = malloc((size_t)size);
    long failed = 0;
    rd_kafka_conf_set_opaque(conf, &failed);
    rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, err, sizeof err);
    rd_kafka_topic_t *t = rk ? rd_kafka_topic_new(rk, topic, NULL) : NULL;
    if (!t || !value) {
        fprintf(stderr, "%s\n", err);
        return 1;
    }
    for (long i = 0; i < size; i++)
        value[i] = (char)('a' + (i * 7 + (i >> 5) * 13) % 26);
    double begun = now_s();
    for (long i = 0; i < records; i++) {
        snprintf(value, (size_t)size, "%016lx", (unsigned long)i * 0x9e3779b97f4a7c15u);
        while (rd_kafka_produce(t, RD_KAFKA_PARTITION_UA, RD_KAFKA_MSG_F_COPY, value, (size_t)size,
                                NULL, 0, NULL) != 0)
            rd_kafka_poll(rk, 10);
        if (i % 1000 == 0)
            rd_kafka_poll(rk, 0);
    }
    rd_kafka_flush(rk, 60000);
    double seconds = now_s() - begun;
    rd_kafka_topic_destroy(t);
    rd_kafka_destroy(rk);
    free(value);
    report("produce", records, size, seconds);
    return failed != 0;
}

static int consume(rd_kafka_conf_t *conf, const char *topic, long records, long size)
{
    enum { MOST = 500 };
    char err[256] = "";
    unsigned long sum = 0;
    rd_kafka_conf_set(conf, "group.id", "bench", err, sizeof err);
    rd_kafka_conf_set(conf, "enable.auto.commit", "false", err, sizeof err);
    rd_kafka_conf_set(conf, "auto.offset.reset", "earliest", err, sizeof err);
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, err, sizeof err);
    const struct rd_kafka_metadata *md;
    rd_kafka_topic_t *t = rk ? rd_kafka_topic_new(rk, topic, NULL) : NULL;
    if (!t || rd_kafka_metadata(rk, 0, t, &md, 10000) != 0) {
        fprintf(stderr, "%s\n", err);
        return 1;
    }
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(8);
    for (int i = 0; i < md->topics[0].partition_cnt; i++)
        rd_kafka_topic_partition_list_add(list, topic, i)->offset = RD_KAFKA_OFFSET_BEGINNING;
    rd_kafka_metadata_destroy(md);
    rd_kafka_poll_set_consumer(rk);
    rd_kafka_assign(rk, list);
    rd_kafka_queue_t *q = rd_kafka_queue_get_consumer(rk);
    rd_kafka_message_t *m[MOST];
    double begun = now_s();
    for (long got = 0; got < records;) {
        ssize_t n = rd_kafka_consume_batch_queue(q, 1000, m, MOST);
        for (ssize_t i = 0; i < n; i++) {
            if (!m[i]->err) {
                sum += m[i]->len + *(const char *)m[i]->payload;
                got++;
            }
            rd_kafka_message_destroy(m[i]);
        }
    }
    double seconds = now_s() - begun;
    rd_kafka_queue_destroy(q);
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_topic_destroy(t);
    rd_kafka_consumer_close(rk);
    rd_kafka_destroy(rk);
    report("consume", records, size, seconds);
    return sum == 0;
}

int main(int argc, char **argv)
{
    char err[256];
    if (argc < 6)
        return 2;
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_conf_set(conf, "bootstrap.servers", argv[2], err, sizeof err);
    for (int i = 6; i < argc; i++) {
        char *value = strchr(argv[i], '=');
        if (!value)
            return 2;
        *value++ = 0;
        if (rd_kafka_conf_set(conf, argv[i], value, err, sizeof err) != RD_KAFKA_CONF_OK) {
            fprintf(stderr, "%s\n", err);
            return 2;
        }
    }
    return strcmp(argv[1], "produce") == 0 ? produce(conf, argv[3], atol(argv[4]), atol(argv[5]))
                                           : consume(conf, argv[3], atol(argv[4]), atol(argv[5]));
}
