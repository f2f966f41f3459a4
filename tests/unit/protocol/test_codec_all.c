/* What must hold for every message in every version, tried with random values and random damage. */
#include <errno.h>
#include <stdio.h>

#include "msg_random.h"
#include "unit.h"

enum { ROUNDS = 6, FLIPS = 40 };

struct trial {
    const struct msg_desc *d;
    int version;
    struct arena made, read;
    void *m, *back;
    struct writer w;
};

static void trial_init(struct trial *t, const struct msg_desc *d, int version, uint64_t seed)
{
    *t = (struct trial){.d = d, .version = version, .w = WRITER_INIT};
    arena_init(&t->made, 0);
    arena_init(&t->read, 0);
    t->m = msg_random(d, version, seed * 1000003 + (uint64_t)version, &t->made);
    t->back = arena_alloc(&t->made, d->body->size);
    msg_encode(d, version, &t->w, t->m);
}

static void trial_free(struct trial *t)
{
    writer_free(&t->w);
    arena_free(&t->made);
    arena_free(&t->read);
}

static int decode(struct trial *t, const uint8_t *p, size_t n, size_t *left)
{
    struct reader r = reader_of(p, n);
    arena_free(&t->read);
    int err = msg_decode(t->d, t->version, &r, &t->read, t->back);
    *left = err ? 0 : reader_left(&r);
    /* the promise about memory, whatever the bytes were */
    assert_true(t->read.used <= CODEC_EXPANSION * n);
    return err;
}

static void for_every_version(void (*check)(struct trial *t, uint64_t seed))
{
    int n;
    const struct msg_desc *const *all = msg_all(&n);
    for (int i = 0; i < n; i++) {
        for (int v = all[i]->min; v <= all[i]->max; v++) {
            for (uint64_t seed = 0; seed < ROUNDS; seed++) {
                struct trial t;
                trial_init(&t, all[i], v, seed + 100 * (uint64_t)i);
                check(&t, seed);
                trial_free(&t);
            }
        }
    }
}

static void check_roundtrip(struct trial *t, uint64_t seed)
{
    size_t left;
    assert_false(t->w.buf.failed);
    assert_false(t->w.unsupported);
    assert_int_equal(t->w.splices_n, 0);
    assert_int_equal(msg_size(t->d, t->version, t->m), t->w.buf.len);
    assert_true(t->w.buf.len >= t->d->body->least[t->version - t->d->body->least_min]);

    assert_int_equal(decode(t, t->w.buf.p, t->w.buf.len, &left), 0);
    assert_int_equal(left, 0);
    assert_true(msg_equal(t->d, t->version, t->m, t->back));

    struct writer again = WRITER_INIT;
    msg_encode(t->d, t->version, &again, t->back);
    assert_int_equal(again.buf.len, t->w.buf.len);
    if (again.buf.len)
        assert_memory_equal(again.buf.p, t->w.buf.p, again.buf.len);
    assert_false(again.unsupported);
    writer_free(&again);
}

static void every_message_comes_back_as_sent(void **state)
{
    for_every_version(check_roundtrip);
}

static void check_text(struct trial *t, uint64_t seed)
{
    struct buf text = BUF_INIT;
    msg_print(t->d, t->version, t->m, &text);
    assert_true(text.len >= 2 && text.p[0] == '{' && text.p[text.len - 1] == '}');
    for (size_t i = 0; i < text.len; i++)
        assert_true(text.p[i] >= ' ' && text.p[i] <= '~');
    buf_free(&text);
}

static void every_message_prints_as_one_line_of_ascii(void **state)
{
    for_every_version(check_text);
}

static void check_bytes_behind(struct trial *t, uint64_t seed)
{
    size_t left;
    buf_put(&t->w.buf, "behind", 6);
    assert_int_equal(decode(t, t->w.buf.p, t->w.buf.len, &left), 0);
    assert_int_equal(left, 6);
}

static void bytes_behind_a_message_are_left_alone(void **state)
{
    for_every_version(check_bytes_behind);
}

static void check_truncations(struct trial *t, uint64_t seed)
{
    size_t left;
    if (seed >= 2)
        return;
    for (size_t n = 0; n < t->w.buf.len; n++) {
        /* a copy of its own, so that a read past the end is seen by the sanitizer */
        uint8_t *cut = malloc(n ? n : 1);
        memcpy(cut, t->w.buf.p, n);
        assert_int_equal(decode(t, cut, n, &left), -EPROTO);
        free(cut);
    }
}

static void no_message_decodes_when_cut_short(void **state)
{
    for_every_version(check_truncations);
}

/* A damaged message is refused, or it is another valid message: then it can be encoded and comes
 * back. */
static void check_damage(struct trial *t, uint64_t seed)
{
    struct msg_random r = {.state = seed};
    size_t n = t->w.buf.len, left;
    uint8_t *bytes = malloc(n ? n : 1);
    for (int flip = 0; n && flip < FLIPS; flip++) {
        memcpy(bytes, t->w.buf.p, n);
        for (int k = random_below(&r, 3); k >= 0; k--)
            bytes[random_below(&r, (int)n)] = (uint8_t)(flip % 2 ? random_next(&r) : 0xff);
        int err = decode(t, bytes, n, &left);
        assert_true(err == 0 || err == -EPROTO);
        if (err)
            continue;
        struct writer w = WRITER_INIT;
        msg_encode(t->d, t->version, &w, t->back);
        assert_false(w.buf.failed);
        assert_int_equal(w.buf.len, msg_size(t->d, t->version, t->back));
        void *third = arena_alloc(&t->made, t->d->body->size);
        struct reader again = reader_of(w.buf.p, w.buf.len);
        assert_int_equal(msg_decode(t->d, t->version, &again, &t->made, third), 0);
        assert_true(msg_equal(t->d, t->version, t->back, third));
        writer_free(&w);
    }
    free(bytes);
}

static void damaged_messages_are_refused_or_valid(void **state)
{
    for_every_version(check_damage);
}

static void check_arena_cap(struct trial *t, uint64_t seed)
{
    size_t left;
    assert_int_equal(decode(t, t->w.buf.p, t->w.buf.len, &left), 0);
    size_t used = t->read.used;
    for (size_t cap = 1; cap < used; cap += 1 + used / 7) {
        struct arena small;
        struct reader r = reader_of(t->w.buf.p, t->w.buf.len);
        arena_init(&small, cap);
        assert_int_equal(msg_decode(t->d, t->version, &r, &small, t->back), -ENOMEM);
        arena_free(&small);
    }
}

static void an_arena_too_small_is_told_apart_from_bad_bytes(void **state)
{
    for_every_version(check_arena_cap);
}

static void messages_have_no_other_versions(void **state)
{
    int n;
    const struct msg_desc *const *all = msg_all(&n);
    struct arena a;
    arena_init(&a, 0);
    for (int i = 0; i < n; i++) {
        static const uint8_t zeros[4096];
        void *m = arena_alloc(&a, all[i]->body->size);
        for (int k = 0; k < 2; k++) {
            struct reader r = reader_of(zeros, sizeof(zeros));
            int version = k ? all[i]->max + 1 : all[i]->min - 1;
            assert_int_equal(msg_decode(all[i], version, &r, &a, m), -EPROTO);
        }
    }
    arena_free(&a);
}

/* CODEC_EXPANSION against the tables: what an element takes in memory (with the arena's padding)
 * for the least bytes that it can have on the wire. */
static void check_expansion(const struct struct_desc *s, int version)
{
    for (int i = 0; i < s->fields_n; i++) {
        const struct field_desc *f = &s->fields[i];
        if (!f->sub || !field_in(f, version))
            continue;
        size_t least = f->sub->least[version - f->sub->least_min];
        size_t in_memory = f->sub->size + 15;
        if ((f->type == FIELD_ARRAY || field_is_pointer(f)) && in_memory > CODEC_EXPANSION * least)
            fail_msg("%s version %d: %zu bytes in memory for %zu", f->sub->name, version, in_memory,
                     least);
        check_expansion(f->sub, version);
    }
}

static void no_struct_grows_beyond_the_bound(void **state)
{
    int n;
    const struct msg_desc *const *all = msg_all(&n);
    for (int i = 0; i < n; i++)
        for (int v = all[i]->min; v <= all[i]->max; v++)
            check_expansion(all[i]->body, v);
}

UNIT_MAIN(unit_test(every_message_comes_back_as_sent),
          unit_test(every_message_prints_as_one_line_of_ascii),
          unit_test(bytes_behind_a_message_are_left_alone),
          unit_test(no_message_decodes_when_cut_short),
          unit_test(damaged_messages_are_refused_or_valid),
          unit_test(an_arena_too_small_is_told_apart_from_bad_bytes),
          unit_test(messages_have_no_other_versions), unit_test(no_struct_grows_beyond_the_bound))
