/* fuzz_http_request.c - the head of a request to the metrics endpoint: whatever the bytes are, what
 * is told of them lies within them, and a verdict once given does not change when more bytes come.
 *
 * Rooms: server */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "server/http_request.h"

#include "fuzz.h"

static void check_within(struct str s, const char *p, size_t n)
{
    must(s.p >= p && s.len > 0 && s.p + s.len <= p + n);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    char *p = malloc(n + 1); /* of just this size: an overread is seen */
    must(p != NULL);
    memcpy(p, bytes, n);
    struct http_request r;
    enum http_status last = HTTP_MORE, whole = http_request_parse(p, n, &r);
    if (whole == HTTP_OK) {
        check_within(r.method, p, n);
        check_within(r.path, p, n);
        must(r.path.p[0] == '/');
    }
    size_t step = n / 64 + 1;
    for (size_t k = 0; k <= n && last == HTTP_MORE; k += step) {
        char *part = malloc(k ? k : 1);
        must(part != NULL);
        memcpy(part, p, k);
        last = http_request_parse(part, k, &r);
        free(part);
        must(last == HTTP_MORE || last == whole ||
             (last == HTTP_HEAD_TOO_LARGE && k >= HTTP_HEAD_MAX));
    }
    free(p);
    return 0;
}
