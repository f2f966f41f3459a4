/* tool_internal.h - records of the internal topics, read and shown as Kafka's tools show them:
 * __consumer_offsets (offsets and groups, classic and KIP-848) and __transaction_state.
 *
 * A key begins with its type, a value with its version; both then are messages of the schemas in
 * src/protocol/messages. */
#ifndef TOOLS_TOOL_INTERNAL_H
#define TOOLS_TOOL_INTERNAL_H

#include "base/arena.h"
#include "protocol/codec.h"

enum internal_topic { INTERNAL_OFFSETS, INTERNAL_TRANSACTIONS };
/* Types of keys that more is done with than printing them. */
enum { OFFSETS_KEY_OFFSET_OLD = 0, OFFSETS_KEY_OFFSET = 1, OFFSETS_KEY_GROUP = 2 };

enum internal_read {
    INTERNAL_READ,
    INTERNAL_UNKNOWN_TYPE,    /* only `type` is filled in */
    INTERNAL_UNKNOWN_VERSION, /* of the value: the key is filled in */
    INTERNAL_MALFORMED,       /* `wrong` says what; the key is filled in when it was right */
};
struct internal_record {
    int16_t type, value_version;
    const struct msg_desc *key_desc, *value_desc; /* key_desc NULL: no key was read */
    const void *key, *value;                      /* in the arena; value NULL = a tombstone */
    const char *wrong;                            /* static */
};

/* Text and bytes of the result are borrowed from `key` and `value`. */
enum internal_read internal_read(enum internal_topic topic, struct bytes key, struct bytes value,
                                 struct arena *a, struct internal_record *out);

/* The key's and the value's fields as JSON. embedded: what members of consumer groups wrote
 * (subscription, assignment) is decoded too. */
void internal_key_json(const struct internal_record *r, struct buf *out);
void internal_value_json(const struct internal_record *r, bool embedded, struct buf *out);

/* "Ongoing", ...; NULL for a state that there is none of. */
const char *internal_txn_state(int8_t state);

#endif
