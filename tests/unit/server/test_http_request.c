/* Heads of HTTP requests, good and bad. */
#include "server/http_request.h"

#include <string.h>

#include "unit.h"

static enum http_status parse(const char *text, struct http_request *out)
{
    return http_request_parse(text, strlen(text), out);
}

#define GOOD "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"

static void what_is_asked_for(void **state)
{
    static const struct {
        const char *head, *method, *path;
        int minor;
    } cases[] = {
        {GOOD, "GET", "/metrics", 1},
        {"GET /metrics?name[]=x&y HTTP/1.0\r\n\r\n", "GET", "/metrics", 0},
        {"HEAD / HTTP/1.9\nhOsT: b:9\nX-A:\t\x80\xff\n\nGET", "HEAD", "/", 1},
        {"POST /a?/b? HTTP/1.1\r\nHost:\r\nContent-Length: 3\r\n\r\nabc", "POST", "/a", 1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct http_request r;
        assert_int_equal(parse(cases[i].head, &r), HTTP_OK);
        assert_true(str_eqz(r.method, cases[i].method));
        assert_true(str_eqz(r.path, cases[i].path));
        assert_int_equal(r.minor, cases[i].minor);
    }
}

static void bad_heads_are_told_at_once(void **state)
{
    static const char *const heads[] = {
        "\x16\x03\x01\x02",
        " GET / HTTP/1.1\r\n",
        "GET\r\n",
        "GET /\r\n",
        "GET / \r\n",
        "GET  / HTTP/1.1\r\n",
        "GET / HTTP/1.1 \r\n",
        "GET / HTTP/2.0\r\n",
        "GET / HTTP/1.x\r\n",
        "GET / HTTP/1.11\r\n",
        "GET / http/1.1\r\n",
        "GET a HTTP/1.1\r\n",
        "GET http://a/metrics HTTP/1.1\r\n",
        "GET /\x7f HTTP/1.1\r\n",
        "GET /\xc3\xa4 HTTP/1.1\r\n",
        "GET / HTTP/1.1\r\n Host: a\r\n",
        "GET / HTTP/1.1\r\nHost : a\r\n",
        "GET / HTTP/1.1\r\nHost\r\n",
        "GET / HTTP/1.1\r\n: a\r\n",
        "GET / HTTP/1.1\r\nHost: a\rb\r\n",
        "GET / HTTP/1.1\r\nHost: a\x01\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        "GET / HTTP/1.0\r\nHost: a\r\nhost: b\r\n\r\n",
    };
    for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++) {
        struct http_request r;
        if (parse(heads[i], &r) != HTTP_BAD_REQUEST)
            fail_msg("taken: %s", heads[i]);
    }
}

static void a_nul_is_bad_anywhere(void **state)
{
    char head[] = GOOD;
    for (size_t i = 0; i < strlen(GOOD); i++) {
        struct http_request r;
        memcpy(head, GOOD, sizeof(head));
        head[i] = 0;
        assert_int_not_equal(http_request_parse(head, sizeof(head) - 1, &r), HTTP_OK);
    }
}

static void every_beginning_waits_for_more(void **state)
{
    struct http_request r;
    for (size_t n = 0; n < strlen(GOOD); n++)
        assert_int_equal(http_request_parse(GOOD, n, &r), HTTP_MORE);
}

static void a_head_has_an_end(void **state)
{
    static char head[HTTP_HEAD_MAX + 100];
    struct http_request r;
    memset(head, 'a', sizeof(head));
    assert_int_equal(http_request_parse(head, HTTP_HEAD_MAX - 1, &r), HTTP_MORE);
    assert_int_equal(http_request_parse(head, HTTP_HEAD_MAX, &r), HTTP_HEAD_TOO_LARGE);
    memcpy(head, GOOD, strlen(GOOD) - 2);
    assert_int_equal(http_request_parse(head, HTTP_HEAD_MAX, &r), HTTP_HEAD_TOO_LARGE);
    memcpy(head + HTTP_HEAD_MAX - 4, ":\r\n", 3);
    memcpy(head + HTTP_HEAD_MAX - 1, "\n", 1); /* the last byte that may be */
    assert_int_equal(http_request_parse(head, sizeof(head), &r), HTTP_OK);
}

static void each_status_has_its_text(void **state)
{
    static const int all[] = {200, 400, 404, 405, 431, 503};
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        assert_true(strlen(http_status_text((enum http_status)all[i])) > 0);
}

UNIT_MAIN(unit_test(what_is_asked_for), unit_test(bad_heads_are_told_at_once),
          unit_test(a_nul_is_bad_anywhere), unit_test(every_beginning_waits_for_more),
          unit_test(a_head_has_an_end), unit_test(each_status_has_its_text))
