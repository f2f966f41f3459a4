/* key_store.h - the keys that signed tokens are checked with: a JSON Web Key Set in a file, read
 * again when it is old, or when a token names a key that is not in it. So a provider's new key is
 * taken up without a restart; when the file cannot be read, or is none, the keys stay as they are,
 * with a line in the log.
 *
 * THREADS  any: has its lock. */
#ifndef SASL_KEY_STORE_H
#define SASL_KEY_STORE_H

#include "sasl/jwt.h"

struct key_store;

/* url: file://... 0; -ENOMEM; -EINVAL with a line in err. @blocks on the file */
int key_store_new(const char *url, int64_t refresh_ms, int64_t now_ms, struct key_store **out,
                  char *err, size_t err_n);
void key_store_free(struct key_store *s); /* NULL is fine */
/* As jwt_check. @blocks on the file, when it is read again: not more often than every ten seconds
 */
const char *key_store_check(struct key_store *s, struct str token, const struct jwt_rules *rules,
                            int64_t now_ms, struct arena *a, struct jwt_claims *out);

#endif
