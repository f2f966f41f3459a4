/* logline.c - formats one event into a stack buffer and writes it at once. Longer text is cut and
 * ends in "...". The level and the sink are the process's, as standard error is. */
#include "base/logline.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 8192 };

static const char *const level_names[] = {"TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"};

static atomic_int least_level = LOGLINE_INFO;

static atomic_bool sink_set;
static pthread_mutex_t sink_lock = PTHREAD_MUTEX_INITIALIZER;
static void (*sink_fn)(enum logline_level, const char *, void *); /* under sink_lock */
static void *sink_arg;                                            /* under sink_lock */

void logline_set_level(enum logline_level level)
{
    atomic_store_explicit(&least_level, level, memory_order_relaxed);
}

bool logline_enabled(enum logline_level level)
{
    return (int)level >= atomic_load_explicit(&least_level, memory_order_relaxed);
}

void logline_set_sink(void (*sink)(enum logline_level level, const char *line, void *arg),
                      void *arg)
{
    pthread_mutex_lock(&sink_lock);
    sink_fn = sink;
    sink_arg = arg;
    atomic_store(&sink_set, sink != NULL);
    pthread_mutex_unlock(&sink_lock);
}

static size_t put_head(char *line, size_t max, enum logline_level level, const char *component)
{
    struct timespec now;
    struct tm tm;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &tm);
    size_t n = strftime(line, max, "%Y-%m-%dT%H:%M:%S", &tm);
    int m = snprintf(line + n, max - n, ".%03dZ %s [%.512s] ", (int)(now.tv_nsec / 1000000),
                     level_names[level], component);
    return n + (size_t)m;
}

static void write_all(const char *p, size_t n)
{
    while (n) {
        ssize_t done = write(STDERR_FILENO, p, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return; /* nobody to tell */
        p += done;
        n -= (size_t)done;
    }
}

static void emit(enum logline_level level, char *line, size_t len)
{
    if (atomic_load(&sink_set)) {
        bool taken = false;
        pthread_mutex_lock(&sink_lock);
        if (sink_fn) {
            sink_fn(level, line, sink_arg);
            taken = true;
        }
        pthread_mutex_unlock(&sink_lock);
        if (taken)
            return;
    }
    line[len] = '\n';
    write_all(line, len + 1);
}

void logline(enum logline_level level, const char *component, const char *fmt, ...)
{
    if (!logline_enabled(level))
        return;
    int saved_errno = errno;
    char line[LINE_MAX_BYTES + 1]; /* the newline takes the place of the NUL */
    size_t n = put_head(line, LINE_MAX_BYTES, level, component);
    va_list args;
    va_start(args, fmt);
    errno = saved_errno; /* for %m */
    int m = vsnprintf(line + n, LINE_MAX_BYTES - n, fmt, args);
    va_end(args);
    if (m < 0)
        m = 0;
    size_t len = n + (size_t)m;
    if (len >= LINE_MAX_BYTES) {
        len = LINE_MAX_BYTES - 1;
        memcpy(line + len - 3, "...", 3);
    }
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
            line[i] = '?';
    line[len] = '\0';
    emit(level, line, len);
    errno = saved_errno;
}
