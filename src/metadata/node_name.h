/* node_name.h - names of users and the like as they stand in nodes and in their paths: percent-
 * encoded but for letters, digits, '.', '-' and '_', as Kafka writes them.
 *
 * OWNERSHIP  results lie in the arena. THREADS  any: no state. */
#ifndef METADATA_NODE_NAME_H
#define METADATA_NODE_NAME_H

#include "base/arena.h"

/* Null in = null out; null also without memory. */
struct str node_name_encode(struct str name, struct arena *a);
/* As encode. What is no escape stays as it is, and *whole (may be NULL) is false then. '+' is a
 * blank. */
struct str node_name_decode(struct str text, struct arena *a, bool *whole);

#endif
