/* list.h - intrusive doubly linked ring. A node on no list points to itself (list_init); removal
 * re-inits it, so removing twice is harmless and list_linked() always answers. */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list {
    struct list *next, *prev;
};

#define LIST_INIT(name)  \
    {                    \
        &(name), &(name) \
    }
#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))
#define list_entry(ptr, type, member) container_of(ptr, type, member)

static inline void list_init(struct list *l)
{
    l->next = l->prev = l;
}
static inline bool list_empty(const struct list *l)
{
    return l->next == l;
}
static inline bool list_linked(const struct list *n)
{
    return n->next != n;
}
static inline void list_push_back(struct list *l, struct list *n)
{
    n->prev = l->prev;
    n->next = l;
    l->prev->next = n;
    l->prev = n;
}
static inline void list_push_front(struct list *l, struct list *n)
{
    n->next = l->next;
    n->prev = l;
    l->next->prev = n;
    l->next = n;
}
static inline void list_remove(struct list *n)
{
    n->prev->next = n->next;
    n->next->prev = n->prev;
    list_init(n);
}
/* First node, taken off; NULL when empty. */
static inline struct list *list_pop(struct list *l)
{
    if (list_empty(l))
        return NULL;
    struct list *n = l->next;
    list_remove(n);
    return n;
}
/* Moves all of `from` behind `to`. */
static inline void list_splice(struct list *to, struct list *from)
{
    if (list_empty(from))
        return;
    from->next->prev = to->prev;
    to->prev->next = from->next;
    from->prev->next = to;
    to->prev = from->prev;
    list_init(from);
}

#define list_each(it, l) for (struct list *it = (l)->next; it != (l); it = it->next)
/* The current node may be removed in the body. */
#define list_each_safe(it, l)                                           \
    for (struct list *it = (l)->next, *it##_next = it->next; it != (l); \
         it = it##_next, it##_next = it->next)

#endif
