/* A page in pieces is the page, wherever it is cut. */
#include "server/metrics_page.h"

#include <string.h>

#include "server/metrics_page_private.h"
#include "unit.h"

static size_t none(const struct page *p)
{
    return 0;
}
static size_t one(const struct page *p)
{
    return 1;
}
static size_t many(const struct page *p)
{
    return 40;
}

static void put(const struct page *p, const struct family *f, size_t item, struct buf *out)
{
    if (item % 3 != 1) /* an item may have nothing to tell */
        metrics_sample(out, f->name, "", NULL, 0, (double)item);
}

static const struct family families[] = {
    {.name = "a", .kind = METRIC_GAUGE, .help = "First.", .items = one, .put = put},
    {.name = "b", .kind = METRIC_COUNTER, .help = "Empty.", .items = none, .put = put},
    {.name = "c", .kind = METRIC_GAUGE, .help = "Long.", .items = many, .put = put},
    {.name = "d", .kind = METRIC_SUMMARY, .help = "Empty, at the end.", .items = none, .put = put},
};

enum { FAMILIES = sizeof(families) / sizeof(*families) };

static struct page page_of_all(void)
{
    static const struct family *all[FAMILIES];
    for (int i = 0; i < FAMILIES; i++)
        all[i] = &families[i];
    return (struct page){.families = all, .families_n = FAMILIES};
}

/* Room for `room` bytes is left in each piece. */
static void tell(size_t room, struct buf *all)
{
    static const char filler[PAGE_PIECE];
    struct page p = page_of_all();
    for (bool more = true; more;) {
        struct buf piece = BUF_INIT;
        buf_put(&piece, filler, PAGE_PIECE - room);
        more = metrics_page_next(&p, &piece);
        assert_true(piece.len > PAGE_PIECE - room || !more); /* it goes on */
        buf_put(all, piece.p + PAGE_PIECE - room, piece.len - (PAGE_PIECE - room));
        buf_free(&piece);
    }
}

static void a_page_may_be_cut_anywhere(void **state)
{
    struct buf whole = BUF_INIT;
    tell(PAGE_PIECE, &whole);
    assert_true(whole.len > 200);
    for (size_t room = 1; room <= whole.len + 1; room++) {
        struct buf cut = BUF_INIT;
        tell(room, &cut);
        assert_int_equal(cut.len, whole.len);
        assert_memory_equal(cut.p, whole.p, whole.len);
        buf_free(&cut);
    }
    buf_free(&whole);
}

/* Of the real tables: no name twice, each one legal, each with its text. */
static void families_have_names_of_their_own(void **state)
{
    struct metrics_pages *pages = metrics_pages_new(NULL);
    for (size_t i = 0; i < pages->families_n; i++) {
        const struct family *f = pages->families[i];
        assert_true(f->items && f->put && strlen(f->help) > 1);
        assert_true(f->put != put_value || f->value);
        assert_true(f->put != put_times || f->tally);
        assert_true(f->put != put_partition || f->of_partition);
        assert_int_equal(strspn(f->name, "abcdefghijklmnopqrstuvwxyz0123456789_"), strlen(f->name));
        size_t n = strlen(f->name);
        bool total = n > 6 && strcmp(f->name + n - 6, "_total") == 0;
        if (total)
            assert_int_equal(f->kind, METRIC_COUNTER);
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(f->name, pages->families[k]->name);
    }
    metrics_pages_free(pages);
}

UNIT_MAIN(unit_test(a_page_may_be_cut_anywhere), unit_test(families_have_names_of_their_own))
