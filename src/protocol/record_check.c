/* record_check.c - see record_check.h. The plain walk is the inner loop of every produce: per
 * record it reads the few bytes around key and value and makes one compare for time, key and offset
 * each. */
#include "protocol/record_check.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "protocol/compression_private.h"
#include "protocol/record_v2.h"

enum kerr prepare_fail(struct arena *a, struct prepared *out, enum kerr code, const char *fmt, ...)
{
    char text[256];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    char *copy = n < 0 ? NULL : arena_alloc(a, sizeof(text));
    if (copy)
        memcpy(copy, text, sizeof(text));
    out->message = copy; /* NULL: the code's own text */
    return code;
}

static int64_t clamped_sub(int64_t a, int64_t b)
{
    int64_t r;
    return __builtin_sub_overflow(a, b, &r) ? (b > 0 ? INT64_MIN : INT64_MAX) : r;
}

static int64_t clamped_add(int64_t a, int64_t b)
{
    int64_t r;
    return __builtin_add_overflow(a, b, &r) ? (b > 0 ? INT64_MAX : INT64_MIN) : r;
}

void record_check_init(struct record_check *c, const struct append_policy *policy, struct arena *a,
                       struct prepared *out)
{
    *c = (struct record_check){
        .policy = policy,
        .arena = a,
        .out = out,
        .earliest = policy->before_max_ms == INT64_MAX
                        ? INT64_MIN
                        : clamped_sub(policy->now_ms, policy->before_max_ms),
        .latest = policy->after_max_ms == INT64_MAX
                      ? INT64_MAX
                      : clamped_add(policy->now_ms, policy->after_max_ms),
        .dense = true,
        .first_timestamp = NO_TIMESTAMP,
        .max_timestamp = NO_TIMESTAMP,
    };
}

/* ---- noting errors ---- */

/* When the arena is full the rest goes unlisted; the code for the batch stays the same. */
static void note(struct record_check *c, int32_t index, const char *message)
{
    struct prepared *out = c->out;
    if (!out->errors_n && !out->message)
        out->message = message;
    if (out->errors_n == c->errors_cap) {
        int cap = c->errors_cap ? c->errors_cap * 2 : 8;
        struct record_error *grown = arena_array(c->arena, struct record_error, (size_t)cap);
        if (!grown)
            return;
        if (out->errors_n)
            memcpy(grown, out->errors, (size_t)out->errors_n * sizeof(*grown));
        out->errors = grown;
        c->errors_cap = cap;
    }
    out->errors[out->errors_n++] = (struct record_error){index, message};
}

static void note_timestamp(struct record_check *c, int32_t index, int64_t timestamp)
{
    c->timestamp_errors = true;
    const char *message =
        arena_printf(c->arena,
                     "Timestamp %" PRId64 " of message with offset %" PRId32
                     " is out of range. The timestamp should be within [%" PRId64 ", %" PRId64 "]",
                     timestamp, index, c->earliest < 0 ? 0 : c->earliest, c->latest);
    note(c, index, message ? message : "Timestamp is out of range");
}

static bool timestamp_bad(struct record_check *c, int32_t index, int64_t timestamp)
{
    bool none = timestamp == NO_TIMESTAMP;
    if (!c->policy->log_append_time && !none) {
        if (timestamp >= 0 && timestamp >= c->earliest && timestamp <= c->latest)
            return false;
        note_timestamp(c, index, timestamp);
        return true;
    }
    if (!c->flagged)
        return false;
    c->timestamp_errors = true;
    note(c, index,
         "Invalid timestamp type: producers should not set the timestamp type to LogAppendTime");
    return true;
}

/* One error a record, the first that applies. */
static void note_if_bad(struct record_check *c, int32_t index, int64_t timestamp, bool has_key,
                        int32_t offset_delta)
{
    if (c->dense_required && offset_delta != index) {
        c->out->fault = FAULT_OFFSET;
        note(c, index, "The record's offset delta is not its position in the batch");
    } else if (c->policy->keys_required && !has_key) {
        c->out->fault = FAULT_NO_KEY;
        note(c, index, "Compacted topic cannot accept message without key");
    } else {
        timestamp_bad(c, index, timestamp);
    }
}

void record_check_one(struct record_check *c, int32_t index, int64_t timestamp, bool has_key)
{
    if (index == 0)
        c->first_timestamp = timestamp;
    if (timestamp > c->max_timestamp)
        c->max_timestamp = timestamp;
    note_if_bad(c, index, timestamp, has_key, index);
}

static const char *first_errors(const struct record_check *c)
{
    const struct prepared *out = c->out;
    const char *text[3] = {"", "", ""};
    for (int i = 0; i < 3 && i < out->errors_n; i++)
        text[i] = out->errors[i].message;
    return arena_printf(c->arena,
                        "One or more records have been rejected due to %d record errors in total, "
                        "the first of them: %s%s%s%s%s",
                        out->errors_n, text[0], *text[1] ? "; " : "", text[1], *text[2] ? "; " : "",
                        text[2]);
}

enum kerr record_check_result(struct record_check *c)
{
    struct prepared *out = c->out;
    if (c->timestamp_errors) {
        out->message = "One or more records have been rejected due to invalid timestamp";
        return KERR_INVALID_TIMESTAMP;
    }
    if (!out->errors_n)
        return out->message ? KERR_INVALID_RECORD : KERR_NONE;
    const char *text = first_errors(c);
    if (text)
        out->message = text;
    return KERR_INVALID_RECORD;
}

/* ---- walking a batch ---- */

static enum kerr fail_record(struct record_check *c, int32_t index)
{
    return prepare_fail(c->arena, c->out, KERR_INVALID_RECORD,
                        "Record %" PRId32 " of the batch is malformed", index);
}

static enum kerr fail_rest(struct record_check *c)
{
    return prepare_fail(c->arena, c->out, KERR_INVALID_RECORD,
                        "Bytes are left behind the last record of the batch");
}

/* What a record must pass without a second look: folded into few compares. */
struct quick {
    int64_t base;             /* of timestamps */
    int64_t earliest, latest; /* inclusive */
    int32_t key_len_min;
};

static struct quick quick_of(const struct record_check *c, const struct batch *b)
{
    struct quick q = {.base = b->base_timestamp,
                      .earliest = INT64_MIN,
                      .latest = INT64_MAX,
                      .key_len_min = c->policy->keys_required ? 0 : -1};
    if (c->flagged && c->policy->log_append_time) {
        q.latest = INT64_MIN; /* every record is at fault */
    } else if (!c->policy->log_append_time) {
        q.earliest = c->earliest < 0 ? 0 : c->earliest;
        q.latest = c->latest;
    }
    return q;
}

static inline int64_t take_record(struct record_check *c, const struct quick *q, int32_t index,
                                  const struct record_v2 *r)
{
    int64_t timestamp = (int64_t)((uint64_t)q->base + (uint64_t)r->timestamp_delta);
    if (__builtin_expect((timestamp < q->earliest) | (timestamp > q->latest) |
                             (r->key.len < q->key_len_min) | (r->offset_delta != index),
                         0)) {
        if (r->offset_delta != index)
            c->dense = false;
        note_if_bad(c, index, timestamp, r->key.len >= 0, r->offset_delta);
    }
    return timestamp;
}

static void begin_batch(struct record_check *c, const struct batch *b)
{
    c->flagged = b->attributes & BATCH_LOG_APPEND_TIME;
}

enum kerr record_check_plain(struct record_check *c, const struct batch *b, const uint8_t *p,
                             const uint8_t *end)
{
    begin_batch(c, b);
    const struct quick q = quick_of(c, b);
    int64_t max = NO_TIMESTAMP;
    for (int32_t i = 0, n = b->record_count; i < n; i++) {
        struct record_v2 r;
        p = record_get(p, end, &r);
        if (!p)
            return fail_record(c, i);
        int64_t timestamp = take_record(c, &q, i, &r);
        if (i == 0)
            c->first_timestamp = timestamp;
        if (timestamp > max)
            max = timestamp;
    }
    c->max_timestamp = max;
    return p == end ? KERR_NONE : fail_rest(c);
}

/* ---- walking a compressed batch ---- */

/* What is decompressed and not yet looked at: p + at up to p + len. */
struct window {
    struct codec_stream *stream;
    uint8_t *p;
    size_t at, len;
    int error; /* of the stream; 0 at its end */
};

static size_t window_left(const struct window *w)
{
    return w->len - w->at;
}

/* At least `want` <= CODEC_WINDOW bytes in the window; false when the stream ends or fails before
 * that. */
static bool window_fill(struct window *w, size_t want)
{
    if (window_left(w) >= want)
        return true;
    memmove(w->p, w->p + w->at, window_left(w));
    w->len -= w->at;
    w->at = 0;
    while (w->len < want) {
        ssize_t got = codec_stream_read(w->stream, w->p + w->len, CODEC_WINDOW - w->len);
        if (got <= 0) {
            w->error = (int)got;
            return false;
        }
        w->len += (size_t)got;
    }
    return true;
}

/* A record that is longer than the window is read field by field; `left` is what it still has. */
static bool long_number(struct window *w, int32_t *left, int64_t *v)
{
    size_t most = *left < VARLONG_MAX ? (size_t)*left : VARLONG_MAX;
    if (!window_fill(w, most)) /* a record has that many bytes, or it is cut short */
        return false;
    const uint8_t *p = w->p + w->at;
    struct varint n = varlong_get(p, p + most);
    if (!n.p)
        return false;
    w->at += (size_t)(n.p - p);
    *left -= (int32_t)(n.p - p);
    *v = n.v;
    return true;
}

static bool long_int(struct window *w, int32_t *left, int32_t *v)
{
    int32_t before = *left;
    int64_t wide;
    if (!long_number(w, left, &wide) || before - *left > VARINT_MAX || wide != (int32_t)wide)
        return false;
    *v = (int32_t)wide;
    return true;
}

/* A length and as many bytes, unseen. */
static bool long_bytes(struct window *w, int32_t *left, int32_t *len)
{
    if (!long_int(w, left, len) || *len < -1 || *len > *left)
        return false;
    size_t n = *len < 0 ? 0 : (size_t)*len;
    *left -= (int32_t)n;
    while (n > window_left(w)) {
        n -= window_left(w);
        w->at = w->len;
        if (!window_fill(w, 1))
            return false;
    }
    w->at += n;
    return true;
}

static bool long_record(struct window *w, int32_t len, struct record_v2 *r)
{
    int32_t left = len, key_len, value_len;
    w->at++; /* attributes: in the window with the length */
    left--;
    if (!long_number(w, &left, &r->timestamp_delta) || !long_int(w, &left, &r->offset_delta) ||
        !long_bytes(w, &left, &r->key.len) || !long_bytes(w, &left, &r->value.len) ||
        !long_int(w, &left, &r->headers_n) || r->headers_n < 0 || r->headers_n > left / 2)
        return false;
    for (int32_t i = 0; i < r->headers_n; i++)
        if (!long_bytes(w, &left, &key_len) || key_len < 0 || !long_bytes(w, &left, &value_len))
            return false;
    return left == 0;
}

/* The record at the window's front, and past it. */
static bool window_record(struct window *w, struct record_v2 *r)
{
    window_fill(w, RECORD_SIZE_MIN);
    const uint8_t *p = w->p + w->at;
    struct varint len = varint_get(p, w->p + w->len);
    if (!len.p || len.v < RECORD_LENGTH_MIN)
        return false;
    size_t prefix = (size_t)(len.p - p), size = prefix + (size_t)len.v;
    if (size > CODEC_WINDOW) {
        w->at += prefix;
        return window_fill(w, 1) && long_record(w, (int32_t)len.v, r);
    }
    if (!window_fill(w, size))
        return false;
    const uint8_t *body = w->p + w->at + prefix;
    w->at += size;
    return record_fields_get(body, body + len.v, r);
}

static enum kerr fail_stream(struct record_check *c, int error)
{
    if (error == -ENOMEM)
        return prepare_fail(c->arena, c->out, KERR_UNKNOWN_SERVER_ERROR, "Out of memory");
    return prepare_fail(c->arena, c->out, KERR_INVALID_RECORD, "%s",
                        error == -EFBIG ? "The decompressed data is larger than allowed"
                                        : "The compressed data is malformed");
}

static enum kerr walk_window(struct record_check *c, const struct batch *b, struct window *w)
{
    const struct quick q = quick_of(c, b);
    for (int32_t i = 0, n = b->record_count; i < n; i++) {
        struct record_v2 r;
        if (!window_record(w, &r))
            return w->error ? fail_stream(c, w->error) : fail_record(c, i);
        int64_t timestamp = take_record(c, &q, i, &r);
        if (i == 0)
            c->first_timestamp = timestamp;
        if (timestamp > c->max_timestamp)
            c->max_timestamp = timestamp;
    }
    if (window_fill(w, 1))
        return fail_rest(c);
    return w->error ? fail_stream(c, w->error) : KERR_NONE;
}

enum kerr record_check_compressed(struct record_check *c, const struct batch *b)
{
    begin_batch(c, b);
    size_t n = b->size - BATCH_HEAD;
    struct window w = {0};
    enum kerr code;
    int rc = codec_stream_open((enum codec)b->codec, b->magic, b->p + BATCH_HEAD, n, codec_cap(n),
                               &w.stream);
    if (rc == 0 && !(w.p = codec_ctx_take(CODEC_CTX_WINDOW)))
        rc = -ENOMEM;
    code = rc ? fail_stream(c, rc) : walk_window(c, b, &w);
    codec_ctx_give(CODEC_CTX_WINDOW, w.p);
    codec_stream_close(w.stream);
    return code;
}
