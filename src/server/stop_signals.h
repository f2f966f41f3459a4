/* stop_signals.h - what each signal that asks for a stop means.
 *
 * The first stops cleanly. Those right after it are the same wish told twice (a script's second
 * kill, `timeout` and a terminal signal the whole process group): they must not turn a clean stop
 * into an unclean one. Whoever asks again later has lost patience: the process ends at once.
 *
 * THREADS  one. */
#ifndef SERVER_STOP_SIGNALS_H
#define SERVER_STOP_SIGNALS_H

#include <stdbool.h>
#include <stdint.h>

enum { STOP_AT_ONCE_AFTER_MS = 500 };

enum stop_verdict {
    STOP_CLEANLY,
    STOP_IGNORE_FIRST, /* worth a line in the log */
    STOP_IGNORE,
    STOP_AT_ONCE,
};

struct stop_signals { /* zero at first */
    bool any, ignored;
    int64_t first_ms;
};

/* now_ms: of a clock that never goes back. */
enum stop_verdict stop_signals_take(struct stop_signals *s, int64_t now_ms);

#endif
