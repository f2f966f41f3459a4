/* Who may work on a log: every move, and those that must not be. */
#include "unit.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "log/cleaning_state.h"

static void one_thread_at_a_time(void **state)
{
    struct cleaning c = {0};
    assert_true(cleaning_take(&c, true));
    assert_int_equal(c.state, CLEANING_ACTIVE);
    assert_false(cleaning_take(&c, true));
    assert_false(cleaning_take(&c, false));
    cleaning_finish(&c);
    assert_int_equal(c.state, CLEANING_NONE);
    assert_true(cleaning_take(&c, true));
}

static void pauses_at_rest_and_counts(void **state)
{
    struct cleaning c = {0};
    assert_true(cleaning_pause(&c));
    assert_true(cleaning_pause(&c));
    assert_false(cleaning_take(&c, false));
    cleaning_resume(&c);
    assert_int_equal(c.state, CLEANING_PAUSED);
    cleaning_resume(&c);
    assert_int_equal(c.state, CLEANING_NONE);
    assert_true(cleaning_take(&c, true));
}

static void pausing_at_work_waits_for_its_end(void **state)
{
    struct cleaning c = {0};
    assert_true(cleaning_take(&c, true));
    assert_false(cleaning_pause(&c));
    assert_int_equal(c.state, CLEANING_ABORTED);
    assert_false(cleaning_pause(&c)); /* another one waits too */
    assert_false(cleaning_take(&c, false));
    cleaning_finish(&c);
    assert_int_equal(c.state, CLEANING_PAUSED);
    cleaning_resume(&c);
    cleaning_resume(&c);
    assert_int_equal(c.state, CLEANING_NONE);
}

static void damaged_logs_are_for_retention_only(void **state)
{
    struct cleaning c = {.uncleanable = true};
    assert_false(cleaning_take(&c, true));
    assert_true(cleaning_take(&c, false));
}

static void stops_at_an_illegal_move(void **state)
{
    pid_t child = fork();
    if (child == 0) {
        struct cleaning c = {0};
        signal(SIGABRT, SIG_DFL);
        fclose(stderr);
        cleaning_finish(&c); /* of what nobody took */
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

UNIT_MAIN(unit_test(one_thread_at_a_time), unit_test(pauses_at_rest_and_counts),
          unit_test(pausing_at_work_waits_for_its_end),
          unit_test(damaged_logs_are_for_retention_only), unit_test(stops_at_an_illegal_move))
