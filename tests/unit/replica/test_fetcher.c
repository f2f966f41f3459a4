/* Followers that fetch: records and marks arrive, logs that have gone apart come together, errors
 * are waited out, sessions stay small. */
#include "replica/partition_follow.h"
#include "sim_source.h"

static struct sim_net net;

static struct sim_node *node(int32_t id)
{
    return &net.nodes[id - 1];
}

static void records_and_the_watermark_arrive(void **state)
{
    sim_net_open(&net, 3, 0);
    sim_net_lead(&net, 0, 1, 0, 0, 7);
    sim_net_drain(&net);
    for (int i = 1; i <= 20; i++) {
        sim_net_append(&net, 1, 0, i);
        sim_net_drain(&net);
    }
    assert_int_equal(sim_net_end(&net, 1, 0), 210);
    for (int32_t id = 2; id <= 3; id++) {
        assert_int_equal(sim_net_end(&net, id, 0), 210);
        assert_true(sim_net_same(&net, 1, id, 0));
    }
    assert_int_equal(sim_net_hw(&net, 1, 0), 210);
    sim_net_advance(&net, 500); /* the watermark comes with the next answer */
    assert_int_equal(sim_net_hw(&net, 2, 0), 210);
    assert_int_equal(sim_net_hw(&net, 3, 0), 210);
    assert_int_equal(node(1)->last_version, 17);
    assert_int_equal(node(1)->full_fetches, 2);
    sim_net_close(&net);
}

/* Each level fetches in its own version, and says what that version can say. */
static void every_level_follows(void **state)
{
    static const struct {
        int ibp, version;
    } levels[] = {{IBP(2, 3, 0), 10}, {IBP(2, 3, 1), 11}, {IBP(2, 7, 0), 11},
                  {IBP(2, 7, 1), 12}, {IBP(3, 1, 0), 13}, {IBP(3, 5, 0), 14},
                  {IBP(3, 5, 1), 15}, {IBP(3, 7, 4), 16}, {IBP(3, 9, 0), 17}};
    for (size_t i = 0; i < sizeof(levels) / sizeof(*levels); i++) {
        sim_net_open(&net, 2, levels[i].ibp);
        sim_net_lead(&net, 0, 1, 0, 0, 7);
        sim_net_append(&net, 1, 0, 5);
        sim_net_drain(&net);
        sim_net_append(&net, 1, 0, 5);
        sim_net_drain(&net);
        sim_net_lead(&net, 0, 2, 1, 1, 7);
        sim_net_append(&net, 2, 0, 5);
        sim_net_drain(&net);
        assert_int_equal(sim_net_end(&net, 1, 0), 15);
        assert_true(sim_net_same(&net, 1, 2, 0));
        assert_int_equal(node(1)->last_version, levels[i].version);
        assert_int_equal(node(2)->epoch_questions > 0, levels[i].ibp < IBP(2, 7, 1));
        sim_net_close(&net);
    }
}

/* Each leader writes what the others never get; then the last one's history wins. */
static void histories_that_went_apart_come_together(void **state)
{
    static const int levels[] = {0, IBP(2, 7, 0)};
    for (int l = 0; l < 2; l++) {
        srandom(7 + (unsigned)l);
        for (int round = 0; round < 20; round++) {
            sim_net_open(&net, 3, levels[l]);
            sim_net_lead(&net, 0, 1, 0, 0, 7);
            sim_net_append(&net, 1, 0, 1 + (int)(random() % 4));
            sim_net_drain(&net);
            int32_t epoch = 0, leader = 1;
            for (int turn = 0; turn < 6; turn++) {
                leader = 1 + (int32_t)(random() % 3);
                for (int32_t id = 1; id <= 3; id++) /* cut off, some of them */
                    node(id)->down = random() % 2;
                epoch++;
                sim_net_lead(&net, 0, leader, epoch, epoch, 7);
                for (long i = random() % 3; i > 0; i--) {
                    sim_net_append(&net, leader, 0, 1 + (int)(random() % 3));
                    sim_net_drain(&net);
                }
            }
            for (int32_t id = 1; id <= 3; id++)
                node(id)->down = false;
            sim_net_advance(&net, 3000);
            for (int32_t id = 1; id <= 3; id++) {
                assert_int_equal(sim_net_end(&net, id, 0), sim_net_end(&net, leader, 0));
                assert_int_equal(sim_net_hw(&net, id, 0), sim_net_end(&net, leader, 0));
                assert_true(sim_net_same(&net, leader, id, 0));
            }
            if (!levels[l])
                assert_int_equal(node(1)->epoch_questions + node(2)->epoch_questions +
                                     node(3)->epoch_questions,
                                 0);
            sim_net_close(&net);
        }
    }
}

/* The watermark of a diverging log is not taken over before the cut. */
static void a_diverging_log_is_cut_before_its_watermark_moves(void **state)
{
    sim_net_open(&net, 2, 0);
    sim_net_lead(&net, 0, 1, 0, 0, 7);
    sim_net_append(&net, 1, 0, 10);
    sim_net_drain(&net);
    sim_net_advance(&net, 600);
    node(1)->down = true; /* 2 does not get these */
    sim_net_append(&net, 1, 0, 20);
    sim_net_advance(&net, 600);
    assert_int_equal(sim_net_end(&net, 2, 0), 10);
    node(2)->down = true;
    sim_net_lead(&net, 0, 2, 1, 1, 7);
    sim_net_append(&net, 2, 0, 25);
    assert_int_equal(sim_net_end(&net, 1, 0), 30);
    assert_int_equal(sim_net_hw(&net, 1, 0), 10);
    node(2)->down = false;
    for (int i = 0; i < 5000 && sim_net_end(&net, 1, 0) == 30; i++) {
        if (!sim_executor_step(node(1)->b.sim))
            sim_net_advance(&net, 1);
        if (sim_net_end(&net, 1, 0) == 30)
            assert_int_equal(sim_net_hw(&net, 1, 0), 10);
    }
    assert_int_equal(sim_net_end(&net, 1, 0), 10);
    sim_net_advance(&net, 2000);
    assert_true(sim_net_same(&net, 1, 2, 0));
    assert_int_equal(sim_net_hw(&net, 1, 0), 35);
    sim_net_close(&net);
}

static void a_follower_behind_the_leaders_start_begins_anew(void **state)
{
    sim_net_open(&net, 2, 0);
    node(1)->down = true;
    sim_net_lead(&net, 0, 1, 0, 0, 7);
    sim_net_append(&net, 1, 0, 10);
    struct log *log = log_manager_find(node(1)->b.logs, bench_tp("t", 0));
    log_set_high_watermark(log, 10);
    assert_int_equal(log_truncate_fully(log, 100), KERR_NONE); /* retention took all */
    log_unref(log);
    sim_net_append(&net, 1, 0, 5);
    node(1)->down = false;
    sim_net_advance(&net, 3000);
    assert_int_equal(sim_net_end(&net, 2, 0), 105);
    assert_true(sim_net_same(&net, 1, 2, 0));
    assert_true(node(1)->offset_questions >= 2);
    sim_net_close(&net);
}

/* The leader's start lies inside a batch: the follower has the batch and the start. */
static void the_leaders_log_start_follows(void **state)
{
    sim_net_open(&net, 2, 0);
    sim_net_lead(&net, 0, 1, 0, 0, 7);
    sim_net_append(&net, 1, 0, 10);
    sim_net_drain(&net);
    struct partition *p = sim_net_partition(&net, 1, 0);
    int64_t raised, low;
    assert_int_equal(partition_delete_records(p, 4, &raised), KERR_NONE);
    sim_net_advance(&net, 1100);
    struct log *log = log_manager_find(node(2)->b.logs, bench_tp("t", 0));
    assert_int_equal(log_start_offset(log), 4);
    log_unref(log);
    assert_int_equal(partition_low_watermark(p, &low), KERR_NONE);
    assert_int_equal(low, 4); /* and the leader has heard of it */
    partition_unref(p);
    sim_net_close(&net);
}

static void an_empty_log_begins_with_the_batch_of_the_leaders_start(void **state)
{
    sim_net_open(&net, 2, 0);
    static const int32_t alone[] = {1}, both[] = {1, 2};
    struct lead l = {
        .leader = 1, .isr = alone, .isr_n = 1, .replicas = both, .replicas_n = 2, .is_new = true};
    assert_int_equal(bench_lead(&node(1)->b, "t", 0, l), KERR_NONE);
    sim_net_append(&net, 1, 0, 10);
    sim_net_append(&net, 1, 0, 10);
    struct partition *p = sim_net_partition(&net, 1, 0);
    struct log *log = partition_log(p);
    log_set_high_watermark(log, 20);
    assert_int_equal(log_raise_start_offset(log, 14), KERR_NONE);
    log_unref(log);
    assert_int_equal(bench_lead(&node(2)->b, "t", 0, l), KERR_NONE);
    sim_net_advance(&net, 3000);
    log = log_manager_find(node(2)->b.logs, bench_tp("t", 0));
    assert_int_equal(log_start_offset(log), 14);
    assert_int_equal(log_end_offset(log), 20);
    log_unref(log);
    partition_unref(p);
    sim_net_close(&net);
}

/* Every answer that only waiting helps against. */
static void errors_are_waited_out(void **state)
{
    static const int16_t errors[] = {KERR_NOT_LEADER_OR_FOLLOWER,     KERR_UNKNOWN_LEADER_EPOCH,
                                     KERR_UNKNOWN_TOPIC_OR_PARTITION, KERR_UNKNOWN_TOPIC_ID,
                                     KERR_INCONSISTENT_TOPIC_ID,      KERR_KAFKA_STORAGE_ERROR,
                                     KERR_UNKNOWN_SERVER_ERROR};
    for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++) {
        sim_net_open(&net, 2, 0);
        node(1)->part_error = errors[i];
        node(1)->part_errors = 3;
        sim_net_lead(&net, 0, 1, 0, 0, 7);
        sim_net_append(&net, 1, 0, 3);
        sim_net_drain(&net);
        assert_int_equal(sim_net_end(&net, 2, 0), 0);
        int before = node(1)->fetches;
        sim_net_advance(&net, 19);
        assert_int_equal(node(1)->fetches, before); /* not in circles */
        sim_net_advance(&net, 1000);
        assert_int_equal(sim_net_end(&net, 2, 0), 3);
        sim_net_close(&net);
    }
}

static void a_fenced_partition_waits_for_its_next_order(void **state)
{
    sim_net_open(&net, 2, 0);
    node(1)->part_error = KERR_FENCED_LEADER_EPOCH;
    node(1)->part_errors = 1;
    sim_net_lead(&net, 0, 1, 0, 0, 7);
    sim_net_append(&net, 1, 0, 3);
    sim_net_advance(&net, 5000);
    assert_int_equal(sim_net_end(&net, 2, 0), 0);
    assert_int_equal(fetchers_failed_count(node(2)->b.fetchers), 1);
    sim_net_lead(&net, 0, 1, 1, 1, 7);
    sim_net_drain(&net);
    assert_int_equal(fetchers_failed_count(node(2)->b.fetchers), 0);
    assert_int_equal(sim_net_end(&net, 2, 0), 3);
    sim_net_close(&net);
}

/* One partition's bad records leave the others alone, and are fetched again. */
static void corrupt_records_are_fetched_again(void **state)
{
    sim_net_open(&net, 2, 0);
    sim_net_lead(&net, 0, 1, 0, 0, 7);
    sim_net_lead(&net, 1, 1, 0, 0, 7);
    sim_net_drain(&net);
    node(1)->corrupt = 1;
    sim_net_append(&net, 1, 0, 3);
    sim_net_append(&net, 1, 1, 3);
    sim_net_drain(&net);
    assert_int_equal(sim_net_end(&net, 2, 0) + sim_net_end(&net, 2, 1), 3);
    sim_net_advance(&net, 100);
    assert_int_equal(sim_net_end(&net, 2, 0), 3);
    assert_int_equal(sim_net_end(&net, 2, 1), 3);
    assert_true(sim_net_same(&net, 1, 2, 0));
    sim_net_close(&net);
}

static void a_source_that_is_away_is_tried_until_it_is_back(void **state)
{
    sim_net_open(&net, 2, 0);
    sim_net_lead(&net, 0, 1, 0, 0, 7);
    sim_net_append(&net, 1, 0, 3);
    node(1)->down = true;
    sim_net_advance(&net, 60000);
    assert_int_equal(sim_net_end(&net, 2, 0), 0);
    node(1)->down = false;
    sim_net_advance(&net, 1000);
    assert_int_equal(sim_net_end(&net, 2, 0), 3);
    sim_net_close(&net);
}

static void sessions_start_again_after_errors(void **state)
{
    static const int16_t errors[] = {KERR_FETCH_SESSION_ID_NOT_FOUND,
                                     KERR_INVALID_FETCH_SESSION_EPOCH,
                                     KERR_FETCH_SESSION_TOPIC_ID_ERROR, KERR_UNKNOWN_SERVER_ERROR};
    for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++) {
        sim_net_open(&net, 2, 0);
        sim_net_lead(&net, 0, 1, 0, 0, 7);
        sim_net_append(&net, 1, 0, 3);
        sim_net_drain(&net);
        node(1)->session_error = errors[i];
        sim_net_advance(&net, 500); /* the one that waits is over; the next gets the error */
        sim_net_append(&net, 1, 0, 3);
        sim_net_advance(&net, 100);
        assert_int_equal(sim_net_end(&net, 2, 0), 6);
        assert_int_equal(node(1)->full_fetches, 2);
        sim_net_close(&net);
    }
}

/* Quiet partitions cost nothing after the first time. */
static void a_session_is_told_only_what_changed(void **state)
{
    sim_net_open(&net, 2, 0);
    sim_net_lead(&net, 0, 1, 0, 0, 7);
    sim_net_lead(&net, 1, 1, 0, 0, 7);
    sim_net_advance(&net, 1500);
    int told = node(1)->parts_told, sent = node(1)->parts_sent;
    for (int i = 0; i < 10; i++) {
        sim_net_append(&net, 1, 0, 1);
        sim_net_drain(&net);
    }
    assert_int_equal(node(1)->parts_told - told, 10);
    assert_true(node(1)->parts_sent - sent <= 20);
    sim_net_close(&net);
}

/* One partition without id: all go by name; with the id that comes later, by ids. */
static void ids_are_used_when_all_have_one(void **state)
{
    sim_net_open(&net, 2, 0);
    sim_net_lead(&net, 0, 1, 0, 0, 7);
    sim_net_drain(&net);
    assert_int_equal(node(1)->last_version, 17);
    sim_net_lead(&net, 1, 1, 0, 0, 0);
    sim_net_append(&net, 1, 1, 3);
    sim_net_advance(&net, 600);
    assert_int_equal(sim_net_end(&net, 2, 1), 3);
    assert_int_equal(node(1)->last_version, 12);
    static const int32_t ids[] = {1, 2};
    for (int i = 0; i < 2; i++)
        assert_int_equal(bench_lead(&net.nodes[i].b, "t", 1,
                                    (struct lead){.leader = 1,
                                                  .isr = ids,
                                                  .isr_n = 2,
                                                  .replicas = ids,
                                                  .replicas_n = 2,
                                                  .id = {{7}}}),
                         KERR_NONE); /* the same epoch: only the id is news */
    sim_net_append(&net, 1, 1, 3);
    sim_net_advance(&net, 600);
    assert_int_equal(sim_net_end(&net, 2, 1), 6);
    assert_int_equal(node(1)->last_version, 17);
    sim_net_close(&net);
}

/* A controller of an old level knows no ids, nor does the leader then: what the log knows is of no
 * use, in a new epoch as in the same. */
static void without_an_id_in_the_order_it_goes_by_name(void **state)
{
    sim_net_open(&net, 2, 0);
    sim_net_lead(&net, 0, 1, 0, 0, 7);
    sim_net_append(&net, 1, 0, 3);
    sim_net_drain(&net);
    assert_int_equal(node(1)->last_version, 17);
    for (int32_t epoch = 1; epoch <= 2; epoch++) {
        bench_metadata_ids(&node(1)->b, "t", 0);
        sim_net_lead(&net, 0, 1, epoch, epoch, 0);
        sim_net_append(&net, 1, 0, 3);
        sim_net_advance(&net, 100);
        assert_int_equal(node(1)->last_version, 12);
        assert_int_equal(sim_net_end(&net, 2, 0), 3 + 3 * epoch);
    }
    replica_manager_set_fetchers(node(2)->b.m, 3);
    sim_net_append(&net, 1, 0, 3);
    sim_net_advance(&net, 600);
    assert_int_equal(node(1)->last_version, 12);
    assert_int_equal(sim_net_end(&net, 2, 0), 12);
    sim_net_close(&net);
}

/* The leader is back at another port, and leads in the same epoch. */
static void a_broker_that_moved_is_found(void **state)
{
    sim_net_open(&net, 2, 0);
    sim_net_lead(&net, 0, 1, 0, 0, 7);
    sim_net_append(&net, 1, 0, 3);
    sim_net_drain(&net);
    assert_int_equal(sim_net_end(&net, 2, 0), 3);
    node(1)->moves++;
    node(1)->sessions_n = 0;
    sim_net_append(&net, 1, 0, 3);
    sim_net_advance(&net, 10000);
    assert_int_equal(sim_net_end(&net, 2, 0), 3);
    node(2)->b.moves[0]++;
    bench_metadata_ids(&node(2)->b, "t", 7);
    sim_net_drain(&net);
    assert_int_equal(sim_net_end(&net, 2, 0), 6);
    assert_int_equal(fetchers_count(node(2)->b.fetchers), 1);
    bench_metadata_ids(&node(2)->b, "t", 7); /* the same again changes nothing */
    int full = node(1)->full_fetches;
    sim_net_append(&net, 1, 0, 3);
    sim_net_advance(&net, 600);
    assert_int_equal(sim_net_end(&net, 2, 0), 9);
    assert_int_equal(node(1)->full_fetches, full);
    sim_net_close(&net);
}

/* A fetch that waits at the leader does not hold up a partition that comes later. */
static void a_new_partition_does_not_wait(void **state)
{
    sim_net_open(&net, 2, 0);
    sim_net_lead(&net, 0, 1, 0, 0, 7);
    sim_net_advance(&net, 600);
    sim_net_lead(&net, 1, 1, 0, 0, 7);
    sim_net_append(&net, 1, 1, 3);
    sim_net_advance(&net, 25);
    assert_int_equal(sim_net_end(&net, 2, 1), 3);
    sim_net_append(&net, 1, 0, 3);
    sim_net_drain(&net);
    assert_int_equal(sim_net_end(&net, 2, 0), 3);
    sim_net_close(&net);
}

static void a_leader_or_a_deleted_replica_fetches_no_more(void **state)
{
    sim_net_open(&net, 2, 0);
    sim_net_lead(&net, 0, 1, 0, 0, 7);
    sim_net_append(&net, 1, 0, 3);
    sim_net_drain(&net);
    assert_int_equal(fetchers_count(node(2)->b.fetchers), 1);
    sim_net_lead(&net, 0, 2, 1, 1, 7); /* 2 leads, 1 follows */
    sim_net_drain(&net);
    assert_int_equal(fetchers_count(node(2)->b.fetchers), 0);
    assert_int_equal(node(2)->places_closed, 1);
    assert_int_equal(fetchers_count(node(1)->b.fetchers), 1);
    assert_int_equal(bench_stop(&node(1)->b, "t", 0, -2, true), KERR_NONE);
    sim_net_append(&net, 2, 0, 3);
    sim_net_drain(&net);
    assert_int_equal(fetchers_count(node(1)->b.fetchers), 0);
    assert_null(log_manager_find(node(1)->b.logs, bench_tp("t", 0)));
    sim_net_close(&net);
}

/* What it followed it follows on, with a newer epoch, too; what it led it does not. */
static void a_broker_that_leaves_does_not_follow_those_that_replace_it(void **state)
{
    sim_net_open(&net, 2, 0);
    sim_net_lead(&net, 0, 1, 0, 0, 7);
    sim_net_lead(&net, 1, 2, 0, 0, 7);
    fetchers_leave(node(2)->b.fetchers);
    sim_net_lead(&net, 0, 1, 1, 1, 7);
    sim_net_lead(&net, 1, 1, 1, 1, 7);
    sim_net_append(&net, 1, 0, 3);
    sim_net_append(&net, 1, 1, 3);
    sim_net_advance(&net, 2000);
    assert_int_equal(sim_net_end(&net, 2, 0), 3);
    assert_int_equal(sim_net_end(&net, 2, 1), 0);
    sim_net_close(&net);
}

/* Told to stop, kept: nothing comes until the next LeaderAndIsr. */
static void a_stopped_replica_stays_as_it_is(void **state)
{
    sim_net_open(&net, 2, 0);
    sim_net_lead(&net, 0, 1, 0, 0, 7);
    sim_net_drain(&net);
    assert_int_equal(bench_stop(&node(2)->b, "t", 0, 0, false), KERR_NONE);
    sim_net_append(&net, 1, 0, 3);
    sim_net_advance(&net, 2000);
    assert_int_equal(sim_net_end(&net, 2, 0), 0);
    sim_net_lead(&net, 0, 1, 1, 1, 7);
    sim_net_drain(&net);
    assert_int_equal(sim_net_end(&net, 2, 0), 3);
    sim_net_close(&net);
}

/* Forgotten and followed again between two requests of one session, by id and by name: a new
 * session is made, since the old one would lose it, or count as told what its life before was told.
 */
static void a_replica_that_comes_back_between_two_requests_is_fetched(void **state)
{
    static const int levels[] = {0, IBP(2, 7, 0)};
    for (int l = 0; l < 2; l++) {
        sim_net_open(&net, 2, levels[l]);
        sim_net_lead(&net, 0, 1, 0, 0, 7);
        sim_net_lead(&net, 1, 1, 0, 0, 7);
        sim_net_advance(&net, 600); /* a session with both, and a fetch that waits */
        sim_net_append(&net, 1, 1, 3);
        sim_net_drain(&net); /* the next one was just sent */
        int full = node(1)->full_fetches;
        assert_int_equal(bench_stop(&node(2)->b, "t", 0, 0, false), KERR_NONE);
        sim_net_lead(&net, 0, 1, 1, 1, 7);
        sim_net_append(&net, 1, 1, 3); /* which ends the fetch */
        sim_net_drain(&net);
        sim_net_append(&net, 1, 0, 3);
        sim_net_append(&net, 1, 1, 3);
        sim_net_advance(&net, 2000);
        assert_int_equal(node(1)->full_fetches, full + 1);
        assert_int_equal(sim_net_end(&net, 2, 1), 9);
        assert_int_equal(sim_net_end(&net, 2, 0), 3);
        sim_net_close(&net);
    }
}

static int64_t log_start_of(int32_t id)
{
    struct log *log = log_manager_find(node(id)->b.logs, bench_tp("t", 0));
    int64_t start = log_start_offset(log);
    log_unref(log);
    return start;
}

/* What becomes of t-0 at its follower while an answer with news of it is on its way. */
static void takes_a_new_epoch(void)
{
    sim_net_lead(&net, 0, 1, 1, 1, 7);
    sim_net_drain(&net);
}

static void is_told_of_an_epoch_but_its_fetcher_not_yet(void)
{
    sim_net_lead(&net, 0, 1, 1, 1, 7);
}

static void leaves_and_comes_back(void)
{
    assert_int_equal(bench_stop(&node(2)->b, "t", 0, 0, false), KERR_NONE);
    sim_net_lead(&net, 0, 1, 1, 1, 7);
    sim_net_drain(&net);
}

static void leaves_is_deleted_and_comes_back(void)
{
    assert_int_equal(bench_stop(&node(2)->b, "t", 0, 0, true), KERR_NONE);
    sim_net_lead(&net, 0, 1, 1, 1, 7);
    sim_net_drain(&net);
}

static void stays_as_it_is_and_another_comes(void)
{
    sim_net_lead(&net, 2, 1, 0, 0, 7);
    sim_net_drain(&net);
}

static void stays_and_the_request_is_given_up(void)
{
    sim_net_lead(&net, 2, 1, 0, 0, 7);
    sim_net_advance(&net, 30);
}

/* An answer told the watermark and the log start, and was dropped: no record comes later, and the
 * leader's session tells each only once (a leader of Apache Kafka's does not notice). Seen by the
 * simulator: a follower's watermark stood still for as long as nothing was written. */
static void marks_of_a_dropped_answer_come_again(void **state)
{
    static void (*const ways[])(void) = {takes_a_new_epoch,
                                         is_told_of_an_epoch_but_its_fetcher_not_yet,
                                         leaves_and_comes_back,
                                         leaves_is_deleted_and_comes_back,
                                         stays_as_it_is_and_another_comes,
                                         stays_and_the_request_is_given_up};
    static const int levels[] = {0, IBP(2, 7, 0)};
    for (size_t i = 0; i < 2 * sizeof(ways) / sizeof(*ways); i++) {
        int64_t raised;
        sim_net_open(&net, 2, levels[i % 2]);
        sim_net_lead(&net, 0, 1, 0, 0, 7);
        sim_net_lead(&net, 1, 1, 0, 0, 7);
        sim_net_advance(&net, 1100);
        sim_net_append(&net, 1, 0, 5);
        sim_net_drain(&net); /* the records are there, and a fetch that tells so is out */
        assert_int_equal(sim_net_end(&net, 2, 0), 5);
        assert_int_equal(sim_net_hw(&net, 1, 0), 5);
        assert_int_equal(sim_net_hw(&net, 2, 0), 0);
        struct partition *p = sim_net_partition(&net, 1, 0);
        assert_int_equal(partition_delete_records(p, 2, &raised), KERR_NONE);
        partition_unref(p);
        node(1)->hold = true;
        sim_net_append(&net, 1, 1, 1); /* which ends that fetch: its answer has news of t-0, too */
        sim_net_drain(&net);
        ways[i / 2]();
        sim_net_release(&net, 1);
        sim_net_advance(&net, 2500);
        assert_int_equal(sim_net_hw(&net, 2, 0), 5);
        assert_int_equal(log_start_of(2), 2);
        assert_int_equal(sim_net_end(&net, 2, 1), 1);
        assert_true(sim_net_same(&net, 1, 2, 0));
        sim_net_close(&net);
    }
}

/* The same, when the answer also said that the log diverges: marks that come along are not taken,
 * and where the logs part there is nothing to fetch. */
static void marks_that_came_with_a_cut_come_again(void **state)
{
    sim_net_open(&net, 2, 0);
    sim_net_lead(&net, 0, 1, 0, 0, 7);
    sim_net_append(&net, 1, 0, 5);
    sim_net_drain(&net); /* 2 has them, and has not heard of the watermark */
    node(2)->down = true;
    sim_net_lead(&net, 0, 2, 1, 1, 7);
    sim_net_append(&net, 2, 0, 3); /* which 1 does not get */
    sim_net_drain(&net);
    assert_int_equal(sim_net_hw(&net, 2, 0), 0);
    node(2)->down = false;
    sim_net_lead(&net, 0, 1, 2, 2, 7);
    sim_net_advance(&net, 3000);
    assert_int_equal(sim_net_end(&net, 2, 0), 5);
    assert_int_equal(sim_net_hw(&net, 1, 0), 5);
    assert_int_equal(sim_net_hw(&net, 2, 0), 5);
    sim_net_close(&net);
}

static void a_held_back_replica_fetches_when_it_may(void **state)
{
    sim_net_open(&net, 2, 0);
    node(2)->rate_held = 1;
    sim_net_lead(&net, 0, 1, 0, 0, 7);
    sim_net_append(&net, 1, 0, 3);
    sim_net_advance(&net, 2000);
    assert_int_equal(sim_net_end(&net, 2, 0), 0);
    assert_int_equal(node(1)->fetches, 0);
    node(2)->rate_held = 0;
    sim_net_advance(&net, 100);
    assert_int_equal(sim_net_end(&net, 2, 0), 3);
    sim_net_close(&net);
}

static void a_disk_fault_ends_that_partition_alone(void **state)
{
    sim_net_open(&net, 2, 0);
    sim_net_lead(&net, 0, 1, 0, 0, 7);
    sim_net_drain(&net);
    fs_fault_add(node(2)->b.fault,
                 (struct fs_fault_rule){.call = FS_PWRITEV, .times = -1, .error = EIO});
    sim_net_append(&net, 1, 0, 3);
    sim_net_advance(&net, 2000);
    enum kerr why;
    assert_null(replica_manager_find(node(2)->b.m, bench_tp("t", 0), &why));
    assert_int_equal(why, KERR_KAFKA_STORAGE_ERROR);
    sim_net_close(&net);
}

/* Ten records as a leader without epochs had them. */
static void follow_without_epochs(struct bench *b, struct partition *p)
{
    struct buf bytes = BUF_INIT;
    struct batch_options o = BATCH_OPTIONS_DEFAULT;
    struct batch_builder *batch = batch_builder_new(&o);
    struct follow_view view;
    for (int i = 0; i < 10; i++) {
        batch_builder_reset(batch, &o);
        assert_int_equal(batch_builder_add(batch, i, bench_clock(b)->wall_ms, BYTES_NULL,
                                           ((struct bytes){(const uint8_t *)"v", 1}), NULL, 0),
                         0);
        assert_int_equal(batch_builder_finish(batch, &bytes), 0);
    }
    batch_builder_free(batch);
    struct follow_append a = {.leader_epoch = 0,
                              .records = bytes.p,
                              .len = (int32_t)bytes.len,
                              .leader_high_watermark = 10};
    assert_int_equal(partition_follow_append(p, &a, &view), KERR_NONE);
    assert_int_equal(view.latest_epoch, -1);
    assert_int_equal(view.log_end, 10);
    buf_free(&bytes);
}

/* The cut that a follower begins with needs memory: nothing is fetched behind what should have been
 * cut, and the cut is made when there is some. */
static void a_cut_is_tried_again_after_a_shortage(void **state)
{
    struct follow_view view;
    sim_net_open(&net, 2, 0);
    node(1)->down = true;
    sim_net_lead(&net, 0, 1, 0, 0, 7);
    for (int i = 0; i < 12; i++) /* also behind the end of the follower */
        sim_net_append(&net, 1, 0, 1);
    struct partition *p = sim_net_partition(&net, 2, 0);
    follow_without_epochs(&node(2)->b, p);
    sim_net_lead(&net, 0, 1, 1, 1, 7);
    sim_net_drain(&net); /* it would go on at 10 */
    struct follow_append marks = {.leader_epoch = 1, .seen = {10, 0}, .leader_high_watermark = 4};
    assert_int_equal(partition_follow_append(p, &marks, &view), KERR_NONE);
    fs_fault_add(
        node(2)->b.fault,
        (struct fs_fault_rule){.call = FS_PREAD, .path = "*.log", .times = -1, .error = ENOMEM});
    sim_net_lead(&net, 0, 1, 2, 2, 7);
    node(1)->down = false;
    sim_net_advance(&net, 5000);
    assert_int_equal(sim_net_end(&net, 2, 0), 10);
    assert_int_equal(fetchers_failed_count(node(2)->b.fetchers), 0);
    fs_fault_clear(node(2)->b.fault);
    sim_net_advance(&net, 2000);
    assert_int_equal(sim_net_end(&net, 2, 0), 12);
    assert_int_equal(fetchers_failed_count(node(2)->b.fetchers), 0);
    partition_unref(p);
    sim_net_close(&net);
}

static int64_t lag_of(int32_t id)
{
    struct partition_facts f;
    struct partition *p = sim_net_partition(&net, id, 0);
    partition_facts(p, &f);
    partition_unref(p);
    assert_int_equal(f.follows, f.lag >= 0 || id != 1);
    return f.lag;
}

static void fetches_are_counted_and_the_lag_is_known(void **state)
{
    struct fetcher_figures f[2];
    sim_net_open(&net, 2, 0);
    sim_net_lead(&net, 0, 1, 0, 0, 7);
    sim_net_append(&net, 1, 0, 3);
    sim_net_advance(&net, 600);
    assert_int_equal(lag_of(1), -1); /* it leads */
    assert_int_equal(lag_of(2), 0);
    assert_int_equal(fetchers_look(node(2)->b.fetchers, f, 2), 1);
    assert_int_equal(f[0].source, 1);
    assert_int_equal(f[0].port, 9001);
    assert_string_equal(f[0].host, "host1");
    assert_true(f[0].requests > 0 && f[0].bytes > 0);
    assert_int_equal(f[0].bytes, replica_manager_bytes_in(node(2)->b.m));
    assert_int_equal(replica_manager_moved_in(node(2)->b.m), 0);
    assert_int_equal(fetchers_look(node(2)->b.fetchers, f, 0), 0);
    uint64_t before = f[0].requests;
    sim_net_advance(&net, 600);
    fetchers_look(node(2)->b.fetchers, f, 1);
    assert_true(f[0].requests > before);
    sim_net_close(&net);
}

static void partitions_are_spread_anew(void **state)
{
    sim_net_open(&net, 2, 0);
    sim_net_lead(&net, 0, 1, 0, 0, 7);
    sim_net_lead(&net, 1, 1, 0, 0, 7);
    sim_net_append(&net, 1, 0, 3);
    sim_net_append(&net, 1, 1, 3);
    sim_net_drain(&net);
    static const int counts[] = {2, 1, 3};
    for (int i = 0; i < 3; i++) {
        replica_manager_set_fetchers(node(2)->b.m, counts[i]);
        sim_net_append(&net, 1, 0, 1);
        sim_net_append(&net, 1, 1, 1);
        sim_net_advance(&net, 600);
        assert_int_equal(fetchers_count(node(2)->b.fetchers), counts[i] > 1 ? 2 : 1);
        for (int32_t p = 0; p < 2; p++)
            assert_int_equal(sim_net_end(&net, 2, p), 4 + i);
        assert_int_equal(fetchers_failed_count(node(2)->b.fetchers), 0);
    }
    sim_net_close(&net);
}

static void partitions_are_spread_as_everywhere(void **state)
{
    static const struct {
        const char *topic;
        int32_t partition;
        int n, number;
    } t[] = {{"t", 0, 1, 0}, {"t", 0, 4, 0}, {"t", 3, 4, 3}, {"topic", 1, 5, 1}};
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(fetchers_number_of(bench_tp(t[i].topic, t[i].partition), t[i].n),
                         t[i].number);
    int seen[4] = {0};
    for (int32_t p = 0; p < 100; p++)
        seen[fetchers_number_of(bench_tp("spread", p), 4)]++;
    for (int i = 0; i < 4; i++)
        assert_int_equal(seen[i], 25);
}

UNIT_MAIN(unit_test(fetches_are_counted_and_the_lag_is_known),
          unit_test(records_and_the_watermark_arrive), unit_test(every_level_follows),
          unit_test(histories_that_went_apart_come_together),
          unit_test(a_diverging_log_is_cut_before_its_watermark_moves),
          unit_test(a_follower_behind_the_leaders_start_begins_anew),
          unit_test(the_leaders_log_start_follows),
          unit_test(an_empty_log_begins_with_the_batch_of_the_leaders_start),
          unit_test(errors_are_waited_out), unit_test(a_fenced_partition_waits_for_its_next_order),
          unit_test(corrupt_records_are_fetched_again),
          unit_test(a_source_that_is_away_is_tried_until_it_is_back),
          unit_test(sessions_start_again_after_errors),
          unit_test(a_session_is_told_only_what_changed), unit_test(ids_are_used_when_all_have_one),
          unit_test(a_new_partition_does_not_wait), unit_test(a_broker_that_moved_is_found),
          unit_test(without_an_id_in_the_order_it_goes_by_name),
          unit_test(a_leader_or_a_deleted_replica_fetches_no_more),
          unit_test(a_broker_that_leaves_does_not_follow_those_that_replace_it),
          unit_test(a_stopped_replica_stays_as_it_is),
          unit_test(a_replica_that_comes_back_between_two_requests_is_fetched),
          unit_test(marks_of_a_dropped_answer_come_again),
          unit_test(marks_that_came_with_a_cut_come_again),
          unit_test(a_held_back_replica_fetches_when_it_may),
          unit_test(a_disk_fault_ends_that_partition_alone),
          unit_test(a_cut_is_tried_again_after_a_shortage), unit_test(partitions_are_spread_anew),
          unit_test(partitions_are_spread_as_everywhere))
