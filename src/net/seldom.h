/* seldom.h - keeps a client that tries again and again from filling the log: of one line from one
 * address every SELDOM_MS are said, with how many were kept back since. A table of fixed size: two
 * lines may share a place, and then the later one waits; in all at most SELDOM_PLACES lines are
 * said in that time, from however many addresses. THREADS  any. */
#ifndef NET_SELDOM_H
#define NET_SELDOM_H

#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum { SELDOM_MS = 10000, SELDOM_PLACES = 256 };

struct seldom {
    pthread_mutex_t lock;
    struct {
        uint64_t what;
        int64_t until_ms; /* 0: free */
        unsigned kept;
    } places[SELDOM_PLACES];
};

void seldom_init(struct seldom *s);
void seldom_free(struct seldom *s);
/* May it be said? *kept = how many of it were not. `now_ms` is of a clock that does not go back. */
bool seldom_may(struct seldom *s, const struct in6_addr *ip, const char *text, int64_t now_ms,
                unsigned *kept);

#endif
