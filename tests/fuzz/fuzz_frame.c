/* fuzz_frame.c - a request frame as the broker meets it: header, then the body that it announces.
 *
 * Rooms: protocol */
#include <stdlib.h>

#include "protocol/api.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct reader r = reader_of(p, n);
    struct request_header h;
    if (request_header_decode(&r, &h))
        return 0;
    const struct msg_desc *d = api_find(h.api_key)->request;
    struct arena a;
    arena_init(&a, 0);
    void *m = malloc(d->body->size);
    if (msg_decode(d, h.api_version, &r, &a, m) == 0) {
        struct writer w = WRITER_INIT;
        request_header_encode(&w, &h);
        msg_encode(d, h.api_version, &w, m);
        struct reader back = reader_of(w.buf.p, w.buf.len);
        if (request_header_decode(&back, &h) || msg_decode(d, h.api_version, &back, &a, m) ||
            reader_left(&back))
            abort();
        writer_free(&w);
    }
    free(m);
    arena_free(&a);
    return 0;
}
