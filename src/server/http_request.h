/* http_request.h - the head of an HTTP request, as far as the metrics endpoint needs it (RFC 9112):
 * a request line and fields, each ended by CRLF or LF, and an empty line.
 *
 * Bytes are looked at where they lie; nothing is allocated. */
#ifndef SERVER_HTTP_REQUEST_H
#define SERVER_HTTP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

enum { HTTP_HEAD_MAX = 8192 };

enum http_status {
    HTTP_MORE = 0, /* the head is not all there */
    HTTP_OK = 200,
    HTTP_BAD_REQUEST = 400,
    HTTP_NOT_FOUND = 404,
    HTTP_METHOD_NOT_ALLOWED = 405,
    HTTP_HEAD_TOO_LARGE = 431,
    HTTP_UNAVAILABLE = 503,
};

struct http_request {
    struct str method, path; /* the path without its query; point into the bytes */
    int minor;               /* of HTTP/1.x: 0 or 1 (larger ones count as 1) */
};

/* All bytes so far, from the request's first on. HTTP_OK: *out is filled. BAD_REQUEST and
 * HEAD_TOO_LARGE are told as soon as they are seen. */
enum http_status http_request_parse(const char *p, size_t n, struct http_request *out);
const char *http_status_text(enum http_status s);

#endif
