#include "log/open_files.h"

#include <stdio.h>
#include <sys/resource.h>

#include "log/segment.h"

enum {
    RESERVE = 24, /* standard streams, loops, sockets to accept on, checkpoints */
    LEAST = 8,
    MOST = 1 << 20,
    MAPS = 65530, /* what Linux allows unless told otherwise */
    LEAST_MAPS = 16,
    CHANCES = 32 /* so many are looked at to spare those in use, each time */
};

static int default_max(void)
{
    struct rlimit l;
    if (getrlimit(RLIMIT_NOFILE, &l) != 0 || l.rlim_cur > 4 * (rlim_t)MOST)
        return MOST;
    int max = (int)(l.rlim_cur / 2) - RESERVE;
    return max < LEAST ? LEAST : max;
}

/* The other half is for the program, the allocator, threads, and views on closed maps. */
static int default_max_maps(void)
{
    long n = MAPS;
    FILE *f = fopen("/proc/sys/vm/max_map_count", "re");
    if (f && fscanf(f, "%ld", &n) != 1)
        n = MAPS;
    if (f)
        fclose(f);
    n /= 2;
    return n < LEAST_MAPS ? LEAST_MAPS : n > MOST ? MOST : (int)n;
}

void open_files_init(struct open_files *o, int max)
{
    pthread_mutex_init(&o->lock, NULL);
    list_init(&o->segments);
    o->n = 0;
    o->max = max > 0 ? max : default_max();
    o->maps = 0;
    o->max_maps = default_max_maps();
}

void open_files_free(struct open_files *o)
{
    pthread_mutex_destroy(&o->lock);
}

static void forget(struct open_files *o, struct segment *s)
{
    list_remove(&s->open_link);
    list_init(&s->open_link);
    o->n--;
}

static void count_maps(struct open_files *o, struct segment *s)
{
    int now = index_file_mapped(&s->offsets) + index_file_mapped(&s->times);
    o->maps += now - s->maps;
    s->maps = now;
}

static struct segment *oldest(struct open_files *o)
{
    return list_entry(o->segments.next, struct segment, open_link);
}

static void to_the_end(struct open_files *o, struct segment *s)
{
    list_remove(&s->open_link);
    list_push_back(&o->segments, &s->open_link);
}

/* The one to close, which is not `spare`; NULL when there is no other. Under the lock. */
static struct segment *victim(struct open_files *o, const struct segment *spare)
{
    int looks = o->n < CHANCES ? o->n : CHANCES;
    struct segment *dirty = NULL;
    for (int i = 0; i < looks; i++) {
        struct segment *s = oldest(o);
        bool used = atomic_exchange_explicit(&s->used, false, memory_order_relaxed) || s == spare;
        if (!used && !atomic_load_explicit(&s->dirty, memory_order_relaxed))
            return s;
        if (!used && !dirty)
            dirty = s;
        to_the_end(o, s);
    }
    if (dirty)
        return dirty;
    if (o->n > 0 && oldest(o) == spare)
        to_the_end(o, oldest(o));
    return o->n == 0 || oldest(o) == spare ? NULL : oldest(o);
}

/* spare: just opened, by a caller who is about to use it. */
static void shrink_to(struct open_files *o, int max, const struct segment *spare)
{
    struct segment *s;
    while ((o->n > max || o->maps > o->max_maps) && (s = victim(o, spare))) {
        forget(o, s);
        segment_drop_files(s);
        count_maps(o, s);
    }
}

void open_files_add(struct open_files *o, struct segment *s)
{
    if (!o)
        return;
    pthread_mutex_lock(&o->lock);
    if (list_empty(&s->open_link)) {
        list_push_back(&o->segments, &s->open_link);
        o->n++;
    }
    count_maps(o, s);
    shrink_to(o, o->max, s);
    pthread_mutex_unlock(&o->lock);
}

void open_files_remove(struct open_files *o, struct segment *s)
{
    if (!o)
        return;
    pthread_mutex_lock(&o->lock);
    if (!list_empty(&s->open_link))
        forget(o, s);
    o->maps -= s->maps;
    s->maps = 0;
    pthread_mutex_unlock(&o->lock);
}

bool open_files_shrink(struct open_files *o)
{
    if (!o)
        return false;
    pthread_mutex_lock(&o->lock);
    int n = o->n;
    shrink_to(o, n / 2, NULL);
    bool any = o->n < n;
    pthread_mutex_unlock(&o->lock);
    return any;
}
