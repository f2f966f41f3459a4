/* read_all.c - everything that a topic holds now, from the beginning, without a group; then the
 * end.
 *
 *   read_all BOOTSTRAP TOPIC */
#include <stdio.h>
#include <stdlib.h>

#include <kafka/consumer.h>

enum { TIMEOUT_MS = 30000 };

struct reading {
    kafka_consumer_t *c;
    kafka_topic_partition_t *parts;
    int64_t *ends; /* where each partition ended when we began */
    int32_t n;
};

/* All partitions, from their beginnings to their present ends. */
static kafka_err_t begin(struct reading *r, const char *topic)
{
    kafka_err_t err = kafka_consumer_partition_count(r->c, topic, &r->n);
    if (err != KAFKA_OK)
        return err;
    size_t n = (size_t)r->n;
    int64_t *when = calloc(n, sizeof *when);
    kafka_err_t *errs = calloc(n, sizeof *errs);
    r->parts = calloc(n, sizeof *r->parts);
    r->ends = calloc(n, sizeof *r->ends);
    for (size_t i = 0; i < n; i++) {
        r->parts[i] = (kafka_topic_partition_t){topic, (int32_t)i};
        when[i] = KAFKA_OFFSET_END;
    }
    err = kafka_consumer_list_offsets(r->c, r->parts, when, n, TIMEOUT_MS, r->ends, NULL, errs);
    for (size_t i = 0; err == KAFKA_OK && i < n; i++)
        err = errs[i];
    free(when);
    free(errs);
    if (err == KAFKA_OK)
        err = kafka_consumer_assign(r->c, r->parts, n);
    for (size_t i = 0; err == KAFKA_OK && i < n; i++)
        err = kafka_consumer_seek(r->c, topic, (int32_t)i, KAFKA_OFFSET_BEGINNING);
    return err;
}

/* Positions, not the records seen, tell: what compaction removed does not come. */
static int at_end(struct reading *r)
{
    for (int32_t i = 0; i < r->n; i++) {
        int64_t position;
        if (kafka_consumer_position(r->c, r->parts[i].topic, i, TIMEOUT_MS, &position) !=
                KAFKA_OK ||
            position < r->ends[i])
            return 0;
    }
    return 1;
}

static void print(const kafka_message_t *m)
{
    printf("%d %lld %.*s %.*s", m->partition, (long long)m->offset, (int)m->key_len,
           m->key ? (const char *)m->key : "", (int)m->value_len,
           m->value ? (const char *)m->value : "");
    for (size_t i = 0; i < m->headers_n; i++)
        printf(" %s=%.*s", m->headers[i].key, (int)m->headers[i].value_len,
               m->headers[i].value ? (const char *)m->headers[i].value : "");
    printf("\n");
}

int main(int argc, char **argv)
{
    char err[512] = "";
    struct reading r = {0};
    if (argc != 3) {
        fprintf(stderr, "usage: %s BOOTSTRAP TOPIC\n", argv[0]);
        return 2;
    }
    kafka_conf_t *conf = kafka_conf_new();
    kafka_conf_set(conf, "bootstrap.servers", argv[1], err, sizeof err);
    r.c = kafka_consumer_new(conf, err, sizeof err);
    kafka_conf_free(conf);
    if (!r.c) {
        fprintf(stderr, "%s\n", err);
        return 1;
    }
    kafka_err_t rc = begin(&r, argv[2]);
    while (rc == KAFKA_OK && !at_end(&r)) {
        kafka_messages_t *m;
        rc = kafka_consumer_poll(r.c, 1000, &m);
        for (size_t i = 0; i < kafka_messages_count(m); i++)
            print(kafka_messages_at(m, i));
        kafka_messages_free(m);
    }
    if (rc != KAFKA_OK)
        fprintf(stderr, "%s: %s\n", kafka_err_name(rc), kafka_last_error());
    kafka_consumer_close(r.c);
    free(r.parts);
    free(r.ends);
    return rc == KAFKA_OK ? 0 : 1;
}
