/* jaas.h - the text of sasl.jaas.config: login modules with their options.
 *
 * FORMAT  <module> <flag> (<key>=<value>)* ;   ... as Java's tokenizer reads it: words of letters,
 *         digits, . - _ $; anything else in quotes, "..." or '...', with \n, \t, \" and octal
 *         escapes in them; comments: slash-slash and single slash to the end of the line, and C's.
 *         A word that begins with a digit is a number for Java, and no value: it wants quotes.
 * A quote that does not end is refused; Java takes the rest of the line. */
#ifndef SASL_JAAS_H
#define SASL_JAAS_H

#include "base/arena.h"
#include "sasl/mechanism.h"

struct jaas_option {
    struct str key, value;
};
struct jaas_module {
    struct str name; /* a Java class */
    struct jaas_option *options;
    int options_n;
};
struct jaas_config {
    struct jaas_module *modules;
    int modules_n; /* >= 1 */
};

/* What it holds is in the arena. 0, -ENOMEM, or -EINVAL with what is wrong (in the arena or static;
 * it never shows a value). */
int jaas_parse(struct str text, struct arena *a, struct jaas_config *out, const char **problem);
/* The text must hold one module, and that the one of the mechanism. As jaas_parse. */
int jaas_parse_for(struct str text, enum sasl_mechanism m, struct arena *a, struct jaas_module *out,
                   const char **problem);
/* Null when it is not there; of a key given twice the last one. */
struct str jaas_get(const struct jaas_module *m, const char *key);
/* The module's Java class of a mechanism. Static. */
const char *jaas_module_name(enum sasl_mechanism m);

#endif
