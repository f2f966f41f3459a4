/* tool_reassign_dirs.c - replicas that move to other log dirs of their brokers: asking for it, and
 * looking how far they are. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "protocol/errors.h"
#include "tools/tool_conf.h"
#include "tools/tool_io.h"
#include "tools/tool_java.h"
#include "tools/tool_reassign.h"

enum { PAUSE_MS = 100 };

/* The brokers of the moves, each once. */
static struct id_list brokers_of(struct reassign *r, const struct reassign_dir_moves *m)
{
    struct id_list ids = {reassign_need(arena_array(&r->mem, int32_t, (size_t)m->n)), 0};
    for (int i = 0; i < m->n; i++)
        if (!m->v[i].begun)
            reassign_add_id(&ids, m->v[i].broker);
    return ids;
}

/* ---- looking ---- */

static void look_at_broker(struct reassign *r, const struct reassign_dir_moves *m, int32_t broker,
                           const kafka_log_dirs_t *dirs, struct reassign_dir_found *out)
{
    for (size_t d = 0; d < dirs->dirs_n; d++) {
        const kafka_log_dir_t *dir = &dirs->dirs[d];
        if (dir->err != KAFKA_OK)
            continue;
        const char *path = reassign_need((char *)arena_str(&r->mem, str_of(dir->path)).p);
        for (size_t i = 0; i < dir->replicas_n; i++) {
            const kafka_log_dir_replica_t *x = &dir->replicas[i];
            int k = reassign_dir_moves_find(m, x->topic, x->partition, broker);
            for (; k < m->n && m->v[k].broker == broker && m->v[k].partition == x->partition &&
                   strcmp(m->v[k].topic, x->topic) == 0;
                 k++)
                *(x->future ? &out[k].future : &out[k].current) = path;
        }
    }
}

static enum reassign_dir_state state_of(const struct reassign_dir_move *m,
                                        const struct reassign_dir_found *f)
{
    if (!f->current)
        return DIR_MISSING;
    if (f->future)
        return strcmp(f->future, m->dir) == 0 ? DIR_MOVING : DIR_MOVING_ELSEWHERE;
    return strcmp(f->current, m->dir) == 0 ? DIR_COMPLETED : DIR_NOT_MOVING;
}

struct reassign_dir_found *reassign_look_at_dirs(struct reassign *r,
                                                 const struct reassign_dir_moves *m)
{
    struct reassign_dir_found *out =
        reassign_need(arena_array(&r->mem, struct reassign_dir_found, (size_t)m->n));
    struct id_list brokers = brokers_of(r, m);
    kafka_cluster_info_t *info = m->n ? reassign_describe(r, NULL, 0) : NULL;
    for (int i = 0; i < brokers.n; i++) {
        kafka_log_dirs_t *dirs;
        if (!reassign_is_there(info, brokers.v[i]))
            continue;
        kafka_err_t err =
            kafka_admin_describe_log_dirs(r->admin, brokers.v[i], r->timeout_ms, &dirs);
        if (err != KAFKA_OK)
            reassign_fail_of(r, err, NULL);
        look_at_broker(r, m, brokers.v[i], dirs, out);
        kafka_log_dirs_free(dirs);
    }
    for (int i = 0; i < m->n; i++)
        out[i].state = reassign_is_there(info, m->v[i].broker) ? state_of(&m->v[i], &out[i])
                                                               : DIR_REPLICA_MISSING;
    kafka_cluster_info_free(info);
    return out;
}

/* ---- asking ---- */

/* Moves of one broker. Returns how many have not begun. */
static int try_broker(struct reassign *r, struct reassign_dir_moves *m, int32_t broker)
{
    struct arena mem;
    int left = 0;
    size_t n = 0;
    arena_init(&mem, 0);
    kafka_log_dir_move_t *v = reassign_need(arena_array(&mem, kafka_log_dir_move_t, (size_t)m->n));
    struct reassign_dir_move **of =
        reassign_need(arena_array(&mem, struct reassign_dir_move *, (size_t)m->n));
    kafka_err_t *errs = reassign_need(arena_array(&mem, kafka_err_t, (size_t)m->n));
    for (int i = 0; i < m->n; i++) {
        struct reassign_dir_move *x = &m->v[i];
        if (x->broker != broker || x->begun)
            continue;
        of[n] = x;
        v[n++] = (kafka_log_dir_move_t){x->topic, x->partition, x->dir};
    }
    kafka_err_t err =
        kafka_admin_alter_replica_log_dirs(r->admin, broker, v, n, r->timeout_ms, errs);
    for (size_t i = 0; i < n; i++) {
        kafka_err_t e = err != KAFKA_OK ? err : errs[i];
        of[i]->begun = e == KAFKA_OK;
        left += e != KAFKA_OK;
        if (e != KAFKA_OK && e != KERR_REPLICA_NOT_AVAILABLE) {
            char class[128];
            const char *why = err != KAFKA_OK ? tool_error(e) : kafka_err_text(e);
            reassign_refuse("%sFailed to alter dir for %s-%d-%d\n"
                            "java.util.concurrent.ExecutionException: %s: %s",
                            r->failed, of[i]->topic, of[i]->partition, broker,
                            tool_java_exception(e, class), why);
        }
    }
    arena_free(&mem);
    return left;
}

int reassign_try_dirs(struct reassign *r, struct reassign_dir_moves *m)
{
    int left = 0;
    struct id_list brokers = brokers_of(r, m);
    for (int i = 0; i < brokers.n; i++)
        left += try_broker(r, m, brokers.v[i]);
    return left;
}

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void rest(void)
{
    struct timespec t = {0, PAUSE_MS * 1000000L};
    nanosleep(&t, NULL);
}

static void time_out(struct reassign *r, const struct reassign_dir_moves *m, int left)
{
    char *names = NULL;
    for (int i = 0; i < m->n; i++)
        if (!m->v[i].begun)
            names = reassign_need(arena_printf(&r->mem, "%s%s%s-%d-%d", names ? names : "",
                                               names ? "," : "", m->v[i].topic, m->v[i].partition,
                                               m->v[i].broker));
    reassign_refuse("Timed out before log directory move%s could be started for: %s",
                    left == 1 ? "" : "s", names ? names : "");
}

/* A replica that its broker has not got yet cannot move, but will be made where it is to be: then
 * asking once more finds it there. */
void reassign_move_dirs(struct reassign *r, struct reassign_dir_moves *m)
{
    int64_t end = now_ms() + r->args->wait_ms;
    for (;;) {
        bool *before = reassign_need(arena_array(&r->mem, bool, (size_t)m->n));
        for (int i = 0; i < m->n; i++)
            before[i] = m->v[i].begun;
        int left = reassign_try_dirs(r, m);
        for (int i = 0; i < m->n; i++)
            if (m->v[i].begun && !before[i])
                printf("Successfully started moving log directory to %s for replica %s-%d with "
                       "broker %d \n",
                       m->v[i].dir, m->v[i].topic, m->v[i].partition, m->v[i].broker);
        if (left == 0)
            return;
        if (now_ms() >= end)
            time_out(r, m, left);
        rest();
    }
}
