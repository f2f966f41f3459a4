/* url_file.h - what a file:// URL names. There is no HTTP here.
 *
 * THREADS  any: no state. */
#ifndef SASL_URL_FILE_H
#define SASL_URL_FILE_H

#include "base/arena.h"

enum { URL_FILE_MAX = 4 << 20 };

/* The file's text in the arena, NUL behind. 0; -ENOMEM; -EINVAL with a text (static, or in the
 * arena) in *problem: another kind of URL, no such file, longer than `most`. @blocks */
int url_file_read(const char *url, size_t most, struct arena *a, struct str *out,
                  const char **problem);

#endif
