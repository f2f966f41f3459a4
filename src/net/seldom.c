/* seldom.c - see seldom.h. */
#include "net/seldom.h"

#include <string.h>

#include "base/hmap.h"

void seldom_init(struct seldom *s)
{
    memset(s->places, 0, sizeof(s->places));
    pthread_mutex_init(&s->lock, NULL);
}

void seldom_free(struct seldom *s)
{
    pthread_mutex_destroy(&s->lock);
}

bool seldom_may(struct seldom *s, const struct in6_addr *ip, const char *text, int64_t now_ms,
                unsigned *kept)
{
    uint64_t both[2] = {hash_bytes(ip, sizeof(*ip)), hash_str(str_of(text))};
    uint64_t what = hash_bytes(both, sizeof(both));
    size_t at = what % SELDOM_PLACES;
    *kept = 0;
    pthread_mutex_lock(&s->lock);
    bool may = !s->places[at].until_ms || s->places[at].until_ms <= now_ms;
    if (may) {
        *kept = s->places[at].what == what ? s->places[at].kept : 0;
        s->places[at].what = what;
        s->places[at].until_ms = now_ms + SELDOM_MS;
        s->places[at].kept = 0;
    } else if (s->places[at].what == what) {
        s->places[at].kept++;
    }
    pthread_mutex_unlock(&s->lock);
    return may;
}
