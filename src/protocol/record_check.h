/* record_check.h - the checks of single records on their way into a log, inside the room.
 *
 * Every record is looked at; all that fail are noted as (index, message) in the result. A record
 * that cannot be decoded ends the check at once. */
#ifndef PROTOCOL_RECORD_CHECK_H
#define PROTOCOL_RECORD_CHECK_H

#include "protocol/records_append.h"

struct record_check {
    /* in */
    const struct append_policy *policy;
    struct arena *arena;
    struct prepared *out; /* errors and the message go here */
    bool dense_required;  /* an offset delta that is not the record's index is an error */
    /* of the batch */
    bool flagged;             /* it says LogAppendTime */
    int64_t earliest, latest; /* allowed timestamps, CreateTime topics */
    /* results */
    bool dense; /* all offset deltas were 0, 1, 2, ... */
    bool timestamp_errors;
    int64_t first_timestamp, max_timestamp; /* the records' own; -1 without any */
    int errors_cap;
};

void record_check_init(struct record_check *c, const struct append_policy *policy, struct arena *a,
                       struct prepared *out);
/* One record by itself (old formats). */
void record_check_one(struct record_check *c, int32_t index, int64_t timestamp, bool has_key);
/* The records of magic 2 batch `b`, plain in [p, end). KERR_NONE: all decode (errors of single
 * records are in out->errors). */
enum kerr record_check_plain(struct record_check *c, const struct batch *b, const uint8_t *p,
                             const uint8_t *end);
/* The same for the compressed batch `b`: decompressed step by step, nothing is kept. */
enum kerr record_check_compressed(struct record_check *c, const struct batch *b);
/* After the last record: the code for all noted errors, with out->message; NONE without any. */
enum kerr record_check_result(struct record_check *c);

/* Fails the whole batch: sets out->message (printf form, in the arena) and returns the code. */
enum kerr prepare_fail(struct arena *a, struct prepared *out, enum kerr code, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

#endif
