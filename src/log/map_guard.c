#include "log/map_guard.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>

/* Where this thread goes on after a fault; NULL: it is not touching a map. */
static _Thread_local sigjmp_buf *volatile on_fault;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct sigaction before; /* set when installed */

static void on_sigbus(int signal, siginfo_t *info, void *context)
{
    if (on_fault)
        siglongjmp(*on_fault, 1);
    /* not ours: the instruction faults again, and who was there before hears of it */
    sigaction(SIGBUS, &before, NULL);
}

void map_guard_install(void)
{
    /* no delay for a second fault: the jump leaves the handler without its end */
    struct sigaction a = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO | SA_NODEFER};
    struct sigaction old;
    sigemptyset(&a.sa_mask);
    sigaction(SIGBUS, &a, &old);
    if (old.sa_sigaction != on_sigbus) /* else faults of others would come back for ever */
        before = old;
}

int map_guard_copy(void *to, const void *from, size_t n)
{
    sigjmp_buf env;
    pthread_once(&once, map_guard_install);
    if (sigsetjmp(env, 0)) {
        on_fault = NULL;
        return -EIO;
    }
    on_fault = &env;
    memcpy(to, from, n);
    __asm__ volatile("" ::: "memory"); /* it is done before the guard goes */
    on_fault = NULL;
    return 0;
}
