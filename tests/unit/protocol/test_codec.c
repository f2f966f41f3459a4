/* The wire rules one by one, against bytes typed by hand. */
#include "protocol/codec.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "protocol/msg/api_versions.h"
#include "protocol/msg/create_topics.h"
#include "protocol/msg/describe_topic_partitions.h"
#include "protocol/msg/fetch.h"
#include "protocol/msg/metadata.h"
#include "protocol/msg/produce.h"
#include "protocol/msg/sasl_handshake.h"
#include "protocol/msg/update_metadata.h"
#include "unit.h"

struct fixture {
    struct arena arena;
    struct writer w;
};

static int setup(void **state)
{
    struct fixture *x = calloc(1, sizeof(*x));
    arena_init(&x->arena, 0);
    x->w = WRITER_INIT;
    *state = x;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *x = *state;
    arena_free(&x->arena);
    writer_free(&x->w);
    free(x);
    return 0;
}

#define test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

#define BYTES(...) (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})

static int decode(struct fixture *x, const struct msg_desc *d, int version, void *m,
                  const uint8_t *p, size_t n)
{
    /* in memory of the arena, so that the message may point into it */
    uint8_t *copy = arena_alloc(&x->arena, n ? n : 1);
    memcpy(copy, p, n);
    struct reader r = reader_of(copy, n);
    return msg_decode(d, version, &r, &x->arena, m);
}

static void expect(struct fixture *x, const uint8_t *p, size_t n)
{
    assert_false(x->w.buf.failed);
    assert_int_equal(x->w.buf.len, n);
    assert_memory_equal(x->w.buf.p, p, n);
    x->w.buf.len = 0;
}

static void lengths_are_plain_or_compact_by_version(void **state)
{
    struct fixture *x = *state;
    struct metadata_request m;
    metadata_request_init(&m);
    m.topics.n = 1;
    m.topics.v = metadata_request_topic_new(&x->arena, 1);
    m.topics.v[0].name = STR_LIT("t");
    metadata_request_encode(&m, 4, &x->w);
    expect(x, BYTES(0, 0, 0, 1, 0, 1, 't', 1));
    m.include_topic_authorized_operations = true;
    metadata_request_encode(&m, 9, &x->w);
    assert_false(x->w.unsupported);
    expect(x, BYTES(2, 2, 't', 0, 1, 0, 1, 0));
}

static void null_has_a_form_of_its_own(void **state)
{
    struct fixture *x = *state;
    struct metadata_request m;
    metadata_request_init(&m);
    m.topics.n = -1;
    metadata_request_encode(&m, 1, &x->w);
    expect(x, BYTES(0xff, 0xff, 0xff, 0xff));
    metadata_request_encode(&m, 12, &x->w);
    expect(x, BYTES(0, 1, 0, 0));
    assert_false(x->w.unsupported);
    assert_int_equal(decode(x, &metadata_request_desc, 1, &m, BYTES(0xff, 0xff, 0xff, 0xff)), 0);
    assert_int_equal(m.topics.n, -1);
    assert_int_equal(decode(x, &metadata_request_desc, 12, &m, BYTES(0, 1, 0, 0)), 0);
    assert_int_equal(m.topics.n, -1);
    /* and empty is not null */
    assert_int_equal(decode(x, &metadata_request_desc, 1, &m, BYTES(0, 0, 0, 0)), 0);
    assert_int_equal(m.topics.n, 0);
}

static void null_is_refused_where_there_is_none(void **state)
{
    struct fixture *x = *state;
    struct metadata_request m;
    struct sasl_handshake_request s;
    /* topics may be null from version 1 on, the name of a topic from 10 on */
    assert_int_equal(decode(x, &metadata_request_desc, 0, &m, BYTES(0xff, 0xff, 0xff, 0xff)),
                     -EPROTO);
    assert_int_equal(decode(x, &metadata_request_desc, 9, &m, BYTES(2, 0, 0, 1, 0, 1, 0)), -EPROTO);
    assert_int_equal(decode(x, &sasl_handshake_request_desc, 0, &s, BYTES(0xff, 0xff)), -EPROTO);
    /* other negative lengths are nothing at all */
    assert_int_equal(decode(x, &metadata_request_desc, 1, &m, BYTES(0xff, 0xff, 0xff, 0xfe)),
                     -EPROTO);
}

static void null_that_cannot_be_sent_goes_out_empty_and_is_reported(void **state)
{
    struct fixture *x = *state;
    struct sasl_handshake_request s = {.mechanism = STR_NULL};
    sasl_handshake_request_encode(&s, 0, &x->w);
    assert_true(x->w.unsupported);
    expect(x, BYTES(0, 0));
}

static void strings_end_at_32767_bytes(void **state)
{
    struct fixture *x = *state;
    struct create_topics_response m;
    create_topics_response_init(&m);
    m.topics.n = 1;
    m.topics.v = create_topics_response_topic_new(&x->arena, 1);
    char *text = arena_alloc(&x->arena, 32768);
    memset(text, 'x', 32768);
    m.topics.v[0].error_message = (struct str){text, 32767};
    for (int version = 1; version <= 5; version += 4) {
        create_topics_response_encode(&m, version, &x->w);
        assert_false(x->w.unsupported);
        size_t fits = x->w.buf.len;
        x->w.buf.len = 0;
        m.topics.v[0].error_message.len = 32768;
        create_topics_response_encode(&m, version, &x->w);
        assert_true(x->w.unsupported);
        assert_int_equal(x->w.buf.len, fits);
        x->w.unsupported = false;
        x->w.buf.len = 0;
        m.topics.v[0].error_message.len = 32767;
    }
    /* a compact length could say more; it is refused all the same */
    struct fetch_request f;
    uint8_t *big = arena_calloc(&x->arena, 40000, 1);
    memcpy(big, (const uint8_t[]){1, 0, 0, 0x81, 0x80, 0x02}, 6); /* tag 0, 32768 bytes of string */
    struct reader r = reader_of(big, 40000);
    assert_int_equal(msg_decode(&fetch_request_desc, 15, &r, &x->arena, &f), -EPROTO);
}

static void a_field_that_the_version_lacks_is_reported_unless_ignorable(void **state)
{
    struct fixture *x = *state;
    struct fetch_request m;
    fetch_request_init(&m);
    m.rack_id = STR_LIT("r"); /* 11+, ignorable */
    m.max_bytes = 1;          /* 3+, ignorable */
    fetch_request_encode(&m, 0, &x->w);
    assert_false(x->w.unsupported);
    m.forgotten_topics_data.n = 1; /* 7+ */
    m.forgotten_topics_data.v = fetch_request_forgotten_topic_new(&x->arena, 1);
    x->w.buf.len = 0;
    fetch_request_encode(&m, 6, &x->w);
    assert_true(x->w.unsupported);
    /* a struct inside which something is set */
    fetch_request_init(&m);
    m.replica_state.replica_epoch = 3; /* 15+ */
    x->w.unsupported = false;
    fetch_request_encode(&m, 14, &x->w);
    assert_true(x->w.unsupported);
}

static void absent_fields_decode_to_their_defaults(void **state)
{
    struct fixture *x = *state;
    struct fetch_request m;
    memset(&m, 0x55, sizeof(m));
    assert_int_equal(decode(x, &fetch_request_desc, 0, &m,
                            BYTES(0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0)),
                     0);
    assert_int_equal(m.replica_id, 9);
    assert_int_equal(m.max_wait_ms, 1);
    assert_int_equal(m.min_bytes, 2);
    assert_int_equal(m.max_bytes, INT32_MAX);
    assert_int_equal(m.isolation_level, 0);
    assert_int_equal(m.session_id, 0);
    assert_int_equal(m.session_epoch, -1);
    assert_true(str_is_null(m.cluster_id));
    assert_int_equal(m.replica_state.replica_id, -1);
    assert_int_equal(m.replica_state.replica_epoch, -1);
    assert_int_equal(m.topics.n, 0);
    assert_int_equal(m.forgotten_topics_data.n, 0);
    assert_true(str_eqz(m.rack_id, ""));
}

static void defaults_that_responses_rely_on(void **state)
{
    struct fixture *x = *state;
    struct produce_response_partition_response *p =
        produce_response_partition_response_new(&x->arena, 2);
    assert_int_equal(p[1].log_append_time_ms, -1);
    assert_int_equal(p[1].log_start_offset, -1);
    assert_int_equal(p[1].current_leader.leader_id, -1);
    assert_int_equal(p[1].current_leader.leader_epoch, -1);
    assert_true(str_is_null(p[1].error_message));
    struct fetch_response_partition f;
    fetch_response_partition_init(&f);
    assert_int_equal(f.preferred_read_replica, -1);
    assert_int_equal(f.last_stable_offset, -1);
    assert_int_equal(f.records.len, -1);
    assert_int_equal(f.diverging_epoch.end_offset, -1);
    struct metadata_response m;
    metadata_response_init(&m);
    assert_int_equal(m.controller_id, -1);
    assert_int_equal(m.cluster_authorized_operations, INT32_MIN);
    struct update_metadata_request u;
    update_metadata_request_init(&u);
    assert_int_equal(u.broker_epoch, -1);
}

static void an_array_that_the_cap_refuses_is_null(void **state)
{
    struct arena small;
    arena_init(&small, 64);
    assert_null(fetch_response_partition_new(&small, 1000));
    arena_free(&small);
}

static void tagged_fields_travel_in_order_and_only_when_set(void **state)
{
    struct fixture *x = *state;
    struct api_versions_response m, back;
    api_versions_response_init(&m);
    api_versions_response_encode(&m, 3, &x->w);
    expect(x, BYTES(0, 0, 1, 0, 0, 0, 0, 0));
    m.zk_migration_ready = true;    /* tag 3 */
    m.finalized_features_epoch = 0; /* tag 1; -1 is the default */
    m.finalized_features.n = 1;     /* tag 2 */
    m.finalized_features.v = api_versions_response_finalized_feature_new(&x->arena, 1);
    m.finalized_features.v[0].name = STR_LIT("f");
    api_versions_response_encode(&m, 3, &x->w);
    assert_int_equal(api_versions_response_size(&m, 3), x->w.buf.len);
    assert_int_equal(decode(x, &api_versions_response_desc, 3, &back, x->w.buf.p, x->w.buf.len), 0);
    assert_true(msg_equal(&api_versions_response_desc, 3, &m, &back));
    expect(x, BYTES(0, 0, 1, 0, 0, 0, 0, 3,         /* three tags */
                    1, 8, 0, 0, 0, 0, 0, 0, 0, 0,   /* epoch */
                    2, 8, 2, 2, 'f', 0, 0, 0, 0, 0, /* features */
                    3, 1, 1));                      /* migration */
}

static void unknown_tags_are_skipped_by_their_size(void **state)
{
    struct fixture *x = *state;
    struct api_versions_response m;
    assert_int_equal(decode(x, &api_versions_response_desc, 3, &m,
                            BYTES(0, 0, 1, 0, 0, 0, 0, 3, 0x80, 0x01, 2, 0xee, 0xee, /* tag 128 */
                                  9, 0,                                              /* empty */
                                  3, 1, 1)),
                     0);
    assert_true(m.zk_migration_ready);
    /* a size beyond the end */
    assert_int_equal(
        decode(x, &api_versions_response_desc, 3, &m, BYTES(0, 0, 1, 0, 0, 0, 0, 1, 9, 2, 0xee)),
        -EPROTO);
    assert_int_equal(decode(x, &api_versions_response_desc, 3, &m,
                            BYTES(0, 0, 1, 0, 0, 0, 0, 1, 9, 0xff, 0xff, 0xff, 0xff, 0x0f, 0xee)),
                     -EPROTO);
    /* more tags announced than there are */
    assert_int_equal(decode(x, &api_versions_response_desc, 3, &m,
                            BYTES(0, 0, 1, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f, 9, 0)),
                     -EPROTO);
}

static void a_known_tag_must_fill_its_size(void **state)
{
    struct fixture *x = *state;
    struct api_versions_response m;
    assert_int_equal(
        decode(x, &api_versions_response_desc, 3, &m, BYTES(0, 0, 1, 0, 0, 0, 0, 1, 3, 2, 1, 1)),
        -EPROTO);
    assert_int_equal(decode(x, &api_versions_response_desc, 3, &m,
                            BYTES(0, 0, 1, 0, 0, 0, 0, 1, 1, 4, 0, 0, 0, 0)),
                     -EPROTO);
}

static void a_tag_of_a_later_version_is_unknown_to_an_earlier_one(void **state)
{
    struct fixture *x = *state;
    struct fetch_request m;
    /* tag 1 (replica state) exists from 15 on; 14 skips it, whatever is inside */
    uint8_t bytes[25 + 7] = {[25] = 1, 1, 1, 1, 1, 1, 0xaa};
    assert_int_equal(decode(x, &fetch_request_desc, 14, &m, bytes, sizeof(bytes)), 0);
    assert_int_equal(m.replica_state.replica_id, -1);
}

static void a_struct_that_may_be_null_has_a_marker(void **state)
{
    struct fixture *x = *state;
    struct describe_topic_partitions_request m;
    const struct msg_desc *d = &describe_topic_partitions_request_desc;
    assert_int_equal(decode(x, d, 0, &m, BYTES(1, 0, 0, 0, 7, 0xff, 0)), 0);
    assert_null(m.cursor);
    assert_int_equal(m.response_partition_limit, 7);
    describe_topic_partitions_request_encode(&m, 0, &x->w);
    expect(x, BYTES(1, 0, 0, 0, 7, 0xff, 0));
    assert_int_equal(decode(x, d, 0, &m, BYTES(1, 0, 0, 0, 7, 1, 2, 't', 0, 0, 0, 5, 0, 0)), 0);
    assert_true(str_eqz(m.cursor->topic_name, "t"));
    assert_int_equal(m.cursor->partition_index, 5);
    describe_topic_partitions_request_encode(&m, 0, &x->w);
    expect(x, BYTES(1, 0, 0, 0, 7, 1, 2, 't', 0, 0, 0, 5, 0, 0));
}

static void a_count_beyond_the_bytes_left_is_refused_before_it_costs_memory(void **state)
{
    struct fixture *x = *state;
    struct metadata_request m;
    size_t before = x->arena.used;
    struct reader r = reader_of("\x7f\xff\xff\xff\0\1t", 7);
    assert_int_equal(msg_decode(&metadata_request_desc, 1, &r, &x->arena, &m), -EPROTO);
    r = reader_of("\xff\xff\xff\xff\x0f\2t", 7);
    assert_int_equal(msg_decode(&metadata_request_desc, 9, &r, &x->arena, &m), -EPROTO);
    /* three elements of at least two bytes do not fit in five bytes */
    r = reader_of("\0\0\0\3\0\1t\0\1", 9);
    assert_int_equal(msg_decode(&metadata_request_desc, 1, &r, &x->arena, &m), -EPROTO);
    assert_int_equal(x->arena.used, before);
}

static void a_refused_message_is_left_at_its_defaults(void **state)
{
    struct fixture *x = *state;
    struct metadata_request m;
    memset(&m, 0x55, sizeof(m));
    assert_int_equal(decode(x, &metadata_request_desc, 1, &m, BYTES(0, 0, 0, 2, 0, 1, 't', 0)),
                     -EPROTO);
    assert_int_equal(m.topics.n, 0);
    assert_null(m.topics.v);
}

static struct fetch_response *one_partition(struct fixture *x, struct records rec)
{
    struct fetch_response *m = arena_alloc(&x->arena, sizeof(*m));
    fetch_response_init(m);
    m->responses.n = 1;
    m->responses.v = fetch_response_response_new(&x->arena, 1);
    m->responses.v[0].partitions.n = 1;
    m->responses.v[0].partitions.v = fetch_response_partition_new(&x->arena, 1);
    m->responses.v[0].partitions.v[0].records = rec;
    return m;
}

static void records_of_a_file_become_a_splice(void **state)
{
    struct fixture *x = *state;
    char path[] = "/tmp/test_codec.XXXXXX";
    close(mkstemp(path));
    struct file *file;
    assert_int_equal(fs_open(fs_posix(), path, O_RDONLY, &file), 0);
    unlink(path);
    static const uint8_t bytes[300];
    struct fetch_response *in_memory = one_partition(x, (struct records){bytes, 300, NULL, 0});
    struct fetch_response *in_file = one_partition(x, (struct records){NULL, 300, file, 77});
    for (int version = 4; version <= 16; version += 12) {
        struct writer a = WRITER_INIT, b = WRITER_INIT;
        fetch_response_encode(in_memory, version, &a);
        fetch_response_encode(in_file, version, &b);
        assert_int_equal(b.splices_n, 1);
        assert_int_equal(b.splices[0].pos, 77);
        assert_int_equal(b.splices[0].len, 300);
        assert_ptr_equal(b.splices[0].file, file);
        assert_int_equal(writer_size(&b), a.buf.len);
        assert_int_equal(fetch_response_size(in_file, version), a.buf.len);
        /* the bytes around the splice are those of the message in memory */
        size_t at = b.splices[0].at;
        assert_memory_equal(a.buf.p, b.buf.p, at);
        assert_memory_equal(a.buf.p + at + 300, b.buf.p + at, b.buf.len - at);
        assert_int_equal(atomic_load(&file->refs), 2);
        writer_free(&b);
        assert_int_equal(atomic_load(&file->refs), 1);
        writer_free(&a);
    }
    file_unref(file);
}

static void text_form(void **state)
{
    struct fixture *x = *state;
    struct buf text = BUF_INIT;
    struct fetch_response *f =
        one_partition(x, (struct records){(const uint8_t *)"abc", 3, NULL, 0});
    f->responses.v[0].topic = STR_LIT("it's\n\xc3\xa4");
    msg_print(&fetch_response_desc, 4, f, &text);
    buf_put_i8(&text, 0);
    assert_string_equal((char *)text.p,
                        "{throttle_time_ms=0, responses=[{topic='it\\x27s\\x0a\\xc3\\xa4', "
                        "partitions=[{partition_index=0, error_code=0, high_watermark=0, "
                        "last_stable_offset=-1, aborted_transactions=[], records=<3 bytes>}]}]}");
    text.len = 0;
    struct metadata_request m;
    metadata_request_init(&m);
    m.topics.n = -1;
    msg_print(&metadata_request_desc, 4, &m, &text);
    buf_put_i8(&text, 0);
    assert_string_equal((char *)text.p, "{topics=null, allow_auto_topic_creation=true}");
    buf_free(&text);
}

static void equal_compares_what_the_version_has(void **state)
{
    struct fixture *x = *state;
    struct fetch_response *a = one_partition(x, RECORDS_NULL), *b = one_partition(x, RECORDS_NULL);
    assert_true(msg_equal(&fetch_response_desc, 12, a, b));
    b->responses.v[0].partitions.v[0].preferred_read_replica = 1; /* 11+ */
    assert_true(msg_equal(&fetch_response_desc, 10, a, b));
    assert_false(msg_equal(&fetch_response_desc, 11, a, b));
    b->responses.v[0].partitions.v[0].preferred_read_replica = -1;
    b->responses.v[0].partitions.v[0].aborted_transactions.n = -1; /* null is not empty */
    assert_false(msg_equal(&fetch_response_desc, 4, a, b));
    b->responses.n = 0;
    assert_false(msg_equal(&fetch_response_desc, 0, a, b));
}

UNIT_MAIN(test(lengths_are_plain_or_compact_by_version), test(null_has_a_form_of_its_own),
          test(null_is_refused_where_there_is_none),
          test(null_that_cannot_be_sent_goes_out_empty_and_is_reported),
          test(strings_end_at_32767_bytes),
          test(a_field_that_the_version_lacks_is_reported_unless_ignorable),
          test(absent_fields_decode_to_their_defaults), test(defaults_that_responses_rely_on),
          test(an_array_that_the_cap_refuses_is_null),
          test(tagged_fields_travel_in_order_and_only_when_set),
          test(unknown_tags_are_skipped_by_their_size), test(a_known_tag_must_fill_its_size),
          test(a_tag_of_a_later_version_is_unknown_to_an_earlier_one),
          test(a_struct_that_may_be_null_has_a_marker),
          test(a_count_beyond_the_bytes_left_is_refused_before_it_costs_memory),
          test(a_refused_message_is_left_at_its_defaults), test(records_of_a_file_become_a_splice),
          test(text_form), test(equal_compares_what_the_version_has))
