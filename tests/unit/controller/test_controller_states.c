/* States of many partitions are written together; one that cannot be, or that is not as it was
 * known, does not hold up the others. */
#include "controller/sim_cluster.h"

#include <stdio.h>
#include <stdlib.h>

static struct sim_cluster cluster;
enum { N = 200 }; /* of several multis */

static void state_path(char *out, size_t size, const char *topic, int partition)
{
    snprintf(out, size, "/brokers/topics/%s/partitions/%d/state", topic, partition);
}

/* As its leader would below level 2.7: without the controller's knowledge. */
static void shrink_isr(struct sim_cluster *c, const char *topic, int partition, int32_t without)
{
    char path[300], data[300];
    int32_t version;
    struct partition_node p = sim_state(c, topic, partition, &version);
    if (p.leader == without)
        return;
    int n = snprintf(data, sizeof(data),
                     "{\"controller_epoch\":%d,\"leader\":%d,\"version\":1,\"leader_epoch\":%d,"
                     "\"isr\":[",
                     p.controller_epoch, p.leader, p.leader_epoch);
    const char *comma = "";
    for (int i = 0; i < p.isr.n; i++) {
        if (p.isr.v[i] == without)
            continue;
        n += snprintf(data + n, sizeof(data) - (size_t)n, "%s%d", comma, p.isr.v[i]);
        comma = ",";
    }
    snprintf(data + n, sizeof(data) - (size_t)n, "]}");
    state_path(path, sizeof(path), topic, partition);
    set(c->base, path, data, version);
}

static bool has(struct id_list isr, int32_t id)
{
    for (int i = 0; i < isr.n; i++)
        if (isr.v[i] == id)
            return true;
    return false;
}

static void changed_states_are_read_and_the_others_go_on(void **state)
{
    struct sim_cluster *c = &cluster;
    static const int changed[] = {0, 7, 8, 150, N - 1};
    sim_start(c, 4);
    assert_int_equal(sim_create_topic(c, "t", N, 4), 0);
    for (int i = 0; i < 5; i++)
        shrink_isr(c, "t", changed[i], 3);
    sim_broker_kill(c, 2, true);
    sim_drain(c);
    for (int i = 0; i < N; i++) {
        bool was_changed = false;
        for (int k = 0; k < 5; k++)
            was_changed |= changed[k] == i;
        struct partition_node p = sim_state(c, "t", i, NULL);
        assert_true(p.leader >= 0 && p.leader != 2);
        assert_true(has(p.isr, p.leader));
        assert_false(has(p.isr, 2));
        /* what was written meanwhile is not undone by what was known (unless 3 leads it) */
        assert_int_equal(has(p.isr, 3), !was_changed || p.leader == 3);
        assert_int_equal(p.isr.n, was_changed && p.leader != 3 ? 2 : 3);
    }
    sim_check(c);
    sim_stop(c);
}

/* The answer to what we wrote was lost, and the state is read: who leads or follows has not heard
 * of its epoch yet. Seen by the simulator: a leader in the epoch before refused its follower for
 * ever. */
static void a_write_whose_answer_was_lost_is_told(void **state)
{
    struct sim_cluster *c = &cluster;
    static const int32_t order[] = {1, 2, 3};
    int32_t version;
    sim_start(c, 4);
    assert_int_equal(sim_create_assigned(c, "t", order, 3), 0);
    struct partition_node p = sim_state(c, "t", 0, &version);
    int32_t left[] = {1, 2};
    p.isr = (struct id_list){left, 2};
    p.leader_epoch++;
    struct bytes data = znode_partition_encode(&p, &c->arena);
    struct store_op op = store_op_set("/brokers/topics/t/partitions/0/state", data, version);
    assert_int_equal(run_op(c->base, &op), 0);
    sim_broker_kill(c, 3, true);
    sim_drain(c);
    assert_int_equal(sim_state(c, "t", 0, NULL).leader_epoch, p.leader_epoch);
    for (int32_t id = 1; id <= 2; id++)
        assert_int_equal(sim_replica(c, id, "t", 0)->leader_epoch, p.leader_epoch);
    sim_check(c);
    sim_stop(c);
}

static void malformed_states_are_passed_over(void **state)
{
    struct sim_cluster *c = &cluster;
    char path[300];
    sim_start(c, 3);
    assert_int_equal(sim_create_topic(c, "t", N, 3), 0);
    static const char *const nonsense[] = {
        "", "{", "[]", "{\"leader\":1}",
        "{\"controller_epoch\":999,\"leader\":1,\"version\":1,\"leader_epoch\":0,\"isr\":[1]}"};
    for (int i = 0; i < 5; i++) {
        state_path(path, sizeof(path), "t", 20 * i);
        set(c->base, path, nonsense[i], STORE_ANY_VERSION);
    }
    sim_broker_kill(c, 2, true);
    sim_drain(c);
    for (int i = 0; i < N; i++) {
        if (i % 20 == 0 && i < 100) { /* left as they are */
            state_path(path, sizeof(path), "t", i);
            assert_true(holds(c->base, path, nonsense[i / 20]));
            continue;
        }
        struct partition_node p = sim_state(c, "t", i, NULL);
        assert_true(p.leader >= 0 && p.leader != 2);
        assert_int_equal(p.isr.n, 2);
    }
    sim_stop(c);
}

static void a_creation_that_was_left_in_the_middle_is_finished(void **state)
{
    struct sim_cluster *c = &cluster;
    char node[40 * N], path[300];
    sim_start(c, 3);
    int n = snprintf(node, sizeof(node), "{\"version\":1,\"partitions\":{");
    for (int i = 0; i < N; i++)
        n += snprintf(node + n, sizeof(node) - (size_t)n, "%s\"%d\":[%d,%d]", i ? "," : "", i,
                      i % 3, (i + 1) % 3);
    snprintf(node + n, sizeof(node) - (size_t)n, "}}");
    create(c->base, "/brokers/topics/t", node, 0);
    create(c->base, "/brokers/topics/t/partitions", "", 0);
    for (int i = 0; i < N; i += 50) {
        snprintf(path, sizeof(path), "/brokers/topics/t/partitions/%d", i);
        create(c->base, path, "", 0);
    }
    state_path(path, sizeof(path), "t", 50); /* by an election that is kept */
    create(c->base, path,
           "{\"controller_epoch\":1,\"leader\":0,\"version\":1,\"leader_epoch\":3,\"isr\":[0]}", 0);
    sim_drain(c);
    for (int i = 0; i < N; i++) {
        int32_t version;
        struct partition_node p = sim_state(c, "t", i, &version);
        assert_true(p.leader >= 0);
        if (i == 50) {
            assert_int_equal(p.leader, 0);
            assert_int_equal(p.leader_epoch, 4);
            assert_int_equal(p.isr.n, 1);
            continue;
        }
        assert_int_equal(p.leader, i % 3);
        assert_int_equal(p.isr.n, 2);
        assert_int_equal(version, 0);
    }
    sim_check(c);
    sim_stop(c);
}

/* Somebody deletes its node right after it was made: nothing else suffers. */
static void a_topic_that_vanishes_in_the_middle_holds_nothing_up(void **state)
{
    struct sim_cluster *c = &cluster;
    for (int k = 0; k < 60; k++) {
        sim_start(c, 2);
        create(c->base, "/brokers/topics/a", "{\"version\":1,\"partitions\":{\"0\":[0],\"1\":[1]}}",
               0);
        create(c->base, "/brokers/topics/b", "{\"version\":1,\"partitions\":{\"0\":[0],\"1\":[1]}}",
               0);
        for (int i = 0; i < k; i++)
            if (!sim_executor_step(c->e))
                break;
        store_delete_tree(c->base, "/brokers/topics/a");
        sim_drain(c);
        assert_int_equal(sim_state(c, "b", 0, NULL).leader, 0);
        assert_int_equal(sim_state(c, "b", 1, NULL).leader, 1);
        assert_int_equal(sim_create_topic(c, "later", 2, 2), 0);
        assert_true(sim_state(c, "later", 1, NULL).leader >= 0);
        assert_ptr_equal(sim_active(c), &c->brokers[0]);
        sim_stop(c);
    }
}

UNIT_MAIN(unit_test(changed_states_are_read_and_the_others_go_on),
          unit_test(a_write_whose_answer_was_lost_is_told),
          unit_test(malformed_states_are_passed_over),
          unit_test(a_creation_that_was_left_in_the_middle_is_finished),
          unit_test(a_topic_that_vanishes_in_the_middle_holds_nothing_up))
