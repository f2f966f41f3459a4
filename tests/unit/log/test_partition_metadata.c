/* partition.metadata: bytes, what is read, what is refused. */
#include "log/partition_metadata.h"

#include "log_util.h"
#include "vectors.h"

static const struct uuid id = {
    {0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff}};

static void bytes_are_those_of_kafka(void **state)
{
    struct log_test t;
    struct uuid back;
    char *text;
    size_t n;
    setup_log(&t);
    assert_int_equal(partition_metadata_read(t.fs, log_path(t.log), &back), -ENOENT);
    assert_int_equal(partition_metadata_write(t.fs, log_path(t.log), id, true), 0);
    assert_int_equal(fs_read_all(t.fs, log_file(&t, PARTITION_METADATA_NAME), 100, &text, &n), 0);
    assert_vector("file_partition_metadata", text, n);
    free(text);
    assert_int_equal(partition_metadata_read(t.fs, log_path(t.log), &back), 0);
    assert_true(uuid_eq(back, id));
    teardown(&t);
}

static void forms_that_read(void **state)
{
    static const char *const good[] = {"version: 0\ntopic_id: ABEiM0RVZneImaq7zN3u_w",
                                       "version: 0\ntopic_id: ABEiM0RVZneImaq7zN3u_w\n",
                                       "version:  1\r\ntopic_id:\tABEiM0RVZneImaq7zN3u_w\r\n"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct uuid back;
        assert_int_equal(partition_metadata_parse(good[i], strlen(good[i]), &back), 0);
        assert_true(uuid_eq(back, id));
    }
}

static void forms_that_do_not(void **state)
{
    static const char *const bad[] = {
        "",
        "version: 0",
        "version: 0\n",
        "version: -1\ntopic_id: ABEiM0RVZneImaq7zN3u_w",
        "version: x\ntopic_id: ABEiM0RVZneImaq7zN3u_w",
        "version:0\ntopic_id: ABEiM0RVZneImaq7zN3u_w",
        "topic_id: ABEiM0RVZneImaq7zN3u_w\nversion: 0",
        "version: 0\ntopic_id: ABEiM0RVZneImaq7zN3u",
        "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA", /* the zero id */
        "version: 0\ntopic_id: "};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct uuid back;
        assert_int_equal(partition_metadata_parse(bad[i], strlen(bad[i]), &back), -EBADMSG);
    }
}

UNIT_MAIN(unit_test(bytes_are_those_of_kafka), unit_test(forms_that_read),
          unit_test(forms_that_do_not))
