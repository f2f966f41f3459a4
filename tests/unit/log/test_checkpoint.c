/* The text checkpoints: bytes as Apache Kafka writes them, what is refused, look-up. */
#include "log/checkpoint.h"

#include "log_util.h"
#include "vectors.h"

static int parse(const char *text, struct offset_checkpoint *c)
{
    return offset_checkpoint_parse(strdup(text), strlen(text), c);
}

static void bytes_are_those_of_kafka(void **state)
{
    struct offset_entry v[] = {{STR_LIT("orders"), 0, 1064},
                               {STR_LIT("__consumer_offsets"), 17, 5}};
    struct buf out = BUF_INIT;
    offset_checkpoint_text(v, 2, &out);
    assert_vector("file_offset_checkpoint", out.p, out.len);
    buf_free(&out);
}

static void what_is_written_is_read(void **state)
{
    struct log_test t;
    struct offset_checkpoint c;
    int64_t v;
    setup(&t);
    const char *path = temp_dir_path(&t.tmp, "cp");
    struct offset_entry in[] = {
        {STR_LIT("b"), 1, 7}, {STR_LIT("a"), 2, INT64_MAX}, {STR_LIT("b"), 0, 0}};
    assert_int_equal(offset_checkpoint_write(t.fs, path, in, 3), 0);
    assert_int_equal(offset_checkpoint_read(t.fs, path, &c), 0);
    assert_int_equal(c.n, 3);
    for (int i = 0; i < 3; i++) {
        assert_true(offset_checkpoint_get(&c, in[i].topic, in[i].partition, &v));
        assert_int_equal(v, in[i].offset);
    }
    assert_false(offset_checkpoint_get(&c, STR_LIT("a"), 1, &v));
    assert_false(offset_checkpoint_get(&c, STR_LIT("ab"), 2, &v));
    offset_checkpoint_free(&c);
    /* no file, no entries */
    assert_int_equal(offset_checkpoint_read(t.fs, temp_dir_path(&t.tmp, "none"), &c), 0);
    assert_int_equal(c.n, 0);
    assert_false(offset_checkpoint_get(&c, STR_LIT("a"), 1, &v));
    teardown(&t);
}

static void lenient_forms_are_read(void **state)
{
    static const struct {
        const char *text;
        size_t n;
    } good[] = {{"", 0},
                {"0", 0},
                {"0\n", 0},
                {"0\n0", 0},
                {"0\n0\n", 0},
                {"0\n1\nt 0 5", 1},
                {"0\n1\nt  0\t5  \n", 1},
                {"0\r\n1\r\nt 0 5\r\n", 1},
                {"0\n2\nt 0 5\nt 1 -1\n", 2}};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct offset_checkpoint c;
        assert_int_equal(parse(good[i].text, &c), 0);
        assert_int_equal(c.n, good[i].n);
        offset_checkpoint_free(&c);
    }
}

static void damage_is_refused_as_a_whole(void **state)
{
    static const char *const bad[] = {"1\n0\n",
                                      "x",
                                      "\n",
                                      "0\nx\n",
                                      "0\n-1\n",
                                      "0\n1\n",
                                      "0\n1\nt 0\n",
                                      "0\n1\nt 0 5 6\n",
                                      "0\n1\nt x 5\n",
                                      "0\n1\nt 0 x\n",
                                      "0\n1\nt -1 5\n",
                                      "0\n1\nt 2147483648 5\n",
                                      "0\n1\nt 0 9223372036854775808\n",
                                      "0\n1\n t 0\n",
                                      "0\n1\nt 0 5\nt 1 6\n",
                                      "0\n2\nt 0 5\n\n",
                                      "0\n3\nt 0 5\nt 1 6\n",
                                      "0\n99999999999\n"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct offset_checkpoint c;
        assert_int_equal(parse(bad[i], &c), -EBADMSG);
        assert_null(c.v);
    }
    struct offset_checkpoint c;
    assert_int_equal(offset_checkpoint_parse(calloc(1, 64), 64, &c), -EBADMSG); /* zeros */
}

static void numbers_keep_to_their_range(void **state)
{
    int64_t v;
    assert_true(checkpoint_int(STR_LIT("9223372036854775807"), 0, INT64_MAX, &v));
    assert_int_equal(v, INT64_MAX);
    assert_true(checkpoint_int(STR_LIT("-9223372036854775808"), INT64_MIN, 0, &v));
    assert_int_equal(v, INT64_MIN);
    assert_true(checkpoint_int(STR_LIT("+7"), 0, 9, &v));
    assert_false(checkpoint_int(STR_LIT("9223372036854775808"), 0, INT64_MAX, &v));
    assert_false(checkpoint_int(STR_LIT("-9223372036854775809"), INT64_MIN, 0, &v));
    assert_false(checkpoint_int(STR_LIT("10"), 0, 9, &v));
    assert_false(checkpoint_int(STR_LIT(""), 0, 9, &v));
    assert_false(checkpoint_int(STR_LIT("-"), INT64_MIN, 9, &v));
    assert_false(checkpoint_int(STR_LIT("1 "), 0, 9, &v));
}

/* The old or the new content, whichever call fails and wherever the power goes. */
static void a_failed_write_leaves_the_old_or_the_new(void **state)
{
    struct log_test t;
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct offset_checkpoint c;
        int64_t v = -1;
        setup(&t);
        char path[PATH_MAX];
        snprintf(path, sizeof(path), "%s/cp", t.data);
        struct offset_entry e = {STR_LIT("t"), 0, 1};
        assert_int_equal(offset_checkpoint_write(t.fs, path, &e, 1), 0);
        e.offset = 2;
        fs_fault_power_off_at(t.fault, 1 + seed % 6);
        int err = offset_checkpoint_write(t.fs, path, &e, 1);
        fs_fault_clear(t.fault);
        assert_int_equal(
            fs_fault_crash(t.fault, t.data, seed % 2 ? FS_CRASH_TEAR : FS_CRASH_DROP, seed), 0);
        assert_int_equal(offset_checkpoint_read(t.fs, path, &c), 0);
        assert_true(offset_checkpoint_get(&c, STR_LIT("t"), 0, &v));
        assert_true(v == 2 || (err && v == 1));
        offset_checkpoint_free(&c);
        teardown(&t);
    }
}

UNIT_MAIN(unit_test(bytes_are_those_of_kafka), unit_test(what_is_written_is_read),
          unit_test(lenient_forms_are_read), unit_test(damage_is_refused_as_a_whole),
          unit_test(numbers_keep_to_their_range),
          unit_test(a_failed_write_leaves_the_old_or_the_new))
