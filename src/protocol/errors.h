/* errors.h - Kafka's error codes: the numbers on the wire, their names, whether a client may retry,
 * their text. One list (errors.def); everything else is made from it. */
#ifndef PROTOCOL_ERRORS_H
#define PROTOCOL_ERRORS_H

#include <stdbool.h>
#include <stdint.h>

enum kerr {
#define KERR(name, code, retriable, text) KERR_##name = code,
#include "protocol/errors.def"
#undef KERR
};

/* "UNKNOWN_SERVER_ERROR" for codes that are not in the list. Static. */
const char *kerr_name(int16_t code);
/* A sentence for people. Static. */
const char *kerr_text(int16_t code);
bool kerr_retriable(int16_t code);

#endif
