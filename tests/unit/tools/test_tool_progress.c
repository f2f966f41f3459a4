/* The line of long work: when it comes, and what it says. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "tools/tool_progress.h"

struct shown {
    struct progress p;
    struct sim_clock clock;
    char *text;
    size_t n;
};

static void begin(struct shown *s, const char *name, int64_t total)
{
    progress_begin(&s->p, false, name, total);
    sim_clock_init(&s->clock, 0);
    s->p.clock = &s->clock.clock;
    s->p.to = open_memstream(&s->text, &s->n);
    s->p.begun_ms = s->p.told_ms = clock_mono_ms(s->p.clock);
}

static void step(struct shown *s, int64_t ms, int64_t done)
{
    sim_clock_advance(&s->clock, ms);
    progress_step(&s->p, done);
}

static void end(struct shown *s, const char *expected)
{
    progress_end(&s->p);
    fclose(s->p.to);
    assert_string_equal(s->text, expected);
    free(s->text);
}

static void short_work_shows_nothing(void **state)
{
    struct shown s;
    begin(&s, "f", 1000);
    step(&s, 1999, 999);
    end(&s, "");
}

static void bytes_have_an_end(void **state)
{
    struct shown s;
    begin(&s, "0.log", 2000000000);
    step(&s, 2000, 500000000);
    step(&s, 999, 600000000); /* too soon */
    step(&s, 1, 1000000000);
    end(&s, "\r0.log: 500 of 2000 MB, 25 %, 250.0 MB/s\033[K"
            "\r0.log: 1000 of 2000 MB, 50 %, 333.3 MB/s\033[K\r\033[K");
}

static void records_have_none(void **state)
{
    struct shown s;
    begin(&s, NULL, 0);
    step(&s, 4000, 1000);
    end(&s, "\r1000 records, 250 records/s\033[K\r\033[K");
}

static void where_nobody_looks_nothing_comes(void **state)
{
    struct progress p;
    progress_begin(&p, false, "f", 10);
    progress_step(&p, 5);
    progress_end(&p);
    assert_false(p.shown);
}

UNIT_MAIN(unit_test(short_work_shows_nothing), unit_test(bytes_have_an_end),
          unit_test(records_have_none), unit_test(where_nobody_looks_nothing_comes))
