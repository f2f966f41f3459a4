/* Node contents: every version listed is read, whatever the order of keys and with keys unknown;
 * what is written reads back and has the right form; nonsense is refused. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "metadata/znode.h"

#include "unit.h"

static struct arena arena;

static int arena_begin(void **state)
{
    arena_init(&arena, 0);
    return 0;
}

static int arena_end(void **state)
{
    arena_free(&arena);
    return 0;
}

static struct bytes text(const char *z)
{
    return (struct bytes){(const uint8_t *)z, z ? (int32_t)strlen(z) : -1};
}

#define assert_bytes(b, z) assert_string_equal((const char *)(b).p, (z))
#define assert_str(s, z) assert_true(str_eqz((s), (z)))

static void brokers_of_all_versions(void **state)
{
    struct broker_info b;
    assert_int_equal(
        znode_broker_decode(text("{\"jmx_port\":9999,\"timestamp\":\"1\",\"host\":\"h1\",\"port\":"
                                 "9092,\"version\":1}"),
                            4, &arena, &b),
        0);
    assert_int_equal(b.id, 4);
    assert_int_equal(b.endpoints_n, 1);
    assert_str(b.endpoints[0].listener, "PLAINTEXT");
    assert_str(b.endpoints[0].host, "h1");
    assert_int_equal(b.endpoints[0].port, 9092);
    assert_true(str_is_null(b.rack));

    assert_int_equal(
        znode_broker_decode(
            text("{\"version\":3,\"host\":null,\"port\":-1,\"jmx_port\":-1,\"timestamp\":\"1\","
                 "\"endpoints\":[\"SASL_SSL://[::1]:1\",\"PLAINTEXT://:2\"],\"rack\":\"r\"}"),
            0, &arena, &b),
        0);
    assert_int_equal(b.endpoints[0].security_protocol, 3);
    assert_str(b.endpoints[0].host, "::1");
    assert_str(b.endpoints[1].host, "");
    assert_int_equal(b.endpoints[1].port, 2);
    assert_str(b.rack, "r");

    assert_int_equal(
        znode_broker_decode(
            text("{\"version\":6,\"new\":{\"a\":[1]},\"features\":{\"x\":{\"min_version\":1,\"max_"
                 "version\":2}},\"endpoints\":[\"INT://b1:9092\",\"EXT://pub:443\"],"
                 "\"listener_security_protocol_map\":{\"EXT\":\"SSL\",\"INT\":\"PLAINTEXT\"}}"),
            0, &arena, &b),
        0);
    assert_str(b.endpoints[1].listener, "EXT");
    assert_int_equal(b.endpoints[1].security_protocol, 1);
}

static void broker_is_written_as_version_5(void **state)
{
    struct endpoint e[] = {{STR_LIT("INT"), STR_LIT("b1"), 9092, 0},
                           {STR_LIT("EXT"), STR_LIT("::1"), 443, 1}};
    struct broker_info b = {7, STR_LIT("r\"1"), e, 2}, back;
    struct bytes data = znode_broker_encode(&b, -1, 1700000000000, &arena);
    assert_bytes(data,
                 "{\"version\":5,\"features\":{},\"host\":\"b1\",\"port\":9092,\"jmx_port\":-1,"
                 "\"timestamp\":\"1700000000000\",\"endpoints\":[\"INT://b1:9092\",\"EXT://[::"
                 "1]:443\"],\"rack\":\"r\\\"1\",\"listener_security_protocol_map\":{\"INT\":"
                 "\"PLAINTEXT\",\"EXT\":\"SSL\"}}");
    assert_int_equal(znode_broker_decode(data, 7, &arena, &back), 0);
    assert_int_equal(back.endpoints_n, 2);
    assert_true(str_eq(back.rack, b.rack));
    assert_str(back.endpoints[1].host, "::1");
    b.endpoints = e + 1; /* no PLAINTEXT one, no rack */
    b.endpoints_n = 1;
    b.rack = STR_NULL;
    data = znode_broker_encode(&b, -1, 1, &arena);
    assert_non_null(strstr((const char *)data.p, "\"host\":null,\"port\":-1"));
    assert_null(strstr((const char *)data.p, "rack"));
}

static void malformed_brokers_are_refused(void **state)
{
    static const char *bad[] = {
        NULL,
        "",
        "x",
        "[]",
        "{}",
        "{\"version\":0,\"host\":\"h\",\"port\":1}",
        "{\"version\":1,\"host\":\"h\"}",
        "{\"version\":2}",
        "{\"version\":2,\"endpoints\":[1]}",
        "{\"version\":2,\"endpoints\":[\"PLAINTEXT//h:1\"]}",
        "{\"version\":2,\"endpoints\":[\"PLAINTEXT://h\"]}",
        "{\"version\":2,\"endpoints\":[\"://h:1\"]}",
        "{\"version\":2,\"endpoints\":[\"PLAINTEXT://h:x\"]}",
        "{\"version\":2,\"endpoints\":[\"PLAINTEXT://h:99999\"]}",
        "{\"version\":2,\"endpoints\":[\"INT://h:1\"]}",
        "{\"version\":4,\"endpoints\":[\"INT://h:1\"],\"listener_security_protocol_map\":{}}",
        "{\"version\":2,\"endpoints\":[\"SSL://h:1\"],\"rack\":5}",
    };
    struct broker_info b;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(znode_broker_decode(text(bad[i]), 0, &arena, &b), -EBADMSG);
}

static void topics_of_all_versions(void **state)
{
    struct topic_node t;
    assert_int_equal(
        znode_topic_decode(text("{\"partitions\":{\"10\":[3,1],\"2\":[2]},\"version\":1}"), &arena,
                           &t),
        0);
    assert_int_equal(t.partitions_n, 2);
    assert_int_equal(t.partitions[0].partition, 2);
    assert_int_equal(t.partitions[1].partition, 10);
    assert_int_equal(t.partitions[1].replicas.v[0], 3);
    assert_true(uuid_is_zero(t.id));

    assert_int_equal(
        znode_topic_decode(
            text("{\"version\":3,\"topic_id\":\"AAECAwQFBgcICQoLDA0ODw\",\"adding_replicas\":{"
                 "\"0\":[4],\"9\":[1]},\"removing_replicas\":{\"0\":[1,2]},\"x\":1,\"partitions\":{"
                 "\"0\":[4,1,2]}}"),
            &arena, &t),
        0);
    assert_int_equal(t.id.b[15], 15);
    assert_int_equal(t.partitions[0].adding.n, 1);
    assert_int_equal(t.partitions[0].adding.v[0], 4);
    assert_int_equal(t.partitions[0].removing.n, 2);
    struct bytes data = znode_topic_encode(&t, &arena);
    assert_bytes(
        data, "{\"version\":3,\"topic_id\":\"AAECAwQFBgcICQoLDA0ODw\",\"partitions\":{\"0\":[4,1,"
              "2]},\"adding_replicas\":{\"0\":[4]},\"removing_replicas\":{\"0\":[1,2]}}");
    t.id = UUID_ZERO;
    t.partitions[0].adding.n = t.partitions[0].removing.n = 0;
    assert_bytes(znode_topic_encode(&t, &arena),
                 "{\"version\":3,\"partitions\":{\"0\":[4,1,2]},\"adding_replicas\":{},\"removing_"
                 "replicas\":{}}");
}

static void many_partitions_come_back_in_order(void **state)
{
    enum { N = 10000 };
    struct topic_node t = {.id = uuid_random(), .partitions_n = N}, back;
    int32_t ids[] = {1, 2, 3};
    t.partitions = arena_array(&arena, struct partition_assignment, N);
    for (int i = 0; i < N; i++) {
        t.partitions[i].partition = i;
        t.partitions[i].replicas = (struct id_list){ids, 1 + i % 3};
    }
    assert_int_equal(znode_topic_decode(znode_topic_encode(&t, &arena), &arena, &back), 0);
    assert_int_equal(back.partitions_n, N);
    assert_true(uuid_eq(back.id, t.id));
    for (int i = 0; i < N; i++) {
        assert_int_equal(back.partitions[i].partition, i);
        assert_true(id_list_eq(back.partitions[i].replicas, t.partitions[i].replicas));
    }
}

static void malformed_topics_are_refused(void **state)
{
    static const char *bad[] = {
        "",
        "{\"version\":1}",
        "{\"partitions\":[]}",
        "{\"partitions\":{\"x\":[1]}}",
        "{\"partitions\":{\"\":[1]}}",
        "{\"partitions\":{\"-1\":[1]}}",
        "{\"partitions\":{\"12345678901\":[1]}}",
        "{\"partitions\":{\"1\":[1],\"01\":[2]}}",
        "{\"partitions\":{\"1\":1}}",
        "{\"partitions\":{\"1\":[\"1\"]}}",
        "{\"partitions\":{\"1\":[4294967296]}}",
        "{\"partitions\":{},\"adding_replicas\":1}",
        "{\"partitions\":{\"0\":[1]},\"removing_replicas\":{\"0\":1}}",
        "{\"partitions\":{},\"topic_id\":\"short\"}",
        "{\"partitions\":{},\"topic_id\":1}",
    };
    struct topic_node t;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(znode_topic_decode(text(bad[i]), &arena, &t), -EBADMSG);
}

static void partition_states(void **state)
{
    struct partition_node p;
    assert_int_equal(znode_partition_decode(
                         text(" {\"isr\":[1,2],\"leader_epoch\":7,\"version\":1,\n\"leader\":1,"
                              "\"controller_epoch\":3,\"later\":null}"),
                         &arena, &p),
                     0);
    assert_int_equal(p.leader, 1);
    assert_int_equal(p.leader_epoch, 7);
    assert_int_equal(p.controller_epoch, 3);
    assert_int_equal(p.isr.n, 2);
    assert_false(p.recovering);
    assert_bytes(
        znode_partition_encode(&p, &arena),
        "{\"controller_epoch\":3,\"leader\":1,\"version\":1,\"leader_epoch\":7,\"isr\":[1,2]}");
    p.recovering = true;
    p.leader = -1;
    struct bytes data = znode_partition_encode(&p, &arena);
    assert_non_null(strstr((const char *)data.p, "\"leader_recovery_state\":1"));
    assert_int_equal(znode_partition_decode(data, &arena, &p), 0);
    assert_true(p.recovering);
    assert_int_equal(p.leader, -1);
    assert_int_equal(
        znode_partition_decode(text("{\"leader\":1,\"leader_epoch\":1,\"isr\":[]}"), &arena, &p),
        -EBADMSG);
    assert_int_equal(znode_partition_decode(BYTES_NULL, &arena, &p), -EBADMSG);
}

static void controllers_and_epochs(void **state)
{
    struct controller_node c;
    int32_t epoch;
    assert_int_equal(znode_controller_decode(text("{\"version\":1,\"brokerid\":5}"), &c), 0);
    assert_int_equal(c.broker, 5);
    assert_int_equal(c.kraft_epoch, -1);
    c = (struct controller_node){3, 1700000000000, -1};
    struct bytes data = znode_controller_encode(&c, &arena);
    assert_bytes(data, "{\"version\":2,\"brokerid\":3,\"timestamp\":\"1700000000000\","
                       "\"kraftControllerEpoch\":-1}");
    assert_int_equal(znode_controller_decode(data, &c), 0);
    assert_int_equal(c.timestamp_ms, 1700000000000);
    assert_int_equal(znode_controller_decode(text("{\"version\":2}"), &c), -EBADMSG);

    assert_bytes(znode_epoch_encode(12, &arena), "12");
    assert_int_equal(znode_epoch_decode(text("2147483647"), &epoch), 0);
    assert_int_equal(epoch, INT32_MAX);
    static const char *bad[] = {NULL, "", "x", "1x", "-1", "2147483648", "99999999999999999999"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(znode_epoch_decode(text(bad[i]), &epoch), -EBADMSG);
}

static void configs(void **state)
{
    struct config_list l;
    assert_int_equal(znode_config_decode(BYTES_NULL, &arena, &l), 0);
    assert_int_equal(l.n, 0);
    assert_int_equal(znode_config_decode(text("{\"version\":1}"), &arena, &l), 0);
    assert_int_equal(l.n, 0);
    struct config_pair pairs[] = {{STR_LIT("retention.ms"), STR_LIT("1000")},
                                  {STR_LIT("left.out"), STR_NULL},
                                  {STR_LIT("note"), STR_LIT("\xc3\xa4\"\n")},
                                  {STR_LIT("empty"), STR_LIT("")}};
    struct bytes data = znode_config_encode((struct config_list){pairs, 4}, &arena);
    assert_int_equal(znode_config_decode(data, &arena, &l), 0);
    assert_int_equal(l.n, 3);
    assert_str(l.v[0].value, "1000");
    assert_str(l.v[1].value, "\xc3\xa4\"\n");
    assert_str(l.v[2].value, "");
    assert_bytes(znode_config_encode((struct config_list){NULL, 0}, &arena),
                 "{\"version\":1,\"config\":{}}");
    pairs[0].value = STR_LIT("\xff\xfe"); /* not UTF-8 */
    assert_null(znode_config_encode((struct config_list){pairs, 4}, &arena).p);
    static const char *bad[] = {"{", "{\"config\":{}}", "{\"version\":1,\"config\":[]}",
                                "{\"version\":1,\"config\":{\"a\":1}}"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(znode_config_decode(text(bad[i]), &arena, &l), -EBADMSG);
}

static void config_changes(void **state)
{
    struct str path;
    struct bytes data = znode_config_change_encode(STR_LIT("topics/t"), &arena);
    assert_bytes(data, "{\"version\":2,\"entity_path\":\"topics/t\"}");
    assert_int_equal(znode_config_change_decode(data, &arena, &path), 0);
    assert_str(path, "topics/t");
    assert_int_equal(znode_config_change_decode(
                         text("{\"version\":1,\"entity_type\":\"clients\",\"entity_name\":\"c\"}"),
                         &arena, &path),
                     0);
    assert_str(path, "clients/c");
    static const char *bad[] = {"", "{\"version\":3,\"entity_path\":\"a\"}", "{\"version\":2}",
                                "{\"version\":1,\"entity_type\":\"users\",\"entity_name\":\"c\"}",
                                "{\"version\":1,\"entity_type\":\"topics\"}"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(znode_config_change_decode(text(bad[i]), &arena, &path), -EBADMSG);
}

static void cluster_ids_producer_ids_and_features(void **state)
{
    struct str id;
    struct bytes data = znode_cluster_id_encode("AAECAwQFBgcICQoLDA0ODw", &arena);
    assert_bytes(data, "{\"version\":\"1\",\"id\":\"AAECAwQFBgcICQoLDA0ODw\"}");
    assert_int_equal(znode_cluster_id_decode(data, &arena, &id), 0);
    assert_str(id, "AAECAwQFBgcICQoLDA0ODw");
    assert_int_equal(znode_cluster_id_decode(text("{}"), &arena, &id), -EBADMSG);

    struct producer_id_block b = {1, 0, 999};
    data = znode_producer_ids_encode(&b, &arena);
    assert_bytes(data, "{\"version\":1,\"broker\":1,\"block_start\":\"0\",\"block_end\":\"999\"}");
    b = (struct producer_id_block){-1, -1, -1};
    assert_int_equal(znode_producer_ids_decode(data, &b), 0);
    assert_int_equal(b.end, 999);
    static const char *bad[] = {
        "",
        "{\"version\":1,\"broker\":1,\"block_start\":\"0\"}",
        "{\"version\":1,\"broker\":1,\"block_start\":\"0\",\"block_end\":\"x\"}",
        "{\"version\":1,\"broker\":1,\"block_start\":\"-1\",\"block_end\":\"9\"}",
        "{\"version\":1,\"broker\":1,\"block_start\":\"9\",\"block_end\":\"8\"}",
        "{\"version\":1,\"broker\":1,\"block_start\":\"0\",\"block_end\":\"9999999999999999999\"}"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(znode_producer_ids_decode(text(bad[i]), &b), -EBADMSG);

    int32_t version, status;
    data = znode_feature_encode(&arena);
    assert_bytes(data, "{\"version\":2,\"status\":1,\"features\":{}}");
    assert_int_equal(znode_feature_decode(data, &version, &status), 0);
    assert_int_equal(version, 2);
    assert_int_equal(status, 1);
    assert_int_equal(znode_feature_decode(text("{\"version\":3,\"status\":1,\"features\":{}}"),
                                          &version, &status),
                     -EBADMSG);
}

static void requests_and_notices(void **state)
{
    struct named_partitions l;
    struct bytes data = text("{\"partitions\":[{\"replicas\":[4,5],\"x\":1,\"partition\":3,"
                             "\"topic\":\"t\"}],\"version\":1}");
    assert_int_equal(znode_reassign_decode(data, &arena, &l), 0);
    assert_int_equal(l.n, 1);
    assert_str(l.v[0].topic, "t");
    assert_int_equal(l.v[0].partition, 3);
    assert_int_equal(l.v[0].replicas.n, 2);
    assert_bytes(znode_reassign_encode(l, &arena),
                 "{\"version\":1,\"partitions\":[{\"topic\":\"t\",\"partition\":3,"
                 "\"replicas\":[4,5]}]}");
    data = znode_partitions_encode(l, &arena);
    assert_bytes(data, "{\"version\":1,\"partitions\":[{\"topic\":\"t\",\"partition\":3}]}");
    assert_int_equal(znode_partitions_decode(data, &arena, &l), 0);
    assert_int_equal(l.v[0].partition, 3);
    assert_int_equal(znode_reassign_decode(data, &arena, &l), -EBADMSG);
    static const char *bad[] = {"",
                                "[]",
                                "{}",
                                "{\"partitions\":{}}",
                                "{\"partitions\":[{\"topic\":\"t\"}]}",
                                "{\"partitions\":[{\"topic\":1,\"partition\":0}]}",
                                "{\"partitions\":[7]}"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(znode_partitions_decode(text(bad[i]), &arena, &l), -EBADMSG);

    int32_t broker = -1;
    data = znode_log_dir_event_encode(3, &arena);
    assert_bytes(data, "{\"version\":1,\"broker\":3,\"event\":1}");
    assert_int_equal(znode_log_dir_event_decode(data, &broker), 0);
    assert_int_equal(broker, 3);
    assert_int_equal(znode_log_dir_event_decode(text("{\"broker\":3,\"event\":2}"), &broker),
                     -EBADMSG);
    assert_int_equal(znode_log_dir_event_decode(text("nonsense"), &broker), -EBADMSG);
}

#define arena_test(f) cmocka_unit_test_setup_teardown(f, arena_begin, arena_end)

static void lists_of_ids(void **state)
{
    static int32_t v[] = {3, 1, INT32_MIN, 2, 3, INT32_MAX};
    struct arena a;
    arena_init(&a, 0);
    assert_true(id_list_has_twice((struct id_list){v, 6}, &a));
    assert_true(id_list_has_twice((struct id_list){v, 5}, &a));
    assert_false(id_list_has_twice((struct id_list){v, 4}, &a));
    assert_false(id_list_has_twice((struct id_list){NULL, 0}, &a));
    assert_false(id_list_has_twice((struct id_list){NULL, -1}, &a));
    assert_int_equal(v[0], 3); /* the list itself keeps its order */
    qsort(v, 6, sizeof(v[0]), id_compare);
    assert_int_equal(v[0], INT32_MIN);
    assert_int_equal(v[5], INT32_MAX);
    arena_free(&a);
}

UNIT_MAIN(unit_test(lists_of_ids), arena_test(brokers_of_all_versions),
          arena_test(broker_is_written_as_version_5), arena_test(malformed_brokers_are_refused),
          arena_test(topics_of_all_versions), arena_test(many_partitions_come_back_in_order),
          arena_test(malformed_topics_are_refused), arena_test(partition_states),
          arena_test(controllers_and_epochs), arena_test(configs), arena_test(config_changes),
          arena_test(cluster_ids_producer_ids_and_features), arena_test(requests_and_notices))
