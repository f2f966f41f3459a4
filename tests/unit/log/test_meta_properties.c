/* meta.properties: reading Kafka's, refusing what is not ours, keeping strange keys. */
#include "log/meta_properties.h"

#include "log_util.h"
#include "vectors.h"

static void put(struct log_test *t, const void *p, size_t n)
{
    char path[PATH_MAX];
    struct file *f;
    snprintf(path, sizeof(path), "%s/meta.properties", t->data);
    assert_int_equal(fs_open(t->fs, path, O_RDWR | O_CREAT | O_TRUNC, &f), 0);
    assert_int_equal(file_pwrite_all(f, p, n, 0), 0);
    file_unref(f);
}

static void kafkas_file_reads(void **state)
{
    struct log_test t;
    struct meta_properties m;
    uint8_t bytes[256];
    char err[512] = "";
    setup(&t);
    size_t n = vector("file_meta_properties", bytes, sizeof(bytes));
    put(&t, bytes, n);
    assert_int_equal(meta_properties_read(t.fs, t.data, &m, err, sizeof(err)), 0);
    assert_int_equal(m.broker_id, 1);
    assert_string_equal(m.cluster_id, "vPeOCWypqUOSepEvx0cbog");
    meta_properties_free(&m);
    teardown(&t);
}

static void no_file_has_no_ids(void **state)
{
    struct log_test t;
    struct meta_properties m;
    char err[512] = "";
    setup(&t);
    assert_int_equal(meta_properties_read(t.fs, t.data, &m, err, sizeof(err)), 0);
    assert_int_equal(m.broker_id, -1);
    assert_string_equal(m.cluster_id, "");
    meta_properties_free(&m);
    teardown(&t);
}

static void errors_name_file_found_and_allowed(void **state)
{
    static const struct {
        const char *text, *found, *allowed;
    } bad[] = {{"version=1\nbroker.id=1\n", "version is \"1\"", "0"},
               {"version=x\n", "version is \"x\"", "0"},
               {"broker.id=-1\n", "broker.id is \"-1\"", "a number"},
               {"broker.id=one\n", "broker.id is \"one\"", "a number"},
               {"cluster.id=\n", "cluster.id is \"\"", "a text"},
               {"broker.id=\\u12\n", "line 1", "properties"}};
    struct log_test t;
    setup(&t);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct meta_properties m;
        char err[512] = "";
        put(&t, bad[i].text, strlen(bad[i].text));
        assert_int_equal(meta_properties_read(t.fs, t.data, &m, err, sizeof(err)), -EINVAL);
        assert_non_null(strstr(err, "meta.properties"));
        assert_non_null(strstr(err, bad[i].found));
        assert_non_null(strstr(err, bad[i].allowed));
    }
    teardown(&t);
}

static void an_update_keeps_other_keys_and_is_made_only_if_needed(void **state)
{
    struct log_test t;
    struct meta_properties m;
    char err[512] = "";
    setup(&t);
    put(&t, "broker.id=4\ndirectory.id=abc\n", 28);
    assert_int_equal(meta_properties_read(t.fs, t.data, &m, err, sizeof(err)), 0);
    assert_int_equal(meta_properties_update(t.fs, t.data, &m, 4, "c1"), 0);
    uint64_t writes = fs_fault_count(t.fault, FS_PWRITEV);
    assert_int_equal(meta_properties_update(t.fs, t.data, &m, 4, "c1"), 0);
    assert_int_equal(meta_properties_update(t.fs, t.data, &m, 4, NULL), 0);
    assert_int_equal(fs_fault_count(t.fault, FS_PWRITEV), writes);
    meta_properties_free(&m);
    assert_int_equal(meta_properties_read(t.fs, t.data, &m, err, sizeof(err)), 0);
    assert_int_equal(m.broker_id, 4);
    assert_string_equal(m.cluster_id, "c1");
    assert_string_equal(props_get(m.props, "directory.id"), "abc");
    assert_string_equal(props_get(m.props, "version"), "0");
    meta_properties_free(&m);
    teardown(&t);
}

UNIT_MAIN(unit_test(kafkas_file_reads), unit_test(no_file_has_no_ids),
          unit_test(errors_name_file_found_and_allowed),
          unit_test(an_update_keeps_other_keys_and_is_made_only_if_needed))
