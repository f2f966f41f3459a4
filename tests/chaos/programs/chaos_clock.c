/* chaos_clock.c - loaded into a broker (LD_PRELOAD): its wall clock is wrong by as many nanoseconds
 * as the file $CHAOS_CLOCK says, an int64_t that may change at any time. The monotonic clock stays
 * as it is: machines' clocks do not jump but for the wall's. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *shift;
static int (*real_clock_gettime)(clockid_t, struct timespec *);

__attribute__((constructor)) static void chaos_clock_init(void)
{
    *(void **)&real_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    const char *path = getenv("CHAOS_CLOCK");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *at = mmap(NULL, sizeof *shift, PROT_READ, MAP_SHARED, fd, 0);
    if (at != MAP_FAILED)
        shift = at;
    close(fd);
}

int clock_gettime(clockid_t id, struct timespec *ts)
{
    if (!real_clock_gettime) /* called by a constructor before ours */
        *(void **)&real_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    int rc = real_clock_gettime(id, ts);
    if (rc != 0 || !shift || (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE))
        return rc;
    int64_t ns = (int64_t)ts->tv_sec * 1000000000 + ts->tv_nsec + *shift;
    ts->tv_sec = (time_t)(ns / 1000000000);
    ts->tv_nsec = (long)(ns % 1000000000);
    return 0;
}

int gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    *tv = (struct timeval){ts.tv_sec, ts.tv_nsec / 1000};
    return 0;
}

time_t time(time_t *out)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    if (out)
        *out = ts.tv_sec;
    return ts.tv_sec;
}
