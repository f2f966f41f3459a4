/* fuzz_message.c - the codec: any bytes as any message in any version.
 *
 * Byte 0 is the API's key, or picks a data record when no API has it; byte 1 is the version, with
 * the highest bit for the response. What decodes must print, copy, encode, and decode to the same
 * again; and decoding must keep to its bound on memory.
 *
 * Rooms: protocol */
#include <stdlib.h>

#include "protocol/api.h"

#include "fuzz.h"

#define CHECK(cond)  \
    do {             \
        if (!(cond)) \
            abort(); \
    } while (0)

static const struct msg_desc *choose(uint8_t key, uint8_t version)
{
    const struct api_desc *api = api_find(key);
    if (api)
        return version & 0x80 ? api->response : api->request;
    int n, data = 0;
    const struct msg_desc *const *all = msg_all(&n);
    for (int i = 0; i < n; i++)
        data += all[i]->api_key < 0;
    data = data ? key % data : 0;
    for (int i = 0; i < n; i++)
        if (all[i]->api_key < 0 && data-- == 0)
            return all[i];
    return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    if (n < 2)
        return 0;
    const struct msg_desc *d = choose(p[0], p[1]);
    int version = d->min + (p[1] & 0x7f) % (d->max - d->min + 1);
    struct arena a, b;
    arena_init(&a, 0);
    arena_init(&b, 0);
    void *m = malloc(d->body->size), *again = malloc(d->body->size);
    struct reader r = reader_of(p + 2, n - 2);
    int err = msg_decode(d, version, &r, &a, m);
    CHECK(a.used <= CODEC_EXPANSION * n);
    if (!err) {
        struct buf text = BUF_INIT;
        struct writer w = WRITER_INIT;
        msg_print(d, version, m, &text);
        msg_encode(d, version, &w, m);
        CHECK(!w.unsupported && w.buf.len == msg_size(d, version, m));
        r = reader_of(w.buf.p, w.buf.len);
        CHECK(msg_decode(d, version, &r, &b, again) == 0 && reader_left(&r) == 0);
        CHECK(msg_equal(d, version, m, again));
        void *copy = msg_copy(d, &b, m);
        CHECK(copy && msg_equal(d, version, m, copy));
        writer_free(&w);
        buf_free(&text);
    }
    free(m);
    free(again);
    arena_free(&a);
    arena_free(&b);
    return 0;
}
