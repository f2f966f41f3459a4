/* Frame memory: sizes, growth with what arrives, what is kept and for how long, what is lent. */
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "base/sim_executor.h"
#include "net/frame_pool.h"

enum { KIB = 1024, MIB = 1024 * 1024 };

/* Keeping is off under AddressSanitizer, so tests of it set it on their own pool; the sizes are
 * then still malloc'ed ones. Only what such a pool promises is tested there. */
static bool keeps(const struct frame_pool *fp)
{
    return !fp->exact;
}

static struct frame_mem get(struct frame_pool *fp, size_t len)
{
    struct frame_mem m;
    assert_int_equal(frame_pool_get(fp, len, &m), 0);
    assert_non_null(m.p);
    return m;
}

static void small_frames_are_whole_at_once(void **state)
{
    struct frame_pool fp;
    frame_pool_init(&fp, MIB, NULL);
    static const size_t lens[] = {0, 1, 511, 512, 513, 4096, 40000, 64 * KIB};
    for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        struct frame_mem m = get(&fp, lens[i]);
        assert_true(m.cap >= lens[i] && m.cap <= 64 * KIB);
        memset(m.p, 1, m.cap);
        frame_pool_put(&fp, &m);
        assert_null(m.p);
        frame_pool_put(&fp, &m); /* none is fine */
    }
    frame_pool_free(&fp);
}

static void memory_follows_what_has_arrived(void **state)
{
    struct frame_pool fp;
    frame_pool_init(&fp, 0, NULL);
    size_t len = 100 * MIB;
    struct frame_mem m = get(&fp, len);
    assert_true(m.cap <= 64 * KIB);
    memset(m.p, 7, m.cap);
    while (m.cap < 4 * MIB) {
        size_t full = m.cap;
        assert_int_equal(frame_pool_grow(&fp, len, &m), 0);
        assert_true(m.cap > full && m.cap <= 2 * full);
        assert_int_equal(m.p[full - 1], 7);
        memset(m.p + full, 7, m.cap - full);
    }
    frame_pool_put(&fp, &m);
    /* never past the frame's own size */
    m = get(&fp, 100 * KIB);
    assert_int_equal(frame_pool_grow(&fp, 100 * KIB, &m), 0);
    assert_true(m.cap >= 100 * KIB && m.cap <= 128 * KIB);
    frame_mem_free(&m);
    frame_pool_free(&fp);
}

static void a_kept_buffer_comes_back_whole(void **state)
{
    struct frame_pool fp;
    frame_pool_init(&fp, 4 * MIB, NULL);
    if (!keeps(&fp))
        skip();
    struct frame_mem m = get(&fp, MIB);
    while (m.cap < MIB)
        assert_int_equal(frame_pool_grow(&fp, MIB, &m), 0);
    uint8_t *p = m.p;
    frame_pool_arrived(&fp, &m);
    frame_pool_put(&fp, &m);
    assert_int_equal(fp.kept, MIB);
    m = get(&fp, MIB - 10);
    assert_ptr_equal(m.p, p);
    assert_int_equal(m.cap, MIB);
    assert_int_equal(fp.kept, 0);
    frame_pool_put(&fp, &m);
    frame_pool_free(&fp);
}

static void no_more_is_kept_than_allowed(void **state)
{
    struct frame_pool fp;
    frame_pool_init(&fp, 100 * KIB, NULL);
    if (!keeps(&fp))
        skip();
    struct frame_mem m[4];
    for (int i = 0; i < 4; i++)
        m[i] = get(&fp, 30 * KIB);
    for (int i = 0; i < 4; i++)
        frame_pool_put(&fp, &m[i]);
    assert_int_equal(fp.kept, 96 * KIB);
    frame_pool_free(&fp);
}

static void promises_pin_no_more_than_lent_max(void **state)
{
    struct frame_pool fp;
    frame_pool_init(&fp, 64 * MIB, NULL);
    if (!keeps(&fp))
        skip();
    struct frame_mem m[20];
    for (int i = 0; i < 20; i++) {
        m[i] = get(&fp, MIB);
        while (m[i].cap < MIB)
            frame_pool_grow(&fp, MIB, &m[i]);
        frame_pool_arrived(&fp, &m[i]);
    }
    for (int i = 0; i < 20; i++)
        frame_pool_put(&fp, &m[i]);
    assert_int_equal(fp.kept, 20 * MIB);
    size_t pinned = 0;
    for (int i = 0; i < 20; i++) { /* twenty clients promise 1 MiB and send nothing */
        m[i] = get(&fp, MIB);
        pinned += m[i].cap;
    }
    assert_int_equal(fp.lent, fp.lent_max);
    assert_true(pinned <= fp.lent_max + 20 * 64 * KIB);
    frame_pool_arrived(&fp, &m[0]); /* one has sent it after all: another may have trust */
    struct frame_mem extra = get(&fp, MIB);
    assert_int_equal(extra.cap, MIB);
    frame_pool_put(&fp, &extra);
    for (int i = 0; i < 20; i++)
        frame_pool_put(&fp, &m[i]);
    assert_int_equal(fp.lent, 0);
    frame_pool_free(&fp);
}

static void what_is_not_needed_goes_back(void **state)
{
    struct sim_clock clock;
    sim_clock_init(&clock, 0);
    struct sim_executor *ex = sim_executor_new(&clock);
    struct frame_pool fp;
    frame_pool_init(&fp, 4 * MIB, sim_executor_ex(ex));
    if (!keeps(&fp)) {
        sim_executor_free(ex);
        skip();
    }
    struct frame_mem a = get(&fp, 10 * KIB), b = get(&fp, 10 * KIB);
    frame_pool_put(&fp, &a);
    frame_pool_put(&fp, &b);
    for (int i = 0; i < 5; i++) { /* one of the two is in use time and again */
        sim_executor_advance(ex, 1000);
        a = get(&fp, 10 * KIB);
        frame_pool_put(&fp, &a);
    }
    assert_int_equal(fp.kept, 16 * KIB);
    sim_executor_advance(ex, 5000);
    assert_int_equal(fp.kept, 0);
    assert_int_equal(sim_executor_next_timer(ex), -1); /* nothing kept, nothing to wake for */
    frame_pool_free(&fp);
    sim_executor_free(ex);
}

UNIT_MAIN(unit_test(small_frames_are_whole_at_once), unit_test(memory_follows_what_has_arrived),
          unit_test(a_kept_buffer_comes_back_whole), unit_test(no_more_is_kept_than_allowed),
          unit_test(promises_pin_no_more_than_lent_max), unit_test(what_is_not_needed_goes_back))
