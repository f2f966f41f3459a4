/* assignment.c - see assignment.h.
 *
 * The leader of partition p is broker (p + start) of the list, so leaders are spread evenly. Its
 * followers begin `shift` places further on, and shift grows each time p has gone round the list
 * once, so that a broker's followers are spread as well. */
#include "metadata/assignment.h"

#include <stdlib.h>

enum assign_racks assign_racks(const struct assign_broker *brokers, int n)
{
    int with = 0;
    for (int i = 0; i < n; i++)
        with += !str_is_null(brokers[i].rack);
    if (!with)
        return ASSIGN_NO_RACKS;
    return with == n ? ASSIGN_ALL_RACKS : ASSIGN_SOME_RACKS;
}

int assign_start_of(const struct assign_broker *brokers, int n, int32_t first_replica)
{
    for (int i = 0; i < n; i++)
        if (brokers[i].id >= first_replica)
            return i;
    return 0;
}

static void assign_plain(const struct assign_args *args, int32_t *out)
{
    int n = args->brokers_n, shift = args->shift;
    for (int p = args->first; p < args->first + args->partitions; p++) {
        if (p > 0 && p % n == 0)
            shift++;
        int lead = (p + args->start) % n;
        *out++ = args->brokers[lead].id;
        for (int j = 0; j + 1 < args->replication; j++)
            *out++ = args->brokers[(lead + 1 + (shift + j) % (n - 1)) % n].id;
    }
}

/* A broker, with its rack as a number. */
struct racked {
    int32_t id;
    int rack;
    int place; /* among the brokers of its rack, by id */
    struct str name;
};

static int by_rack_then_id(const void *a, const void *b)
{
    const struct racked *x = a, *y = b;
    int order = str_cmp(x->name, y->name);
    return order ? order : (x->id > y->id) - (x->id < y->id);
}

static int by_place_then_rack(const void *a, const void *b)
{
    const struct racked *x = a, *y = b;
    return x->place != y->place ? x->place - y->place : x->rack - y->rack;
}

/* One broker of each rack in turn, racks by name; used-up racks are passed over. Returns the number
 * of racks. */
static int alternate(const struct assign_args *args, struct racked *list)
{
    int n = args->brokers_n, racks = 0;
    for (int i = 0; i < n; i++)
        list[i] = (struct racked){.id = args->brokers[i].id, .name = args->brokers[i].rack};
    qsort(list, (size_t)n, sizeof(*list), by_rack_then_id);
    for (int i = 0; i < n; i++) {
        bool same = i > 0 && str_eq(list[i].name, list[i - 1].name);
        racks += !same;
        list[i].rack = racks - 1;
        list[i].place = same ? list[i - 1].place + 1 : 0;
    }
    qsort(list, (size_t)n, sizeof(*list), by_place_then_rack);
    return racks;
}

/* Which brokers (by place in the list) and racks a partition has so far. */
struct used {
    bool *brokers, *racks;
    int brokers_n, racks_n;
};

static void use(struct used *u, const struct racked *list, int at)
{
    u->brokers_n += !u->brokers[at];
    u->racks_n += !u->racks[list[at].rack];
    u->brokers[at] = u->racks[list[at].rack] = true;
}

/* No rack twice while there is an unused one, then no broker twice. */
static void assign_racked(const struct assign_args *args, const struct racked *list, int racks,
                          struct used *u, int32_t *out)
{
    int n = args->brokers_n, shift = args->shift;
    for (int p = args->first; p < args->first + args->partitions; p++) {
        if (p > 0 && p % n == 0)
            shift++;
        int lead = (p + args->start) % n, k = 0;
        memset(u->brokers, 0, (size_t)n);
        memset(u->racks, 0, (size_t)racks);
        u->brokers_n = u->racks_n = 0;
        use(u, list, lead);
        *out++ = list[lead].id;
        for (int j = 1; j < args->replication; j++) {
            int at;
            do {
                at = (int)((lead + 1 + ((int64_t)shift * racks + k) % (n - 1)) % n);
                k++;
            } while ((u->racks[list[at].rack] && u->racks_n < racks) ||
                     (u->brokers[at] && u->brokers_n < n));
            use(u, list, at);
            *out++ = list[at].id;
        }
    }
}

int32_t *assign_replicas(const struct assign_args *args, struct arena *a)
{
    size_t n = (size_t)args->brokers_n;
    int32_t *out = arena_array(a, int32_t, (size_t)args->partitions * (size_t)args->replication);
    if (!out || !args->use_racks) {
        if (out)
            assign_plain(args, out);
        return out;
    }
    struct racked *list = arena_array(a, struct racked, n);
    struct used u = {.brokers = arena_array(a, bool, n), .racks = arena_array(a, bool, n)};
    if (!list || !u.brokers || !u.racks)
        return NULL;
    int racks = alternate(args, list);
    assign_racked(args, list, racks, &u, out);
    return out;
}
