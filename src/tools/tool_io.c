/* tool_io.c - see tool_io.h. */
#include "tools/tool_io.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <kafka/common.h>

#include "base/std_fds.h"
#include "tools/tool_visible.h"

static const size_t output_buffer = 256 * 1024;
enum { STILL_S = 3 };

static struct {
    atomic_bool hit;
    int fd;
    pthread_mutex_t lock; /* fn, and while it runs */
    void (*fn)(void *arg);
    void *arg;
    const atomic_uint_fast64_t *_Atomic progress; /* NULL: whatever is left has its time */
} interrupt = {.fd = -1, .lock = PTHREAD_MUTEX_INITIALIZER};
static int output_errno;
static atomic_bool reader_gone;

static void print_line(const char *level, const char *text)
{
    struct timeval now;
    struct tm tm;
    char at[32];
    gettimeofday(&now, NULL);
    localtime_r(&now.tv_sec, &tm);
    strftime(at, sizeof at, "%Y-%m-%d %H:%M:%S", &tm);
    char *shown = tool_visible(text); /* it may quote a broker */
    fprintf(stderr, "[%s,%03d] %s %s\n", at, (int)(now.tv_usec / 1000), level,
            shown ? shown : "out of memory");
    free(shown);
}

static void print_log(const char *level, const char *fmt, va_list ap)
{
    char text[2048];
    vsnprintf(text, sizeof text, fmt, ap);
    print_line(level, text);
}

void tool_log_error(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    print_log("ERROR", fmt, ap);
    va_end(ap);
}

void tool_log_warning(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    print_log("WARN", fmt, ap);
    va_end(ap);
}

void tool_die(const char *fmt, ...)
{
    char *text = NULL, *shown = NULL;
    va_list ap;
    fflush(stdout);
    va_start(ap, fmt);
    if (vasprintf(&text, fmt, ap) >= 0)
        shown = tool_visible(text); /* it may quote a broker */
    va_end(ap);
    fprintf(stderr, "%s\n", shown ? shown : "out of memory");
    _exit(1); /* what is still held goes with the process; the threads of clients end with it */
}

static void on_client_log(int level, const char *line, void *arg)
{
    if (level >= 2)
        print_line(level == 2 ? "WARN" : "ERROR", line);
}

void tool_start(void)
{
    std_fds_fill();
    signal(SIGPIPE, SIG_IGN);
    setvbuf(stdout, NULL, isatty(STDOUT_FILENO) ? _IOLBF : _IOFBF, output_buffer);
    kafka_log_set_sink(on_client_log, NULL);
}

bool tool_output_ok(void)
{
    bool failed = ferror(stdout), gone = atomic_load(&reader_gone);
    if (!failed && !gone)
        return true;
    if (!output_errno)
        output_errno = gone ? EPIPE : errno ? errno : EIO;
    return false;
}

int tool_finish(int status)
{
    errno = 0;
    if (fflush(stdout) != 0 && !output_errno)
        output_errno = errno;
    tool_output_ok();
    if (!output_errno || output_errno == EPIPE)
        return status;
    fprintf(stderr, "writing to standard output: %s\n", strerror(output_errno));
    return 1;
}

/* ---- interrupts ---- */

static void call_interrupt(void)
{
    pthread_mutex_lock(&interrupt.lock);
    if (interrupt.fn)
        interrupt.fn(interrupt.arg);
    pthread_mutex_unlock(&interrupt.lock);
}

/* Until a signal comes, or nothing has moved for a while. */
static void await_progress(const sigset_t *set)
{
    const atomic_uint_fast64_t *n = atomic_load(&interrupt.progress);
    uint64_t seen = n ? atomic_load(n) : 0;
    while (sigtimedwait(set, NULL, &(struct timespec){.tv_sec = STILL_S}) < 0) {
        if (!n || errno != EAGAIN)
            continue;
        uint64_t now = atomic_load(n);
        if (now == seen) {
            tool_log_error("interrupted, and nothing has been heard for %d s: records that wait "
                           "are not sent",
                           STILL_S);
            return;
        }
        seen = now;
    }
}

static void *wait_for_signal(void *set)
{
    int sig;
    sigwait(set, &sig);
    atomic_store(&interrupt.hit, true);
    if (write(interrupt.fd, &(uint64_t){1}, sizeof(uint64_t)) < 0)
        _exit(130);
    call_interrupt();
    await_progress(set);
    _exit(130);
}

void tool_end_without_progress(const atomic_uint_fast64_t *n)
{
    atomic_store(&interrupt.progress, n);
}

void tool_on_interrupt(void (*fn)(void *arg), void *arg)
{
    static sigset_t set;
    pthread_t thread;
    interrupt.fn = fn;
    interrupt.arg = arg;
    interrupt.fd = eventfd(0, EFD_CLOEXEC);
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    struct sigaction hup;
    if (sigaction(SIGHUP, NULL, &hup) == 0 && hup.sa_handler != SIG_IGN) /* nohup ignores it */
        sigaddset(&set, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    if (interrupt.fd < 0 || pthread_create(&thread, NULL, wait_for_signal, &set) != 0)
        tool_die("starting the signal thread failed");
    pthread_detach(thread);
}

/* No events are asked for: poll returns when the other end has closed, and not before. */
static void *wait_for_reader_to_go(void *arg)
{
    struct pollfd p = {STDOUT_FILENO, 0, 0};
    (void)arg;
    while (poll(&p, 1, -1) < 0)
        if (errno != EINTR)
            return NULL;
    if (p.revents & (POLLERR | POLLHUP)) {
        atomic_store(&reader_gone, true);
        call_interrupt();
    }
    return NULL;
}

void tool_watch_output(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, wait_for_reader_to_go, NULL) != 0)
        tool_die("starting the thread that watches the output failed");
    pthread_detach(thread);
}

void tool_end_interrupts(void)
{
    pthread_mutex_lock(&interrupt.lock);
    interrupt.fn = NULL;
    pthread_mutex_unlock(&interrupt.lock);
}

bool tool_interrupted(void)
{
    return atomic_load(&interrupt.hit);
}

int tool_interrupt_fd(void)
{
    return interrupt.fd;
}

bool tool_sleep_ms(int64_t ms)
{
    struct pollfd p = {interrupt.fd, POLLIN, 0};
    if (ms > INT_MAX)
        ms = INT_MAX;
    poll(&p, 1, (int)ms);
    return !tool_interrupted();
}
