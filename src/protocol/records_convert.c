/* records_convert.c - see records_convert.h. The log's own bytes are converted, so checksums are
 * not verified again: a bad one shows where the records do not decode. */
#include "protocol/records_convert.h"

#include <errno.h>

#include "protocol/batch_builder.h"
#include "protocol/record_iter.h"

enum { FILLER_LENGTH_MIN = BATCH_HEAD };

static struct batch_options options_of(const struct batch *b, int magic)
{
    struct batch_options o = BATCH_OPTIONS_DEFAULT;
    o.magic = (int8_t)magic;
    o.codec = (enum codec)b->codec;
    o.log_append_time = b->attributes & BATCH_LOG_APPEND_TIME;
    o.log_append_timestamp = b->max_timestamp;
    return o;
}

/* Plain records in front of from_offset must go: some librdkafka versions take them for new. Those
 * inside a compressed batch stay, and every client skips them. */
static int add_records(const struct batch *b, int64_t from_offset, struct batch_builder *builder)
{
    struct record_iter it = {0};
    struct record r;
    int rc = record_iter_init_in_turn(&it, b);
    while (rc == 0 && (rc = record_iter_next(&it, &r)) > 0) {
        rc = 0;
        if (b->codec != CODEC_NONE || r.offset >= from_offset)
            rc = batch_builder_add_record(builder, r.offset, &r);
    }
    record_iter_fini(&it);
    return rc;
}

static enum kerr convert(const struct batch *b, int magic, int64_t from_offset,
                         struct batch_builder *builder, struct buf *out)
{
    if (b->magic <= magic) {
        buf_put(out, b->p, b->size);
        return out->failed ? KERR_UNKNOWN_SERVER_ERROR : KERR_NONE;
    }
    if (batch_is_control(b))
        return KERR_NONE;
    if (b->codec == CODEC_ZSTD)
        return KERR_UNSUPPORTED_COMPRESSION_TYPE;
    struct batch_options o = options_of(b, magic);
    batch_builder_reset(builder, &o);
    int rc = add_records(b, from_offset, builder);
    if (rc == 0)
        rc = batch_builder_finish(builder, out);
    return rc == 0 ? KERR_NONE : rc == -ENOMEM ? KERR_UNKNOWN_SERVER_ERROR : KERR_CORRUPT_MESSAGE;
}

enum kerr records_down_convert(const uint8_t *p, size_t n, int magic, int64_t from_offset,
                               struct buf *out, size_t *used)
{
    *used = 0;
    if (n == 0) /* and p may be NULL */
        return KERR_NONE;
    struct batch b;
    enum batch_walk w;
    enum kerr code = KERR_NONE;
    struct batch_builder *builder = batch_builder_new(&BATCH_OPTIONS_DEFAULT);
    if (!builder)
        return KERR_UNKNOWN_SERVER_ERROR;
    while ((w = batch_decode(p + *used, n - *used, n - *used, &b)) == BATCH_OK) {
        code = convert(&b, magic, from_offset, builder, out);
        if (code != KERR_NONE)
            break;
        *used += b.size;
    }
    batch_builder_free(builder);
    if (w == BATCH_CORRUPT)
        code = KERR_CORRUPT_MESSAGE;
    return *used ? KERR_NONE : code; /* what comes later is the next call's affair */
}

int records_filler(size_t owed, struct buf *out)
{
    if (owed < ENTRY_PREFIX)
        return -EINVAL;
    size_t length = owed + 1;
    if (length < FILLER_LENGTH_MIN)
        length = FILLER_LENGTH_MIN;
    if (length > INT32_MAX)
        length = INT32_MAX;
    if (!buf_reserve(out, owed))
        return -ENOMEM;
    buf_put_i64(out, -1);
    buf_put_i32(out, (int32_t)length);
    buf_put_zero(out, owed - ENTRY_PREFIX);
    return 0;
}
