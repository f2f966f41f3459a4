/* Lines, patterns, dates, partition filters, and what the console producer makes of a line. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/tool_date.h"
#include "tools/tool_line_reader.h"
#include "tools/tool_lines.h"
#include "tools/tool_part_filter.h"
#include "tools/tool_regex.h"

/* ---- lines ---- */

/* Writes in two steps, so that lines lie over the border; returns the reading end. */
static int pipe_with(const char *text, size_t n)
{
    int fd[2];
    assert_int_equal(pipe(fd), 0);
    assert_int_equal(write(fd[1], text, n / 2), n / 2);
    assert_int_equal(write(fd[1], text + n / 2, n - n / 2), n - n / 2);
    close(fd[1]);
    return fd[0];
}

static void lines_are_cut_at_newlines_only(void **state)
{
    static const char text[] = "one\n\n\r\nzero\0inside\nlast";
    static const struct {
        const char *p;
        size_t n;
    } expected[] = {{"one", 3}, {"", 0}, {"\r", 1}, {"zero\0inside", 11}, {"last", 4}};
    struct tool_lines l;
    char *line;
    size_t n;
    int fd = pipe_with(text, sizeof text - 1);
    tool_lines_init(&l, fd);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(tool_lines_next(&l, &line, &n), 1);
        assert_int_equal(n, expected[i].n);
        assert_memory_equal(line, expected[i].p, n);
    }
    assert_int_equal(tool_lines_next(&l, &line, &n), 0);
    assert_int_equal(tool_lines_next(&l, &line, &n), 0);
    tool_lines_fini(&l);
    close(fd);
}

static void lines_of_any_length(void **state)
{
    enum { LONG = 3 * 1024 * 1024 };
    FILE *f = tmpfile();
    struct tool_lines l;
    char *line, *big = malloc(LONG);
    size_t n;
    memset(big, 'x', LONG);
    assert_int_equal(fwrite(big, 1, LONG, f), LONG);
    fputs("\nshort\n", f);
    rewind(f);
    tool_lines_init(&l, fileno(f));
    assert_int_equal(tool_lines_next(&l, &line, &n), 1);
    assert_int_equal(n, LONG);
    assert_int_equal(tool_lines_next(&l, &line, &n), 1);
    assert_memory_equal(line, "short", 5);
    assert_int_equal(tool_lines_next(&l, &line, &n), 0);
    tool_lines_fini(&l);
    fclose(f);
    free(big);
}

static void a_failing_input_is_told(void **state)
{
    struct tool_lines l;
    char *line;
    size_t n;
    int fd[2];
    assert_int_equal(pipe(fd), 0);
    tool_lines_init(&l, fd[1]); /* cannot be read */
    close(fd[0]);
    assert_true(tool_lines_next(&l, &line, &n) < 0);
    tool_lines_fini(&l);
    close(fd[1]);
}

/* ---- patterns ---- */

static void patterns_match_whole_names(void **state)
{
    static const struct {
        const char *pattern, *name;
        bool commas, matches;
    } cases[] = {
        {"orders", "orders", true, true}, {"orders", "orders2", true, false},
        {"ord", "orders", true, false},   {"a,b", "b", true, true},
        {"a, b", "b", true, true},        {"a,b", "a,b", false, true},
        {"a|bc", "abc", true, false},     {"t\\d+", "t42", true, true},
        {"t\\d+", "td", true, false},     {"[\\w.-]+", "a_b.c-1", true, true},
        {"a\\.b", "a.b", true, true},     {"a\\.b", "aXb", true, false},
        {"(?:x|y)z", "yz", true, true},   {".*?end", "the-end", true, true},
        {"a{2}", "aa", true, true},       {"[a,b]", "a", true, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tool_regex re;
        tool_regex_init(&re, cases[i].pattern, cases[i].commas);
        if (tool_regex_matches(&re, cases[i].name) != cases[i].matches)
            fail_msg("%s against %s", cases[i].pattern, cases[i].name);
        tool_regex_fini(&re);
    }
}

static void partitions_are_filtered(void **state)
{
    static const struct {
        const char *topic, *partitions, *both, *name;
        int32_t partition;
        bool matches;
    } cases[] = {
        {NULL, NULL, NULL, "any", 7, true},
        {"t.*", NULL, NULL, "t1", 7, true},
        {"t.*", NULL, NULL, "u", 7, false},
        {"t", "1,3", NULL, "t", 3, true},
        {"t", "1,3", NULL, "t", 2, false},
        {NULL, "1,3", NULL, "x", 1, true},
        {NULL, NULL, "a:1,b:0-3,c,d:5-,:-3", "a", 1, true},
        {NULL, NULL, "a:1", "a", 2, false},
        {NULL, NULL, "b:0-3", "b", 2, true},
        {NULL, NULL, "b:0-3", "b", 3, false},
        {NULL, NULL, "c", "c", 99, true},
        {NULL, NULL, "d:5-", "d", 5, true},
        {NULL, NULL, "d:5-", "d", 4, false},
        {NULL, NULL, ":-3", "z", 2, true},
        {NULL, NULL, ":-3", "z", 3, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct part_filter *f = part_filter_new(cases[i].topic, cases[i].partitions, cases[i].both);
        if (part_filter_matches(f, cases[i].name, cases[i].partition) != cases[i].matches)
            fail_msg("case %zu", i);
        part_filter_free(f);
    }
}

/* ---- dates ---- */

static void dates_follow_java_patterns(void **state)
{
    char out[64];
    setenv("TZ", "UTC", 1);
    tzset();
    tool_date(out, sizeof out, "yyyy-MM-dd HH:mm:ss:SSS", 1700000000007);
    assert_string_equal(out, "2023-11-14 22:13:20:007");
    tool_date(out, sizeof out, "yy'yy'MMM d", 1700000000007);
    assert_string_equal(out, "23yy011 14");
    tool_date(out, sizeof out, "no-letters: 1", 0);
    assert_string_equal(out, "no-letter0: 1"); /* s is seconds */
    tool_date(out, 30, "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy", 0);
    assert_true(strlen(out) < 30);
}

/* ---- the console producer's lines ---- */

static const char *parse(struct line_reader *r, const char *line, kafka_record_t *out)
{
    static char copy[256];
    snprintf(copy, sizeof copy, "%s", line);
    return line_reader_parse(r, copy, strlen(line), out);
}

static struct line_reader *reader_with(const char **pairs, size_t n)
{
    struct tool_texts texts = {pairs, n};
    return line_reader_new(NULL, &texts);
}

static void a_line_is_a_value(void **state)
{
    kafka_record_t r = {0};
    struct line_reader *reader = reader_with(NULL, 0);
    assert_null(parse(reader, "a\tb", &r));
    assert_null(r.key);
    assert_memory_equal(r.value, "a\tb", 3);
    assert_null(parse(reader, "", &r));
    assert_non_null(r.value);
    assert_int_equal(r.value_len, 0);
    line_reader_free(reader);
}

static void headers_key_and_value_are_cut(void **state)
{
    const char *pairs[] = {"parse.key=true", "parse.headers=true", "null.marker=NIL",
                           "headers.separator=[;,] ?"};
    kafka_record_t r = {0};
    struct line_reader *reader = reader_with(pairs, 4);
    assert_null(parse(reader, "a:1; b:NIL,c:\tkey\tvalue\tmore", &r));
    assert_int_equal(r.headers_n, 3);
    assert_string_equal(r.headers[1].key, "b");
    assert_null(r.headers[1].value);
    assert_non_null(r.headers[2].value);
    assert_int_equal(r.headers[2].value_len, 0);
    assert_memory_equal(r.key, "key", r.key_len);
    assert_memory_equal(r.value, "value\tmore", r.value_len);
    assert_null(parse(reader, "NIL\tNIL\tNIL", &r));
    assert_int_equal(r.headers_n, 0);
    assert_null(r.key);
    assert_null(r.value);
    assert_non_null(parse(reader, "no delimiter", &r));
    assert_non_null(parse(reader, "nopair\tk\tv", &r));
    assert_non_null(parse(reader, "NIL:x\tk\tv", &r));
    line_reader_free(reader);
}

static void errors_may_be_ignored(void **state)
{
    const char *pairs[] = {"parse.key=true", "ignore.error=true"};
    kafka_record_t r = {0};
    struct line_reader *reader = reader_with(pairs, 2);
    assert_null(parse(reader, "no key", &r));
    assert_null(r.key);
    assert_memory_equal(r.value, "no key", 6);
    line_reader_free(reader);
}

UNIT_MAIN(unit_test(lines_are_cut_at_newlines_only), unit_test(lines_of_any_length),
          unit_test(a_failing_input_is_told), unit_test(patterns_match_whole_names),
          unit_test(partitions_are_filtered), unit_test(dates_follow_java_patterns),
          unit_test(a_line_is_a_value), unit_test(headers_key_and_value_are_cut),
          unit_test(errors_may_be_ignored))
