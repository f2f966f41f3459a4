/* journal_format.c - see journal_format.h. */
#include "metadata/journal_format.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/checksum.h"

static const uint8_t journal_magic[8] = {'k', 'f', 'd', '-', 'j', 'n', 'l', 1};
static const uint8_t snapshot_magic[8] = {'k', 'f', 'd', '-', 's', 'n', 'p', 1};

enum { TXN_BYTES = 8 + 8 + 4 };

static int damaged(char *err, size_t err_n, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static int damaged(char *err, size_t err_n, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(err, err_n, fmt, ap);
    va_end(ap);
    return -EBADMSG;
}

void journal_put_header(struct buf *b, int64_t base)
{
    size_t at = b->len;
    buf_put(b, journal_magic, sizeof(journal_magic));
    buf_put_i64(b, base);
    if (!b->failed)
        buf_put_i32(b, (int32_t)crc32c(b->p + at, 16));
}

size_t journal_put_txn(struct buf *b, int64_t zxid, int64_t now_ms)
{
    buf_put_i64(b, zxid);
    buf_put_i64(b, now_ms);
    size_t count_at = b->len;
    buf_put_i32(b, 0);
    return count_at;
}

static void put_data(struct buf *b, struct bytes data)
{
    buf_put_i32(b, data.len < 0 ? -1 : data.len);
    if (data.len > 0)
        buf_put(b, data.p, (size_t)data.len);
}

static void put_path(struct buf *b, const char *path)
{
    size_t n = strlen(path);
    buf_put_i16(b, (int16_t)n);
    buf_put(b, path, n);
}

void journal_put_op(struct buf *b, size_t count_at, enum store_op_type type, const char *path,
                    struct bytes data)
{
    buf_put_i8(b, (int8_t)type);
    put_path(b, path);
    put_data(b, data);
    if (!b->failed)
        put_be32(b->p + count_at, get_be32(b->p + count_at) + 1);
}

void journal_frame_head(const struct buf *payload, uint8_t head[JOURNAL_FRAME_BYTES])
{
    put_be32(head, (uint32_t)payload->len);
    put_be32(head + 4, crc32c(payload->p, payload->len));
}

/* The path with a NUL behind it. false: not there, or longer than a path may be. */
static bool get_path(struct reader *r, char path[TREE_PATH_MAX + 1])
{
    int16_t n = reader_i16(r);
    const uint8_t *p = n >= 0 && n <= TREE_PATH_MAX ? reader_take(r, (size_t)n) : NULL;
    if (!p)
        return false;
    memcpy(path, p, (size_t)n);
    path[n] = 0;
    return strlen(path) == (size_t)n;
}

static bool get_data(struct reader *r, struct bytes *data)
{
    *data = BYTES_NULL;
    int32_t n = reader_i32(r);
    if (n < -1 || r->bad)
        return false;
    if (n == -1)
        return true;
    data->p = reader_take(r, (size_t)n);
    data->len = n;
    return data->p != NULL;
}

static int apply_op(struct reader *r, struct tree_txn *x)
{
    char path[TREE_PATH_MAX + 1];
    struct bytes data;
    struct tree_node *n;
    int type = reader_i8(r);
    if (!get_path(r, path) || !get_data(r, &data))
        return -EBADMSG;
    switch (type) {
    case STORE_CREATE:
        return tree_create(x, path, data, 0, false, &n);
    case STORE_SET:
        return tree_set(x, path, data, STORE_ANY_VERSION, &n);
    case STORE_DELETE:
        return tree_delete(x, path, STORE_ANY_VERSION);
    default:
        return -EBADMSG;
    }
}

/* One transaction; those that the tree holds already are read over. */
static int apply_txn(struct reader *r, struct tree *t, int64_t *zxid, int64_t skip_to)
{
    struct tree_txn x;
    int64_t id = reader_i64(r);
    int64_t now_ms = reader_i64(r);
    uint32_t n = (uint32_t)reader_i32(r);
    if (r->bad || id <= 0)
        return -EBADMSG;
    if (id > skip_to && id <= *zxid)
        return -EBADMSG;
    tree_begin(&x, t, id, now_ms);
    int err = 0;
    for (uint32_t i = 0; i < n && !err; i++) {
        if (id > skip_to) {
            err = apply_op(r, &x);
        } else {
            char path[TREE_PATH_MAX + 1];
            struct bytes data;
            reader_i8(r);
            err = get_path(r, path) && get_data(r, &data) ? 0 : -EBADMSG;
        }
    }
    tree_commit(&x);
    if (!err && id > *zxid)
        *zxid = id;
    return err;
}

/* Length of the whole frame at p[at], 0 when it is none. */
static size_t frame_at(const uint8_t *p, size_t n, size_t at)
{
    if (n - at < JOURNAL_FRAME_BYTES + TXN_BYTES)
        return 0;
    size_t len = get_be32(p + at);
    if (len < TXN_BYTES || len > n - at - JOURNAL_FRAME_BYTES)
        return 0;
    if (crc32c(p + at + JOURNAL_FRAME_BYTES, len) != get_be32(p + at + 4))
        return 0;
    return JOURNAL_FRAME_BYTES + len;
}

/* Is there a good frame somewhere behind a bad one? Its first transaction must follow `zxid` at no
 * great distance; that spares the checksum nearly everywhere. */
static size_t good_frame_behind(const uint8_t *p, size_t n, size_t bad, int64_t zxid)
{
    for (size_t at = bad + 1; at + JOURNAL_FRAME_BYTES + TXN_BYTES <= n; at++) {
        int64_t id = (int64_t)get_be64(p + at + JOURNAL_FRAME_BYTES);
        if (id > zxid && (uint64_t)id - (uint64_t)zxid < (uint64_t)1 << 36 && frame_at(p, n, at))
            return at;
    }
    return 0;
}

static int decode_header(const uint8_t *p, size_t n, int64_t zxid, char *err, size_t err_n)
{
    if (n < JOURNAL_HEADER_BYTES || memcmp(p, journal_magic, 8) != 0 ||
        crc32c(p, 16) != get_be32(p + 16))
        return damaged(err, err_n, "position 0: not the header of a metadata journal");
    int64_t base = (int64_t)get_be64(p + 8);
    if (base > zxid)
        return damaged(err, err_n,
                       "it begins at transaction %" PRId64 ", but the snapshot %s %" PRId64, base,
                       zxid ? "ends at" : "is missing:", zxid);
    return 0;
}

int journal_decode(const uint8_t *p, size_t n, struct tree *t, int64_t *zxid, size_t *good,
                   char *err, size_t err_n)
{
    int64_t skip_to = *zxid;
    *good = 0;
    int e = decode_header(p, n, *zxid, err, err_n);
    if (e)
        return e;
    size_t at = JOURNAL_HEADER_BYTES, len;
    while (at < n && (len = frame_at(p, n, at)) > 0) {
        struct reader r = reader_of(p + at + JOURNAL_FRAME_BYTES, len - JOURNAL_FRAME_BYTES);
        while (!e && reader_left(&r))
            e = apply_txn(&r, t, zxid, skip_to);
        if (e == -ENOMEM)
            return e;
        if (e)
            return damaged(err, err_n, "position %zu: a record that does not fit what is before it",
                           at);
        at += len;
    }
    *good = at;
    size_t later = at < n ? good_frame_behind(p, n, at, *zxid) : 0;
    if (later)
        return damaged(err, err_n,
                       "position %zu: damaged record, but a good one follows at position %zu", at,
                       later);
    return 0;
}

static int encode_node(void *arg, const struct tree_node *n)
{
    struct buf *b = arg;
    char path[TREE_PATH_MAX + 1];
    if (n->owner) /* ephemeral nodes belong to the process */
        return 0;
    if (!tree_path(n, path, sizeof(path)))
        return -EINVAL;
    put_path(b, path);
    put_data(b, (struct bytes){n->data, n->data_len});
    buf_put_i32(b, n->version);
    buf_put_i64(b, n->czxid);
    buf_put_i64(b, n->mzxid);
    buf_put_i64(b, n->ctime_ms);
    buf_put_i64(b, n->mtime_ms);
    buf_put_i32(b, (int32_t)n->made);
    return b->failed ? -ENOMEM : 0;
}

static int count_node(void *arg, const struct tree_node *n)
{
    *(uint32_t *)arg += n->owner == 0;
    return 0;
}

int snapshot_encode(const struct tree *t, int64_t zxid, struct buf *b)
{
    uint32_t n = 0;
    tree_each(t, count_node, &n);
    buf_put(b, snapshot_magic, sizeof(snapshot_magic));
    buf_put_i64(b, zxid);
    buf_put_i32(b, (int32_t)n);
    int err = tree_each(t, encode_node, b);
    if (!err && !b->failed)
        buf_put_i32(b, (int32_t)crc32c(b->p, b->len));
    return b->failed ? -ENOMEM : err;
}

static int decode_node(struct reader *r, struct tree *t, int64_t zxid)
{
    char path[TREE_PATH_MAX + 1];
    struct bytes data;
    if (!get_path(r, path) || !get_data(r, &data))
        return -EBADMSG;
    struct store_stat st = {.version = reader_i32(r)};
    st.czxid = reader_i64(r);
    st.mzxid = reader_i64(r);
    st.ctime_ms = reader_i64(r);
    st.mtime_ms = reader_i64(r);
    uint32_t made = (uint32_t)reader_i32(r);
    if (r->bad || st.czxid > zxid || st.mzxid > zxid)
        return -EBADMSG;
    int err = tree_restore(t, path, data, &st, made);
    return err && err != -ENOMEM ? -EBADMSG : err;
}

int snapshot_decode(const uint8_t *p, size_t n, struct tree *t, int64_t *zxid, char *err,
                    size_t err_n)
{
    *zxid = 0;
    if (n < 24 || memcmp(p, snapshot_magic, 8) != 0)
        return damaged(err, err_n, "position 0: not the header of a metadata snapshot");
    if (crc32c(p, n - 4) != get_be32(p + n - 4))
        return damaged(err, err_n, "the checksum does not match its %zu bytes", n);
    struct reader r = reader_of(p + 8, n - 12);
    int64_t id = reader_i64(&r);
    uint32_t nodes = (uint32_t)reader_i32(&r);
    for (uint32_t i = 0; i < nodes; i++) {
        int e = decode_node(&r, t, id);
        if (e == -ENOMEM)
            return e;
        if (e)
            return damaged(err, err_n, "position %zu: node %u is malformed", (size_t)(r.p - p), i);
    }
    const char *problem = tree_check(t);
    if (reader_left(&r) || id <= 0 || problem)
        return damaged(err, err_n, "%s", problem ? problem : "wrong length");
    *zxid = id;
    return 0;
}
