/* exactly_once.c - reads a topic, changes each record, writes it to another topic: each record of
 * the one leads to exactly one of the other, whatever crashes when. What is written and how far was
 * read are committed together, in one transaction per poll.
 *
 *   exactly_once BOOTSTRAP NAME FROM TO COUNT
 *
 * NAME is the group; NAME with the process's number in a fleet (here: -0) is the transactional.id,
 * the same after a restart. Ends after at least COUNT records. Read TO with
 * isolation.level=read_committed. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kafka/consumer.h>
#include <kafka/producer.h>

struct worker {
    kafka_consumer_t *c;
    kafka_producer_t *p;
    const char *to;
};

static kafka_conf_t *settings(const char *const (*v)[2], size_t n)
{
    char err[512];
    kafka_conf_t *conf = kafka_conf_new();
    for (size_t i = 0; i < n; i++)
        if (kafka_conf_set(conf, v[i][0], v[i][1], err, sizeof err) != KAFKA_OK)
            fprintf(stderr, "%s\n", err);
    return conf;
}

static int start(struct worker *w, const char *bootstrap, const char *name)
{
    char id[256], err[512] = "";
    snprintf(id, sizeof id, "%s-0", name);
    const char *const reading[][2] = {{"bootstrap.servers", bootstrap},
                                      {"group.id", name},
                                      {"enable.auto.commit", "false"}, /* the producer commits */
                                      {"isolation.level", "read_committed"},
                                      {"auto.offset.reset", "earliest"}};
    const char *const writing[][2] = {{"bootstrap.servers", bootstrap}, {"transactional.id", id}};
    kafka_conf_t *r = settings(reading, 5), *s = settings(writing, 2);
    if ((w->c = kafka_consumer_new(r, err, sizeof err)))
        w->p = kafka_producer_new(s, err, sizeof err);
    kafka_conf_free(r);
    kafka_conf_free(s);
    if (!w->p)
        fprintf(stderr, "%s\n", err);
    return w->p != NULL;
}

/* The offset behind the message is where its partition goes on. */
static size_t note_offset(kafka_offset_t *v, size_t n, const kafka_message_t *m)
{
    size_t i = 0;
    while (i < n && (v[i].partition != m->partition || strcmp(v[i].topic, m->topic) != 0))
        i++;
    v[i] = (kafka_offset_t){.topic = m->topic,
                            .partition = m->partition,
                            .leader_epoch = m->leader_epoch,
                            .offset = m->offset + 1};
    return i == n ? n + 1 : n;
}

static kafka_err_t convert(struct worker *w, const kafka_message_t *m)
{
    char *upper = malloc(m->value_len + 1);
    for (size_t i = 0; i < m->value_len; i++)
        upper[i] = (char)toupper(((const unsigned char *)m->value)[i]);
    kafka_record_t r = {.topic = w->to,
                        .partition = KAFKA_PARTITION_ANY,
                        .timestamp = m->timestamp,
                        .key = m->key,
                        .key_len = m->key_len,
                        .value = m->value ? upper : NULL,
                        .value_len = m->value_len};
    kafka_err_t err = kafka_producer_send(w->p, &r, NULL, NULL); /* failures: see commit */
    free(upper);
    return err;
}

/* A commit that is over its time goes on: its outcome is waited for. */
static kafka_err_t commit(struct worker *w)
{
    kafka_err_t err;
    do
        err = kafka_producer_commit_transaction(w->p, -1);
    while (err == KAFKA_ERR_TIMED_OUT && kafka_producer_transaction_status(w->p) == KAFKA_TXN_FINE);
    return err;
}

/* One transaction for what a poll gave: all of it and its offsets, or nothing. */
static kafka_err_t work_off(struct worker *w, const kafka_messages_t *m)
{
    size_t n = kafka_messages_count(m), offsets_n = 0;
    kafka_offset_t *offsets = calloc(n, sizeof *offsets);
    kafka_group_metadata_t *group = kafka_consumer_group_metadata(w->c);
    kafka_err_t err = kafka_producer_begin_transaction(w->p);
    for (size_t i = 0; i < n && err == KAFKA_OK; i++) {
        err = convert(w, kafka_messages_at(m, i));
        offsets_n = note_offset(offsets, offsets_n, kafka_messages_at(m, i));
    }
    if (err == KAFKA_OK)
        err = kafka_producer_send_offsets_to_transaction(w->p, offsets, offsets_n, group, -1);
    if (err == KAFKA_OK)
        err = commit(w);
    kafka_group_metadata_free(group);
    free(offsets);
    return err;
}

/* Nothing of it has happened: read the same again, as far as it is still ours. */
static kafka_err_t give_back(struct worker *w, const kafka_messages_t *m)
{
    fprintf(stderr, "aborted: %s\n", kafka_last_error());
    for (size_t i = kafka_messages_count(m); i-- > 0;) {
        const kafka_message_t *at = kafka_messages_at(m, i);
        kafka_consumer_seek(w->c, at->topic, at->partition, at->offset);
    }
    return kafka_producer_abort_transaction(w->p, -1);
}

static kafka_err_t run(struct worker *w, const char *from, int count)
{
    kafka_err_t err = kafka_producer_init_transactions(w->p, -1);
    if (err == KAFKA_OK)
        err = kafka_consumer_subscribe(w->c, &from, 1, NULL);
    while (count > 0 && err == KAFKA_OK) {
        kafka_messages_t *m;
        err = kafka_consumer_poll(w->c, 1000, &m);
        if (!m)
            continue;
        err = work_off(w, m);
        if (err == KAFKA_OK)
            count -= (int)kafka_messages_count(m);
        else if (kafka_producer_transaction_status(w->p) != KAFKA_TXN_FATAL)
            err = give_back(w, m);
        kafka_messages_free(m);
    }
    return err;
}

int main(int argc, char **argv)
{
    struct worker w = {.to = argc == 6 ? argv[4] : NULL};
    if (argc != 6) {
        fprintf(stderr, "usage: %s BOOTSTRAP NAME FROM TO COUNT\n", argv[0]);
        return 2;
    }
    kafka_err_t err = KAFKA_ERR_INVALID_ARG;
    if (start(&w, argv[1], argv[2]) && (err = run(&w, argv[3], atoi(argv[5]))) != KAFKA_OK)
        fprintf(stderr, "%s: %s\n", kafka_err_name(err), kafka_last_error());
    kafka_producer_close(w.p, 30000);
    kafka_consumer_close(w.c);
    return err == KAFKA_OK ? 0 : 1;
}
