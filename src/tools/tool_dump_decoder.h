/* tool_dump_decoder.h - keys and values of records as text, for kafka-dump-log. */
#ifndef TOOLS_TOOL_DUMP_DECODER_H
#define TOOLS_TOOL_DUMP_DECODER_H

#include "protocol/record_batch.h"

struct dump_decoder;

enum dump_topic { DUMP_PLAIN, DUMP_OFFSETS, DUMP_TRANSACTIONS, DUMP_METADATA };

/* key and value: a class of Kafka's, short or whole (NULL: text), for DUMP_PLAIN. Ends the process
 * when there is none of that name. Returns owned. */
struct dump_decoder *dump_decoder_new(enum dump_topic topic, const char *key, const char *value);
void dump_decoder_free(struct dump_decoder *d);

struct dump_text {
    struct buf text;
    bool shown; /* there is something to print, if only an empty text */
};
/* NULL, or why the record is not what the decoder reads (static). Both texts are emptied first. */
const char *dump_decode(struct dump_decoder *d, const struct record *r, struct dump_text *key,
                        struct dump_text *value);

#endif
