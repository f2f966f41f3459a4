/* http_request.c - see http_request.h. */
#include "server/http_request.h"

#include <string.h>
#include <strings.h>

const char *http_status_text(enum http_status s)
{
    static const struct {
        enum http_status status;
        const char *text;
    } texts[] = {{HTTP_OK, "OK"},
                 {HTTP_BAD_REQUEST, "Bad Request"},
                 {HTTP_NOT_FOUND, "Not Found"},
                 {HTTP_METHOD_NOT_ALLOWED, "Method Not Allowed"},
                 {HTTP_HEAD_TOO_LARGE, "Request Header Fields Too Large"},
                 {HTTP_UNAVAILABLE, "Service Unavailable"}};
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        if (texts[i].status == s)
            return texts[i].text;
    return "";
}

/* What names of methods and fields are made of. */
static bool is_token_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("!#$%&'*+-.^_`|~", c));
}

static size_t token_len(const char *p, size_t n)
{
    size_t i = 0;
    while (i < n && is_token_char(p[i]))
        i++;
    return i;
}

/* One line and where the next begins; false: it has not ended. */
static bool next_line(const char *p, size_t n, size_t *at, struct str *line)
{
    const char *end = memchr(p + *at, '\n', n - *at);
    if (!end)
        return false;
    size_t len = (size_t)(end - (p + *at));
    *line = (struct str){p + *at, (int32_t)(len && end[-1] == '\r' ? len - 1 : len)};
    *at += len + 1;
    return true;
}

static bool parse_version(const char *p, size_t n, int *minor)
{
    if (n != 8 || memcmp(p, "HTTP/1.", 7) != 0 || p[7] < '0' || p[7] > '9')
        return false;
    *minor = p[7] > '0';
    return true;
}

/* METHOD SP /target SP HTTP/1.x */
static bool parse_request_line(struct str line, struct http_request *out)
{
    const char *p = line.p, *end = line.p + line.len;
    size_t method = token_len(p, (size_t)line.len);
    if (method == 0 || method == (size_t)line.len || p[method] != ' ')
        return false;
    const char *target = p + method + 1, *t = target;
    while (t<end && * t> ' ' && *t < 0x7f)
        t++;
    if (t == end || *t != ' ' || *target != '/' ||
        !parse_version(t + 1, (size_t)(end - t - 1), &out->minor))
        return false;
    const char *query = memchr(target, '?', (size_t)(t - target));
    out->method = (struct str){p, (int32_t)method};
    out->path = (struct str){target, (int32_t)((query ? query : t) - target)};
    return true;
}

/* name: value. One that begins with white space would continue the line before, which none may. */
static bool field_is_good(struct str line)
{
    size_t n = (size_t)line.len, name = token_len(line.p, n);
    if (name == 0 || name == n || line.p[name] != ':')
        return false;
    for (size_t i = name + 1; i < n; i++)
        if (((unsigned char)line.p[i] < ' ' && line.p[i] != '\t') || line.p[i] == 0x7f)
            return false;
    return true;
}

static bool is_host(struct str line)
{
    return line.len > 4 && line.p[4] == ':' && strncasecmp(line.p, "host", 4) == 0;
}

static enum http_status parse_lines(const char *p, size_t n, struct http_request *out)
{
    size_t at = 0;
    struct str line;
    int hosts = 0;
    if (n && !is_token_char(*p))
        return HTTP_BAD_REQUEST;
    if (!next_line(p, n, &at, &line))
        return HTTP_MORE;
    if (!parse_request_line(line, out))
        return HTTP_BAD_REQUEST;
    while (next_line(p, n, &at, &line)) {
        if (line.len == 0)
            return hosts == 1 || (hosts == 0 && out->minor == 0) ? HTTP_OK : HTTP_BAD_REQUEST;
        if (!field_is_good(line))
            return HTTP_BAD_REQUEST;
        hosts += is_host(line);
    }
    return HTTP_MORE;
}

enum http_status http_request_parse(const char *p, size_t n, struct http_request *out)
{
    *out = (struct http_request){0};
    enum http_status s = parse_lines(p, n < HTTP_HEAD_MAX ? n : HTTP_HEAD_MAX, out);
    return s == HTTP_MORE && n >= HTTP_HEAD_MAX ? HTTP_HEAD_TOO_LARGE : s;
}
