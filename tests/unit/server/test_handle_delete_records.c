/* DeleteRecords: waiting for replicas, and clients that do not wait for the answer. */
#include "protocol/msg/delete_records.h"

#include "handler_bench.h"

/* Offset 1 of t-0, with as much time as a client can give. */
static void send_delete(struct broker *b, struct call *c)
{
    struct delete_records_request body;
    struct delete_records_request_topic topic;
    struct delete_records_request_partition part;
    delete_records_request_init(&body);
    delete_records_request_topic_init(&topic);
    delete_records_request_partition_init(&part);
    part.offset = 1;
    topic.name = STR_LIT("t");
    topic.partitions.v = &part;
    topic.partitions.n = 1;
    body.topics.v = &topic;
    body.topics.n = 1;
    body.timeout_ms = INT32_MAX;
    call(b, c, API_DELETE_RECORDS, 2, handle_delete_records, &body, "client");
}

/* Leader of t-0 with two records, both committed; replica 2 tells that its log starts at 0. */
static struct partition *open_partition(struct broker *b)
{
    broker_open(b);
    struct partition *t = bench_leader(&b->bench, NUMBERS(1, 2));
    bench_append(&b->bench, t, 2, 1, NULL);
    bench_fetch(&b->bench, t, 2, 2, NULL);
    return t;
}

/* Before the wait for replicas begins (`early`), or during it. */
static void client_that_left_is_not_waited_for(void **state)
{
    for (int early = 0; early < 2; early++) {
        struct broker b;
        struct call c;
        struct partition *t = open_partition(&b);
        send_delete(&b, &c);
        if (!early)
            drain(&b);
        assert_int_equal(c.how, WAITING);
        disconnect(&c);
        drain(&b);
        assert_int_equal(c.how, NO_ANSWER);
        assert_int_equal(atomic_load(&t->waiters_n), 0);
        call_free(&c);
        partition_unref(t);
        broker_close(&b);
    }
}

UNIT_MAIN(unit_test(client_that_left_is_not_waited_for))
