/* What control requests do: LeaderAndIsr, StopReplica, UpdateMetadata; look-ups; failed log dirs.
 */
#include "replica/replica_manager.h"

#include <pthread.h>

#include "bench.h"
#include "replica/replica_manager_private.h"

static const int32_t one[] = {1}, two[] = {1, 2}, others[] = {2, 3};

static struct uuid id_of(uint8_t n)
{
    struct uuid u = UUID_ZERO;
    u.b[0] = n;
    return u;
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

/* find; the role as text, or the error's name. */
static const char *state_of(struct bench *b, const char *topic, int32_t number)
{
    enum kerr why;
    struct partition *p = replica_manager_find(b->m, bench_tp(topic, number), &why);
    if (!p)
        return kerr_name((int16_t)why);
    static const char *const roles[] = {"none", "leader", "follower", "offline", "gone"};
    const char *role = roles[atomic_load(&p->role)];
    partition_unref(p);
    return role;
}

static void look_ups_tell_why(void **state)
{
    struct bench b;
    bench_open(&b);
    assert_string_equal(state_of(&b, "t", 0), "NOT_LEADER_OR_FOLLOWER"); /* in the metadata */
    assert_string_equal(state_of(&b, "t", 2), "UNKNOWN_TOPIC_OR_PARTITION");
    assert_string_equal(state_of(&b, "u", 0), "UNKNOWN_TOPIC_OR_PARTITION");
    assert_int_equal(bench_lead(&b, "t", 0, lead_of(1, 0)), KERR_NONE);
    assert_string_equal(state_of(&b, "t", 0), "leader");
    assert_int_equal(replica_manager_count(b.m), 1);
    assert_int_equal(log_manager_count(b.logs), 1);
    bench_close(&b);
}

static void every_version_of_the_request_is_answered_in_its_form(void **state)
{
    struct bench b;
    bench_open(&b);
    for (int v = 0; v <= 7; v++) {
        assert_int_equal(bench_lead_version(&b, v, "t", v, lead_of(1, 0)), KERR_NONE);
        assert_string_equal(state_of(&b, "t", v), "leader");
        assert_int_equal(bench_lead_version(&b, v, "t", v, lead_of(1, 0)),
                         KERR_STALE_CONTROLLER_EPOCH);
    }
    bench_close(&b);
}

static void leader_epochs_decide(void **state)
{
    struct bench b;
    bench_open(&b);
    struct {
        int32_t leader, epoch;
        enum kerr error;
        const char *role;
    } t[] = {
        {1, 3, KERR_NONE, "leader"},
        {1, 3, KERR_STALE_CONTROLLER_EPOCH, "leader"}, /* sent again */
        {2, 3, KERR_STALE_CONTROLLER_EPOCH, "leader"},
        {2, 2, KERR_STALE_CONTROLLER_EPOCH, "leader"},
        {2, 4, KERR_NONE, "follower"},
        {1, 3, KERR_STALE_CONTROLLER_EPOCH, "follower"},
        {1, 5, KERR_NONE, "leader"},
        {9, 6, KERR_NONE, "leader"}, /* a leader nobody knows: nothing is taken over */
        {2, 6, KERR_NONE, "follower"},
    };
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        assert_int_equal(bench_lead(&b, "t", 0, lead_of(t[i].leader, t[i].epoch)), t[i].error);
        assert_string_equal(state_of(&b, "t", 0), t[i].role);
    }
    bench_close(&b);
}

static void older_partition_epoch_changes_nothing(void **state)
{
    struct bench b;
    bench_open(&b);
    struct lead l = lead_of(1, 0);
    l.partition_epoch = 4;
    assert_int_equal(bench_lead(&b, "t", 0, l), KERR_NONE);
    l = lead_of(2, 1);
    l.partition_epoch = 3;
    assert_int_equal(bench_lead(&b, "t", 0, l), KERR_NONE);
    assert_string_equal(state_of(&b, "t", 0), "leader");
    l.partition_epoch = 4;
    assert_int_equal(bench_lead(&b, "t", 0, l), KERR_NONE);
    assert_string_equal(state_of(&b, "t", 0), "follower");
    bench_close(&b);
}

static void not_among_the_replicas(void **state)
{
    struct bench b;
    bench_open(&b);
    struct lead l = lead_of(2, 0);
    l.replicas = others;
    l.isr = others;
    assert_int_equal(bench_lead(&b, "t", 0, l), KERR_UNKNOWN_TOPIC_OR_PARTITION);
    assert_int_equal(log_manager_count(b.logs), 0);
    bench_close(&b);
}

static void bad_names_make_no_folder(void **state)
{
    struct bench b;
    bench_open(&b);
    const char *bad[] = {"", ".", "..", "a/b", "../x", "a b"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(bench_lead(&b, bad[i], 0, lead_of(1, 0)), KERR_INVALID_TOPIC_EXCEPTION);
    assert_int_equal(bench_lead(&b, "t", -1, lead_of(1, 0)), KERR_INVALID_TOPIC_EXCEPTION);
    assert_int_equal(replica_manager_count(b.m), 0);
    bench_close(&b);
}

static void leader_unknown_to_the_metadata_still_gets_us_a_log(void **state)
{
    struct bench b;
    bench_open(&b);
    assert_int_equal(bench_lead(&b, "t", 0, lead_of(9, 0)), KERR_NONE);
    assert_string_equal(state_of(&b, "t", 0), "none");
    assert_int_equal(log_manager_count(b.logs), 1);
    bench_close(&b);
}

/* LeaderAndIsr may come before the UpdateMetadata that tells of the leader, and nobody says it
 * again. Seen by chaos: an ISR that did not grow for as long as the epoch lasted. */
static void a_leader_is_followed_once_it_is_known_to_live(void **state)
{
    struct bench b;
    bench_open(&b);
    assert_int_equal(bench_metadata(&b, 2, "t"), KERR_NONE); /* 3 is not there */
    struct lead l = lead_of(3, 4);
    assert_int_equal(bench_lead(&b, "t", 0, l), KERR_NONE);
    l.leader_epoch = 5;
    assert_int_equal(bench_lead(&b, "t", 1, l), KERR_NONE);
    assert_int_equal(bench_stop(&b, "t", 1, -1, false), KERR_NONE); /* not wanted any more */
    assert_int_equal(bench_metadata(&b, 2, "t"), KERR_NONE);        /* no news of 3 */
    assert_string_equal(state_of(&b, "t", 0), "none");
    assert_int_equal(bench_metadata(&b, 3, "t"), KERR_NONE);
    assert_string_equal(state_of(&b, "t", 0), "follower");
    assert_string_equal(state_of(&b, "t", 1), "none");
    enum kerr why;
    struct partition *p = replica_manager_find(b.m, bench_tp("t", 0), &why);
    assert_int_equal(partition_leader_epoch(p), 4);
    assert_int_equal(partition_leader_id(p), 3);
    partition_unref(p);
    bench_close(&b);
}

/* What was said since counts: it leads by now, and does not go back. */
static void a_leader_that_comes_too_late_is_not_followed(void **state)
{
    struct bench b;
    bench_open(&b);
    assert_int_equal(bench_metadata(&b, 2, "t"), KERR_NONE);
    assert_int_equal(bench_lead(&b, "t", 0, lead_of(3, 4)), KERR_NONE);
    assert_int_equal(bench_lead(&b, "t", 0, lead_of(1, 5)), KERR_NONE);
    assert_int_equal(bench_metadata(&b, 3, "t"), KERR_NONE);
    assert_string_equal(state_of(&b, "t", 0), "leader");
    bench_close(&b);
}

/* ---- epochs of controller and broker ---- */

static void old_controllers_are_refused_whatever_they_send(void **state)
{
    struct bench b;
    bench_open(&b);
    struct lead l = lead_of(1, 0);
    l.controller_epoch = 7;
    assert_int_equal(bench_lead(&b, "t", 0, l), KERR_NONE);
    l.leader_epoch = 1;
    l.controller_epoch = 6;
    assert_int_equal(bench_lead(&b, "t", 0, l), KERR_STALE_CONTROLLER_EPOCH);
    assert_int_equal(bench_metadata(&b, 3, "u"), KERR_STALE_CONTROLLER_EPOCH); /* sends 0 */
    assert_string_equal(state_of(&b, "u", 0), "UNKNOWN_TOPIC_OR_PARTITION");
    assert_int_equal(bench_stop(&b, "t", 0, -2, true), KERR_STALE_CONTROLLER_EPOCH);
    assert_string_equal(state_of(&b, "t", 0), "leader");
    bench_close(&b);
}

static void requests_for_an_earlier_life_are_refused(void **state)
{
    struct bench b;
    bench_open(&b);
    struct lead l = lead_of(1, 0);
    replica_manager_set_broker_epoch(b.m, 50);
    l.broker_epoch = 49;
    l.controller_epoch = 9;
    assert_int_equal(bench_lead(&b, "t", 0, l), KERR_STALE_BROKER_EPOCH);
    l.controller_epoch = 0; /* the refused one's controller epoch was not remembered */
    l.broker_epoch = 51;    /* our own registration is just under way */
    assert_int_equal(bench_lead(&b, "t", 0, l), KERR_NONE);
    l.broker_epoch = -1;
    l.leader_epoch = 1;
    assert_int_equal(bench_lead(&b, "t", 0, l), KERR_NONE);
    bench_close(&b);
}

/* ---- what all are told ---- */

/* t-0 is led by that broker in that epoch, on these two replicas. */
static void tell_leader(struct bench *b, bool grouped, int32_t leader, int32_t epoch,
                        const int32_t *replicas, struct uuid id)
{
    struct update_metadata_request req;
    struct update_metadata_request_topic_state topic;
    struct update_metadata_request_partition_state p;
    update_metadata_request_init(&req);
    update_metadata_request_topic_state_init(&topic);
    update_metadata_request_partition_state_init(&p);
    p.leader = leader;
    p.leader_epoch = epoch;
    p.replicas.v = p.isr.v = (int32_t *)replicas;
    p.replicas.n = p.isr.n = 2;
    topic.topic_name = p.topic_name = STR_LIT("t");
    topic.topic_id = id;
    topic.partition_states.v = &p;
    topic.partition_states.n = 1;
    if (grouped) {
        req.topic_states.v = &topic;
        req.topic_states.n = 1;
    } else {
        req.ungrouped_partition_states.v = &p;
        req.ungrouped_partition_states.n = 1;
    }
    assert_int_equal(replica_manager_update_metadata(b->m, &req), KERR_NONE);
}

/* It was away when the partition got another leader, or other replicas: no LeaderAndIsr tells it.
 */
static void who_was_left_behind_steps_down(void **state)
{
    static const struct {
        int32_t role, leader, epoch; /* role: the leader it was told, in epoch 5 */
        const int32_t *replicas;
        uint8_t id; /* of the topic; it was told 7 */
        const char *after;
    } cases[] = {
        {1, 2, 6, two, 0, "none"},
        {1, 2, 6, others, 7, "none"},
        {1, 1, 6, two, 7, "leader"}, /* its LeaderAndIsr is on its way */
        {1, 2, 5, two, 7, "leader"}, /* old news */
        {1, 2, 4, others, 7, "leader"},
        {1, 2, 6, two, 8, "leader"},   /* of a topic that was deleted, or that will be made */
        {2, 2, 6, two, 7, "follower"}, /* as before, its LeaderAndIsr is on its way */
        {2, 2, 5, others, 7, "follower"},
        {2, 3, 6, others, 0, "none"},
    };
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        size_t k = i / 2;
        struct bench b;
        bench_open(&b);
        struct lead l = lead_of(cases[k].role, 5);
        l.id = id_of(7);
        assert_int_equal(bench_lead(&b, "t", 0, l), KERR_NONE);
        bool grouped = i % 2 == 0 || cases[k].id != 0;
        tell_leader(&b, grouped, cases[k].leader, cases[k].epoch, cases[k].replicas,
                    cases[k].id ? id_of(cases[k].id) : UUID_ZERO);
        assert_string_equal(state_of(&b, "t", 0), cases[k].after);
        l = lead_of(1, 7); /* what it is told then holds */
        l.id = id_of(7);
        assert_int_equal(bench_lead(&b, "t", 0, l), KERR_NONE);
        assert_string_equal(state_of(&b, "t", 0), "leader");
        bench_close(&b);
    }
}

/* ---- topic ids ---- */

static void topic_id_is_kept_and_defended(void **state)
{
    struct bench b;
    bench_open(&b);
    struct lead l = lead_of(1, 0);
    l.id = id_of(1);
    assert_int_equal(bench_lead(&b, "t", 0, l), KERR_NONE);
    l.id = id_of(2);
    l.leader_epoch = 1;
    assert_int_equal(bench_lead(&b, "t", 0, l), KERR_INCONSISTENT_TOPIC_ID);
    enum kerr why;
    struct partition *p = replica_manager_find(b.m, bench_tp("t", 0), &why);
    assert_int_equal(partition_leader_epoch(p), 0);
    assert_true(uuid_eq(partition_topic_id(p), id_of(1)));
    struct log *log = partition_log(p);
    assert_true(uuid_eq(log_topic_id(log), id_of(1)));
    log_unref(log);
    partition_unref(p);
    bench_close(&b);
}

static void id_of_a_log_on_disk_counts_before_any_role(void **state)
{
    struct bench b;
    bench_open(&b);
    struct log *log;
    assert_int_equal(
        log_manager_get_or_create(b.logs, bench_tp("t", 0), true, id_of(1), &b.config, &log),
        KERR_NONE);
    log_unref(log);
    struct lead l = lead_of(1, 0);
    l.id = id_of(2);
    assert_int_equal(bench_lead(&b, "t", 0, l), KERR_INCONSISTENT_TOPIC_ID);
    assert_string_equal(state_of(&b, "t", 0), "none");
    bench_close(&b);
}

static void id_may_come_later_in_the_same_epoch(void **state)
{
    struct bench b;
    bench_open(&b);
    struct lead l = lead_of(1, 0);
    assert_int_equal(bench_lead(&b, "t", 0, l), KERR_NONE);
    l.id = id_of(1);
    assert_int_equal(bench_lead(&b, "t", 0, l), KERR_NONE);
    assert_int_equal(bench_lead(&b, "t", 0, l), KERR_STALE_CONTROLLER_EPOCH);
    enum kerr why;
    struct partition *p = replica_manager_find(b.m, bench_tp("t", 0), &why);
    assert_true(uuid_eq(partition_topic_id(p), id_of(1)));
    partition_unref(p);
    l = lead_of(2, 1); /* a follower may go back to names */
    assert_int_equal(bench_lead(&b, "t", 0, l), KERR_NONE);
    assert_int_equal(bench_lead(&b, "t", 0, l), KERR_NONE);
    bench_close(&b);
}

/* ---- StopReplica ---- */

static void stop_goes_by_the_leader_epoch(void **state)
{
    struct bench b;
    struct {
        int32_t epoch;
        bool delete;
        enum kerr error;
        bool there;
    } t[] = {
        {4, true, KERR_FENCED_LEADER_EPOCH, true},
        {5, false, KERR_NONE, true},
        {5, true, KERR_NONE, false},
        {6, true, KERR_NONE, false},
        {-1, true, KERR_NONE, false},
        {-2, true, KERR_NONE, false},
        {-1, false, KERR_NONE, true},
    };
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        bench_open(&b);
        assert_int_equal(bench_lead(&b, "t", 0, lead_of(1, 5)), KERR_NONE);
        assert_int_equal(bench_stop(&b, "t", 0, t[i].epoch, t[i].delete), t[i].error);
        assert_string_equal(state_of(&b, "t", 0), t[i].there ? "leader" : "NOT_LEADER_OR_FOLLOWER");
        assert_int_equal(log_manager_count(b.logs), t[i].there);
        bench_close(&b);
    }
}

static void stop_of_the_unknown_removes_a_log_that_lies_around(void **state)
{
    struct bench b;
    struct log *log;
    bench_open(&b);
    assert_int_equal(bench_stop(&b, "t", 0, 3, true), KERR_NONE);
    assert_int_equal(
        log_manager_get_or_create(b.logs, bench_tp("t", 0), true, UUID_ZERO, &b.config, &log),
        KERR_NONE);
    log_unref(log);
    assert_int_equal(bench_stop(&b, "t", 0, 3, false), KERR_NONE);
    assert_int_equal(log_manager_count(b.logs), 1);
    assert_int_equal(bench_stop(&b, "t", 0, 3, true), KERR_NONE);
    assert_int_equal(log_manager_count(b.logs), 0);
    bench_close(&b);
}

static void topic_can_be_made_again_at_once(void **state)
{
    struct bench b;
    bench_open(&b);
    struct lead l = lead_of(1, 5);
    l.id = id_of(1);
    assert_int_equal(bench_lead(&b, "t", 0, l), KERR_NONE);
    enum kerr why;
    struct partition *old = replica_manager_find(b.m, bench_tp("t", 0), &why);
    bench_append(&b, old, 3, 1, NULL);
    assert_int_equal(bench_stop(&b, "t", 0, -2, true), KERR_NONE);
    l = lead_of(1, 0);
    l.id = id_of(2);
    assert_int_equal(bench_lead(&b, "t", 0, l), KERR_NONE);
    struct partition *p = replica_manager_find(b.m, bench_tp("t", 0), &why);
    assert_ptr_not_equal(p, old);
    struct partition_append done;
    assert_int_equal(bench_append(&b, old, 1, 1, NULL), KERR_NOT_LEADER_OR_FOLLOWER);
    assert_int_equal(bench_append(&b, p, 1, 1, &done), KERR_NONE);
    assert_int_equal(done.info.first_offset, 0);
    partition_unref(old);
    partition_unref(p);
    bench_close(&b);
}

/* ---- log dirs ---- */

static void failed_dir_takes_its_own_partitions_offline(void **state)
{
    struct bench b;
    bench_open_dirs(&b, 2);
    /* Dirs are filled evenly: two partitions in each. */
    for (int32_t i = 0; i < 4; i++)
        assert_int_equal(bench_lead(&b, "t", i, lead_of(1, 0)), KERR_NONE);
    enum kerr why;
    struct partition *p = replica_manager_find(b.m, bench_tp("t", 0), &why);
    struct log *log = partition_log(p);
    char pattern[64];
    snprintf(pattern, sizeof pattern, "%s/*", log_dir_path(log_dir_of(log)));
    log_unref(log);
    fs_fault_add(
        b.fault,
        (struct fs_fault_rule){
            .call = FS_PWRITEV, .path = pattern, .times = -1, .error = EIO, .write_bytes = -1});
    assert_int_equal(bench_append(&b, p, 1, 1, NULL), KERR_KAFKA_STORAGE_ERROR);
    sim_executor_drain(b.sim);
    assert_int_equal(bench_append(&b, p, 1, 1, NULL), KERR_KAFKA_STORAGE_ERROR);
    assert_int_equal(bench_fetch(&b, p, -1, 0, NULL), KERR_KAFKA_STORAGE_ERROR);
    partition_unref(p);
    int offline = 0;
    for (int32_t i = 0; i < 4; i++)
        offline += !strcmp(state_of(&b, "t", i), "KAFKA_STORAGE_ERROR");
    assert_int_equal(offline, 2);
    assert_int_equal(bench_lead(&b, "t", 0, lead_of(1, 1)), KERR_KAFKA_STORAGE_ERROR);
    assert_int_equal(bench_stop(&b, "t", 0, -2, true), KERR_KAFKA_STORAGE_ERROR);
    /* What may lie in the failed dir is neither made anew nor said to be deleted. */
    struct lead l = lead_of(1, 0);
    l.is_new = false;
    assert_int_equal(bench_lead(&b, "u", 0, l), KERR_KAFKA_STORAGE_ERROR);
    assert_int_equal(bench_stop(&b, "u", 1, -2, true), KERR_KAFKA_STORAGE_ERROR);
    l.is_new = true;
    assert_int_equal(bench_lead(&b, "u", 2, l), KERR_NONE);
    bench_close(&b);
}

/* ---- restart ---- */

/* Thousands of them start in seconds only if nothing is written for each. */
static void start_of_quiet_logs_writes_nothing(void **state)
{
    struct bench b;
    enum kerr why;
    int32_t epoch;
    int64_t end;
    bench_open(&b);
    struct lead l = lead_of(1, 4);
    l.isr = l.replicas = one;
    l.isr_n = l.replicas_n = 1;
    l.id = id_of(1);
    for (int32_t i = 0; i < 2; i++)
        assert_int_equal(bench_lead(&b, "t", i, l), KERR_NONE);
    struct partition *p = replica_manager_find(b.m, bench_tp("t", 1), &why);
    bench_append(&b, p, 3, 1, NULL);
    partition_unref(p);
    bench_stop_logs(&b);
    uint64_t before[FS_CALLS];
    for (int i = 0; i < FS_CALLS; i++)
        before[i] = fs_fault_count(b.fault, (enum fs_call)i);
    bench_open_logs(&b);
    l.is_new = false; /* the same leadership, as a controller tells it after a start */
    for (int32_t i = 0; i < 2; i++)
        assert_int_equal(bench_lead(&b, "t", i, l), KERR_NONE);
    assert_int_equal(fs_fault_count(b.fault, FS_SYNC), before[FS_SYNC]);
    assert_int_equal(fs_fault_count(b.fault, FS_PWRITEV), before[FS_PWRITEV]);
    assert_int_equal(fs_fault_count(b.fault, FS_SYNC_DIR),
                     before[FS_SYNC_DIR] + 1); /* clean mark */
    for (int32_t i = 0; i < 2; i++) {
        p = replica_manager_find(b.m, bench_tp("t", i), &why);
        assert_int_equal(partition_epoch_end(p, 4, 4, &epoch, &end), KERR_NONE);
        assert_int_equal(epoch, 4);
        assert_int_equal(end, i ? 3 : 0);
        assert_int_equal(bench_hw(p), i ? 3 : 0);
        partition_unref(p);
    }
    bench_close(&b);
}

/* A cut that was not written at the start is written before records of another epoch follow. */
static void unsaved_cut_is_saved_by_the_next_append(void **state)
{
    struct bench b;
    enum kerr why;
    bench_open(&b);
    struct lead l = lead_of(1, 0);
    l.isr = l.replicas = one;
    l.isr_n = l.replicas_n = 1;
    assert_int_equal(bench_lead(&b, "t", 0, l), KERR_NONE);
    struct partition *p = replica_manager_find(b.m, bench_tp("t", 0), &why);
    bench_append(&b, p, 2, 1, NULL);
    partition_unref(p);
    l.leader_epoch = 1; /* begins at 2, without a record */
    assert_int_equal(bench_lead(&b, "t", 0, l), KERR_NONE);
    bench_stop_logs(&b);
    bench_open_logs(&b);
    l = lead_of(2, 2);
    assert_int_equal(bench_lead(&b, "t", 0, l), KERR_NONE);
    p = replica_manager_find(b.m, bench_tp("t", 0), &why);
    struct log *log = partition_log(p);
    assert_int_equal(log_latest_epoch(log), 0);
    /* The new leader has more of epoch 0. */
    struct batch_options o = BATCH_OPTIONS_DEFAULT;
    o.leader_epoch = 0;
    struct batch_builder *batch = batch_builder_new(&o);
    struct buf bytes = BUF_INIT;
    struct prepared pr;
    struct append_info done;
    batch_builder_add(batch, 2, 1700000000000, BYTES_NULL, BYTES_NULL, NULL, 0);
    batch_builder_finish(batch, &bytes);
    batch_builder_free(batch);
    struct append_policy policy = {
        .origin = APPEND_REPLICATION, .produce_version = -1, .max_message_bytes = 1 << 20};
    assert_int_equal(records_prepare(&policy, bytes.p, bytes.len, &b.a, &pr), KERR_NONE);
    assert_int_equal(log_append_as_follower(log, &pr, &done), KERR_NONE);
    prepared_free(&pr);
    buf_free(&bytes);
    char path[128], *text;
    size_t n;
    snprintf(path, sizeof path, "%s/t-0/leader-epoch-checkpoint", b.dirs[0]);
    assert_int_equal(fs_read_all(fs_posix(), path, 1000, &text, &n), 0);
    assert_string_equal(text, "0\n1\n0 0\n");
    free(text);
    log_unref(log);
    partition_unref(p);
    bench_close(&b);
}

/* ---- many partitions, on real workers ---- */

#define MANY 100

/* LeaderAndIsr for partitions 0..MANY-1 of t, the first ten of them twice. */
static void many_are_made_and_deleted_at_once(void **state)
{
    struct bench b;
    struct workers *real;
    static struct leader_and_isr_request_partition_state p[MANY + 10];
    static struct stop_replica_request_partition_state s[MANY];
    struct leader_and_isr_request lead;
    struct leader_and_isr_request_topic_state topic;
    struct leader_and_isr_response led;
    struct stop_replica_request stop;
    struct stop_replica_request_topic_state stop_topic;
    struct stop_replica_response stopped;
    bench_open_dirs(&b, 2);
    b.config.segment_index_bytes = 4096;
    assert_int_equal(workers_start("w", 4, &real), 0);
    b.m->o.workers = real;
    leader_and_isr_request_init(&lead);
    leader_and_isr_response_init(&led);
    leader_and_isr_request_topic_state_init(&topic);
    topic.topic_name = STR_LIT("t");
    topic.topic_id = id_of(1);
    topic.partition_states.v = p;
    topic.partition_states.n = MANY + 10;
    lead.topic_states.v = &topic;
    lead.topic_states.n = 1;
    for (int32_t i = 0; i < MANY + 10; i++) {
        leader_and_isr_request_partition_state_init(&p[i]);
        p[i].partition_index = i % MANY;
        p[i].leader = 1;
        p[i].isr.v = p[i].replicas.v = (int32_t *)one;
        p[i].isr.n = p[i].replicas.n = 1;
        p[i].is_new = true;
    }
    replica_manager_become(b.m, 7, &lead, &b.a, &led);
    assert_int_equal(led.error_code, KERR_NONE);
    for (int32_t i = 0; i < MANY + 10; i++) {
        assert_int_equal(led.topics.v[0].partition_errors.v[i].partition_index, i % MANY);
        assert_int_equal(led.topics.v[0].partition_errors.v[i].error_code,
                         i < MANY ? KERR_NONE : KERR_STALE_CONTROLLER_EPOCH);
    }
    assert_int_equal(replica_manager_count(b.m), MANY);
    assert_int_equal(log_manager_count(b.logs), MANY);
    assert_string_equal(state_of(&b, "t", MANY - 1), "leader");

    stop_replica_request_init(&stop);
    stop_replica_response_init(&stopped);
    stop_replica_request_topic_state_init(&stop_topic);
    stop_topic.topic_name = STR_LIT("t");
    stop_topic.partition_states.v = s;
    stop_topic.partition_states.n = MANY;
    stop.topic_states.v = &stop_topic;
    stop.topic_states.n = 1;
    for (int32_t i = 0; i < MANY; i++)
        s[i] = (struct stop_replica_request_partition_state){i, -2, true};
    replica_manager_stop(b.m, &stop, &b.a, &stopped);
    assert_int_equal(stopped.error_code, KERR_NONE);
    assert_int_equal(stopped.partition_errors.n, MANY);
    for (int32_t i = 0; i < MANY; i++) {
        assert_int_equal(stopped.partition_errors.v[i].partition_index, i);
        assert_int_equal(stopped.partition_errors.v[i].error_code, KERR_NONE);
    }
    assert_int_equal(replica_manager_count(b.m), 0);
    assert_int_equal(log_manager_count(b.logs), 0);
    workers_stop(real);
    b.m->o.workers = b.workers;
    bench_close(&b);
}

/* Partitions 0..MANY-1 of `topics` topics, the first of them called "a", led by the broker in this
 * epoch. */
static void lead_many(struct bench *b, int version, int topics, int32_t epoch)
{
    static const char *const names[] = {"a", "b", "c"};
    static struct leader_and_isr_request_partition_state p[3 * MANY];
    struct leader_and_isr_request_topic_state states[3];
    struct leader_and_isr_request lead;
    struct leader_and_isr_response led;
    leader_and_isr_request_init(&lead);
    leader_and_isr_response_init(&led);
    for (int32_t i = 0; i < topics * MANY; i++) {
        leader_and_isr_request_partition_state_init(&p[i]);
        p[i].topic_name = str_of(names[i / MANY]);
        p[i].partition_index = i % MANY;
        p[i].leader = 1;
        p[i].leader_epoch = epoch;
        p[i].isr.v = p[i].replicas.v = (int32_t *)one;
        p[i].isr.n = p[i].replicas.n = 1;
        p[i].is_new = epoch == 0;
    }
    for (int t = 0; t < topics; t++) {
        leader_and_isr_request_topic_state_init(&states[t]);
        states[t].topic_name = str_of(names[t]);
        states[t].partition_states.v = &p[t * MANY];
        states[t].partition_states.n = MANY;
    }
    if (version < 2) {
        lead.ungrouped_partition_states.v = p;
        lead.ungrouped_partition_states.n = topics * MANY;
    } else {
        lead.topic_states.v = states;
        lead.topic_states.n = topics;
    }
    replica_manager_become(b->m, version, &lead, &b->a, &led);
    assert_int_equal(led.error_code, KERR_NONE);
    assert_int_equal(replica_manager_count(b->m), topics * MANY);
}

/* Settings are a question to the store: one for a topic that is new here, none for what is known.
 */
static void settings_are_asked_for_once_a_topic(void **state)
{
    static const int versions[] = {1, 2, 7};
    struct workers *real;
    for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
        struct bench b;
        bench_open(&b);
        b.config.segment_index_bytes = 4096; /* (a sanitizer's shadow of maps is memory) */
        assert_int_equal(workers_start("w", 4, &real), 0);
        b.m->o.workers = real;
        lead_many(&b, versions[i], 3, 0);
        assert_int_equal(b.settings_asked, 3);
        lead_many(&b, versions[i], 3, 1);
        assert_int_equal(b.settings_asked, 3);
        workers_stop(real);
        b.m->o.workers = b.workers;
        /* Another life: the logs are there, the topics are new. */
        bench_stop_logs(&b);
        bench_open_logs(&b);
        lead_many(&b, versions[i], 3, 2);
        assert_int_equal(b.settings_asked, 6);
        lead_many(&b, versions[i], 3, 3);
        assert_int_equal(b.settings_asked, 6);
        bench_close(&b);
    }
}

/* ---- threads ---- */

struct crowd {
    struct bench *b;
    atomic_bool stop, disorder;
    _Atomic int64_t appended;
};

static void *reader(void *arg)
{
    struct crowd *c = arg;
    while (!atomic_load(&c->stop)) {
        enum kerr why;
        struct partition *p = replica_manager_find(c->b->m, bench_tp("t", 0), &why);
        if (!p)
            continue;
        struct partition_read read;
        struct partition_read_args args = {.replica_id = -1,
                                           .current_leader_epoch = -1,
                                           .last_fetched_epoch = -1,
                                           .max_bytes = 1000};
        if (partition_read(p, &args, NULL, &read) == KERR_NONE) {
            if (read.log_start_offset > read.last_stable_offset ||
                read.last_stable_offset > read.high_watermark ||
                read.high_watermark > read.log_end_offset)
                atomic_store(&c->disorder, true);
            file_unref(read.slice.file);
        }
        partition_unref(p);
    }
    return NULL;
}

static void *appender(void *arg)
{
    struct crowd *c = arg;
    while (!atomic_load(&c->stop)) {
        enum kerr why;
        struct partition *p = replica_manager_find(c->b->m, bench_tp("t", 0), &why);
        if (p && bench_append(c->b, p, 2, 1, NULL) == KERR_NONE)
            atomic_fetch_add(&c->appended, 2);
        partition_unref(p);
    }
    return NULL;
}

/* Roles change, and the topic is deleted and made again, under readers and appenders. */
static void roles_change_under_load(void **state)
{
    struct bench b;
    bench_open(&b);
    struct crowd c = {.b = &b};
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, i < 2 ? reader : appender, &c);
    for (int32_t life = 0; life < 10; life++) {
        struct lead l = lead_of(1, 0);
        l.isr = l.replicas = one;
        l.isr_n = l.replicas_n = 1;
        int64_t before = atomic_load(&c.appended);
        for (int32_t epoch = 0; epoch < 20; epoch++) {
            l.leader_epoch = epoch;
            l.leader = epoch % 4 == 3 ? 2 : 1;
            assert_int_equal(bench_lead(&b, "t", 0, l), KERR_NONE);
        }
        l.leader = 1;
        l.leader_epoch = 20;
        assert_int_equal(bench_lead(&b, "t", 0, l), KERR_NONE);
        while (atomic_load(&c.appended) == before)
            sched_yield();
        assert_int_equal(bench_stop(&b, "t", 0, -2, true), KERR_NONE);
    }
    atomic_store(&c.stop, true);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_false(c.disorder);
    bench_close(&b);
}

UNIT_MAIN(unit_test(look_ups_tell_why),
          unit_test(every_version_of_the_request_is_answered_in_its_form),
          unit_test(leader_epochs_decide), unit_test(older_partition_epoch_changes_nothing),
          unit_test(not_among_the_replicas), unit_test(bad_names_make_no_folder),
          unit_test(leader_unknown_to_the_metadata_still_gets_us_a_log),
          unit_test(a_leader_is_followed_once_it_is_known_to_live),
          unit_test(a_leader_that_comes_too_late_is_not_followed),
          unit_test(old_controllers_are_refused_whatever_they_send),
          unit_test(requests_for_an_earlier_life_are_refused),
          unit_test(who_was_left_behind_steps_down), unit_test(topic_id_is_kept_and_defended),
          unit_test(id_of_a_log_on_disk_counts_before_any_role),
          unit_test(id_may_come_later_in_the_same_epoch), unit_test(stop_goes_by_the_leader_epoch),
          unit_test(stop_of_the_unknown_removes_a_log_that_lies_around),
          unit_test(topic_can_be_made_again_at_once),
          unit_test(failed_dir_takes_its_own_partitions_offline),
          unit_test(start_of_quiet_logs_writes_nothing),
          unit_test(unsaved_cut_is_saved_by_the_next_append),
          unit_test(many_are_made_and_deleted_at_once),
          unit_test(settings_are_asked_for_once_a_topic), unit_test(roles_change_under_load))
