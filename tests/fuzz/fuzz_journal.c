/* fuzz_journal.c - a damaged metadata journal or snapshot: refused or read, never a crash, and what
 * is read keeps the tree's rules. A snapshot of what was read must read back the same.
 *
 * INPUT  byte 0: bit 0: a snapshot, else a journal; bit 1: put the checksums right first, so that
 *        the decoders behind them are reached. Then the file.
 *
 * Rooms: metadata */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checksum.h"
#include "metadata/journal_format.h"

#include "fuzz.h"

/* Every frame whose length fits gets its right checksum. */
static void mend_journal(uint8_t *p, size_t n)
{
    if (n < JOURNAL_HEADER_BYTES)
        return;
    put_be32(p + 16, crc32c(p, 16));
    for (size_t at = JOURNAL_HEADER_BYTES; n - at >= JOURNAL_FRAME_BYTES;) {
        size_t len = get_be32(p + at);
        if (len > n - at - JOURNAL_FRAME_BYTES)
            return;
        put_be32(p + at + 4, crc32c(p + at + JOURNAL_FRAME_BYTES, len));
        at += JOURNAL_FRAME_BYTES + len;
    }
}

static void mend_snapshot(uint8_t *p, size_t n)
{
    if (n >= 4)
        put_be32(p + n - 4, crc32c(p, n - 4));
}

static void check_round_trip(const struct tree *t, int64_t zxid)
{
    struct buf a = BUF_INIT, b = BUF_INIT;
    struct tree copy;
    int64_t id;
    char why[256];
    if (zxid <= 0)
        return;
    must(snapshot_encode(t, zxid, &a) == 0);
    must(tree_init(&copy) == 0);
    must(snapshot_decode(a.p, a.len, &copy, &id, why, sizeof(why)) == 0);
    must(id == zxid && copy.nodes_n == t->nodes_n);
    must(snapshot_encode(&copy, id, &b) == 0);
    must(a.len == b.len && memcmp(a.p, b.p, a.len) == 0);
    tree_free(&copy);
    buf_free(&a);
    buf_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    if (n < 1)
        return 0;
    bool snapshot = p[0] & 1;
    uint8_t *file = malloc(n);
    struct tree t;
    int64_t zxid = 0;
    size_t good = 0;
    char why[256] = "";
    memcpy(file, p + 1, n - 1);
    if (p[0] & 2)
        (snapshot ? mend_snapshot : mend_journal)(file, n - 1);
    must(tree_init(&t) == 0);
    int err = snapshot ? snapshot_decode(file, n - 1, &t, &zxid, why, sizeof(why))
                       : journal_decode(file, n - 1, &t, &zxid, &good, why, sizeof(why));
    must(err == 0 || err == -EBADMSG);
    must(err == 0 || why[0]);
    must(good <= n - 1);
    must(tree_check(&t) == NULL || (snapshot && err));
    if (!err)
        check_round_trip(&t, zxid);
    tree_free(&t);
    free(file);
    return 0;
}
