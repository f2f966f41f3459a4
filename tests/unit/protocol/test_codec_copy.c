/* Deep copies: equal to what they were made of, and independent of it. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "msg_random.h"
#include "protocol/msg/produce.h"

static struct buf encoded(const struct msg_desc *d, int version, const void *m)
{
    struct writer w = WRITER_INIT;
    msg_encode(d, version, &w, m);
    assert_false(w.buf.failed);
    struct buf b = w.buf;
    w.buf = BUF_INIT;
    writer_free(&w);
    return b;
}

static void every_message_in_every_version(void **state)
{
    int n;
    const struct msg_desc *const *all = msg_all(&n);
    for (int i = 0; i < n; i++) {
        for (int version = all[i]->min; version <= all[i]->max; version++) {
            struct arena made, copied;
            arena_init(&made, 0);
            arena_init(&copied, 0);
            void *m = msg_random(all[i], version, (uint64_t)(i * 1000 + version), &made);
            struct buf before = encoded(all[i], version, m);
            void *copy = msg_copy(all[i], &copied, m);
            assert_non_null(copy);
            assert_true(msg_equal(all[i], version, m, copy));
            arena_free(&made); /* the copy needs none of it: the address sanitizer sees to that */
            struct buf after = encoded(all[i], version, copy);
            assert_int_equal(after.len, before.len);
            assert_memory_equal(after.p, before.p, before.len);
            buf_free(&before);
            buf_free(&after);
            arena_free(&copied);
        }
    }
}

static void no_room_is_told(void **state)
{
    struct arena made, copied;
    arena_init(&made, 0);
    struct produce_request *m = msg_random(&produce_request_desc, 9, 7, &made);
    void *copy = NULL;
    for (size_t cap = 16; !copy; cap += 16) {
        arena_init(&copied, cap);
        copy = msg_copy(&produce_request_desc, &copied, m);
        if (copy)
            assert_true(msg_equal(&produce_request_desc, 9, m, copy));
        else
            assert_true(copied.exhausted);
        arena_free(&copied);
    }
    arena_free(&made);
}

static void file_ranges_become_bytes(void **state)
{
    char path[] = "/tmp/test_codec_copy_XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    struct file *f;
    assert_int_equal(fs_open(fs_posix(), path, O_RDWR, &f), 0);
    unlink(path);
    assert_int_equal(file_pwrite_all(f, "0123456789", 10, 0), 0);

    struct produce_request_partition_data part;
    produce_request_partition_data_init(&part);
    struct produce_request_topic_data topic;
    produce_request_topic_data_init(&topic);
    topic.partition_data.v = &part;
    topic.partition_data.n = 1;
    struct produce_request m;
    produce_request_init(&m);
    m.topic_data.v = &topic;
    m.topic_data.n = 1;

    struct arena a;
    arena_init(&a, 0);
    part.records = (struct records){NULL, 4, f, 3};
    struct produce_request *copy = msg_copy(&produce_request_desc, &a, &m);
    const struct records *r = &copy->topic_data.v[0].partition_data.v[0].records;
    assert_null(r->file);
    assert_int_equal(r->len, 4);
    assert_memory_equal(r->p, "3456", 4);
    part.records.pos = 7; /* ends beyond the file */
    assert_null(msg_copy(&produce_request_desc, &a, &m));
    assert_int_equal(f->refs, 1);
    arena_free(&a);
    file_unref(f);
}

UNIT_MAIN(unit_test(every_message_in_every_version), unit_test(no_room_is_told),
          unit_test(file_ranges_become_bytes))
