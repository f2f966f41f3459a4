/* Counters' slots, histograms, and the text that Prometheus reads. */
#include "base/metrics.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

#include "base/metrics_text.h"
#include "unit.h"

/* ---- slots ---- */

enum { THREADS = 40, ADDS = 5000 };

struct slotted {
    metric slots[METRICS_SLOTS];
    struct histogram h;
};

static void *add_many(void *arg)
{
    struct slotted *s = arg;
    unsigned slot = metrics_slot();
    for (int i = 0; i < ADDS; i++) {
        metric_add(&s->slots[metrics_slot()], 1);
        histogram_add(&s->h, (uint64_t)i);
    }
    return slot == metrics_slot() && slot < METRICS_SLOTS ? arg : NULL;
}

static void more_threads_than_slots_lose_no_count(void **state)
{
    static struct slotted s;
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_many, &s), 0);
    for (int i = 0; i < THREADS; i++) {
        void *kept;
        pthread_join(threads[i], &kept);
        assert_non_null(kept);
    }
    uint64_t sum = 0;
    int used = 0;
    for (int i = 0; i < METRICS_SLOTS; i++) {
        sum += metric_read(&s.slots[i]);
        used += metric_read(&s.slots[i]) > 0;
    }
    struct tally t = {0};
    tally_add(&t, &s.h);
    assert_int_equal(sum, THREADS * ADDS);
    assert_int_equal(used, METRICS_SLOTS);
    assert_int_equal(t.count, THREADS * ADDS);
    assert_int_equal(t.sum, (uint64_t)THREADS * ADDS * (ADDS - 1) / 2);
}

/* ---- histograms ---- */

static double only(uint64_t value)
{
    struct histogram h = {0};
    struct tally t = {0};
    histogram_add(&h, value);
    tally_add(&t, &h);
    return tally_quantile(&t, 0.5);
}

static void a_value_is_told_within_an_eighth(void **state)
{
    for (uint64_t v = 0; v < 8; v++)
        assert_true(only(v) == (double)v);
    for (uint64_t v = 8; v < UINT64_C(1) << 40; v += v / 37 + 1)
        assert_true(fabs(only(v) - (double)v) <= (double)v / 8);
    for (int power = 3; power <= 40; power++) { /* where one bucket ends and the next begins */
        uint64_t v = UINT64_C(1) << power;
        assert_true(only(v - 1) < only(v));
        assert_true(fabs(only(v) - (double)v) <= (double)v / 8);
    }
}

static void what_is_too_large_counts_as_the_largest(void **state)
{
    assert_true(only(UINT64_MAX) == only(UINT64_C(1) << 42));
    assert_true(only(UINT64_MAX) > 0x1p40);
}

static void quantiles_of_a_known_set(void **state)
{
    struct histogram h = {0};
    struct tally t = {0};
    assert_true(tally_quantile(&t, 0.99) == 0);
    for (uint64_t v = 1; v <= 1000; v++)
        histogram_add(&h, v);
    tally_add(&t, &h);
    static const double asked[] = {0, 0.25, 0.5, 0.75, 0.95, 0.99, 0.999, 1};
    for (size_t i = 0; i < sizeof(asked) / sizeof(*asked); i++) {
        double right = asked[i] * 1000 < 1 ? 1 : asked[i] * 1000;
        assert_true(fabs(tally_quantile(&t, asked[i]) - right) <= right / 8 + 1);
    }
}

static void a_window_forgets_after_two_turns(void **state)
{
    struct histogram h = {0};
    struct histogram_window w = {0};
    for (int turn = 0; turn < 3; turn++) {
        struct tally all = {0}, lately;
        if (turn == 0)
            for (int i = 0; i < 100; i++)
                histogram_add(&h, 5000);
        else
            histogram_add(&h, 3);
        tally_add(&all, &h);
        lately = all;
        histogram_window_cut(&w, &lately);
        assert_int_equal(lately.count, turn == 0 ? 100 : turn == 1 ? 101 : 2);
        assert_true((tally_quantile(&lately, 0.5) > 4000) == (turn < 2));
        histogram_window_turn(&w, &all);
    }
}

/* ---- text ---- */

static void assert_text(struct buf *b, const char *want)
{
    assert_false(b->failed);
    buf_put(b, "", 1);
    assert_string_equal((const char *)b->p, want);
    buf_free(b);
}

static void heads_and_samples(void **state)
{
    struct buf b = BUF_INIT;
    struct metric_label l[] = {{"topic", STR_LIT("t")}, {"partition", STR_LIT("3")}};
    metrics_head(&b, "kafka_x", METRIC_GAUGE, "What\\it\nis \"here\".");
    metrics_sample(&b, "kafka_x", "", NULL, 0, 12);
    metrics_sample(&b, "kafka_x", "", l, 2, 0.25);
    assert_text(&b, "# HELP kafka_x What\\\\it\\nis \"here\".\n# TYPE kafka_x gauge\n"
                    "kafka_x 12\nkafka_x{topic=\"t\",partition=\"3\"} 0.25\n");
}

/* Client ids and hosts are what clients say. */
static void no_label_can_end_early(void **state)
{
    struct buf b = BUF_INIT;
    struct metric_label l = {"id", STR_LIT("a\"} 1\n\\x")};
    metrics_sample(&b, "m", "", &l, 1, 1);
    l.value = STR_NULL;
    metrics_sample(&b, "m", "", &l, 1, 1);
    assert_text(&b, "m{id=\"a\\\"} 1\\n\\\\x\"} 1\nm{id=\"\"} 1\n");
}

static void numbers_keep_their_digits(void **state)
{
    static const struct {
        double v;
        const char *text;
    } cases[] = {{0, "m 0\n"},           {9007199254740991.0, "m 9007199254740991\n"},
                 {-1, "m -1\n"},         {1e300, "m 1e+300\n"},
                 {0.001, "m 0.001\n"},   {NAN, "m NaN\n"},
                 {INFINITY, "m +Inf\n"}, {-INFINITY, "m -Inf\n"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct buf b = BUF_INIT;
        metrics_sample(&b, "m", "", NULL, 0, cases[i].v);
        assert_text(&b, cases[i].text);
    }
}

static void a_summary_has_quantiles_of_lately_and_counts_of_all(void **state)
{
    struct buf b = BUF_INIT;
    struct tally all = {.count = 3, .sum = 9000}, lately = {0};
    struct metric_label l = {"request", STR_LIT("Fetch")};
    metrics_summary(&b, "m", &l, 1, &lately, &all, 1000);
    lately.count = 1;
    lately.buckets[4] = 1;
    metrics_summary(&b, "n", NULL, 0, &lately, &all, 1);
    assert_text(&b, "m{request=\"Fetch\",quantile=\"0.50\"} NaN\n"
                    "m{request=\"Fetch\",quantile=\"0.75\"} NaN\n"
                    "m{request=\"Fetch\",quantile=\"0.95\"} NaN\n"
                    "m{request=\"Fetch\",quantile=\"0.98\"} NaN\n"
                    "m{request=\"Fetch\",quantile=\"0.99\"} NaN\n"
                    "m{request=\"Fetch\",quantile=\"0.999\"} NaN\n"
                    "m_sum{request=\"Fetch\"} 9\nm_count{request=\"Fetch\"} 3\n"
                    "n{quantile=\"0.50\"} 4\nn{quantile=\"0.75\"} 4\nn{quantile=\"0.95\"} 4\n"
                    "n{quantile=\"0.98\"} 4\nn{quantile=\"0.99\"} 4\nn{quantile=\"0.999\"} 4\n"
                    "n_sum 9000\nn_count 3\n");
}

UNIT_MAIN(unit_test(more_threads_than_slots_lose_no_count),
          unit_test(a_value_is_told_within_an_eighth),
          unit_test(what_is_too_large_counts_as_the_largest), unit_test(quantiles_of_a_known_set),
          unit_test(a_window_forgets_after_two_turns), unit_test(heads_and_samples),
          unit_test(no_label_can_end_early), unit_test(numbers_keep_their_digits),
          unit_test(a_summary_has_quantiles_of_lately_and_counts_of_all))
