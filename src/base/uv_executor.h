/* uv_executor.h - an executor on a libuv loop with a thread of its own.
 *
 * Timers that are still armed when it stops never fire. */
#ifndef BASE_UV_EXECUTOR_H
#define BASE_UV_EXECUTOR_H

#include <uv.h>

#include "base/executor.h"

struct uv_executor;

/* Starts the thread (named `name`, at most 15 characters). 0 or -errno. On success *out is owned.
 * @thread any */
int uv_executor_start(const char *name, struct uv_executor **out);
struct executor *uv_executor_ex(struct uv_executor *e);
/* The loop, for code that owns handles on it; use only on its thread. Returns borrowed until stop.
 */
uv_loop_t *uv_executor_loop(struct uv_executor *e);
/* Runs what is queued, ends the loop, joins the thread, frees. Every handle put on the loop must be
 * closed by a task posted before. @thread any but the executor's; @blocks until the thread has
 * ended */
void uv_executor_stop(struct uv_executor *e);

/* The same on a loop that the caller runs (uv_run) in its own thread: a tool's main loop, a test.
 * The executor holds the loop open until it is detached. @thread the loop's */
int uv_executor_attach(uv_loop_t *loop, struct uv_executor **out);
/* Runs what is queued and closes the executor's handles; the caller must run the loop until they
 * are closed, then call _free. @thread the loop's */
void uv_executor_detach(struct uv_executor *e);
void uv_executor_free(struct uv_executor *e);

#endif
