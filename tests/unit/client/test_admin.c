/* Admin client against a mock broker. */
#include "client/client_test.h"

#include <kafka/admin.h>

#include "protocol/errors.h"

struct admin_test {
    struct mock *m;
    kafka_admin_t *a;
};

static void begin(struct admin_test *t, int nodes)
{
    t->m = mock_start(nodes);
    t->a = test_admin(test_conf(t->m, NULL));
}

static void end(struct admin_test *t)
{
    kafka_admin_close(t->a);
    mock_stop(t->m);
}

static kafka_err_t create(struct admin_test *t, const char *topic, char message[256])
{
    message[0] = 0;
    return kafka_admin_create_topic(t->a, topic, 3, 1, NULL, 0, NULL, 0, 60000, message, 256);
}

static void topics_are_made_and_described_and_deleted(void **state)
{
    struct admin_test t;
    char message[256];
    kafka_cluster_info_t *info;
    begin(&t, 3);
    assert_int_equal(create(&t, "b", message), KAFKA_OK);
    assert_int_equal(create(&t, "a", message), KAFKA_OK);
    assert_int_equal(create(&t, "a", message), KERR_TOPIC_ALREADY_EXISTS);
    assert_true(message[0] != 0);
    assert_int_equal(kafka_admin_describe(t.a, NULL, 0, 60000, &info), KAFKA_OK);
    assert_int_equal(info->nodes_n, 3);
    assert_int_equal(info->topics_n, 2);
    assert_string_equal(info->topics[0].name, "a");
    assert_int_equal(info->topics[0].partitions_n, 3);
    assert_int_equal(info->topics[0].partitions[2].partition, 2);
    kafka_cluster_info_free(info);
    assert_int_equal(kafka_admin_delete_topic(t.a, "a", 60000, message, sizeof message), KAFKA_OK);
    assert_int_equal(kafka_admin_delete_topic(t.a, "a", 60000, message, sizeof message),
                     KERR_UNKNOWN_TOPIC_OR_PARTITION);
    const char *names[] = {"a", "b"};
    assert_int_equal(kafka_admin_describe(t.a, names, 2, 60000, &info), KAFKA_OK);
    assert_int_equal(info->topics[0].err, KERR_UNKNOWN_TOPIC_OR_PARTITION);
    assert_int_equal(info->topics[1].err, KAFKA_OK);
    kafka_cluster_info_free(info);
    end(&t);
}

static void what_heals_is_tried_again(void **state)
{
    struct admin_test t;
    char message[256];
    begin(&t, 2);
    mock_script(t.m, API_CREATE_TOPICS, MOCK_ERROR, KERR_NOT_CONTROLLER, 2);
    mock_script(t.m, API_CREATE_TOPICS, MOCK_DROP, 0, 2);
    mock_script(t.m, API_CREATE_TOPICS, MOCK_ERROR, KERR_REQUEST_TIMED_OUT, 1);
    mock_script(t.m, API_METADATA, MOCK_DROP, 0, 2);
    assert_int_equal(create(&t, "t", message), KAFKA_OK);
    mock_script(t.m, API_CREATE_TOPICS, MOCK_ERROR, KERR_POLICY_VIOLATION, 1);
    assert_int_equal(create(&t, "u", message), KERR_POLICY_VIOLATION);
    end(&t);
}

static void time_ends_what_does_not_heal(void **state)
{
    struct admin_test t;
    char message[256];
    begin(&t, 1);
    assert_int_equal(create(&t, "first", message), KAFKA_OK); /* the controller is known, then */
    mock_script(t.m, API_CREATE_TOPICS, MOCK_ERROR, KERR_NOT_CONTROLLER, -1);
    kafka_err_t rc =
        kafka_admin_create_topic(t.a, "t", 1, 1, NULL, 0, NULL, 0, 50, message, sizeof message);
    assert_true(rc == KERR_NOT_CONTROLLER || rc == KAFKA_ERR_TIMED_OUT); /* a slow machine */
    mock_script(t.m, API_CREATE_TOPICS, MOCK_IGNORE, 0, -1);
    assert_int_equal(
        kafka_admin_create_topic(t.a, "t", 1, 1, NULL, 0, NULL, 0, 50, message, sizeof message),
        KAFKA_ERR_TIMED_OUT);
    end(&t);
}

static void without_a_broker_that_is_said(void **state)
{
    struct admin_test t;
    kafka_cluster_info_t *info;
    char err[256];
    begin(&t, 1);
    kafka_conf_t *conf = test_conf(t.m, (const char *[]){"retries", "0", NULL});
    end(&t);
    t.a = kafka_admin_new(conf, err, sizeof err);
    kafka_conf_free(conf);
    kafka_err_t rc = kafka_admin_describe(t.a, NULL, 0, 60000, &info);
    assert_true(rc == KAFKA_ERR_ALL_BROKERS_DOWN || rc == KAFKA_ERR_TRANSPORT);
    assert_null(info);
    kafka_admin_close(t.a);
}

static void versions_of_every_broker(void **state)
{
    struct admin_test t;
    kafka_broker_versions_t *v;
    size_t n;
    begin(&t, 2);
    mock_cap_version(t.m, API_FETCH, 4);
    mock_cap_version(t.m, API_API_VERSIONS, 0);
    assert_int_equal(kafka_admin_broker_versions(t.a, 60000, &v, &n), KAFKA_OK);
    assert_int_equal(n, 2);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(v[i].err, KAFKA_OK);
        assert_int_equal(v[i].node.id, i);
        assert_string_equal(v[i].apis[API_FETCH].name, "Fetch");
        assert_int_equal(v[i].apis[API_FETCH].max, 4);
    }
    kafka_broker_versions_free(v, n);
    end(&t);
}

static void *describe_for_ever(void *arg)
{
    kafka_cluster_info_t *info;
    struct admin_test *t = arg;
    return kafka_admin_describe(t->a, NULL, 0, 10, &info) == KAFKA_OK ? NULL : t;
}

static void several_threads_ask_at_once(void **state)
{
    enum { THREADS = 8 };
    struct admin_test t;
    pthread_t threads[THREADS];
    begin(&t, 2);
    mock_script(t.m, API_METADATA, MOCK_IGNORE, 0, -1);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, describe_for_ever, &t), 0);
    for (int i = 0; i < THREADS; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_ptr_equal(failed, &t);
    }
    end(&t);
}

static int64_t group_offset(struct admin_test *t)
{
    kafka_topic_partition_t tp = {"t", 0};
    kafka_offset_list_t *list = NULL;
    assert_int_equal(kafka_admin_group_offsets(t->a, "g", &tp, 1, 0, 60000, &list), KAFKA_OK);
    int64_t offset = list->v[0].offset;
    kafka_offset_list_free(list);
    return offset;
}

/* A tool that looks at a thousand groups does not connect a thousand times; a coordinator that
 * moves is followed all the same. */
static void operations_on_groups_share_a_brokers_connection(void **state)
{
    struct admin_test t;
    kafka_cluster_info_t *info = NULL;
    begin(&t, 2);
    mock_topic(t.m, "t", 1);
    mock_set_committed(t.m, "t", 0, 42);
    mock_move_coordinator(t.m, 1);
    assert_int_equal(kafka_admin_describe(t.a, NULL, 0, 60000, &info), KAFKA_OK);
    kafka_cluster_info_free(info);
    assert_int_equal(group_offset(&t), 42);
    int connections = mock_seen(t.m, API_API_VERSIONS); /* each begins with one */
    for (int i = 0; i < 20; i++)
        assert_int_equal(group_offset(&t), 42);
    assert_int_equal(mock_seen(t.m, API_API_VERSIONS), connections);
    for (int i = 0; i < 4; i++) {
        mock_move_coordinator(t.m, i % 2);
        assert_int_equal(group_offset(&t), 42);
        mock_script(t.m, API_OFFSET_FETCH, i < 2 ? MOCK_DROP : MOCK_ERROR, KERR_NOT_COORDINATOR, 1);
        assert_int_equal(group_offset(&t), 42);
    }
    end(&t);
}

UNIT_MAIN(unit_test(topics_are_made_and_described_and_deleted),
          unit_test(what_heals_is_tried_again), unit_test(time_ends_what_does_not_heal),
          unit_test(without_a_broker_that_is_said), unit_test(versions_of_every_broker),
          unit_test(several_threads_ask_at_once),
          unit_test(operations_on_groups_share_a_brokers_connection))
