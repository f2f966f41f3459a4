/* fuzz_framing.c - a stream cut into frames, in pieces of any size, fed and read in place by turns;
 * every frame must be what a plain walk over the stream says, and nothing may be allocated beyond
 * what has arrived.
 *
 * INPUT  bytes 0-1: the longest frame allowed, in 16 bytes. byte 2: where the pieces are cut. Then
 * the stream.
 *
 * Rooms: net */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "net/framing.h"

#include "fuzz.h"

enum { OPTIONS = 3, SCRATCH = 128, TRUSTED = 64 * 1024 };

struct walk {
    const uint8_t *at, *end; /* what the oracle has not seen */
    uint32_t max;
};

/* The stream's next frame must be this one. */
static void check_frame(struct walk *w, const uint8_t *frame, uint32_t len)
{
    must((size_t)(w->end - w->at) >= 4 + (size_t)len);
    must(get_be32(w->at) == len && len <= w->max);
    must(len == 0 || memcmp(w->at + 4, frame, len) == 0);
    w->at += 4 + (size_t)len;
}

static void check_end(const struct walk *w, bool bad)
{
    size_t left = (size_t)(w->end - w->at);
    if (bad)
        must(left >= 4 && get_be32(w->at) > w->max);
    else
        must(left < 4 || (get_be32(w->at) <= w->max && left - 4 < get_be32(w->at)));
}

/* false: a bad length. */
static bool feed(struct framing *f, struct frame_pool *fp, struct walk *w, const uint8_t *p,
                 size_t n)
{
    for (;;) {
        enum framing_event ev = framing_feed(f, fp, &p, &n);
        if (ev == FRAMING_LENGTH) {
            must(framing_begin(f, fp) == 0);
            must(f->mem.cap <= TRUSTED || f->mem.lent);
        } else if (ev == FRAMING_FRAME) {
            struct frame_mem m;
            uint32_t len = framing_take(f, fp, &m);
            check_frame(w, m.p, len);
            frame_pool_put(fp, &m);
        } else if (ev == FRAMING_BAD) {
            char why[160];
            framing_complaint(f, why, sizeof(why));
            must(!f->mem.p);
            return false;
        } else {
            must(ev == FRAMING_MORE && n == 0);
            return true;
        }
    }
}

/* As a socket would: fills the places in order with up to n bytes. */
static size_t fill(const struct iovec *iov, int places, const uint8_t *p, size_t n)
{
    size_t done = 0;
    for (int i = 0; i < places; i++) {
        size_t take = n - done < iov[i].iov_len ? n - done : iov[i].iov_len;
        memcpy(iov[i].iov_base, p + done, take);
        done += take;
    }
    return done;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    if (n < OPTIONS)
        return 0;
    struct walk w = {p + OPTIONS, p + n, (uint32_t)(p[0] << 8 | p[1]) * 16};
    uint32_t random = p[2] * 2654435761u + 1;
    struct frame_pool fp;
    struct framing f;
    frame_pool_init(&fp, 1 << 20, NULL);
    framing_init(&f, w.max);
    bool good = true;
    for (const uint8_t *at = w.at; good && at < w.end;) {
        random = random * 1103515245u + 12345u;
        size_t piece = 1 + (random >> 16) % (random & 0x8000 ? 7 : 300);
        if (piece > (size_t)(w.end - at))
            piece = (size_t)(w.end - at);
        if (random & 0x4000) {
            good = feed(&f, &fp, &w, at, piece);
        } else {
            uint8_t scratch[SCRATCH];
            struct iovec iov[2];
            int places = framing_places(&f, &fp, scratch, sizeof(scratch), iov);
            must(places > 0);
            piece = fill(iov, places, at, piece);
            good = feed(&f, &fp, &w, scratch, framing_placed(&f, iov, piece));
        }
        at += piece;
    }
    check_end(&w, !good);
    framing_free(&f, &fp);
    frame_pool_free(&fp);
    return 0;
}
