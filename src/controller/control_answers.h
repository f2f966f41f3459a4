/* control_answers.h - the control requests of one round on their way: kept until the last answer,
 * which may come long after the controller has resigned, or stopped. Inside controller/ only.
 * THREADS    the controller's. */
#ifndef CONTROLLER_CONTROL_ANSWERS_H
#define CONTROLLER_CONTROL_ANSWERS_H

#include "controller/controller_private.h"

struct control_round;

struct control_round *control_round_new(struct controller *c); /* NULL without memory */
struct arena *control_round_arena(struct control_round *r);
/* Notes a request, which is in the arena, for the broker; NULL: it could not be built. */
void control_send(struct control_round *r, struct ctl_broker *to, int16_t api_key, int version,
                  const void *request);
/* Sends what was noted, and gives up the round. false: memory was short, nothing was sent. */
bool control_round_go(struct control_round *r);

/* Is the broker that answered still in the life that was asked? An answer may be looked at after
 * the broker died and came back, and what its new life was asked then is not answered by it. */
bool control_answer_counts(const struct controller *c, const struct job *j);

#endif
