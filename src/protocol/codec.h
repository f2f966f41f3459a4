/* codec.h - encoding and decoding of protocol messages, driven by tables that the build makes from
 * the schemas in messages/.
 *
 * For each message the build generates a plain C struct, and a `struct msg_desc` that lists its
 * fields: type, place in the struct, versions, null versions, tag, default. One encoder and one
 * decoder walk these tables, so each wire rule (compact lengths, tag sections, null forms) is
 * written once.
 *
 * GENERATED  messages/produce.msg (api key 0) becomes "protocol/msg/produce.h":
 *              struct produce_request_topic_data { struct str name; ARRAY(...) partition_data; };
 *              struct produce_request { struct str transactional_id; int16_t acks; ... };
 *              extern const struct msg_desc produce_request_desc;
 *              produce_request_init(m)                            all fields to their defaults
 *              produce_request_decode(m, version, reader, arena)
 *              produce_request_encode(m, version, writer)
 *              produce_request_size(m, version)
 *              produce_request_topic_data_init(p)                 the same for each inner struct
 *              produce_request_topic_data_new(arena, n)           n of them, at their defaults
 *            Structs are named <api>_<request|response>_<struct name in the .msg file>; data
 *            records just <message>_<struct name>.
 *
 * MAPPING    bool int8 int16 uint16 int32 int64 float64 -> C types; string -> struct str; bytes ->
 *            struct bytes; uuid -> struct uuid; records -> struct records; []T -> ARRAY(T); a
 *            nullable struct -> T *.
 *
 * DEFAULTS   as the schema says; else 0, false, "" and empty arrays, and null for nullable records.
 *            Zeroed memory is not always that, so build messages from _init and _new.
 *
 * MEMORY     Decoded strings, bytes and records point into the frame (borrowed, good as long as the
 *            frame); arrays and nullable structs are in the arena. Decoding allocates at most
 *            CODEC_EXPANSION times the bytes that are really there: an array count is refused
 *            unless each element could take its least size from the bytes left.
 *
 * ABSENT     A field that does not exist in a version keeps its default when decoded; when encoded
 *            it is left out (if it is not ignorable and not default the encoder sets
 *            writer.unsupported and still leaves it out).
 *
 * UNFIT      Null where the version has no null, and strings over 32767 bytes, also set
 *            writer.unsupported; they go out empty, or cut, so that the frame stays well-formed.
 *
 * UNKNOWN    tags are skipped by their size. */
#ifndef PROTOCOL_CODEC_H
#define PROTOCOL_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/str.h"

#define ARRAY(T)                   \
    struct {                       \
        T *v;                      \
        int32_t n; /* -1 = null */ \
    }

/* A `records` field: bytes in memory, or a range of a file that goes out by sendfile.
 * Decoded: p/len point into the frame, file is NULL. len -1 = null.
 * To encode a file range: file != NULL, pos, len; p is NULL. The writer takes its own reference. */
struct records {
    const uint8_t *p;
    int32_t len;
    struct file *file;
    int64_t pos;
};
#define RECORDS_NULL ((struct records){NULL, -1, NULL, 0})

/* Where an encoded message leaves memory and goes on in a file: `at` is the position in writer.buf
 * before which the file's bytes belong. */
struct splice {
    size_t at;
    struct file *file; /* one reference, owned by the writer */
    int64_t pos;
    int32_t len;
};

struct writer {
    struct buf buf;
    struct splice *splices;
    int splices_n, splices_cap;
    bool unsupported; /* a field had a value that this version cannot carry */
};
#define WRITER_INIT ((struct writer){.buf = BUF_INIT})
/* Drops memory and file references that were not taken out. */
void writer_free(struct writer *w);
/* Bytes that the message will have on the wire: buf.len and all splices. */
size_t writer_size(const struct writer *w);

enum field_type {
    FIELD_BOOL,
    FIELD_INT8,
    FIELD_INT16,
    FIELD_UINT16,
    FIELD_INT32,
    FIELD_INT64,
    FIELD_FLOAT64,
    FIELD_UUID,
    FIELD_STRING,
    FIELD_BYTES,
    FIELD_RECORDS,
    FIELD_STRUCT,
    FIELD_ARRAY, /* of `elem` */
};

struct struct_desc;

struct field_desc {
    const char *name;
    uint32_t offset;            /* in the C struct */
    uint8_t type;               /* enum field_type */
    uint8_t elem;               /* enum field_type of an array's elements */
    int16_t min, max;           /* versions that have the field; max 32767 = all later ones */
    int16_t null_min, null_max; /* versions in which it may be null; null_min > null_max = never */
    int16_t tag_min, tag_max;   /* versions in which it is tagged; tag_min > tag_max = never */
    int16_t tag;                /* -1 = never tagged */
    int16_t flex_max; /* compact forms only below or at this version; 32767 = as the message */
    bool ignorable;
    bool null_default;
    int64_t int_default;           /* bool and integers */
    const struct struct_desc *sub; /* FIELD_STRUCT, and arrays of structs */
};

struct struct_desc {
    const char *name;
    uint32_t size; /* sizeof the C struct */
    uint16_t fields_n, tagged_n;
    const struct field_desc *fields;
    const uint8_t *tagged; /* those of the fields that are ever tagged, in order of tag */
    const uint16_t *least; /* bytes on the wire at least, by version, from least_min on */
    int16_t least_min;
};

struct msg_desc {
    const char *name; /* "ProduceRequest" */
    int16_t api_key;  /* -1 for data and headers */
    int16_t min, max; /* versions */
    int16_t flex_min; /* first flexible version, 32767 = none */
    const struct struct_desc *body;
};

/* Arena bytes that decoding takes at most for each byte of the message (a test holds it against all
 * tables): small elements become structs with pointers. */
#define CODEC_EXPANSION 40

/* Defaults into `m` (which has body->size bytes). Needs no memory: arrays empty, strings static. */
void msg_init(const struct msg_desc *d, void *m);
/* The same for one struct of a message. */
void msg_struct_init(const struct struct_desc *s, void *m);
/* An array of n structs at their defaults, in the arena; NULL when the arena's cap does not allow
 * it. */
void *msg_struct_new(const struct struct_desc *s, struct arena *a, int32_t n);
/* 0; -EPROTO when the bytes are not a message of this version, or there is no such version; -ENOMEM
 * when the arena's cap does not allow it. The reader stands behind the message afterwards; bytes
 * left over are the caller's affair. */
int msg_decode(const struct msg_desc *d, int version, struct reader *r, struct arena *a, void *m);
/* Appends to w. Out of memory shows in w->buf.failed. */
void msg_encode(const struct msg_desc *d, int version, struct writer *w, const void *m);
/* Bytes that msg_encode would append, splices included. */
size_t msg_size(const struct msg_desc *d, int version, const void *m);
/* Same values? (Arrays by element, records by bytes.) For tests. */
bool msg_equal(const struct msg_desc *d, int version, const void *a, const void *b);
/* A deep copy, all in the arena, for all versions; a file range of records becomes bytes in memory
 * (@blocks on reading it). NULL when the arena has no room or the file cannot be read. */
void *msg_copy(const struct msg_desc *d, struct arena *a, const void *m);
/* One line of text with all fields, as `{acks=-1, topic_data=[...]}`; bytes and records as their
 * sizes. For logs and dumps. */
void msg_print(const struct msg_desc *d, int version, const void *m, struct buf *out);
/* As JSON, in the form that Kafka's tools print messages in. `bytes` (may be NULL) may put JSON of
 * its own in the place of a field of bytes, and then returns true. */
typedef bool (*msg_json_bytes)(const char *field, struct bytes b, struct buf *out);
void msg_print_json(const struct msg_desc *d, int version, const void *m, msg_json_bytes bytes,
                    struct buf *out);
/* A quoted string, or null; malformed UTF-8 becomes U+FFFD. */
void json_put_str(struct buf *out, struct str s);
/* All messages there are: requests, responses, headers, data records. Static. */
const struct msg_desc *const *msg_all(int *n);

#endif
