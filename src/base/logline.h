/* logline.h - the daemon's log: one line an event to standard error.
 *
 *   2026-01-31T12:00:00.123Z INFO [KafkaServer id=0] started
 *
 * A line is built in a stack buffer (8 KiB; what is longer is cut) and leaves with one write(2), so
 * lines of threads never mix. Newlines and control characters inside become '?'. errno is kept.
 * THREADS  any. */
#ifndef BASE_LOGLINE_H
#define BASE_LOGLINE_H

#include <stdbool.h>

enum logline_level {
    LOGLINE_TRACE,
    LOGLINE_DEBUG,
    LOGLINE_INFO,
    LOGLINE_WARN,
    LOGLINE_ERROR,
    LOGLINE_FATAL
};

/* Lines below this level are not written; INFO at start. */
void logline_set_level(enum logline_level level);
/* Would a line of this level be written? For text that is dear to make. */
bool logline_enabled(enum logline_level level);
/* For tests: each finished line (without newline) goes to `sink` instead; NULL restores standard
 * error. Calls of the sink never overlap; it must not log itself. */
void logline_set_sink(void (*sink)(enum logline_level level, const char *line, void *arg),
                      void *arg);

/* `component` is what stands in brackets, e.g. "KafkaServer id=0". */
void logline(enum logline_level level, const char *component, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#define say_debug(component, ...) logline(LOGLINE_DEBUG, component, __VA_ARGS__)
#define say_info(component, ...) logline(LOGLINE_INFO, component, __VA_ARGS__)
#define say_warn(component, ...) logline(LOGLINE_WARN, component, __VA_ARGS__)
#define say_error(component, ...) logline(LOGLINE_ERROR, component, __VA_ARGS__)
#define say_fatal(component, ...) logline(LOGLINE_FATAL, component, __VA_ARGS__)

#endif
