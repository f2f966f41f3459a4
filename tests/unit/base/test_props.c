/* .properties text: what java.util.Properties makes of it. */
#include "base/props.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unit.h"

/* Expected pairs follow, in order, and a NULL. */
static void expect(const char *text, const char *const *pairs)
{
    int line;
    struct props *p = props_new();
    assert_int_equal(props_parse(p, text, strlen(text), &line), 0);
    size_t n = 0;
    for (; pairs[2 * n]; n++) {
        const char *key, *value;
        assert_true(n < props_count(p));
        props_at(p, n, &key, &value);
        assert_string_equal(key, pairs[2 * n]);
        assert_string_equal(value, pairs[2 * n + 1]);
        assert_ptr_equal(props_get(p, key), value);
    }
    assert_int_equal(props_count(p), n);
    props_free(p);
}
#define EXPECT(text, ...) expect((text), (const char *const[]){__VA_ARGS__, NULL})

static void separators(void **state)
{
    EXPECT("a=b", "a", "b");
    EXPECT("a:b", "a", "b");
    EXPECT("a b", "a", "b");
    EXPECT("a \t\f = \t b", "a", "b");
    EXPECT("a = = b", "a", "= b");
    EXPECT("a := b", "a", "= b");
    EXPECT("a b=c", "a", "b=c");
    EXPECT("a=b=c:d", "a", "b=c:d");
    EXPECT("listeners=PLAINTEXT://:9092,SSL://h:9093", "listeners",
           "PLAINTEXT://:9092,SSL://h:9093");
    EXPECT("  a = b  ", "a", "b  "); /* blanks at the end stay */
    EXPECT("a", "a", "");
    EXPECT("a=", "a", "");
    EXPECT("a   ", "a", "");
    EXPECT("=b", "", "b");
}

static void lines_and_comments(void **state)
{
    EXPECT("a=1\nb=2\r\nc=3\rd=4", "a", "1", "b", "2", "c", "3", "d", "4");
    EXPECT("\n \t\n# no\n  ! no\\\na=1 # part of it\n", "a", "1 # part of it");
    EXPECT("a=1\nb=2\na=3\n", "a", "3", "b", "2");
    expect("", (const char *const[]){NULL});
    expect("# only\r", (const char *const[]){NULL});
    expect(" \f\t", (const char *const[]){NULL});
}

static void continuations(void **state)
{
    EXPECT("a=x,\\\n    y,\\\r\n\tz\nb=1", "a", "x,y,z", "b", "1");
    EXPECT("a=x\\\\\nb=1", "a", "x\\", "b", "1"); /* an escaped backslash does not join */
    EXPECT("a=x\\\\\\\ny", "a", "x\\y");
    EXPECT("a=x\\\n# no comment here\n", "a", "x# no comment here");
    EXPECT("a=x\\\n\nb=1", "a", "x", "b", "1"); /* a blank line ends it */
    EXPECT("a=x\\\n  \nb=1", "a", "x", "b", "1");
    EXPECT("ke\\\n  y=v", "key", "v");
    EXPECT("a=x\\", "a", "x"); /* a backslash at the end of the text is dropped */
    EXPECT("a=x\\\n", "a", "x");
    EXPECT("\\\n# comment after a lone backslash\nb=1", "b", "1");
    EXPECT("\\\n", "", "");
    expect("\\\n  ", (const char *const[]){NULL});
}

static void escapes(void **state)
{
    EXPECT("a=\\t\\n\\r\\f\\q\\\"\\ ", "a", "\t\n\r\fq\" ");
    EXPECT("a\\ b\\=c\\:d=1", "a b=c:d", "1");
    EXPECT("\\#a=1\n\\!b=2", "#a", "1", "!b", "2");
    EXPECT("a\\\\=1", "a\\", "1");
    EXPECT("p=C:\\\\logs\\u0041\\u00e9\\u20AC", "p", "C:\\logsA\xc3\xa9\xe2\x82\xac");
    EXPECT("a=\\ud83d\\ude00", "a", "\xf0\x9f\x98\x80");
    EXPECT("a=\\ud83dx\\ude00", "a", "?x?");
    EXPECT("a=\xe9", "a", "\xc3\xa9"); /* bytes are Latin-1 */
}

static void malformed_unicode_names_its_line(void **state)
{
    static const struct {
        const char *text;
        int line;
    } cases[] = {
        {"a=1\nb=\\u12", 2},        {"\n#c\n\nb=\\u12g4\n", 4}, {"a=x\\\ny\nk\\uzzzz=1", 3},
        {"a=1\r\nb=2\r\nc=\\u", 3}, {"x=\\u0000", 1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int line = 0;
        struct props *p = props_new();
        assert_int_equal(props_parse(p, cases[i].text, strlen(cases[i].text), &line), -EINVAL);
        assert_int_equal(line, cases[i].line);
        props_free(p);
    }
    int line = 0;
    struct props *p = props_new();
    assert_int_equal(props_parse(p, "a=1\nb=\0x", 8, &line), -EINVAL);
    assert_int_equal(props_parse(p, "a=\\\0x", 5, NULL), -EINVAL);
    assert_string_equal(props_get(p, "a"), "1");
    props_free(p);
}

static void set_get_remove(void **state)
{
    struct props *p = props_new();
    char key[16];
    for (int i = 0; i < 100; i++) {
        snprintf(key, sizeof(key), "k%d", i);
        assert_int_equal(props_set(p, key, key + 1), 0);
    }
    for (int i = 0; i < 100; i += 2) {
        snprintf(key, sizeof(key), "k%d", i);
        props_remove(p, key);
        props_remove(p, key);
    }
    assert_int_equal(props_count(p), 50);
    assert_null(props_get(p, "k42"));
    assert_string_equal(props_get(p, "k43"), "43");
    props_set(p, "k43", "new");
    assert_string_equal(props_get(p, "k43"), "new");
    const char *k, *v;
    props_at(p, 1, &k, &v);
    assert_string_equal(k, "k3");
    props_free(p);
    props_free(NULL);
}

/* What Java's store writes for odd texts. */
static void written_as_java_does(void **state)
{
    struct props *p = props_new();
    struct buf out = BUF_INIT;
    props_set(p, "a b:", "  x y=#!\t\xc3\xa9\xf0\x9f\x98\x80");
    props_write(p, &out);
    buf_put(&out, "", 1);
    assert_string_equal((char *)out.p, "a\\ b\\:=\\  x y\\=\\#\\!\\t\\u00E9\\uD83D\\uDE00\n");
    buf_free(&out);
    props_free(p);
}

static void random_text(char *out, size_t max)
{
    static const char *const parts[] = {
        "a", "=", ":", " ",        "\\",           "\n", "\r", "\t",   "\f",
        "#", "!", "u", "\xc3\xa9", "\xe2\x82\xac", "n",  "\1", "\177", "\xf0\x9f\x98\x80"};
    size_t n = (size_t)random() % 12, len = 0;
    while (n--) {
        const char *part = parts[(size_t)random() % (sizeof(parts) / sizeof(parts[0]))];
        if (len + strlen(part) >= max)
            break;
        memcpy(out + len, part, strlen(part));
        len += strlen(part);
    }
    out[len] = '\0';
}

static void what_is_written_reads_back_the_same(void **state)
{
    srandom(7);
    for (int round = 0; round < 2000; round++) {
        struct props *p = props_new(), *q = props_new();
        struct buf out = BUF_INIT;
        char key[64], value[64];
        for (int i = 0; i < 5; i++) {
            random_text(key, sizeof(key));
            random_text(value, sizeof(value));
            props_set(p, key, value);
        }
        props_write(p, &out);
        assert_int_equal(props_parse(q, (char *)out.p, out.len, NULL), 0);
        assert_int_equal(props_count(q), props_count(p));
        for (size_t i = 0; i < props_count(p); i++) {
            const char *k, *v;
            props_at(p, i, &k, &v);
            assert_non_null(props_get(q, k));
            assert_string_equal(props_get(q, k), v);
        }
        buf_free(&out);
        props_free(p);
        props_free(q);
    }
}

/* Any bytes at all: no crash, no read past the end (asan). */
static void random_bytes_are_survived(void **state)
{
    srandom(3);
    for (int round = 0; round < 5000; round++) {
        size_t n = (size_t)random() % 40;
        char *text = malloc(n ? n : 1);
        for (size_t i = 0; i < n; i++)
            text[i] = "ab=: \\\\\n\r\tu0d8f#\xff\0!"[random() % 20];
        struct props *p = props_new();
        int rc = props_parse(p, text, n, NULL);
        assert_true(rc == 0 || rc == -EINVAL);
        props_free(p);
        free(text);
    }
}

static void loads_a_file(void **state)
{
    char path[] = "/tmp/kafkad-props-XXXXXX";
    int fd = mkstemp(path);
    assert_int_equal(write(fd, "a=1\nb=\\u1\n", 10), 10);
    close(fd);
    int line = 0;
    struct props *p = props_new();
    assert_int_equal(props_load(p, path, &line), -EINVAL);
    assert_int_equal(line, 2);
    assert_string_equal(props_get(p, "a"), "1");
    unlink(path);
    assert_int_equal(props_load(p, path, &line), -ENOENT);
    assert_int_equal(props_load(p, "/tmp", &line), -EISDIR);
    props_free(p);
}

UNIT_MAIN(unit_test(separators), unit_test(lines_and_comments), unit_test(continuations),
          unit_test(escapes), unit_test(malformed_unicode_names_its_line),
          unit_test(set_get_remove), unit_test(written_as_java_does),
          unit_test(what_is_written_reads_back_the_same), unit_test(random_bytes_are_survived),
          unit_test(loads_a_file))
