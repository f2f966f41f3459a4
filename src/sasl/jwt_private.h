/* jwt_private.h - between jwt.c and jwt_keys.c.
 *
 * THREADS  any: no state. */
#ifndef SASL_JWT_PRIVATE_H
#define SASL_JWT_PRIVATE_H

#include "sasl/jwt.h"

/* "The key set does not have its key": what jwt_keys_verify and jwt_check then return. */
extern const char jwt_no_key[];

/* kid NULL: any key of the algorithm's kind. NULL when some key verifies it, else a static text. */
const char *jwt_keys_verify(const struct jwt_keys *k, const char *alg, const char *kid,
                            struct str signed_part, struct bytes signature);

#endif
