/* Batches and messages made elsewhere: worked examples (record_vectors.txt), and what kafka-python
 * and the codec libraries make (records_golden.txt). Each must decode, check, iterate and pass
 * through conversion to what the file says. */
#include <ctype.h>
#include <stdio.h>

#include "project_paths.h"
#include "protocol/record_v2.h"
#include "protocol/records_convert.h"
#include "records_util.h"

struct line {
    char *text;
    size_t cap;
};

struct data {
    FILE *f;
    struct line line;
};

static bool next_line(struct data *d)
{
    while (getline(&d->line.text, &d->line.cap, d->f) > 0) {
        d->line.text[strcspn(d->line.text, "\n")] = 0;
        if (*d->line.text && *d->line.text != '#')
            return true;
    }
    return false;
}

static struct data data_open(const char *name)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", TEST_DATA_DIR, name);
    struct data d = {.f = fopen(path, "r")};
    assert_non_null(d.f);
    return d;
}

static void data_close(struct data *d)
{
    fclose(d->f);
    free(d->line.text);
}

/* Appends what a hex field says: "-" null, "." empty, "hh*N" N times the byte, else hex. Returns
 * the length, -1 for null. */
static int32_t put_field(struct buf *b, const char *s)
{
    size_t start = b->len;
    if (!strcmp(s, "-"))
        return -1;
    unsigned byte, times;
    if (sscanf(s, "%2x*%u", &byte, &times) == 2) {
        for (unsigned i = 0; i < times; i++)
            buf_put_i8(b, (int8_t)byte);
        return (int32_t)times;
    }
    for (; isxdigit(*s); s += 2) {
        assert_int_equal(sscanf(s, "%2x", &byte), 1);
        buf_put_i8(b, (int8_t)byte);
    }
    return (int32_t)(b->len - start);
}

static void check_field(struct bytes got, const char *text)
{
    struct buf b = BUF_INIT;
    int32_t len = put_field(&b, text);
    assert_int_equal(got.len, len);
    if (len > 0)
        assert_memory_equal(got.p, b.p, len);
    buf_free(&b);
}

/* One record line against one record; `magic_out` below 2 has no headers, 0 no time. */
static void check_record(char *text, const struct record *r, int magic_out)
{
    char *save, *word = strtok_r(text, " ", &save);
    assert_string_equal(word, "record");
    assert_int_equal(r->offset, strtoll(strtok_r(NULL, " ", &save), NULL, 10));
    long long time = strtoll(strtok_r(NULL, " ", &save), NULL, 10);
    assert_int_equal(r->timestamp, magic_out == 0 ? NO_TIMESTAMP : time);
    assert_int_equal(r->log_append_time, !strcmp(strtok_r(NULL, " ", &save), "append"));
    check_field(r->key, strtok_r(NULL, " ", &save));
    check_field(r->value, strtok_r(NULL, " ", &save));
    struct reader at = reader_of(r->headers.p, (size_t)r->headers.len);
    struct record_header h;
    while ((word = strtok_r(NULL, " ", &save)) && magic_out == 2) {
        char *eq = strchr(word, '=');
        *eq = 0;
        assert_true(record_header_next(&at, &h));
        check_field((struct bytes){(const uint8_t *)h.key.p, h.key.len}, *word ? word : ".");
        check_field(h.value, eq + 1);
    }
    assert_false(record_header_next(&at, &h));
    assert_false(at.bad);
}

static void check_head(char *text, const struct batch *b)
{
    long long v[13];
    assert_int_equal(sscanf(text,
                            "head %lld %lld %lld %lld %lld %lld %lld %lld %lld %lld %lld %lld %lld",
                            v, v + 1, v + 2, v + 3, v + 4, v + 5, v + 6, v + 7, v + 8, v + 9,
                            v + 10, v + 11, v + 12),
                     13);
    assert_int_equal(b->magic, v[0]);
    assert_int_equal(b->codec, v[1]);
    assert_int_equal(b->attributes, v[2]);
    assert_int_equal(b->leader_epoch, v[3]);
    assert_int_equal(b->base_offset, v[4]);
    assert_int_equal(b->last_offset, v[5]);
    assert_int_equal(b->base_timestamp, v[6]);
    assert_int_equal(b->max_timestamp, v[7]);
    assert_int_equal(b->producer_id, v[8]);
    assert_int_equal(b->producer_epoch, v[9]);
    assert_int_equal(b->base_sequence, v[10]);
    assert_int_equal(b->last_sequence, v[11]);
    assert_int_equal(b->record_count, v[12]);
}

/* Iterates all entries in [p, p + n) against record lines up to the next batch. */
static void check_records(struct line *lines, int lines_n, const uint8_t *p, size_t n,
                          int magic_out)
{
    struct batch b;
    int i = 0;
    for (; n; p += b.size, n -= b.size) {
        assert_int_equal(batch_decode(p, n, n, &b), BATCH_OK);
        assert_true(batch_crc_ok(&b));
        struct record_iter *it;
        struct record r;
        int rc = record_iter_open(&b, &it);
        assert_int_equal(rc, 0);
        while ((rc = record_iter_next(it, &r)) > 0) {
            assert_true(i < lines_n);
            char *copy = strdup(lines[i++].text);
            check_record(copy, &r, magic_out);
            free(copy);
        }
        assert_int_equal(rc, 0);
        record_iter_close(it);
    }
    assert_int_equal(i, lines_n);
}

struct case_ {
    char name[80];
    struct buf bytes;
    struct line head, records[400];
    int records_n;
};

typedef void check_fn(const struct case_ *c);

static void run_case(struct case_ *c, check_fn *check)
{
    if (!*c->name)
        return;
    print_message("    %s\n", c->name);
    check(c);
    buf_free(&c->bytes);
    free(c->head.text);
    for (int i = 0; i < c->records_n; i++)
        free(c->records[i].text);
    *c = (struct case_){0};
}

static void each_case(const char *file, check_fn *check)
{
    struct data d = data_open(file);
    static struct case_ c;
    int n = 0;
    while (next_line(&d)) {
        const char *t = d.line.text;
        if (!strncmp(t, "batch ", 6)) {
            run_case(&c, check);
            snprintf(c.name, sizeof(c.name), "%s", t + 6);
            n++;
        } else if (!strncmp(t, "hex ", 4)) {
            put_field(&c.bytes, t + 4);
        } else if (!strncmp(t, "head ", 5)) {
            c.head.text = strdup(t);
        } else if (!strncmp(t, "record ", 7)) {
            c.records[c.records_n++].text = strdup(t);
        }
    }
    run_case(&c, check);
    data_close(&d);
    assert_true(n > 10);
}

static void check_reading(const struct case_ *c)
{
    struct batch b = decode(c->bytes.p, c->bytes.len);
    assert_int_equal(b.size, c->bytes.len);
    if (c->head.text)
        check_head(c->head.text, &b);
    check_records((struct line *)c->records, c->records_n, c->bytes.p, c->bytes.len, 2);
}

static void reads(void **state)
{
    each_case("record_vectors.txt", check_reading);
}

static void reads_what_others_write(void **state)
{
    each_case("records_golden.txt", check_reading);
}

/* Produce with every target codec; what is stored then must hold the same records. */
static void check_produce(const struct case_ *c)
{
    struct batch b = decode(c->bytes.p, c->bytes.len);
    for (int target = COMPRESSION_PRODUCER; target < CODECS; target++) {
        struct append_policy policy = default_policy();
        policy.produce_version = b.magic == 2 ? 9 : 2;
        policy.compression = target;
        struct arena a;
        struct prepared pr;
        uint8_t *copy = malloc(c->bytes.len);
        memcpy(copy, c->bytes.p, c->bytes.len);
        arena_init(&a, 1 << 20);
        enum kerr code = records_prepare(&policy, copy, c->bytes.len, &a, &pr);
        if (code != KERR_NONE)
            print_error("%s: %d %s\n", c->name, code, pr.message);
        assert_int_equal(code, KERR_NONE);
        assert_int_equal(pr.batches_n, 1);
        assert_int_equal(pr.offsets_n, c->records_n);
        struct batch stored = decode(pr.p, pr.len);
        assert_int_equal(stored.magic, 2);
        assert_int_equal(stored.codec, target == COMPRESSION_PRODUCER ? b.codec : target);
        bool in_place = b.magic == 2 && b.codec == stored.codec;
        assert_int_equal(pr.p == copy, in_place);
        int64_t first = strtoll(c->records[0].text + 7, NULL, 10);
        records_assign(&pr, first, 7);
        check_records((struct line *)c->records, c->records_n, pr.p, pr.len, 2);
        prepared_free(&pr);
        arena_free(&a);
        free(copy);
    }
}

static void stores_what_others_write(void **state)
{
    each_case("records_golden.txt", check_produce);
}

static void check_conversion(const struct case_ *c)
{
    struct batch b = decode(c->bytes.p, c->bytes.len);
    for (int magic = 1; magic >= 0; magic--) {
        struct buf out = BUF_INIT;
        size_t used;
        enum kerr code = records_down_convert(c->bytes.p, c->bytes.len, magic, 0, &out, &used);
        if (b.codec == CODEC_ZSTD) {
            assert_int_equal(code, KERR_UNSUPPORTED_COMPRESSION_TYPE);
            assert_int_equal(used, 0);
            assert_int_equal(out.len, 0);
        } else {
            assert_int_equal(code, KERR_NONE);
            assert_int_equal(used, c->bytes.len);
            bool control = batch_is_control(&b);
            check_records((struct line *)c->records, control ? 0 : c->records_n, out.p, out.len,
                          magic);
        }
        buf_free(&out);
    }
}

static void converts(void **state)
{
    each_case("record_vectors.txt", check_conversion);
    each_case("records_golden.txt", check_conversion);
}

static void varints(void **state)
{
    struct data d = data_open("record_vectors.txt");
    int bits, n = 0;
    long long value;
    char hex[32];
    while (next_line(&d)) {
        if (sscanf(d.line.text, "varint %d %lld %31s", &bits, &value, hex) != 3)
            continue;
        struct buf b = BUF_INIT;
        put_field(&b, hex);
        struct varint v = (bits == 32 ? varint_get : varlong_get)(b.p, b.p + b.len);
        assert_ptr_equal(v.p, b.p + b.len);
        assert_int_equal(v.v, value);
        for (size_t cut = 0; cut < b.len; cut++)
            assert_null((bits == 32 ? varint_get : varlong_get)(b.p, b.p + cut).p);
        buf_free(&b);
        n++;
    }
    data_close(&d);
    assert_true(n >= 12);
}

static void varints_refuse_what_does_not_fit(void **state)
{
    static const struct {
        uint8_t p[11];
        int n;
        bool fits32, fits64;
    } cases[] = {
        {{0x80, 0x00}, 2, true, true}, /* padded */
        {{0x80, 0x80, 0x80, 0x80, 0x00}, 5, true, true},
        {{0xff, 0xff, 0xff, 0xff, 0x0f}, 5, true, true},
        {{0xff, 0xff, 0xff, 0xff, 0x1f}, 5, false, true}, /* 33 bits */
        {{0x80, 0x80, 0x80, 0x80, 0x80, 0x00}, 6, false, true},
        {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}, 10, false, true},
        {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x03}, 10, false, false},
        {{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00}, 11, false, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const uint8_t *p = cases[i].p, *end = p + cases[i].n;
        assert_int_equal(varint_get(p, end).p == end, cases[i].fits32);
        assert_int_equal(varint_get(p, end).p != NULL, cases[i].fits32);
        assert_int_equal(varlong_get(p, end).p != NULL, cases[i].fits64);
    }
}

UNIT_MAIN(unit_test(reads), unit_test(reads_what_others_write), unit_test(stores_what_others_write),
          unit_test(converts), unit_test(varints), unit_test(varints_refuse_what_does_not_fit))
