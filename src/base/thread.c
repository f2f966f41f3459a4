/* thread.c - starting named threads. */
#include "base/thread.h"

#include <signal.h>
#include <stdio.h>

int thread_start(const char *name, void *(*run)(void *arg), void *arg, pthread_t *out)
{
    /* what a thread does to itself must reach it: blocked, it would end the process unheard */
    static const int own[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
    sigset_t all, before;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
        sigdelset(&all, own[i]);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* inherited by the new thread */
    int err = pthread_create(out, NULL, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (err)
        return -err;
    char cut[16];
    snprintf(cut, sizeof(cut), "%s", name);
    pthread_setname_np(*out, cut);
    return 0;
}
