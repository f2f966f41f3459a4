/* mechanism.h - the SASL mechanisms, by Kafka's names, and how an exchange may go on.
 *
 * THREADS  any: no state. */
#ifndef SASL_MECHANISM_H
#define SASL_MECHANISM_H

#include "base/str.h"

enum sasl_mechanism {
    SASL_PLAIN,
    SASL_SCRAM_SHA_256,
    SASL_SCRAM_SHA_512,
    SASL_OAUTHBEARER,
    SASL_GSSAPI, /* known by name only */
    SASL_MECHANISMS
};

/* "SCRAM-SHA-256". Static. */
const char *sasl_mechanism_name(enum sasl_mechanism m);
bool sasl_mechanism_find(struct str name, enum sasl_mechanism *out);
/* Is there an exchange for it here? */
bool sasl_mechanism_served(enum sasl_mechanism m);
static inline bool sasl_mechanism_is_scram(enum sasl_mechanism m)
{
    return m == SASL_SCRAM_SHA_256 || m == SASL_SCRAM_SHA_512;
}

enum sasl_result {
    SASL_CONTINUE, /* a token for the other side, then another one comes from there */
    SASL_COMPLETE, /* it is over; there may be a last token */
    SASL_FAILURE,  /* it is over, without success */
    SASL_WORK,     /* clients: call the work function, which takes a while, and then this again */
};

#endif
