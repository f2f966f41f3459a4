#include "log/cleaning_state.h"

#include <stdio.h>
#include <stdlib.h>

#define BIT(s) (1 << (s))

/* from -> legal next states; who makes the move is in the drawing of cleaning_state.h */
static const int legal[] = {
    [CLEANING_NONE] = BIT(CLEANING_ACTIVE) | BIT(CLEANING_PAUSED),
    [CLEANING_ACTIVE] = BIT(CLEANING_NONE) | BIT(CLEANING_ABORTED),
    [CLEANING_ABORTED] = BIT(CLEANING_PAUSED),
    [CLEANING_PAUSED] = BIT(CLEANING_NONE),
};

const char *cleaning_state_name(enum cleaning_state s)
{
    static const char *const names[] = {[CLEANING_NONE] = "none",
                                        [CLEANING_ACTIVE] = "active",
                                        [CLEANING_ABORTED] = "aborted",
                                        [CLEANING_PAUSED] = "paused"};
    return names[s];
}

/* The only writer of the state. */
static void move(struct cleaning *c, enum cleaning_state to)
{
    if (!(legal[c->state] & BIT(to))) {
        fprintf(stderr, "cleaning: no way from %s to %s\n", cleaning_state_name(c->state),
                cleaning_state_name(to));
        abort();
    }
    c->state = to;
}

bool cleaning_take(struct cleaning *c, bool compact)
{
    if (c->state != CLEANING_NONE || (compact && c->uncleanable))
        return false;
    move(c, CLEANING_ACTIVE);
    return true;
}

void cleaning_finish(struct cleaning *c)
{
    move(c, c->state == CLEANING_ABORTED ? CLEANING_PAUSED : CLEANING_NONE);
}

bool cleaning_pause(struct cleaning *c)
{
    c->pauses++;
    if (c->state == CLEANING_ACTIVE)
        move(c, CLEANING_ABORTED);
    else if (c->state == CLEANING_NONE)
        move(c, CLEANING_PAUSED);
    return c->state == CLEANING_PAUSED;
}

void cleaning_resume(struct cleaning *c)
{
    if (--c->pauses == 0)
        move(c, CLEANING_NONE);
}
