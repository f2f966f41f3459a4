/* group.c - a group membership: settings, state, life. See group.h. */
#include "client/group.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "client/cluster_private.h"
#include "client/consumer_private.h"

#define BIT(state) (1u << (state))

static const struct {
    const char *name;
    unsigned next; /* legal ones; OUT is always: a membership may end at any time */
} states[] = {
    [GROUP_OUT] = {"Out", BIT(GROUP_JOINING)},
    [GROUP_JOINING] = {"Joining", BIT(GROUP_ASSIGNING) | BIT(GROUP_SYNCING) | BIT(GROUP_ASSIGNED)},
    [GROUP_ASSIGNING] = {"Assigning", BIT(GROUP_SYNCING) | BIT(GROUP_JOINING)},
    [GROUP_SYNCING] = {"Syncing", BIT(GROUP_ASSIGNED) | BIT(GROUP_JOINING)},
    [GROUP_ASSIGNED] = {"Assigned", BIT(GROUP_STABLE) | BIT(GROUP_JOINING)},
    [GROUP_STABLE] = {"Stable", BIT(GROUP_JOINING) | BIT(GROUP_ASSIGNED)},
};

const char *group_state_name(enum group_state state)
{
    return states[state].name;
}

void group_set_state(struct group *g, enum group_state state)
{
    if (state != GROUP_OUT && !(states[g->state].next & BIT(state))) {
        client_log(3, "group %s: illegal move %s -> %s", g->id, states[g->state].name,
                   states[state].name);
        abort();
    }
    client_log(0, "group %s: %s -> %s, member \"%s\", generation %d", g->id, states[g->state].name,
               states[state].name, g->member_id, g->generation);
    g->state = state;
}

static const kafka_assignor_t *find_assignor(const kafka_conf_t *conf, const char *name)
{
    const kafka_assignor_t *own = client_conf_assignor(conf, name);
    return own ? own : assignor_built_in(name);
}

/* partition.assignment.strategy: names or Java's class names. */
static bool read_assignors(struct group *g, const kafka_conf_t *conf, char *err, size_t err_n)
{
    const char *list = client_conf_string(conf, SCOPE_CONSUMER, "partition.assignment.strategy");
    size_t cap = strlen(list) / 2 + 1;
    g->assignors = calloc(cap, sizeof *g->assignors);
    g->cooperative = true;
    for (const char *at = list; g->assignors && *at;) {
        char name[256];
        at += strspn(at, ", \t");
        size_t n = strcspn(at, ", \t");
        if (n == 0)
            break;
        snprintf(name, sizeof name, "%.*s", (int)n, at);
        const kafka_assignor_t *a = find_assignor(conf, name);
        if (!a) {
            snprintf(
                err, err_n,
                "partition.assignment.strategy=%s: %s is not one of range, roundrobin, sticky, "
                "cooperative-sticky, nor one added by kafka_conf_add_assignor",
                list, name);
            return false;
        }
        g->assignors[g->assignors_n++] = *a;
        g->cooperative &= a->cooperative != 0;
        at += n;
    }
    if (g->assignors && g->assignors_n > 0)
        return true;
    snprintf(err, err_n, "partition.assignment.strategy is empty: name at least one assignor");
    return false;
}

static void read_settings(struct group *g, const kafka_conf_t *conf)
{
    g->id = client_conf_string(conf, SCOPE_CONSUMER, "group.id");
    g->instance_id = client_conf_string(conf, SCOPE_CONSUMER, "group.instance.id");
    g->session_timeout_ms = (int32_t)client_conf_int(conf, SCOPE_CONSUMER, "session.timeout.ms");
    g->heartbeat_ms = client_conf_int(conf, SCOPE_CONSUMER, "heartbeat.interval.ms");
    g->max_poll_ms = client_conf_int(conf, SCOPE_CONSUMER, "max.poll.interval.ms");
    g->auto_commit_ms = client_conf_int(conf, SCOPE_CONSUMER, "auto.commit.interval.ms");
    g->modern =
        strcasecmp(client_conf_string(conf, SCOPE_CONSUMER, "group.protocol"), "consumer") == 0;
    g->remote_assignor = client_conf_string(conf, SCOPE_CONSUMER, "group.remote.assignor");
    g->auto_commit = client_conf_bool(conf, SCOPE_CONSUMER, "enable.auto.commit");
    g->leave_on_close = client_conf_bool(conf, SCOPE_CONSUMER, "internal.leave.group.on.close");
}

/* What the broker decides in this protocol must not be set. */
static bool check_modern(const struct group *g, char *err, size_t err_n)
{
    static const char *const foreign[] = {"heartbeat.interval.ms", "session.timeout.ms",
                                          "partition.assignment.strategy"};
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        if (client_conf_is_set(g->c->conf, foreign[i])) {
            snprintf(err, err_n,
                     "%s cannot be set with group.protocol=consumer: the broker decides",
                     foreign[i]);
            return false;
        }
    return true;
}

static bool check_settings(const struct group *g, char *err, size_t err_n)
{
    if (g->modern)
        return check_modern(g, err, err_n);
    if (g->heartbeat_ms < g->session_timeout_ms)
        return true;
    snprintf(err, err_n, "heartbeat.interval.ms=%lld: must be below session.timeout.ms=%d",
             (long long)g->heartbeat_ms, g->session_timeout_ms);
    return false;
}

struct group *group_new(struct kafka_consumer *c, char *err, size_t err_n)
{
    struct group *g = calloc(1, sizeof *g);
    if (!g || !(g->member_id = str_dup(STR_LIT("")))) {
        free(g);
        snprintf(err, err_n, "out of memory");
        return NULL;
    }
    g->c = c;
    g->generation = g->had_generation = -1;
    list_init(&g->commits);
    arena_init(&g->leading.mem, 0);
    arena_init(&g->target_mem, 0);
    read_settings(g, c->conf);
    if (!read_assignors(g, c->conf, err, err_n) || !check_settings(g, err, err_n)) {
        group_free(g);
        return NULL;
    }
    g->cooperative |= g->modern;
    g->auto_commit_due_ms = client_now_ms() + g->auto_commit_ms;
    return g;
}

static void free_watched(struct group *g)
{
    for (size_t i = 0; i < g->watched_n; i++)
        free(g->watched[i].name);
    free(g->watched);
    g->watched = NULL;
    g->watched_n = 0;
}

void group_free(struct group *g)
{
    if (!g)
        return;
    commits_free(g);
    free_watched(g);
    arena_free(&g->leading.mem);
    arena_free(&g->target_mem);
    kafka_partition_list_free(g->next);
    kafka_partition_list_free(g->had);
    free(g->assignors);
    free(g->member_id);
    free(g);
}

void group_wake(struct group *g)
{
    if (g->run_posted || g->closing)
        return;
    g->run_posted = true;
    executor_post(cluster_executor(g->c->cluster), &g->task);
}

void group_reset(struct group *g, bool keep_id)
{
    g->round++;
    g->generation = -1;
    g->leader = false;
    g->chosen = NULL;
    if (!keep_id)
        g->member_id[0] = 0;
    kafka_partition_list_free(g->next);
    g->next = NULL;
    g->target = NULL;
    group_set_state(g, GROUP_OUT);
    pthread_cond_broadcast(&g->c->news);
}

void group_want_rejoin(struct group *g, const char *reason)
{
    if (!g->rejoin)
        snprintf(g->reason, sizeof g->reason, "%s", reason);
    g->rejoin = true;
    pthread_cond_broadcast(&g->c->news);
}

void group_fail(struct group *g, kafka_err_t err, const char *what)
{
    char words[CLIENT_WORDS];
    g->fatal = err;
    snprintf(g->fatal_text, sizeof g->fatal_text, "group %s: %s: %s (%s)", g->id, what,
             client_words(err, NULL, g->id, words), kafka_err_name(err));
    pthread_cond_broadcast(&g->c->news);
}

bool group_is_member(const struct group *g)
{
    return g->generation >= 0 && (g->state == GROUP_ASSIGNED || g->state == GROUP_STABLE);
}
