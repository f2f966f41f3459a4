/* Partitions that move to other brokers: from the request to the last folder gone, cancelled, given
 * another target, and with a controller that dies in the middle. */
#include "controller/sim_cluster.h"

#include "protocol/api.h"
#include "protocol/msg/alter_partition.h"
#include "protocol/msg/alter_partition_reassignments.h"
#include "protocol/msg/list_partition_reassignments.h"

static struct sim_cluster cluster;

struct call {
    struct controller_call call;
    bool done;
    union {
        struct alter_partition_reassignments_response moves;
        struct list_partition_reassignments_response list;
        struct alter_partition_response isr;
    } out;
};

static void on_done(struct controller_call *call)
{
    container_of(call, struct call, call)->done = true;
}

static void begin(struct sim_cluster *c, struct call *k, int16_t api, int version,
                  const void *request)
{
    memset(k, 0, sizeof(*k));
    msg_init(api_find(api)->response, &k->out);
    k->call = (struct controller_call){.api_key = api,
                                       .version = version,
                                       .request = request,
                                       .response = &k->out,
                                       .arena = &c->arena,
                                       .done_on = c->ex,
                                       .done = on_done};
    controller_call(sim_active(c)->controller, &k->call);
}

/* Asks to move t-`partition`; n < 0: cancels. Not drained. */
static void ask_move(struct sim_cluster *c, const char *topic, int32_t partition,
                     const int32_t *target, int n, struct call *k)
{
    static struct alter_partition_reassignments_request q;
    static struct alter_partition_reassignments_request_topic t;
    static struct alter_partition_reassignments_request_partition p;
    alter_partition_reassignments_request_init(&q);
    alter_partition_reassignments_request_topic_init(&t);
    alter_partition_reassignments_request_partition_init(&p);
    q.topics.v = &t;
    q.topics.n = 1;
    t.name = str_of(topic);
    t.partitions.v = &p;
    t.partitions.n = 1;
    p.partition_index = partition;
    p.replicas.v = (int32_t *)target;
    p.replicas.n = n;
    begin(c, k, API_ALTER_PARTITION_REASSIGNMENTS, 0, &q);
}

static int move(struct sim_cluster *c, const char *topic, int32_t partition, const int32_t *target,
                int n)
{
    struct call k;
    ask_move(c, topic, partition, target, n, &k);
    sim_drain(c);
    assert_true(k.done);
    assert_int_equal(k.call.refused, KERR_NONE);
    return k.out.moves.responses.v[0].partitions.v[0].error_code;
}

/* Of its registration; that of one that bounced is not its registrar's. */
static int64_t epoch_of(struct sim_cluster *c, int32_t broker)
{
    char path[32];
    snprintf(path, sizeof(path), "/brokers/ids/%d", (int)broker);
    struct store_op op = store_op_exists(path, false);
    assert_int_equal(run_op(c->base, &op), 0);
    return op.stat.czxid;
}

/* The leader has found these in sync, and says so. */
static int sync_up(struct sim_cluster *c, const int32_t *isr, int n)
{
    static struct alter_partition_request q;
    static struct alter_partition_request_topic t;
    static struct alter_partition_request_partition p;
    static struct alter_partition_request_new_isr_with_epoch members[8];
    struct call k;
    int32_t epoch;
    struct partition_node now = sim_state(c, "t", 0, &epoch);
    alter_partition_request_init(&q);
    alter_partition_request_topic_init(&t);
    alter_partition_request_partition_init(&p);
    const struct metadata_snapshot *s = metadata_acquire(sim_active(c)->cache);
    t.topic_id = metadata_topic(s, STR_LIT("t"))->id;
    metadata_release(s);
    q.broker_id = now.leader;
    q.broker_epoch = epoch_of(c, now.leader);
    q.topics.v = &t;
    q.topics.n = 1;
    t.partitions.v = &p;
    t.partitions.n = 1;
    p.leader_epoch = now.leader_epoch;
    p.partition_epoch = epoch;
    for (int i = 0; i < n; i++) {
        alter_partition_request_new_isr_with_epoch_init(&members[i]);
        members[i].broker_id = isr[i];
    }
    p.new_isr_with_epochs.v = members;
    p.new_isr_with_epochs.n = n;
    begin(c, &k, API_ALTER_PARTITION, 3, &q);
    sim_drain(c);
    assert_true(k.done);
    return k.out.isr.error_code ? k.out.isr.error_code
                                : k.out.isr.topics.v[0].partitions.v[0].error_code;
}

/* As the leaders of old levels do: themselves, and the controller hears of it later. */
static void write_isr(struct sim_cluster *c, const int32_t *isr, int n)
{
    struct partition_node p = sim_state(c, "t", 0, NULL);
    p.isr = (struct id_list){(int32_t *)isr, n};
    struct store_op op = store_op_set("/brokers/topics/t/partitions/0/state",
                                      znode_partition_encode(&p, &c->arena), STORE_ANY_VERSION);
    assert_int_equal(run_op(c->base, &op), 0);
}

static void tell_isr(struct sim_cluster *c)
{
    struct named_partition named = {.topic = STR_LIT("t")};
    struct bytes data = znode_partitions_encode((struct named_partitions){&named, 1}, &c->arena);
    create(c->base, "/isr_change_notification/isr_change_", (const char *)data.p, STORE_SEQUENTIAL);
}

static void node_is(struct sim_cluster *c, const char *text)
{
    struct topic_node node;
    struct store_op get = store_op_get("/brokers/topics/t", false);
    struct arena a;
    arena_init(&a, 0);
    assert_int_equal(run_op(c->base, &get), 0);
    assert_int_equal(znode_topic_decode(get.result, &a, &node), 0);
    node.id = UUID_ZERO;
    struct bytes data = znode_topic_encode(&node, &a);
    assert_string_equal((const char *)data.p, text);
    arena_free(&a);
    free((void *)get.result.p);
}

static int listed(struct sim_cluster *c)
{
    static struct list_partition_reassignments_request q;
    struct call k;
    list_partition_reassignments_request_init(&q);
    q.topics.n = -1;
    begin(c, &k, API_LIST_PARTITION_REASSIGNMENTS, 0, &q);
    sim_drain(c);
    assert_true(k.done);
    return k.out.list.topics.n ? k.out.list.topics.v[0].partitions.n : 0;
}

static void open_with_topic(struct sim_cluster *c)
{
    static const int32_t origin[] = {0, 1};
    sim_start(c, 4);
    assert_int_equal(sim_create_assigned(c, "t", origin, 2), 0);
}

/* The same, and broker 4, which hosts nothing of it, is the controller. */
static void open_with_controller_apart(struct sim_cluster *c)
{
    static const int32_t origin[] = {0, 1};
    sim_start(c, 5);
    while (sim_active(c)->id != 4) {
        int32_t id = sim_active(c)->id;
        sim_broker_kill(c, id, false);
        sim_drain(c);
        sim_broker_start(c, id);
        sim_drain(c);
    }
    assert_int_equal(sim_create_assigned(c, "t", origin, 2), 0);
}

static const int32_t target[] = {2, 3};
#define DONE \
    "{\"version\":3,\"partitions\":{\"0\":[2,3]},\"adding_replicas\":{},\"removing_replicas\":{}}"
#define ORIGIN \
    "{\"version\":3,\"partitions\":{\"0\":[0,1]},\"adding_replicas\":{},\"removing_replicas\":{}}"
#define MOVING                                                                           \
    "{\"version\":3,\"partitions\":{\"0\":[2,3,0,1]},\"adding_replicas\":{\"0\":[2,3]}," \
    "\"removing_replicas\":{\"0\":[0,1]}}"

static void a_partition_moves(void **state)
{
    struct sim_cluster *c = &cluster;
    open_with_topic(c);
    assert_int_equal(listed(c), 0);
    assert_int_equal(move(c, "t", 0, target, 2), 0);
    node_is(c, MOVING);
    assert_int_equal(listed(c), 1);
    struct partition_node p = sim_state(c, "t", 0, NULL);
    assert_int_equal(p.leader, 0);
    assert_int_equal(p.leader_epoch, 1); /* so that the leader hears of the new ones */
    for (int32_t id = 0; id < 4; id++)
        assert_int_equal(sim_replica(c, id, "t", 0)->leader_epoch, 1);
    static const int32_t three[] = {0, 1, 2}, all[] = {0, 1, 2, 3};
    assert_int_equal(sync_up(c, three, 3), 0);
    node_is(c, MOVING);
    assert_int_equal(sync_up(c, all, 4), 0);
    node_is(c, DONE);
    p = sim_state(c, "t", 0, NULL);
    assert_int_equal(p.leader, 2);
    assert_int_equal(p.isr.n, 2);
    assert_null(sim_replica(c, 0, "t", 0));
    assert_null(sim_replica(c, 1, "t", 0));
    assert_int_equal(sim_replica(c, 3, "t", 0)->leader, 2);
    assert_int_equal(listed(c), 0);
    sim_check(c);
    assert_int_equal(sim_delete_topic(c, "t"), 0); /* nothing holds it up */
    sim_check(c);
    assert_false(sim_exists(c, "/brokers/topics/t"));
    sim_stop(c);
}

static void more_and_fewer_replicas(void **state)
{
    struct sim_cluster *c = &cluster;
    open_with_topic(c);
    static const int32_t more[] = {0, 1, 2}, fewer[] = {1};
    assert_int_equal(move(c, "t", 0, more, 3), 0);
    assert_int_equal(sync_up(c, more, 3), 0);
    assert_int_equal(listed(c), 0);
    assert_int_equal(sim_state(c, "t", 0, NULL).leader, 0); /* stays where it is */
    assert_int_equal(move(c, "t", 0, fewer, 1), 0);         /* in sync: at once */
    node_is(c, "{\"version\":3,\"partitions\":{\"0\":[1]},\"adding_replicas\":{},"
               "\"removing_replicas\":{}}");
    assert_int_equal(sim_state(c, "t", 0, NULL).leader, 1);
    assert_int_equal(sim_state(c, "t", 0, NULL).isr.n, 1);
    assert_null(sim_replica(c, 2, "t", 0));
    sim_check(c);
    sim_stop(c);
}

#define SECOND \
    "{\"version\":3,\"partitions\":{\"0\":[1]},\"adding_replicas\":{},\"removing_replicas\":{}}"
#define SWAPPED \
    "{\"version\":3,\"partitions\":{\"0\":[1,0]},\"adding_replicas\":{},\"removing_replicas\":{}}"

/* The ISR that is known has the target, the one in the store has it no more: the replicas that are
 * to go have the only full copies, and stay until the target is in sync. */
static void nothing_is_deleted_while_the_target_cannot_lead(void **state)
{
    for (int ends = 0; ends < 3; ends++) {
        struct sim_cluster *c = &cluster;
        static const int32_t two[] = {0, 1}, first[] = {0}, second[] = {1};
        open_with_topic(c);
        write_isr(c, first, 1);
        assert_int_equal(move(c, "t", 0, second, 1), 0);
        node_is(c, "{\"version\":3,\"partitions\":{\"0\":[1,0]},\"adding_replicas\":{},"
                   "\"removing_replicas\":{\"0\":[0]}}");
        assert_int_equal(listed(c), 1);
        assert_int_equal(sim_state(c, "t", 0, NULL).leader, 0);
        assert_non_null(sim_replica(c, 0, "t", 0));
        assert_false(sim_replica(c, 0, "t", 0)->stopped);
        assert_int_equal(sim_replica(c, 0, "t", 0)->leader, 0);
        if (ends == 0) { /* in sync again */
            write_isr(c, two, 2);
            tell_isr(c);
            sim_drain(c);
        } else if (ends == 1) {
            assert_int_equal(sync_up(c, two, 2), 0);
        } else { /* cancelled */
            assert_int_equal(move(c, "t", 0, NULL, -1), 0);
        }
        node_is(c, ends < 2 ? SECOND : SWAPPED);
        assert_int_equal(listed(c), 0);
        assert_int_equal(sim_state(c, "t", 0, NULL).leader, ends < 2);
        assert_int_equal(sim_replica(c, 0, "t", 0) != NULL, ends == 2);
        sim_check(c);
        assert_int_equal(sim_delete_topic(c, "t"), 0); /* the counts of states are right */
        sim_check(c);
        assert_false(sim_exists(c, "/brokers/topics/t"));
        sim_stop(c);
    }
}

/* The same where the target was added, and leaves the ISR at each moment of the end; then it is
 * back, or the move is cancelled. */
static void an_added_target_that_cannot_lead_yet_goes_on(void **state)
{
    int kept = 0;
    for (int steps = 0; steps < 60; steps++) {
        struct sim_cluster *c = &cluster;
        static const int32_t two[] = {0, 1}, three[] = {0, 1, 2}, third[] = {2};
        int32_t version;
        open_with_topic(c);
        assert_int_equal(move(c, "t", 0, third, 1), 0);
        write_isr(c, three, 3);
        struct partition_node p = sim_state(c, "t", 0, &version);
        p.isr = (struct id_list){(int32_t *)two, 2};
        struct store_op leave = store_op_set("/brokers/topics/t/partitions/0/state",
                                             znode_partition_encode(&p, &c->arena), version);
        tell_isr(c);
        for (int i = 0; i < steps; i++)
            sim_executor_step(c->e);
        bool left = run_op(c->base, &leave) == 0; /* else it leads already */
        sim_drain(c);
        assert_int_equal(listed(c), left);
        if (left) {
            kept++;
            for (int32_t id = 0; id < 3; id++)
                assert_false(sim_replica(c, id, "t", 0)->stopped);
            node_is(c, "{\"version\":3,\"partitions\":{\"0\":[2,0,1]},"
                       "\"adding_replicas\":{\"0\":[2]},\"removing_replicas\":{\"0\":[0,1]}}");
            assert_int_equal(sim_state(c, "t", 0, NULL).leader, 0);
        }
        bool cancelled = left && kept % 2;
        if (cancelled) {
            assert_int_equal(move(c, "t", 0, NULL, -1), 0);
            node_is(c, ORIGIN);
        } else if (left) {
            write_isr(c, three, 3);
            tell_isr(c);
            sim_drain(c);
        }
        assert_int_equal(listed(c), 0);
        assert_int_equal(sim_state(c, "t", 0, NULL).leader, cancelled ? 0 : 2);
        for (int32_t id = 0; id < 3; id++)
            assert_int_equal(sim_replica(c, id, "t", 0) != NULL, cancelled == (id < 2));
        sim_check(c);
        assert_int_equal(sim_delete_topic(c, "t"), 0);
        sim_check(c);
        assert_false(sim_exists(c, "/brokers/topics/t"));
        sim_stop(c);
    }
    assert_in_range(kept, 1, 59);
}

static void one_that_cannot_end_does_not_hold_up_the_others(void **state)
{
    static const char *const asked[] = {
        "{\"version\":1,\"partitions\":[{\"topic\":\"t\",\"partition\":0,\"replicas\":[1]},"
        "{\"topic\":\"u\",\"partition\":0,\"replicas\":[1]}]}",
        "{\"version\":1,\"partitions\":[{\"topic\":\"u\",\"partition\":0,\"replicas\":[1]},"
        "{\"topic\":\"t\",\"partition\":0,\"replicas\":[1]}]}"};
    for (int i = 0; i < 2; i++) {
        struct sim_cluster *c = &cluster;
        static const int32_t two[] = {0, 1}, first[] = {0};
        open_with_topic(c);
        assert_int_equal(sim_create_assigned(c, "u", two, 2), 0);
        write_isr(c, first, 1);
        create(c->base, "/admin/reassign_partitions", asked[i], 0);
        sim_drain(c);
        assert_int_equal(listed(c), 1);
        assert_int_equal(sim_state(c, "u", 0, NULL).leader, 1);
        assert_null(sim_replica(c, 0, "u", 0));
        assert_non_null(sim_replica(c, 0, "t", 0));
        assert_true(sim_exists(c, "/admin/reassign_partitions"));
        assert_int_equal(sync_up(c, two, 2), 0);
        node_is(c, SECOND);
        assert_false(sim_exists(c, "/admin/reassign_partitions"));
        sim_check(c);
        sim_stop(c);
    }
}

static void another_order_is_complete_at_once(void **state)
{
    struct sim_cluster *c = &cluster;
    open_with_topic(c);
    static const int32_t swapped[] = {1, 0};
    assert_int_equal(move(c, "t", 0, swapped, 2), 0);
    node_is(c, "{\"version\":3,\"partitions\":{\"0\":[1,0]},\"adding_replicas\":{},"
               "\"removing_replicas\":{}}");
    assert_int_equal(listed(c), 0);
    assert_int_equal(sim_state(c, "t", 0, NULL).leader, 0);
    assert_int_equal(sim_replica(c, 0, "t", 0)->leader_epoch, 1);
    int32_t before;
    sim_state(c, "t", 0, &before);
    assert_int_equal(move(c, "t", 0, swapped, 2), 0); /* as it is: nothing happens */
    int32_t after;
    sim_state(c, "t", 0, &after);
    assert_int_equal(before, after);
    sim_check(c);
    sim_stop(c);
}

static void a_move_is_cancelled(void **state)
{
    for (int joined = 0; joined < 2; joined++) {
        struct sim_cluster *c = &cluster;
        open_with_topic(c);
        assert_int_equal(move(c, "t", 0, NULL, -1), KERR_NO_REASSIGNMENT_IN_PROGRESS);
        assert_int_equal(move(c, "t", 0, target, 2), 0);
        static const int32_t three[] = {0, 1, 2};
        if (joined)
            assert_int_equal(sync_up(c, three, 3), 0);
        assert_int_equal(move(c, "t", 0, NULL, -1), 0);
        node_is(c, ORIGIN);
        struct partition_node p = sim_state(c, "t", 0, NULL);
        assert_int_equal(p.leader, 0);
        assert_int_equal(p.isr.n, 2);
        assert_null(sim_replica(c, 2, "t", 0));
        assert_null(sim_replica(c, 3, "t", 0));
        assert_int_equal(listed(c), 0);
        assert_int_equal(sim_replica(c, 0, "t", 0)->leader_epoch, p.leader_epoch);
        sim_check(c);
        sim_stop(c);
    }
}

/* An added replica had become the leader. */
static void a_cancelled_move_gives_the_leadership_back(void **state)
{
    struct sim_cluster *c = &cluster;
    open_with_topic(c);
    assert_int_equal(move(c, "t", 0, target, 2), 0);
    static const int32_t three[] = {0, 1, 2};
    assert_int_equal(sync_up(c, three, 3), 0);
    sim_broker_kill(c, 0, false);
    sim_drain(c);
    assert_int_equal(sim_state(c, "t", 0, NULL).leader, 2);
    assert_int_equal(move(c, "t", 0, NULL, -1), 0);
    assert_int_equal(sim_state(c, "t", 0, NULL).leader, 1);
    node_is(c, ORIGIN);
    sim_broker_start(c, 0);
    sim_check(c);
    sim_stop(c);
}

static void a_new_target_replaces_the_old_one(void **state)
{
    struct sim_cluster *c = &cluster;
    open_with_topic(c);
    assert_int_equal(move(c, "t", 0, target, 2), 0);
    static const int32_t other[] = {3, 1}, all[] = {0, 1, 3};
    assert_int_equal(move(c, "t", 0, other, 2), 0);
    node_is(c, "{\"version\":3,\"partitions\":{\"0\":[3,1,0]},\"adding_replicas\":{\"0\":[3]},"
               "\"removing_replicas\":{\"0\":[0]}}");
    assert_null(sim_replica(c, 2, "t", 0)); /* it was only in the old target */
    sim_check(c);                           /* 3 was being added before, and hears of the epoch */
    assert_int_equal(sync_up(c, all, 3), 0);
    node_is(c, "{\"version\":3,\"partitions\":{\"0\":[3,1]},\"adding_replicas\":{},"
               "\"removing_replicas\":{}}");
    assert_int_equal(sim_state(c, "t", 0, NULL).leader, 3);
    sim_check(c);
    sim_stop(c);
}

/* Its leader took in an added replica, and nobody has heard of it; another target drops that one:
 * it is not in the ISR then. Seen by the simulator. */
static void who_is_dropped_leaves_the_isr_that_was_not_known(void **state)
{
    struct sim_cluster *c = &cluster;
    static const int32_t three[] = {0, 1, 2}, other[] = {3, 1}, all[] = {0, 1, 3};
    open_with_topic(c);
    assert_int_equal(move(c, "t", 0, target, 2), 0);
    write_isr(c, three, 3);
    assert_int_equal(move(c, "t", 0, other, 2), 0);
    struct partition_node p = sim_state(c, "t", 0, NULL);
    assert_int_equal(p.isr.n, 2);
    assert_false(id_list_has(p.isr, 2));
    assert_int_equal(sync_up(c, all, 3), 0);
    assert_int_equal(sim_state(c, "t", 0, NULL).isr.n, 2);
    sim_check(c);
    sim_stop(c);
}

/* Only an added replica is in sync: a cancelled move, or another target, would drop it, and with it
 * the records. Where the ISR was not known to be such, it keeps its folder. Seen by the simulator.
 */
static void who_alone_is_in_sync_is_not_dropped(void **state)
{
    static const int32_t added[] = {2}, all[] = {0, 1, 2}, other[] = {1, 3};
    for (int known = 0; known < 2; known++) {
        for (int cancels = 0; cancels < 2; cancels++) {
            struct sim_cluster *c = &cluster;
            open_with_topic(c);
            assert_int_equal(move(c, "t", 0, target, 2), 0);
            assert_int_equal(sync_up(c, all, 3), 0);
            for (int32_t id = 0; id < 2; id++) {
                sim_broker_kill(c, id, false);
                sim_drain(c);
            }
            for (int32_t id = 0; id < 2; id++) {
                sim_broker_start(c, id);
                sim_drain(c);
            }
            assert_int_equal(sim_state(c, "t", 0, NULL).leader, 2);
            assert_int_equal(sync_up(c, all, 3), 0);
            write_isr(c, added, 1);
            if (known) {
                tell_isr(c);
                sim_drain(c);
            }
            int e = cancels ? move(c, "t", 0, NULL, -1) : move(c, "t", 0, other, 2);
            assert_int_equal(e, known ? KERR_INVALID_REPLICA_ASSIGNMENT : KERR_NONE);
            assert_non_null(sim_replica(c, 2, "t", 0));
            if (known)
                node_is(c, MOVING);
            assert_int_equal(move(c, "t", 0, target, 2), 0); /* it can always come back */
            if (!known) {
                sim_broker_kill(c, 2, false);
                sim_drain(c);
                sim_broker_start(c, 2);
                sim_drain(c);
            }
            static const int32_t four[] = {0, 1, 2, 3};
            assert_int_equal(sim_state(c, "t", 0, NULL).leader, 2);
            assert_int_equal(sync_up(c, four, 4), 0);
            node_is(c, DONE);
            sim_check(c);
            assert_int_equal(sim_delete_topic(c, "t"), 0); /* the counts of states are right */
            sim_check(c);
            assert_false(sim_exists(c, "/brokers/topics/t"));
            sim_stop(c);
        }
    }
}

/* Each that has a copy, or is to get one, follows in the leader's epoch: in another it would be
 * fenced, and never be in sync. */
static void all_are_in_the_epoch_of_the_leader(struct sim_cluster *c, const int32_t *ids, int n)
{
    struct partition_node p = sim_state(c, "t", 0, NULL);
    for (int i = 0; i < n; i++) {
        assert_non_null(sim_replica(c, ids[i], "t", 0));
        assert_int_equal(sim_replica(c, ids[i], "t", 0)->leader_epoch, p.leader_epoch);
    }
}

/* The same target again (a tool that changes its throttle asks so), and one that shares a replica
 * with it: those that have begun hear of each new epoch. */
static void what_has_begun_goes_on_when_asked_again(void **state)
{
    struct sim_cluster *c = &cluster;
    open_with_topic(c);
    static const int32_t all[] = {0, 1, 2, 3}, other[] = {3, 1}, left[] = {0, 1, 3};
    assert_int_equal(move(c, "t", 0, target, 2), 0);
    all_are_in_the_epoch_of_the_leader(c, all, 4);
    assert_int_equal(move(c, "t", 0, target, 2), 0);
    node_is(c, MOVING);
    all_are_in_the_epoch_of_the_leader(c, all, 4);
    assert_int_equal(move(c, "t", 0, other, 2), 0);
    all_are_in_the_epoch_of_the_leader(c, left, 3);
    assert_int_equal(move(c, "t", 0, target, 2), 0);
    all_are_in_the_epoch_of_the_leader(c, all, 4);
    assert_int_equal(sync_up(c, all, 4), 0);
    node_is(c, DONE);
    sim_check(c);
    sim_stop(c);
}

static void what_cannot_be_is_refused(void **state)
{
    struct sim_cluster *c = &cluster;
    open_with_topic(c);
    static const int32_t twice[] = {2, 2}, negative[] = {2, -1}, dead[] = {0, 4};
    assert_int_equal(move(c, "t", 9, target, 2), KERR_UNKNOWN_TOPIC_OR_PARTITION);
    assert_int_equal(move(c, "none", 0, target, 2), KERR_UNKNOWN_TOPIC_OR_PARTITION);
    assert_int_equal(move(c, "none", 0, NULL, -1), KERR_NO_REASSIGNMENT_IN_PROGRESS);
    assert_int_equal(move(c, "t", 0, twice, 2), KERR_INVALID_REPLICA_ASSIGNMENT);
    assert_int_equal(move(c, "t", 0, negative, 2), KERR_INVALID_REPLICA_ASSIGNMENT);
    assert_int_equal(move(c, "t", 0, dead, 2), KERR_INVALID_REPLICA_ASSIGNMENT);
    assert_int_equal(move(c, "t", 0, target, 0), KERR_INVALID_REPLICA_ASSIGNMENT);
    node_is(c, ORIGIN);
    sim_check(c);
    sim_stop(c);
}

/* Long lists cost no time, and why is told. */
static void a_refusal_says_why(void **state)
{
    struct sim_cluster *c = &cluster;
    enum { MANY = 200000 };
    static int32_t many[MANY];
    static const int32_t twice[] = {2, 2}, negative[] = {2, -1}, dead[] = {0, 4};
    static const struct {
        const int32_t *target;
        int n;
        const char *why;
    } t[] = {{twice, 2, "Duplicate replica ids in partition reassignment replica list: 2,2"},
             {negative, 2, "Invalid broker id in replica list: 2,-1"},
             {dead, 2, "Replica assignment has brokers that are not alive: 4 of replica list 0,4"},
             {twice, 0, "Empty replica list specified in partition reassignment."},
             {many, MANY, "Replica assignment has brokers that are not alive: 4 of"}};
    for (int i = 0; i < MANY; i++)
        many[i] = i;
    open_with_topic(c);
    for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
        struct call k;
        ask_move(c, "t", 0, t[i].target, t[i].n, &k);
        sim_drain(c);
        struct str said = k.out.moves.responses.v[0].partitions.v[0].error_message;
        assert_int_equal(k.out.moves.responses.v[0].partitions.v[0].error_code,
                         KERR_INVALID_REPLICA_ASSIGNMENT);
        assert_true(said.len >= (int)strlen(t[i].why) &&
                    memcmp(said.p, t[i].why, strlen(t[i].why)) == 0);
        assert_true(said.len < 1000);
    }
    sim_stop(c);
}

static void tools_ask_by_a_node(void **state)
{
    struct sim_cluster *c = &cluster;
    open_with_topic(c);
    create(c->base, "/admin/reassign_partitions", "nonsense", 0);
    sim_drain(c);
    assert_false(sim_exists(c, "/admin/reassign_partitions"));
    create(c->base, "/admin/reassign_partitions",
           "{\"version\":1,\"partitions\":[{\"topic\":\"t\",\"partition\":0,\"replicas\":[2,3]},"
           "{\"topic\":\"t\",\"partition\":99,\"replicas\":[2,3]}]}",
           0);
    sim_drain(c);
    node_is(c, MOVING);
    assert_true(sim_exists(c, "/admin/reassign_partitions"));
    static const int32_t all[] = {0, 1, 2, 3};
    assert_int_equal(sync_up(c, all, 4), 0);
    node_is(c, DONE);
    assert_false(sim_exists(c, "/admin/reassign_partitions"));
    sim_check(c);
    sim_stop(c);
}

/* The controller dies after each number of steps: of the beginning, or of the end. */
static void a_controller_that_dies_does_not_stop_a_move(void **state)
{
    for (int ending = 0; ending < 2; ending++) {
        for (int steps = 1; steps < 60; steps++) { /* 0: the call would outlive the controller */
            struct sim_cluster *c = &cluster;
            static const int32_t all[] = {0, 1, 2, 3};
            struct call k;
            open_with_controller_apart(c);
            if (ending) {
                assert_int_equal(move(c, "t", 0, target, 2), 0);
                write_isr(c, all, 4);
                tell_isr(c);
            } else {
                ask_move(c, "t", 0, target, 2, &k);
            }
            for (int i = 0; i < steps; i++)
                sim_executor_step(c->e);
            sim_broker_kill(c, 4, false);
            sim_drain(c);
            if (!ending && listed(c) == 0) { /* it had not been taken */
                node_is(c, ORIGIN);
            } else if (!ending) {
                node_is(c, MOVING);
                all_are_in_the_epoch_of_the_leader(c, all, 4);
                assert_int_equal(sync_up(c, all, 4), 0);
                node_is(c, DONE);
            } else {
                node_is(c, DONE);
            }
            /* (A folder may be left where the order to delete it went with the controller.) */
            if (ending)
                assert_int_equal(sim_state(c, "t", 0, NULL).leader, 2);
            sim_check(c);
            sim_stop(c);
        }
    }
}

/* A mark of deletion while the topic moves: the move is given up, whatever state it is in, and
 * nothing of either is left. */
static void a_topic_that_moves_is_deleted(void **state)
{
    enum { IN_SYNC = 1, LEADERLESS = 2, ASKED_BY_NODE = 4, CONTROLLER_DIES = 8, ALL = 16 };
    for (int how = 0; how < ALL; how++) {
        struct sim_cluster *c = &cluster;
        static const int32_t all[] = {0, 1, 2, 3}, half[] = {0, 1, 2};
        open_with_controller_apart(c);
        if (how & ASKED_BY_NODE)
            create(c->base, "/admin/reassign_partitions",
                   "{\"version\":1,\"partitions\":[{\"topic\":\"t\",\"partition\":0,"
                   "\"replicas\":[2,3]}]}",
                   0);
        else
            assert_int_equal(move(c, "t", 0, target, 2), 0);
        sim_drain(c);
        if (how & IN_SYNC)
            assert_int_equal(sync_up(c, half, 3), 0);
        if (how & LEADERLESS) {
            int32_t version;
            struct partition_node p = sim_state(c, "t", 0, &version);
            p.leader = -1;
            struct store_op op = store_op_set("/brokers/topics/t/partitions/0/state",
                                              znode_partition_encode(&p, &c->arena), version);
            assert_int_equal(run_op(c->base, &op), 0);
        }
        create(c->base, "/admin/delete_topics/t", "", 0);
        if (how & CONTROLLER_DIES)
            sim_broker_kill(c, 4, false);
        sim_drain(c);
        sim_check(c);
        assert_false(sim_exists(c, "/admin/delete_topics/t"));
        assert_false(sim_exists(c, "/admin/reassign_partitions"));
        assert_false(sim_exists(c, "/brokers/topics/t"));
        for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
            assert_null(sim_replica(c, all[i], "t", 0));
        assert_int_equal(listed(c), 0);
        sim_stop(c);
    }
}

#define MANY 40

/* Moves partitions 0..MANY-1 of "many" in one request, each to the next brokers of four; the last
 * of them is named twice, first with nonsense. */
static void move_many(struct sim_cluster *c, const struct topic_node *now)
{
    static struct alter_partition_reassignments_request q;
    static struct alter_partition_reassignments_request_topic t;
    static struct alter_partition_reassignments_request_partition p[MANY + 1];
    static int32_t targets[MANY][2], wrong[] = {0, 1, 2};
    struct call k;
    alter_partition_reassignments_request_init(&q);
    alter_partition_reassignments_request_topic_init(&t);
    q.topics.v = &t;
    q.topics.n = 1;
    t.name = STR_LIT("many");
    t.partitions.v = p;
    t.partitions.n = MANY + 1;
    for (int i = 0; i < MANY + 1; i++) {
        alter_partition_reassignments_request_partition_init(&p[i]);
        int number = i == 0 ? MANY - 1 : i - 1;
        p[i].partition_index = number;
        p[i].replicas.n = -1;
        if (!now)
            continue;
        const int32_t *was = now->partitions[number].replicas.v;
        targets[number][0] = (was[0] + 1) % 4;
        targets[number][1] = (was[1] + 1) % 4;
        p[i].replicas.v = i == 0 ? wrong : targets[number];
        p[i].replicas.n = i == 0 ? 3 : 2;
    }
    begin(c, &k, API_ALTER_PARTITION_REASSIGNMENTS, 0, &q);
    sim_drain(c);
    assert_true(k.done);
    for (int i = 0; i < MANY + 1; i++)
        assert_int_equal(k.out.moves.responses.v[0].partitions.v[i].error_code, KERR_NONE);
}

/* All that are assigned are in sync, as leaders of old levels write and tell it: at once. */
static void sync_many(struct sim_cluster *c, const struct topic_node *now)
{
    struct named_partition named[MANY];
    for (int i = 0; i < MANY; i++) {
        char path[64];
        struct partition_node p = sim_state(c, "many", i, NULL);
        p.isr = now->partitions[i].replicas;
        snprintf(path, sizeof(path), "/brokers/topics/many/partitions/%d/state", i);
        struct store_op op =
            store_op_set(path, znode_partition_encode(&p, &c->arena), STORE_ANY_VERSION);
        assert_int_equal(run_op(c->base, &op), 0);
        named[i] = (struct named_partition){.topic = STR_LIT("many"), .partition = i};
    }
    struct bytes data = znode_partitions_encode((struct named_partitions){named, MANY}, &c->arena);
    create(c->base, "/isr_change_notification/isr_change_", (const char *)data.p, STORE_SEQUENTIAL);
    sim_drain(c);
}

/* What the topic's node holds, in c's arena; its version. */
static int32_t node_of_many(struct sim_cluster *c, struct topic_node *node)
{
    struct store_op get = store_op_get("/brokers/topics/many", false);
    assert_int_equal(run_op(c->base, &get), 0);
    assert_int_equal(znode_topic_decode(get.result, &c->arena, node), 0);
    free((void *)get.result.p);
    return get.stat.version;
}

/* The node of the topic is as large as the topic: it is not written once for each partition. */
static void moves_of_one_topic_are_written_together(void **state)
{
    struct sim_cluster *c = &cluster;
    struct topic_node before, after;
    sim_start(c, 4);
    assert_int_equal(sim_create_topic(c, "many", MANY, 2), 0);
    int32_t version = node_of_many(c, &before);
    move_many(c, &before);
    assert_int_equal(node_of_many(c, &after), version + 1);
    assert_int_equal(listed(c), MANY);
    sync_many(c, &after);
    assert_int_equal(node_of_many(c, &after), version + 2);
    for (int i = 0; i < MANY; i++) {
        int32_t next = (before.partitions[i].replicas.v[0] + 1) % 4;
        assert_int_equal(after.partitions[i].replicas.n, 2);
        assert_int_equal(after.partitions[i].replicas.v[0], next);
        assert_int_equal(after.partitions[i].adding.n + after.partitions[i].removing.n, 0);
        assert_true(
            id_list_has(after.partitions[i].replicas, sim_state(c, "many", i, NULL).leader));
        assert_int_equal(sim_state(c, "many", i, NULL).isr.n, 2);
    }
    assert_int_equal(listed(c), 0);
    sim_check(c);
    assert_int_equal(sim_delete_topic(c, "many"), 0);
    assert_false(sim_exists(c, "/brokers/topics/many"));
    sim_stop(c);
}

/* Those that are asked for are listed, once each. */
static void moves_are_listed_as_asked(void **state)
{
    static struct list_partition_reassignments_request q;
    static struct list_partition_reassignments_request_topic t;
    static int32_t numbers[] = {7, 3, MANY, -1, 3, MANY - 1};
    struct sim_cluster *c = &cluster;
    struct topic_node before;
    struct call k;
    sim_start(c, 4);
    assert_int_equal(sim_create_topic(c, "many", MANY, 2), 0);
    node_of_many(c, &before);
    move_many(c, &before);
    assert_int_equal(listed(c), MANY);
    list_partition_reassignments_request_init(&q);
    list_partition_reassignments_request_topic_init(&t);
    q.topics.v = &t;
    q.topics.n = 1;
    t.name = STR_LIT("many");
    t.partition_indexes.v = numbers;
    t.partition_indexes.n = sizeof(numbers) / sizeof(numbers[0]);
    begin(c, &k, API_LIST_PARTITION_REASSIGNMENTS, 0, &q);
    sim_drain(c);
    assert_true(k.done);
    assert_int_equal(k.out.list.topics.n, 1);
    assert_int_equal(k.out.list.topics.v[0].partitions.n, 3);
    assert_int_equal(k.out.list.topics.v[0].partitions.v[0].partition_index, 3);
    assert_int_equal(k.out.list.topics.v[0].partitions.v[1].partition_index, 7);
    assert_int_equal(k.out.list.topics.v[0].partitions.v[2].partition_index, MANY - 1);
    sim_stop(c);
}

/* One of them keeps its folder, the others are not disturbed by that. */
static void many_moves_are_cancelled_at_once(void **state)
{
    struct sim_cluster *c = &cluster;
    struct topic_node before, after;
    sim_start(c, 4);
    assert_int_equal(sim_create_topic(c, "many", MANY, 2), 0);
    node_of_many(c, &before);
    move_many(c, &before);
    node_of_many(c, &after);
    struct partition_node p = sim_state(c, "many", 0, NULL);
    p.isr = (struct id_list){after.partitions[0].adding.v, 1}; /* which nobody knows */
    struct store_op op = store_op_set("/brokers/topics/many/partitions/0/state",
                                      znode_partition_encode(&p, &c->arena), STORE_ANY_VERSION);
    assert_int_equal(run_op(c->base, &op), 0);
    move_many(c, NULL);
    assert_int_equal(listed(c), 0);
    node_of_many(c, &after);
    for (int i = 0; i < MANY; i++) {
        const struct partition_assignment *a = &after.partitions[i];
        assert_int_equal(a->replicas.n, 2);
        assert_int_equal(a->adding.n + a->removing.n, 0);
        for (int k = 0; k < 2; k++)
            assert_true(id_list_has(a->replicas, before.partitions[i].replicas.v[k]));
    }
    assert_non_null(sim_replica(c, p.isr.v[0], "many", 0));
    assert_int_equal(sim_delete_topic(c, "many"), 0); /* the counts of states are right */
    assert_false(sim_exists(c, "/brokers/topics/many"));
    sim_stop(c);
}

/* The leader of a partition that moves was killed and is back before anybody noticed, and so is the
 * controller gone: the next one goes on with the move, but not with that leader. */
static void a_leader_that_bounced_unseen_does_not_lead_the_move(void **state)
{
    for (int both = 0; both < 2; both++) {
        struct sim_cluster *c = &cluster;
        static const int32_t all[] = {0, 1, 2, 3}, rest[] = {1, 2, 3};
        open_with_controller_apart(c);
        assert_int_equal(move(c, "t", 0, target, 2), 0);
        sim_bounce(c, 0);
        if (both)
            sim_bounce(c, 1);
        sim_broker_kill(c, 4, false);
        sim_drain(c);
        struct partition_node now = sim_state(c, "t", 0, NULL);
        node_is(c, MOVING);
        assert_int_equal(now.leader, both ? 0 : 1); /* both: there is nobody better */
        assert_int_equal(id_list_has(now.isr, 0), both);
        all_are_in_the_epoch_of_the_leader(c, all, 4);
        assert_int_equal(both ? sync_up(c, all, 4) : sync_up(c, rest, 3), 0);
        node_is(c, DONE);
        sim_check(c);
        sim_stop(c);
    }
}

UNIT_MAIN(unit_test(a_partition_moves), unit_test(a_topic_that_moves_is_deleted),
          unit_test(moves_of_one_topic_are_written_together), unit_test(moves_are_listed_as_asked),
          unit_test(a_leader_that_bounced_unseen_does_not_lead_the_move),
          unit_test(many_moves_are_cancelled_at_once), unit_test(more_and_fewer_replicas),
          unit_test(nothing_is_deleted_while_the_target_cannot_lead),
          unit_test(an_added_target_that_cannot_lead_yet_goes_on),
          unit_test(one_that_cannot_end_does_not_hold_up_the_others),
          unit_test(another_order_is_complete_at_once), unit_test(a_move_is_cancelled),
          unit_test(a_cancelled_move_gives_the_leadership_back),
          unit_test(a_new_target_replaces_the_old_one),
          unit_test(who_alone_is_in_sync_is_not_dropped),
          unit_test(who_is_dropped_leaves_the_isr_that_was_not_known),
          unit_test(what_has_begun_goes_on_when_asked_again), unit_test(what_cannot_be_is_refused),
          unit_test(a_refusal_says_why), unit_test(tools_ask_by_a_node),
          unit_test(a_controller_that_dies_does_not_stop_a_move))
