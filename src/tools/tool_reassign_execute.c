/* tool_reassign_execute.c - kafka-reassign-partitions --execute and --cancel. */
#include <stdio.h>
#include <string.h>

#include "tools/tool_conf.h"
#include "tools/tool_reassign.h"
#include "tools/tool_visible.h"

static const char moves_already[] =
    "Cannot execute because there is an existing partition assignment.  Use --additional to "
    "override this and create a new partition assignment in addition to the existing one. The "
    "--additional flag can also be used to change the throttle by resubmitting the current "
    "reassignment.";
static const char must_verify[] =
    "Warning: You must run --verify periodically, until the reassignment completes, to ensure the "
    "throttle is removed.";

static void print_names(const struct reassign_plan *p)
{
    for (int i = 0; i < p->n; i++)
        printf("%s%s-%d", i ? "," : "", p->v[i].topic, p->v[i].partition);
    putchar('\n');
}

/* ---- asking ---- */

/* Sends the plan; cancel: that its partitions go back to where they came from. What is refused ends
 * the process. */
static void alter(struct reassign *r, const struct reassign_plan *p, bool cancel)
{
    kafka_reassignment_outcomes_t *outcomes = NULL;
    kafka_reassignment_t *v =
        reassign_need(arena_array(&r->mem, kafka_reassignment_t, (size_t)p->n));
    for (int i = 0; i < p->n; i++)
        v[i] = (kafka_reassignment_t){p->v[i].topic, p->v[i].partition,
                                      cancel ? NULL : p->v[i].replicas.v,
                                      cancel ? 0 : (size_t)p->v[i].replicas.n};
    kafka_err_t err =
        kafka_admin_alter_reassignments(r->admin, v, (size_t)p->n, r->timeout_ms, &outcomes);
    size_t failed = err != KAFKA_OK ? (size_t)p->n : 0;
    for (size_t i = 0; err == KAFKA_OK && i < outcomes->n; i++)
        failed += outcomes->v[i].err != KAFKA_OK;
    if (failed && cancel)
        printf("Error cancelling partition reassignment%s for:", failed == 1 ? "" : "s");
    else if (failed)
        printf("Error reassigning partition(s):");
    for (int i = 0; err != KAFKA_OK && i < p->n; i++)
        tool_print_visible(stdout, "\n%s-%d: %s", p->v[i].topic, p->v[i].partition,
                           tool_error(err));
    for (size_t i = 0; err == KAFKA_OK && i < outcomes->n; i++) {
        const kafka_reassignment_outcome_t *o = &outcomes->v[i];
        if (o->err != KAFKA_OK)
            tool_print_visible(stdout, "\n%s-%d: %s", o->topic, o->partition,
                               o->error_message ? o->error_message : kafka_err_text(o->err));
    }
    if (failed)
        reassign_refuse("%s", "");
    kafka_reassignment_outcomes_free(outcomes);
}

/* ---- executing ---- */

static void check_brokers(struct reassign *r, const struct reassign_plan *p)
{
    kafka_cluster_info_t *info = reassign_describe(r, NULL, 0);
    for (int i = 0; i < p->n; i++)
        for (int k = 0; k < p->v[i].replicas.n; k++)
            if (!reassign_is_there(info, p->v[i].replicas.v[k]))
                reassign_fail(r, "Unknown broker id %d", p->v[i].replicas.v[k]);
    kafka_cluster_info_free(info);
}

void reassign_execute(struct reassign *r)
{
    struct reassign_plan plan = reassign_read_plan(r);
    const char *wrong = reassign_plan_check(&plan, &r->mem);
    if (wrong)
        reassign_fail(r, "%s", wrong);
    kafka_moving_partitions_t *moving = reassign_moving(r, NULL);
    if (moving->n && !r->args->additional)
        reassign_refuse("%s", moves_already);
    check_brokers(r, &plan);
    struct reassign_plan current = reassign_current(r, &plan);
    struct reassign_dir_moves dirs = reassign_plan_dirs(&plan, &r->mem);
    reassign_need(dirs.v);
    reassign_print_current(r, &current);
    if (r->args->throttle >= 0 || r->args->dir_throttle >= 0)
        puts(must_verify);
    if (r->args->throttle >= 0) {
        struct reassign_moves moves = reassign_moves_of(moving, &plan, &current, &r->mem);
        reassign_need(moves.v);
        reassign_throttle(r, &moves);
    }
    if (r->args->dir_throttle >= 0)
        reassign_throttle_dirs(r, &dirs);
    kafka_moving_partitions_free(moving);
    alter(r, &plan, false);
    printf("Successfully started partition reassignment%s for ", plan.n == 1 ? "" : "s");
    print_names(&plan);
    if (dirs.n)
        reassign_move_dirs(r, &dirs);
}

/* ---- cancelling ---- */

static void cancel_moves(struct reassign *r, const struct reassign_plan *plan)
{
    kafka_moving_partitions_t *moving = reassign_moving(r, plan);
    struct reassign_plan active = {
        reassign_need(arena_array(&r->mem, struct reassign_part, moving->n)), 0};
    for (size_t i = 0; i < moving->n; i++)
        active.v[active.n++] = (struct reassign_part){.topic = moving->v[i].topic,
                                                      .partition = moving->v[i].partition};
    if (active.n) {
        alter(r, &active, true);
        printf("Successfully cancelled partition reassignment%s for: ", active.n == 1 ? "" : "s");
        print_names(&active);
    } else {
        puts("None of the specified partition reassignments are active.");
    }
    kafka_moving_partitions_free(moving);
}

/* Back to where they are. */
static void cancel_dir_moves(struct reassign *r, const struct reassign_plan *plan)
{
    struct reassign_dir_moves dirs = reassign_plan_dirs(plan, &r->mem), back = {NULL, 0};
    reassign_need(dirs.v);
    struct reassign_dir_found *found = reassign_look_at_dirs(r, &dirs);
    back.v = reassign_need(arena_array(&r->mem, struct reassign_dir_move, (size_t)dirs.n));
    for (int i = 0; i < dirs.n; i++)
        if (found[i].state == DIR_MOVING || found[i].state == DIR_MOVING_ELSEWHERE) {
            back.v[back.n] = dirs.v[i];
            back.v[back.n++].dir = found[i].current;
        }
    if (back.n)
        reassign_move_dirs(r, &back);
    else
        fputs("None of the specified partition moves are active.", stdout); /* as Kafka's tool */
}

void reassign_cancel(struct reassign *r)
{
    struct reassign_plan plan = reassign_read_plan(r);
    cancel_moves(r, &plan);
    cancel_dir_moves(r, &plan);
    if (!r->args->preserve_throttles)
        reassign_clear_throttles(r, &plan);
}
