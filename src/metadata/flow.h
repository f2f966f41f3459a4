/* flow.h - work with the store in steps: what would be one blocking function, cut where it waits.
 *
 *   static const flow_step steps[] = {ask_for_topics, read_topics, write_states, NULL};
 *
 * A step looks at the answers to what the step before asked for, decides, and adds the next
 * requests. After it returns, the requests go out as one batch and the next step runs when all are
 * answered; a step that asked for nothing is followed at once. A step may also repeat from an
 * earlier one (flow_goto), run another flow in between (flow_call), wait for something else
 * (flow_wait), end early (flow_end), or give up (flow_fail).
 *
 * FAILURE    ends the flow, and with it every flow that called it, as an exception would.
 * OWNERSHIP  the struct is the caller's, mostly as the head of its own; it must live until `done`,
 *            which may free it. What a flow puts into its arena goes at its end.
 * THREADS    the executor's. */
#ifndef METADATA_FLOW_H
#define METADATA_FLOW_H

#include "base/arena.h"
#include "metadata/store_batch.h"

struct flow;
typedef void (*flow_step)(struct flow *f);

struct flow {
    const flow_step *steps; /* ends with NULL */
    /* After the last step or the failure; f->error tells. The answers are gone, the arena is not
     * yet. May be NULL for a flow that is called. */
    void (*done)(struct flow *f);
    struct arena arena;
    int error; /* 0, or what flow_fail was given */
    /* Before flow_start; 0 = none. When the store has not answered in this time, because it is cut
     * off, the flow fails with -ETIMEDOUT; a flow that is called has its caller's. */
    int64_t limit_ms;

    /* private */
    struct store *store;
    struct executor *ex;
    struct flow *parent, *child;
    struct store_batch batches[2]; /* asked and answered, in turns */
    int turn;
    int at; /* the step that comes next */
    bool over, waiting, running;
    struct task task;
};

/* Fill in and go: the first step runs from a task of the executor. */
void flow_start(struct flow *f, struct store *store, struct executor *ex, const flow_step *steps,
                void (*done)(struct flow *f));

/* Fails the flow, and what it called, with `error` (!= 0): no further step runs. It ends when what
 * it waits for has come: answers, or flow_resume. Not from a step. */
void flow_cancel(struct flow *f, int error);

/* For steps. */

/* What the step before asked for, answered; empty when it asked for nothing. */
struct store_batch *flow_answers(struct flow *f);
/* Where to add what the next step shall see answered. */
struct store_batch *flow_ask(struct flow *f);
/* The next step is `step`, which is in the table. */
void flow_goto(struct flow *f, flow_step step);
/* No further step. */
void flow_end(struct flow *f);
/* error != 0. */
void flow_fail(struct flow *f, int error);
/* Runs the other flow before the next step. It needs no flow_start; store and executor are ours. */
void flow_call(struct flow *f, struct flow *child, const flow_step *steps,
               void (*done)(struct flow *child));
/* The next step runs only after flow_resume, which may come from inside the step as well. */
void flow_wait(struct flow *f);
void flow_resume(struct flow *f);

#endif
