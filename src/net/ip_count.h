/* ip_count.h - how many connections each address has. THREADS  any. */
#ifndef NET_IP_COUNT_H
#define NET_IP_COUNT_H

#include <netinet/in.h>
#include <pthread.h>

#include "base/hmap.h"

struct ip_count {
    pthread_mutex_t lock;
    struct hmap by_ip; /* of struct ip_entry; owned */
};

void ip_count_init(struct ip_count *ips);
void ip_count_free(struct ip_count *ips);
/* One more, unless it has `max` already or there is no memory: then false. */
bool ip_count_add(struct ip_count *ips, const struct in6_addr *ip, int max);
void ip_count_drop(struct ip_count *ips, const struct in6_addr *ip);

#endif
