/* spin.h - a lock for a handful of instructions: taking a reference to what a pointer points at, or
 * copying a few words that must belong together. Never held over a call that can wait. */
#ifndef LOG_SPIN_H
#define LOG_SPIN_H

#include <sched.h>
#include <stdatomic.h>

struct spin {
    atomic_flag held;
};
#define SPIN_INIT ((struct spin){ATOMIC_FLAG_INIT})

static inline void spin_lock(struct spin *s)
{
    for (int tries = 0; atomic_flag_test_and_set_explicit(&s->held, memory_order_acquire);)
        if (++tries % 64 == 0)
            sched_yield(); /* the holder was put to sleep: let it run */
}
static inline void spin_unlock(struct spin *s)
{
    atomic_flag_clear_explicit(&s->held, memory_order_release);
}

#endif
