/* store_answer.h - what every form of the store does with a request: check its shape, refuse it,
 * answer it. Inside metadata/ only.
 *
 * THREADS  that which has the request. */
#ifndef METADATA_STORE_ANSWER_H
#define METADATA_STORE_ANSWER_H

#include "metadata/store.h"

/* One operation, or a multi of writes. */
bool store_request_well_formed(const struct store_request *r);
/* Nothing in it is of an earlier use. */
void store_request_reset(struct store_request *r);
/* Sets every operation's status and the request's, and drops results. */
void store_request_refuse(struct store_request *r, int status);
/* Posts it to its caller, who may free it at once. */
void store_request_answer(struct store_request *r);

#endif
