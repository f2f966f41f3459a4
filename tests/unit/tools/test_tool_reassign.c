/* kafka-reassign-partitions: its files, what a plan makes move, what of that is throttled. */
#include "tools/tool_reassign_plan.h"

#include "unit.h"

static struct arena mem;

static int begin(void **state)
{
    arena_init(&mem, 0);
    return 0;
}

static int end(void **state)
{
    arena_free(&mem);
    return 0;
}

static const char *parse(const char *text, struct reassign_plan *out)
{
    json_t *document = json_loads(text, 0, NULL);
    assert_non_null(document);
    const char *wrong = reassign_plan_parse(document, &mem, out);
    json_decref(document);
    return wrong;
}

#define PART(topic, partition, replicas) \
    "{\"topic\":\"" topic "\",\"partition\":" #partition ",\"replicas\":[" replicas "]}"
#define PLAN(parts) "{\"version\":1,\"partitions\":[" parts "]}"

static void plans_are_read_in_order_and_written(void **state)
{
    struct reassign_plan p;
    assert_null(parse(PLAN(PART("b", 0, "3") "," PART("a", 10, "1,2") "," PART("a", 9, "")), &p));
    assert_int_equal(p.n, 3);
    assert_string_equal(p.v[0].topic, "a");
    assert_int_equal(p.v[0].partition, 9);
    assert_null(p.v[0].dirs);
    assert_ptr_equal(reassign_plan_find(&p, "b", 0), &p.v[2]);
    assert_null(reassign_plan_find(&p, "b", 1));
    size_t n = 0;
    const char **topics = reassign_plan_topics(&p, &mem, &n);
    assert_int_equal(n, 2);
    assert_string_equal(topics[0], "a");
    assert_string_equal(topics[1], "b");
    p.n = 2;
    assert_string_equal(
        reassign_plan_format(&p, &mem),
        "{\"version\":1,\"partitions\":[{\"topic\":\"a\",\"partition\":9,\"replicas\":[],"
        "\"log_dirs\":[]},{\"topic\":\"a\",\"partition\":10,\"replicas\":[1,2],\"log_dirs\":"
        "[\"any\",\"any\"]}]}");
    assert_null(parse("{}", &p));
    assert_int_equal(p.n, 0);
}

static void log_dirs_are_those_that_are_named(void **state)
{
    struct reassign_plan p;
    assert_null(
        parse(PLAN("{\"topic\":\"t\",\"partition\":0,\"replicas\":[2,1,3],\"log_dirs\":[\"/b\",\"/"
                   "a\",\"any\"]}," PART("s", 0, "1")),
              &p));
    struct reassign_dir_moves m = reassign_plan_dirs(&p, &mem);
    assert_int_equal(m.n, 2);
    assert_int_equal(m.v[0].broker, 1);
    assert_string_equal(m.v[0].dir, "/a");
    assert_int_equal(m.v[1].broker, 2);
    assert_string_equal(m.v[1].dir, "/b");
}

static void what_is_wrong_with_a_file_is_said(void **state)
{
    static const char *const wrong[][2] = {
        {"[]", "the file does not hold a JSON object"},
        {"{\"version\":\"1\"}", "\"version\" is not a whole number"},
        {"{\"version\":3}", "Not supported version field value 3"},
        {"{\"partitions\":{}}", "\"partitions\" is not a list"},
        {PLAN("1"), "No such field exists: `topic`"},
        {PLAN("{\"topic\":1}"), "\"topic\" is not a text"},
        {PLAN("{\"topic\":\"t\",\"partition\":\"0\"}"),
         "\"partition\" is not a partition's number"},
        {PLAN("{\"topic\":\"t\",\"partition\":9999999999}"),
         "\"partition\" is not a partition's number"},
        {PLAN("{\"topic\":\"t\",\"partition\":0,\"replicas\":1}"), "\"replicas\" is not a list"},
        {PLAN(PART("t", 0, "1,\"2\"")), "\"replicas\" is not a list of broker ids"},
        {PLAN("{\"topic\":\"t\",\"partition\":0,\"replicas\":[1],\"log_dirs\":[2]}"),
         "\"log_dirs\" is not a list of texts"},
        {PLAN("{\"topic\":\"t\",\"partition\":0,\"replicas\":[1,2],\"log_dirs\":[\"any\"]}"),
         "Size of replicas list [1, 2] is different from size of log dirs list [any] for partition "
         "t-0"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct reassign_plan p;
        assert_string_equal(parse(wrong[i][0], &p), wrong[i][1]);
    }
}

static void what_may_not_be_executed(void **state)
{
    static const char *const wrong[][2] = {
        {PLAN(""), "Partition reassignment list cannot be empty"},
        {PLAN(PART("t", 0, "")), "Partition replica list cannot be empty"},
        {PLAN(PART("t", 1, "1") "," PART("t", 0, "1") "," PART("t", 1, "2") "," PART(
             "t", 1, "3") "," PART("s", 0, "1") "," PART("s", 0, "1")),
         "Partition reassignment contains duplicate topic partitions: s-0,t-1"},
        {PLAN(PART("t", 0, "1,2,1,2,1") "," PART("u", 0, "3,3")),
         "Partition replica lists may not contain duplicate entries: t-0 contains multiple entries "
         "for 1,2. u-0 contains multiple entries for 3"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct reassign_plan p;
        assert_null(parse(wrong[i][0], &p));
        assert_string_equal(reassign_plan_check(&p, &mem), wrong[i][1]);
    }
    struct reassign_plan p;
    assert_null(parse(PLAN(PART("t", 0, "1,2") "," PART("t", 1, "2,1")), &p));
    assert_null(reassign_plan_check(&p, &mem));
}

static void lists_of_topics_and_brokers(void **state)
{
    static const char *const texts[][2] = {
        {"{\"topics\":[{\"topic\":\"a\"},{\"topic\":\"b\"},{\"topic\":\"a\"}]}",
         "List of topics to reassign contains duplicate entries: [a]"},
        {"{\"topics\":1}", "\"topics\" is not a list"},
        {"{\"topics\":[{}]}", "No such field exists: `topic`"},
        {"{\"version\":2,\"topics\":[]}", "Not supported version field value 2"},
        {"{\"topics\":[{\"topic\":\"b\"},{\"topic\":\"a\"}]}", NULL},
    };
    const char **topics = NULL;
    size_t n = 0;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        json_t *document = json_loads(texts[i][0], 0, NULL);
        const char *wrong = reassign_topics_parse(document, &mem, &topics, &n);
        json_decref(document);
        if (texts[i][1])
            assert_string_equal(wrong, texts[i][1]);
        else
            assert_null(wrong);
    }
    assert_non_null(topics);
    assert_int_equal(n, 2);
    assert_string_equal(topics[0], "b");
    struct id_list ids;
    assert_null(reassign_brokers_parse("3,1,20", &mem, &ids));
    assert_string_equal(reassign_format_ids(ids, &mem), "3,1,20");
    assert_string_equal(reassign_brokers_parse("3,1,3", &mem, &ids),
                        "Broker list contains duplicate entries: [3]");
    assert_string_equal(reassign_brokers_parse("1,,2", &mem, &ids), "For input string: \"\"");
    assert_string_equal(reassign_brokers_parse("1,99999999999", &mem, &ids),
                        "For input string: \"99999999999\"");
}

/* t-2 moves already, from 1,2 to 3,2: its sources stay what they were. */
static void sources_and_destinations_are_throttled(void **state)
{
    static const int32_t replicas[] = {3, 2, 1}, adding[] = {3}, removing[] = {1};
    const kafka_moving_partition_t on_its_way[] = {
        {"t", 2, replicas, adding, removing, 3, 1, 1},
        {"other", 0, replicas, adding, removing, 3, 1, 1},
    };
    const kafka_moving_partitions_t moving = {on_its_way, 2};
    struct reassign_plan plan, now;
    assert_null(
        parse(PLAN(PART("t", 2, "4,2") "," PART("t", 10, "1,2,5") "," PART("u", 0, "2,1")), &plan));
    assert_null(
        parse(PLAN(PART("t", 2, "3,2,1") "," PART("t", 10, "1,2") "," PART("u", 0, "1,2")), &now));
    struct reassign_moves m = reassign_moves_of(&moving, &plan, &now, &mem);
    size_t n = 0;
    const char **topics = reassign_moves_topics(&m, &mem, &n);
    assert_int_equal(n, 3);
    assert_string_equal(topics[0], "other");
    assert_string_equal(topics[2], "u");
    assert_string_equal(reassign_throttled(&m, "t", true, &mem), "10:1,10:2,2:1,2:2");
    assert_string_equal(reassign_throttled(&m, "t", false, &mem), "10:5,2:4");
    assert_string_equal(reassign_throttled(&m, "u", true, &mem), "0:1,0:2");
    assert_string_equal(reassign_throttled(&m, "u", false, &mem), "");
    assert_string_equal(reassign_throttled(&m, "other", true, &mem), "0:1,0:2");
    assert_string_equal(reassign_throttled(&m, "other", false, &mem), "0:3");
    assert_string_equal(reassign_format_ids(reassign_moves_brokers(&m, &mem), &mem), "1,2,3,4,5");
}

/* A hundred thousand partitions, half of them moving already: what looks each up among all others
 * would not end within the test's time. */
static void large_plans_take_no_time(void **state)
{
    enum { TOPICS = 50000, PARTITIONS = 2 };
    static const int32_t replicas[] = {1, 2, 3}, adding[] = {3}, removing[] = {1};
    static int32_t from[] = {1, 2}, to[] = {2, 3};
    static char *dirs[] = {"/a", "/b"};
    int n = TOPICS * PARTITIONS;
    kafka_moving_partition_t *moving = arena_array(&mem, kafka_moving_partition_t, TOPICS);
    struct reassign_plan plan = {arena_array(&mem, struct reassign_part, (size_t)n), n};
    struct reassign_plan now = {arena_array(&mem, struct reassign_part, (size_t)n), n};
    assert_true(moving && plan.v && now.v);
    for (int i = 0; i < n; i++) {
        const char *topic = arena_printf(&mem, "topic-%06d", i / PARTITIONS);
        plan.v[i] = (struct reassign_part){topic, i % PARTITIONS, {to, 2}, (void *)dirs};
        now.v[i] = (struct reassign_part){topic, i % PARTITIONS, {from, 2}, NULL};
        if (i % PARTITIONS == 0)
            moving[i / PARTITIONS] =
                (kafka_moving_partition_t){topic, 0, replicas, adding, removing, 3, 1, 1};
    }
    const kafka_moving_partitions_t on_their_way = {moving, TOPICS};
    struct reassign_moves m = reassign_moves_of(&on_their_way, &plan, &now, &mem);
    struct reassign_dir_moves d = reassign_plan_dirs(&plan, &mem);
    assert_int_equal(m.n, n);
    assert_int_equal(d.n, 2 * n);
    for (int i = 0; i < n; i += PARTITIONS) {
        const char *topic = plan.v[i].topic;
        assert_string_equal(reassign_throttled(&m, topic, true, &mem), "0:1,0:2,1:1,1:2");
        assert_string_equal(reassign_throttled(&m, topic, false, &mem), "0:3,1:3");
        int at = reassign_dir_moves_find(&d, topic, 1, 3);
        assert_string_equal(d.v[at].topic, topic);
        assert_string_equal(d.v[at].dir, "/b");
        assert_int_equal(reassign_dir_moves_find(&d, topic, 1, 4), d.n);
    }
}

#define WITH_MEM(f) cmocka_unit_test_setup_teardown(f, begin, end)

UNIT_MAIN(WITH_MEM(plans_are_read_in_order_and_written),
          WITH_MEM(log_dirs_are_those_that_are_named), WITH_MEM(what_is_wrong_with_a_file_is_said),
          WITH_MEM(what_may_not_be_executed), WITH_MEM(lists_of_topics_and_brokers),
          WITH_MEM(sources_and_destinations_are_throttled), WITH_MEM(large_plans_take_no_time))
