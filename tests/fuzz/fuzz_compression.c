/* fuzz_compression.c - decompression of hostile data: whole and in odd steps must agree, and stay
 * under the cap.
 *
 * INPUT  byte 0: codec; byte 1: bits 0-1 magic, the rest the step of reading. Then the data.
 *
 * Rooms: protocol */
#include <errno.h>
#include <stdlib.h>

#include "protocol/compression.h"

#include "fuzz.h"

static const size_t cap = 1 << 18;

static int read_in_steps(enum codec c, int magic, size_t step, const uint8_t *p, size_t n,
                         struct buf *out)
{
    struct codec_stream *s;
    int rc = codec_stream_open(c, magic, p, n, cap, &s);
    if (rc)
        return rc;
    ssize_t got;
    uint8_t *piece = malloc(step);
    while ((got = codec_stream_read(s, piece, step)) > 0) {
        must((size_t)got <= step);
        buf_put(out, piece, (size_t)got);
    }
    free(piece);
    codec_stream_close(s);
    return (int)got;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    if (n < 2)
        return 0;
    enum codec c = (enum codec)(p[0] % CODECS);
    int magic = p[1] % 4 % 3;
    size_t step = (size_t)(p[1] >> 2) * 37 + 1;
    struct buf whole = BUF_INIT, steps = BUF_INIT;
    int rc = codec_decompress(c, magic, p + 2, n - 2, cap, &whole);
    must(rc == 0 || rc == -EBADMSG || rc == -EFBIG);
    must(whole.len <= cap);
    int rc2 = read_in_steps(c, magic, step, p + 2, n - 2, &steps);
    must((rc == 0) == (rc2 == 0));
    if (rc == 0)
        must(whole.len == steps.len && (!whole.len || !memcmp(whole.p, steps.p, whole.len)));
    buf_free(&whole);
    buf_free(&steps);
    return 0;
}
