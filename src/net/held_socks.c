/* held_socks.c - see held_socks.h. Times are nearly the same for all, so the line is looked at from
 * its head: one that could go may wait for those before it, a sample at most. */
#include "net/held_socks.h"

#include <stdlib.h>
#include <unistd.h>

struct held {
    struct list link;
    int fd;
    int64_t until_ms;
};

static struct held *first(const struct held_socks *h)
{
    return list_entry(h->socks.next, struct held, link);
}

static void drop_first(struct held_socks *h)
{
    struct held *s = first(h);
    list_remove(&s->link);
    h->n--;
    close(s->fd);
    free(s);
}

static void arm(struct held_socks *h)
{
    if (list_empty(&h->socks)) {
        executor_timer_stop(h->ex, &h->timer);
        return;
    }
    int64_t ms = first(h)->until_ms - executor_now_ms(h->ex);
    executor_timer_start(h->ex, &h->timer, ms > 0 ? ms : 0);
}

static void on_time(struct timer *t)
{
    struct held_socks *h = container_of(t, struct held_socks, timer);
    int64_t now = executor_now_ms(h->ex);
    while (!list_empty(&h->socks) && first(h)->until_ms <= now)
        drop_first(h);
    arm(h);
}

void held_socks_init(struct held_socks *h, struct executor *ex)
{
    h->ex = ex;
    h->n = 0;
    list_init(&h->socks);
    timer_init(&h->timer, on_time);
}

void held_socks_add(struct held_socks *h, int fd, int64_t ms)
{
    struct held *s = malloc(sizeof(*s));
    if (!s) {
        close(fd);
        return;
    }
    *s = (struct held){.fd = fd, .until_ms = executor_now_ms(h->ex) + ms};
    list_push_back(&h->socks, &s->link);
    if (++h->n > HELD_SOCKS_MAX)
        drop_first(h);
    arm(h);
}

void held_socks_end(struct held_socks *h)
{
    while (!list_empty(&h->socks))
        drop_first(h);
    arm(h);
}
