/* assignor.c - the table of assignors, and range. */
#include "coordinator/assignor.h"

#include <errno.h>
#include <stdlib.h>

#define CLASS_PREFIX "org.apache.kafka.coordinator.group.assignor."

static const struct assignor assignors[] = {
    {"uniform", CLASS_PREFIX "UniformAssignor", assign_uniform},
    {"range", CLASS_PREFIX "RangeAssignor", assign_range},
};
enum { ASSIGNORS_N = sizeof(assignors) / sizeof(*assignors) };

const struct assignor *assignor_find(struct str name)
{
    for (int i = 0; i < ASSIGNORS_N; i++)
        if (str_eqz(name, assignors[i].name))
            return &assignors[i];
    return NULL;
}

const struct assignor *assignor_of_class(struct str class_name)
{
    for (int i = 0; i < ASSIGNORS_N; i++)
        if (str_eqz(class_name, assignors[i].class_name))
            return &assignors[i];
    return NULL;
}

/* UTF-8's order is that of code points; in UTF-16 those above U+FFFF begin with D800..DBFF and so
 * come before U+E000..U+FFFF (lead bytes EE, EF). */
int java_cmp(struct str a, struct str b)
{
    int32_t n = a.len < b.len ? a.len : b.len;
    for (int32_t i = 0; i < n; i++) {
        uint8_t x = (uint8_t)a.p[i], y = (uint8_t)b.p[i];
        if (x == y)
            continue;
        if ((x >= 0xF0 && (y == 0xEE || y == 0xEF)) || (y >= 0xF0 && (x == 0xEE || x == 0xEF)))
            return x >= 0xF0 ? -1 : 1;
        return x < y ? -1 : 1;
    }
    return (a.len > b.len) - (a.len < b.len);
}

/* ---- range ---- */

/* Static members first, by instance, so that a restart under another member id changes nothing. */
static int range_order(const void *x, const void *y)
{
    const struct assign_member *a = *(struct assign_member *const *)x,
                               *b = *(struct assign_member *const *)y;
    bool a_static = !str_is_null(a->instance), b_static = !str_is_null(b->instance);
    if (a_static != b_static)
        return a_static ? -1 : 1;
    int c = a_static ? java_cmp(a->instance, b->instance) : 0;
    return c ? c : java_cmp(a->id, b->id);
}

static bool subscribes(const struct assign_member *m, int topic)
{
    int low = 0, high = m->topics_n;
    while (low < high) {
        int mid = (low + high) / 2;
        if (m->topics[mid] < topic)
            low = mid + 1;
        else
            high = mid;
    }
    return low < m->topics_n && m->topics[low] == topic;
}

static int range_topic(const struct assign_topic *t, struct assign_member *const *members, int n)
{
    int32_t q = t->partitions / n, more = t->partitions % n, at = 0;
    for (int i = 0; i < n; i++) {
        int32_t end = at + q + (i < more);
        for (; at < end; at++)
            if (part_set_add(&members[i]->out, t->id, at) != 0)
                return -ENOMEM;
    }
    return 0;
}

int assign_range(struct assign_spec *s)
{
    size_t room = (size_t)s->members_n + 1;
    struct assign_member **order = calloc(room, sizeof(struct assign_member *)),
                         **readers = calloc(room, sizeof(struct assign_member *));
    int rc = order && readers ? 0 : -ENOMEM;
    for (int i = 0; !rc && i < s->members_n; i++)
        order[i] = &s->members[i];
    if (!rc && s->members_n > 1)
        qsort(order, (size_t)s->members_n, sizeof(*order), range_order);
    for (int t = 0; !rc && t < s->topics_n; t++) {
        int n = 0;
        for (int i = 0; i < s->members_n; i++)
            if (subscribes(order[i], t))
                readers[n++] = order[i];
        if (n > 0)
            rc = range_topic(&s->topics[t], readers, n);
    }
    for (int i = 0; !rc && i < s->members_n; i++)
        part_set_sort(&s->members[i].out);
    free(order);
    free(readers);
    return rc;
}

/* ---- uniform ---- */

int assign_uniform(struct assign_spec *s)
{
    return s->same_topics ? assign_uniform_same(s) : assign_uniform_mixed(s);
}
