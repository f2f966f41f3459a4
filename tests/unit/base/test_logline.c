/* The daemon's log lines. */
#include "base/logline.h"

#include <errno.h>
#include <pthread.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unit.h"

static void matches(const char *line, const char *pattern)
{
    regex_t re;
    assert_int_equal(regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB), 0);
    if (regexec(&re, line, 0, NULL, 0))
        fail_msg("\"%s\" is not like %s", line, pattern);
    regfree(&re);
}

static void keep(enum logline_level level, const char *line, void *arg)
{
    char **last = arg;
    free(*last);
    *last = strdup(line);
}

static void one_line_an_event(void **state)
{
    char *line = NULL;
    logline_set_sink(keep, &line);
    say_info("KafkaServer id=0", "started %d", 7);
    matches(line, "^[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9]\\.[0-9]{3}Z "
                  "INFO \\[KafkaServer id=0\\] started 7$");
    say_fatal("x", "a\nb\tc\x1b[2J\x7f\xc3\xa9");
    matches(line, " FATAL \\[x\\] a\\?b\\?c\\?\\[2J\\?\xc3\xa9$");
    errno = ENOSPC;
    say_warn("x", "%m");
    assert_int_equal(errno, ENOSPC);
    matches(line, "No space left");
    logline_set_sink(NULL, NULL);
    free(line);
}

static void lines_below_the_level_are_not_written(void **state)
{
    char *line = NULL;
    logline_set_sink(keep, &line);
    assert_false(logline_enabled(LOGLINE_DEBUG));
    say_debug("x", "no");
    assert_null(line);
    logline_set_level(LOGLINE_DEBUG);
    say_debug("x", "yes");
    matches(line, " DEBUG \\[x\\] yes$");
    logline_set_level(LOGLINE_ERROR);
    say_warn("x", "no");
    matches(line, " DEBUG \\[x\\] yes$");
    logline_set_level(LOGLINE_INFO);
    logline_set_sink(NULL, NULL);
    free(line);
}

static void long_text_is_cut(void **state)
{
    char *line = NULL, *text = malloc(20000);
    memset(text, 'a', 19999);
    text[19999] = '\0';
    logline_set_sink(keep, &line);
    say_info("x", "%s", text);
    assert_in_range(strlen(line), 8000, 8191);
    matches(line, "aaa\\.\\.\\.$");
    say_info(text, "behind a long name");
    matches(line, "behind a long name$");
    logline_set_sink(NULL, NULL);
    free(line);
    free(text);
}

static void *write_many(void *arg)
{
    for (int i = 0; i < 200; i++)
        say_info("thread", "%s", (const char *)arg);
    return NULL;
}

/* Standard error is a file for a moment, written by two threads with one offset; each line must
 * come out whole. */
static void lines_of_threads_never_mix(void **state)
{
    char a[120], b[120], line[512];
    memset(a, 'a', sizeof(a) - 1);
    memset(b, 'b', sizeof(b) - 1);
    a[119] = b[119] = '\0';
    FILE *out = tmpfile();
    int saved = dup(STDERR_FILENO);
    dup2(fileno(out), STDERR_FILENO);
    pthread_t t[2];
    pthread_create(&t[0], NULL, write_many, a);
    pthread_create(&t[1], NULL, write_many, b);
    pthread_join(t[0], NULL);
    pthread_join(t[1], NULL);
    dup2(saved, STDERR_FILENO);
    close(saved);
    rewind(out);
    int n = 0;
    for (; fgets(line, sizeof(line), out); n++)
        matches(line, "^[0-9T:.Z-]{24} INFO \\[thread\\] (a{119}|b{119})\n$");
    assert_int_equal(n, 400);
    fclose(out);
}

UNIT_MAIN(unit_test(one_line_an_event), unit_test(lines_below_the_level_are_not_written),
          unit_test(long_text_is_cut), unit_test(lines_of_threads_never_mix))
