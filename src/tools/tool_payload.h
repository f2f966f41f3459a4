/* tool_payload.h - what kafka-producer-perf-test sends: random letters, pieces of a file, or
 * numbers. Made before the run, so that sending costs nothing but sending. */
#ifndef TOOLS_TOOL_PAYLOAD_H
#define TOOLS_TOOL_PAYLOAD_H

#include <stddef.h>
#include <stdint.h>

struct payload;

/* `size` random capital letters a record: windows of a longer text, so that records of one batch do
 * not repeat each other. Each ends the process when it cannot. Returns owned. */
struct payload *payload_random(size_t size);
/* The pieces of a file between delimiters (of which the escapes \n, \t and \\ are read); says what
 * it read on standard output. */
struct payload *payload_file(const char *path, const char *delimiter);
struct payload *payload_numbers(void);
void payload_free(struct payload *p);
/* The i-th record's value; borrowed until the next call. */
const void *payload_at(struct payload *p, uint64_t i, size_t *n);

#endif
