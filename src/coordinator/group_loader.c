/* group_loader.c - see group_loader.h. */
#include "coordinator/group_loader.h"

#include <errno.h>
#include <stdlib.h>

#include "base/logline.h"
#include "coordinator/partition_loader.h"

#define LOADER_TAG "GroupMetadataManager"

static int add(void *loading, const struct batch *b)
{
    return group_loading_add(loading, b);
}

static int make_groups(struct group_load *l, struct group_loading *loading)
{
    int n = group_loading_groups(loading);
    l->groups = calloc((size_t)n + 1, sizeof(*l->groups));
    if (!l->groups)
        return -ENOMEM;
    int rc = group_loading_finish(loading, l->env, l->groups);
    l->n = rc ? 0 : n;
    return rc;
}

static void report(const struct group_load *l, int64_t offset, int64_t records, int64_t ms)
{
    if (l->error == -ECANCELED)
        say_info(LOADER_TAG,
                 "__consumer_offsets-%d: load of epoch %d given up, another broker leads",
                 (int)l->partition, (int)l->leader_epoch);
    else if (l->error)
        say_error(LOADER_TAG, "__consumer_offsets-%d: load of epoch %d failed at offset %lld: %s",
                  (int)l->partition, (int)l->leader_epoch, (long long)offset, strerror(-l->error));
    else
        logline(l->n ? LOGLINE_INFO : LOGLINE_DEBUG, LOADER_TAG,
                "__consumer_offsets-%d: loaded %d groups of epoch %d from %lld records in %lld ms",
                (int)l->partition, l->n, (int)l->leader_epoch, (long long)records, (long long)ms);
}

void group_load_run(struct group_load *l)
{
    int64_t begun = clock_mono_ms(l->clock);
    struct group_loading *loading = group_loading_new(l->partition);
    struct partition_load p = {.replicas = l->replicas,
                               .topic = STR_LIT("__consumer_offsets"),
                               .partition = l->partition,
                               .leader_epoch = l->leader_epoch,
                               .buffer_size = l->buffer_size,
                               .add = add,
                               .arg = loading};
    l->groups = NULL;
    l->n = 0;
    l->error = loading ? partition_load_run(&p) : -ENOMEM;
    l->end = p.offset;
    l->term = p.term;
    if (!l->error)
        l->error = make_groups(l, loading);
    if (loading)
        report(l, p.offset, group_loading_records(loading), clock_mono_ms(l->clock) - begun);
    group_loading_free(loading);
}
