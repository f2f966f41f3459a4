/* tool_io.h - a tool's surroundings: what it says on standard error, its standard output, Ctrl-C.
 *
 * Standard output is buffered whole, by lines on a terminal. A reader that goes away (`| head`)
 * ends the tool quietly: SIGPIPE is ignored and the failed write is found by tool_output_ok. A tool
 * that may have nothing to write for long asks for tool_watch_output. */
#ifndef TOOLS_TOOL_IO_H
#define TOOLS_TOOL_IO_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Before any client is made: standard descriptors, signals, buffers, and the library's warnings to
 * standard error as
 * `[time] WARN ...` lines. */
void tool_start(void);
/* Can standard output still be written? false after its reader has gone or the disk is full. */
bool tool_output_ok(void);
/* Flushes standard output. Returns the exit status: `status`, or 1 (with a line saying why) when
 * output was lost other than by a reader that went away. */
int tool_finish(int status);
/* `[time] ERROR text` to standard error. */
void tool_log_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void tool_log_warning(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* A line to standard error, then exit 1. */
void tool_die(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

/* SIGINT, SIGTERM and SIGHUP (unless ignored) from now on are taken by a thread of their own, which
 * calls fn(arg) (NULL: nothing) at the first one; the second one ends the process at once with 130.
 * Clients' threads take no signals, so it may be called before or after they are made. */
void tool_on_interrupt(void (*fn)(void *arg), void *arg);
/* After tool_on_interrupt: once interrupted the process ends with 130, and a line says so, when *n
 * (the outcomes that came) stands still for some seconds: what is left to do waits for somebody who
 * is silent. */
void tool_end_without_progress(const atomic_uint_fast64_t *n);
/* After tool_on_interrupt: its fn is called, too, once the reader of standard output (a pipe, a
 * socket) has gone; tool_output_ok is false from then on. Files and terminals are no matter. */
void tool_watch_output(void);
/* fn is not called any more and not running: what it uses may go. */
void tool_end_interrupts(void);
bool tool_interrupted(void);
/* Becomes readable at the first signal; -1 without tool_on_interrupt. */
int tool_interrupt_fd(void);
/* Sleeps; ends early, and returns false, when interrupted. */
bool tool_sleep_ms(int64_t ms);

#endif
