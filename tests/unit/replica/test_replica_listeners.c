/* What others of the broker are told of changed roles and deleted topics. */
#include "bench.h"
#include "protocol/msg/update_metadata.h"
#include "replica/replica_manager.h"

static const int32_t two[] = {1, 2};

struct news {
    struct replica_listener l;
    char text[256];
};

static void add(struct news *n, const char *what, struct str topic, int32_t a, int32_t b)
{
    size_t at = strlen(n->text);
    snprintf(n->text + at, sizeof(n->text) - at, "%s %.*s-%d %d; ", what, STR_ARG(topic), a, b);
}

static void led(struct replica_listener *l, struct topic_partition tp, int32_t epoch)
{
    add(container_of(l, struct news, l), "led", tp.topic, tp.partition, epoch);
}

static void resigned(struct replica_listener *l, struct topic_partition tp, int32_t epoch)
{
    add(container_of(l, struct news, l), "resigned", tp.topic, tp.partition, epoch);
}

static void deleted(struct replica_listener *l, struct str topic, const int32_t *partitions, int n)
{
    for (int i = 0; i < n; i++)
        add(container_of(l, struct news, l), "deleted", topic, partitions[i], n);
}

static struct lead lead_of(int32_t leader, int32_t epoch)
{
    return (struct lead){.leader = leader,
                         .leader_epoch = epoch,
                         .isr = two,
                         .isr_n = 2,
                         .replicas = two,
                         .replicas_n = 2,
                         .is_new = true};
}

static void roles_are_told_in_order(void **state)
{
    struct bench b;
    struct news first = {.l = {.led = led, .resigned = resigned, .deleted = deleted}},
                second = first;
    bench_open(&b);
    replica_manager_listen(b.m, &first.l);
    replica_manager_listen(b.m, &second.l);
    bench_lead(&b, "t", 0, lead_of(1, 0));
    bench_lead(&b, "t", 0, lead_of(1, 0)); /* said twice, told once */
    bench_lead(&b, "t", 0, lead_of(1, 2));
    bench_lead(&b, "t", 0, lead_of(1, 1)); /* old */
    bench_lead(&b, "t", 0, lead_of(2, 3));
    bench_lead(&b, "t", 0, lead_of(1, 4));
    bench_stop(&b, "t", 0, 4, false);
    bench_stop(&b, "t", 0, 4, true);
    assert_string_equal(first.text, "led t-0 0; led t-0 2; resigned t-0 3; led t-0 4; "
                                    "resigned t-0 -1; ");
    assert_string_equal(second.text, first.text);
    bench_close(&b);
}

static void deletions_are_told_by_topic(void **state)
{
    for (int version = 4; version <= 8; version += 2) {
        struct bench b;
        struct news n = {.l = {.deleted = deleted}};
        bench_open(&b);
        replica_manager_listen(b.m, &n.l);
        struct update_metadata_request_partition_state v[4];
        struct update_metadata_request_topic_state topics[2];
        struct update_metadata_request r;
        update_metadata_request_init(&r);
        r.broker_epoch = -1;
        for (int i = 0; i < 4; i++) {
            update_metadata_request_partition_state_init(&v[i]);
            v[i].topic_name = i < 3 ? STR_LIT("t") : STR_LIT("u");
            v[i].partition_index = i % 3;
            v[i].leader = i == 1 ? 1 : -2; /* t-1 lives */
            v[i].isr.v = v[i].replicas.v = (int32_t *)two;
            v[i].isr.n = v[i].replicas.n = 2;
        }
        for (int i = 0; i < 2; i++) {
            update_metadata_request_topic_state_init(&topics[i]);
            topics[i].topic_name = i ? STR_LIT("u") : STR_LIT("t");
            topics[i].partition_states.v = i ? v + 3 : v;
            topics[i].partition_states.n = i ? 1 : 3;
        }
        if (version < 5) {
            r.ungrouped_partition_states.v = v;
            r.ungrouped_partition_states.n = 4;
        } else {
            r.topic_states.v = topics;
            r.topic_states.n = 2;
        }
        assert_int_equal(replica_manager_update_metadata(b.m, &r), KERR_NONE);
        assert_string_equal(n.text, "deleted t-0 2; deleted t-2 2; deleted u-0 1; ");
        bench_close(&b);
    }
}

/* The controller's requests about a replica whose dir has failed come to nothing, so this is all
 * that its coordinator will hear: it answered from its memory until the restart (found by chaos).
 */
static void a_failed_dir_is_told_of_its_own(void **state)
{
    struct bench b;
    struct news n = {.l = {.led = led, .resigned = resigned}};
    enum kerr why;
    bench_open_dirs(&b, 2);
    replica_manager_listen(b.m, &n.l);
    bench_lead(&b, "t", 0, lead_of(1, 3));
    bench_lead(&b, "t", 1, lead_of(1, 3));
    struct partition *p = replica_manager_find(b.m, bench_tp("t", 0), &why);
    struct partition *q = replica_manager_find(b.m, bench_tp("t", 1), &why);
    struct log *log = partition_log(p), *other = partition_log(q);
    assert_ptr_not_equal(log_dir_of(log), log_dir_of(other));
    n.text[0] = 0;
    log_dir_fail(log_dir_of(log), EIO, "test");
    log_unref(log);
    log_unref(other);
    partition_unref(p);
    partition_unref(q);
    sim_executor_drain(b.sim);
    assert_string_equal(n.text, "resigned t-0 3; ");
    bench_lead(&b, "t", 0, lead_of(2, 4)); /* fails, as there is no log */
    assert_null(strstr(n.text, "led"));
    bench_close(&b);
}

UNIT_MAIN(unit_test(roles_are_told_in_order), unit_test(deletions_are_told_by_topic),
          unit_test(a_failed_dir_is_told_of_its_own))
