/* principal_rules.h - from the name in a client's certificate to its user
 * (ssl.principal.mapping.rules).
 *
 * A comma-separated list; the first rule that fits decides. DEFAULT: the name as it is.
 * RULE:pattern/replacement/[L|U]: the whole name must match Java's pattern; $1..$9 in the
 * replacement stand for its groups, and L or U make the result lower or upper case. When none fits,
 * the client is not let in.
 *
 * THREADS  immutable: any. */
#ifndef NET_PRINCIPAL_RULES_H
#define NET_PRINCIPAL_RULES_H

#include <stddef.h>

struct principal_rules;

/* 0; -EINVAL with a line in err; -ENOMEM. */
int principal_rules_new(const char *text, struct principal_rules **out, char *err, size_t err_n);
void principal_rules_free(struct principal_rules *r); /* NULL is fine */
/* Owned text, or NULL: no rule fits (*err is -EACCES), or -ENOMEM. */
char *principal_rules_apply(const struct principal_rules *r, const char *dn, int *err);

#endif
