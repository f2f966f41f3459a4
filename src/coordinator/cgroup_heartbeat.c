/* cgroup_heartbeat.c - ConsumerGroupHeartbeat: what a member says of itself, what follows from it
 * for the group, and its own next move. One step, one answer. */
#include <errno.h>
#include <stdlib.h>

#include "base/logline.h"
#include "coordinator/cgroup_private.h"
#include "coordinator/group_requests.h"
#include "protocol/msg/consumer_group_heartbeat.h"

typedef struct consumer_group_heartbeat_request heartbeat_request;
typedef struct consumer_group_heartbeat_response heartbeat_response;

/* ---- what follows from a change, for heartbeats and joins of both protocols ---- */

static int renew_topics(struct cgroup *cg, struct cstep *s, struct cbeat *b)
{
    if (!b->resubscribed && !cgroup_is_stale(cg))
        return 0;
    int rc = cgroup_look_up(cg);
    if (rc < 0)
        return rc;
    if (rc > 0)
        cstep_put_topics(s);
    if (rc > 0 || b->resubscribed || b->joined) {
        cg->epoch++;
        logline(LOGLINE_DEBUG, GROUP_TAG, "consumer group %.*s: epoch %d, %s", STR_ARG(cg->g->id),
                (int)cg->epoch,
                b->resubscribed ? "a member reads other topics" : "its topics have changed");
        cstep_put_epoch(s);
    }
    return 0;
}

int cgroup_advance(struct cgroup *cg, struct cstep *s, struct cbeat *b)
{
    if (b->changed || b->joined)
        cstep_put_member(s, b->m);
    int rc = renew_topics(cg, s, b);
    if (!rc && cg->epoch > cg->assignment_epoch)
        rc = cgroup_assign(cg, s);
    int moved = rc ? rc : cmember_reconcile(b->m, b->owned);
    if (moved > 0) {
        cstep_put_current(s, b->m);
        cmember_watch(b->m);
    }
    return moved < 0 ? moved : 0;
}

/* ---- the answer ---- */

static void refuse(struct group_call *c, enum kerr e, const char *message)
{
    heartbeat_response *out = c->out;
    consumer_group_heartbeat_response_init(out);
    out->error_code = (int16_t)e;
    out->error_message = str_of(message ? message : kerr_text((int16_t)e));
    group_call_end(c);
}

static void put_assignment(const struct part_set *s, struct arena *a, heartbeat_response *out)
{
    out->assignment = consumer_group_heartbeat_response_assignment_new(a, 1);
    if (!out->assignment)
        return;
    out->assignment->topic_partitions.v =
        consumer_group_heartbeat_response_topic_partition_new(a, part_set_topics(s));
    int32_t *numbers = arena_array(a, int32_t, (size_t)s->n);
    if (!out->assignment->topic_partitions.v || !numbers)
        return;
    for (int i = 0, end; i < s->n; i = end) {
        end = part_set_run(s, i);
        struct consumer_group_heartbeat_response_topic_partition *to =
            &out->assignment->topic_partitions.v[out->assignment->topic_partitions.n++];
        to->topic_id = s->v[i].topic;
        to->partitions.v = numbers + i;
        to->partitions.n = end - i;
        for (int j = i; j < end; j++)
            numbers[j] = s->v[j].partition;
    }
}

/* A request that says all wants to hear all. */
static bool is_full(const heartbeat_request *in)
{
    return in->member_epoch == 0 ||
           (in->rebalance_timeout_ms != -1 && in->topic_partitions.n >= 0 &&
            (in->subscribed_topic_names.n >= 0 || !str_is_null(in->subscribed_topic_regex)));
}

static void answer(struct group_call *c, struct cmember *m, bool with_assignment)
{
    heartbeat_response *out = c->out;
    out->member_id = arena_str(c->arena, m->id);
    out->member_epoch = m->epoch;
    out->heartbeat_interval_ms = cgroup_config(m->cg)->heartbeat_ms;
    if (with_assignment || c->rights != m->rights) {
        put_assignment(&m->assigned, c->arena, out);
        m->rights = c->rights;
    }
}

/* ---- is the request sound? ---- */

enum { FIRST_VERSION_CLIENT_IDS = 1 /* and patterns */ };

static bool says_what_it_reads(const heartbeat_request *in)
{
    return in->subscribed_topic_names.n >= 0 || !str_is_null(in->subscribed_topic_regex);
}

static const char *problem_of(const heartbeat_request *in, int version)
{
    bool joins = in->member_epoch == 0;
    if (in->group_id.len <= 0)
        return "GroupId can't be empty.";
    if (!str_is_null(in->instance_id) && in->instance_id.len == 0)
        return "InstanceId can't be empty.";
    if (!str_is_null(in->rack_id) && in->rack_id.len == 0)
        return "RackId can't be empty.";
    if (in->member_epoch < CGROUP_EPOCH_AWAY)
        return "MemberEpoch is invalid.";
    if ((!joins || version >= FIRST_VERSION_CLIENT_IDS) && in->member_id.len <= 0)
        return "MemberId can't be empty.";
    if (joins && in->rebalance_timeout_ms == -1)
        return "RebalanceTimeoutMs must be provided in first request.";
    if (joins && in->topic_partitions.n != 0)
        return "TopicPartitions must be empty when (re-)joining.";
    if (joins && !says_what_it_reads(in))
        return version < FIRST_VERSION_CLIENT_IDS
                   ? "SubscribedTopicNames must be set in first request."
                   : "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when "
                     "(re-)joining.";
    if (in->member_epoch == CGROUP_EPOCH_AWAY && str_is_null(in->instance_id))
        return "InstanceId can't be null.";
    return NULL;
}

static bool fits_record(const heartbeat_request *in)
{
    size_t bytes = 0;
    for (int32_t i = 0; i < in->subscribed_topic_names.n; i++)
        bytes += (size_t)in->subscribed_topic_names.v[i].len + sizeof(int16_t);
    return bytes <= CMEMBER_SAYS_MAX;
}

static bool is_assignor(const struct cgroup_config *c, struct str name)
{
    for (int i = 0; i < c->assignors_n; i++)
        if (str_eqz(name, c->assignors[i]->name))
            return true;
    return false;
}

static const char *unknown_assignor(const struct cgroup_config *c, struct str name, struct arena *a)
{
    const char *list = "";
    for (int i = 0; list && i < c->assignors_n; i++)
        list = arena_printf(a, "%s%s%s", list, i ? ", " : "", c->assignors[i]->name);
    return arena_printf(a, "ServerAssignor %.*s is not supported. Supported assignors: %s.",
                        STR_ARG(name), list ? list : "");
}

static bool is_pattern(struct group_call *c)
{
    const heartbeat_request *in = c->in;
    struct topic_regex *r = NULL;
    int rc =
        in->subscribed_topic_regex.len > 0 ? topic_regex_new(in->subscribed_topic_regex, &r) : 0;
    topic_regex_free(r);
    if (rc)
        refuse(c, rc == -EINVAL ? KERR_INVALID_REGULAR_EXPRESSION : KERR_UNKNOWN_SERVER_ERROR,
               arena_printf(c->arena,
                            "SubscribedTopicRegex `%.*s` is not a valid regular expression.",
                            STR_ARG(in->subscribed_topic_regex)));
    return rc == 0;
}

bool cgroup_heartbeat_sound(const struct cgroup_config *config, struct group_call *c)
{
    const heartbeat_request *in = c->in;
    const char *problem = problem_of(in, c->version);
    if (problem) {
        refuse(c, KERR_INVALID_REQUEST, problem);
        return false;
    }
    if (!fits_record(in)) {
        refuse(c, KERR_UNKNOWN_SERVER_ERROR, "The member's record would be too large.");
        return false;
    }
    if (!str_is_null(in->server_assignor) && !is_assignor(config, in->server_assignor)) {
        refuse(c, KERR_UNSUPPORTED_ASSIGNOR,
               unknown_assignor(config, in->server_assignor, c->arena));
        return false;
    }
    return is_pattern(c);
}

/* ---- who is it? ---- */

struct beating {
    struct cgroup *cg;
    struct group_call *c;
    const heartbeat_request *in;
    struct cstep step;
    struct cbeat beat;
    struct cowned owned;
    const char *message;
};

static enum kerr fail(struct beating *b, enum kerr e, const char *message)
{
    b->message = message;
    return e;
}

/* Of the member that was found. What it names last is seen first to be too much. */
static int gather_owned(struct beating *b, const struct cmember *m)
{
    const heartbeat_request *in = b->in;
    if (in->topic_partitions.n < 0)
        return 0;
    bool going_on = true;
    int rc = cowned_begin(&b->owned, m);
    for (int32_t t = 0; !rc && going_on && t < in->topic_partitions.n; t++)
        going_on = cowned_say(&b->owned, in->topic_partitions.v[t].topic_id,
                              in->topic_partitions.v[t].partitions.v,
                              in->topic_partitions.v[t].partitions.n);
    return rc ? rc : cowned_end(&b->owned);
}

/* An older epoch is that of a member whose last answer got lost, if it owns nothing that it has not
 * been given. */
static enum kerr check_epoch(struct beating *b, const struct cmember *m)
{
    int32_t said = b->in->member_epoch;
    if (gather_owned(b, m) != 0)
        return KERR_UNKNOWN_SERVER_ERROR;
    if (said > m->epoch)
        return fail(
            b, KERR_FENCED_MEMBER_EPOCH,
            "The consumer group member has a greater member epoch than the one known by "
            "the group coordinator. The member must abandon all its partitions and rejoin.");
    if (said < m->epoch && (said != m->previous_epoch || !b->beat.owned || b->owned.strange ||
                            !part_set_within(b->beat.owned, &m->assigned)))
        return fail(
            b, KERR_FENCED_MEMBER_EPOCH,
            "The consumer group member has a smaller member epoch than the one known by "
            "the group coordinator. The member must abandon all its partitions and rejoin.");
    if (m->state == CMEMBER_UNKNOWN && (!b->beat.owned || b->beat.owned->n > 0 || b->owned.strange))
        return fail(b, KERR_FENCED_MEMBER_EPOCH,
                    "The consumer group member is in an unknown state. The member must abandon all "
                    "its partitions and rejoin.");
    return KERR_NONE;
}

static enum kerr add_member(struct beating *b, struct str id)
{
    b->beat.m = cgroup_add(b->cg, id, b->in->instance_id);
    b->beat.joined = true;
    if (!b->beat.m)
        return KERR_UNKNOWN_SERVER_ERROR;
    say_info(GROUP_TAG, "consumer group %.*s: member %.*s joins", STR_ARG(b->cg->g->id),
             STR_ARG(id));
    return KERR_NONE;
}

static enum kerr find_dynamic(struct beating *b, struct str id)
{
    b->beat.m = cgroup_find(b->cg, id);
    if (b->beat.m)
        return check_epoch(b, b->beat.m);
    if (b->in->member_epoch == 0)
        return add_member(b, id);
    return fail(b, KERR_UNKNOWN_MEMBER_ID, NULL);
}

enum kerr cgroup_take_over(struct cgroup *cg, struct cstep *s, struct cmember *m, struct str id)
{
    struct part_set assigned = PART_SET_EMPTY, none = PART_SET_EMPTY;
    say_info(GROUP_TAG, "consumer group %.*s: static member %.*s, known as %.*s, is %.*s now",
             STR_ARG(cg->g->id), STR_ARG(m->instance), STR_ARG(m->id), STR_ARG(id));
    cstep_bury_member(s, m->id);
    if (!cgroup_replace(cg, m, id) || part_set_copy(&m->assigned, &assigned) != 0 ||
        cmember_own(m, &assigned, &none) != 0) {
        s->failed = true; /* the log knows how it was */
        return KERR_UNKNOWN_SERVER_ERROR;
    }
    if (m->state == CMEMBER_UNREVOKED)
        m->state = CMEMBER_STABLE; /* a new process owns nothing that it would have to give up */
    cstep_put_member(s, m);
    cstep_put_target(s, m);
    cstep_put_current(s, m);
    return KERR_NONE;
}

static enum kerr find_static(struct beating *b, struct str id)
{
    struct cmember *m = b->beat.m = cgroup_find_instance(b->cg, b->in->instance_id);
    const struct cmember *other = cgroup_find(b->cg, id);
    bool joins = b->in->member_epoch == 0;
    if (joins && other && other != m)
        return fail(b, KERR_INVALID_REQUEST, "MemberId is that of another member.");
    if (!m)
        return joins ? add_member(b, id) : fail(b, KERR_UNKNOWN_MEMBER_ID, NULL);
    if (joins && !m->classic && m->epoch != CGROUP_EPOCH_AWAY)
        return fail(b, KERR_UNRELEASED_INSTANCE_ID, NULL);
    if (joins)
        return cgroup_take_over(b->cg, &b->step, m, id);
    if (!str_eq(m->id, id))
        return fail(b, KERR_FENCED_INSTANCE_ID, NULL);
    return check_epoch(b, m);
}

/* ---- what does it say? ---- */

static int set_text(struct cbeat *b, struct str *at, struct str s)
{
    if (str_eq(*at, s))
        return 0;
    b->changed = true;
    return cgroup_set_str(at, s);
}

static int set_names(struct cbeat *b, const struct str *v, int n)
{
    struct cnames names;
    if (cnames_make(&names, v, n) != 0)
        return -ENOMEM;
    if (cnames_equal(&names, &b->m->names)) {
        cnames_free(&names);
        return 0;
    }
    b->changed = b->resubscribed = true;
    return cmember_set_names(b->m, &names);
}

/* The empty one takes the pattern away. */
static int set_regex(struct cbeat *b, struct str regex)
{
    if (str_eq(regex.len > 0 ? regex : STR_NULL, b->m->regex))
        return 0;
    b->changed = b->resubscribed = true;
    return cmember_set_regex(b->m, regex);
}

int cbeat_say(struct cbeat *b, const struct cbeat_said *said)
{
    struct cmember *m = b->m;
    int rc =
        set_text(b, &m->client_id, str_is_null(said->client_id) ? STR_LIT("") : said->client_id);
    if (!rc)
        rc = set_text(b, &m->client_host, said->client_host);
    if (!rc && !str_is_null(said->rack))
        rc = set_text(b, &m->rack, said->rack);
    if (!rc && !str_is_null(said->assignor))
        rc = set_text(b, &m->assignor, said->assignor);
    if (said->rebalance_ms != -1 && said->rebalance_ms != m->rebalance_ms) {
        m->rebalance_ms = said->rebalance_ms;
        b->changed = true;
    }
    if (!rc && said->names_n >= 0)
        rc = set_names(b, said->names, said->names_n);
    if (!rc && !str_is_null(said->regex))
        rc = set_regex(b, said->regex);
    return rc;
}

static int say(struct beating *b)
{
    const heartbeat_request *in = b->in;
    struct cbeat_said said = {.client_id = b->c->client_id,
                              .client_host = b->c->client_host,
                              .rack = in->rack_id,
                              .assignor = in->server_assignor,
                              .rebalance_ms = in->rebalance_timeout_ms,
                              .regex = in->subscribed_topic_regex,
                              .names = in->subscribed_topic_names.v,
                              .names_n = in->subscribed_topic_names.n};
    struct cmember *m = b->beat.m;
    if (m->classic) { /* it has learnt the new protocol */
        cmember_expect_nothing(m);
        cmember_set_classic(m, NULL, 0, 0); /* counting nothing in cannot fail */
        b->beat.changed = true;
    }
    int rc = cbeat_say(&b->beat, &said);
    b->beat.resubscribed |= b->beat.joined;
    return rc;
}

/* ---- the request ---- */

static bool is_full_group(const struct beating *b)
{
    return b->cg->members.n >= (size_t)cgroup_config(b->cg)->max_size &&
           !cgroup_find(b->cg, b->in->member_id) &&
           !cgroup_find_instance(b->cg, b->in->instance_id);
}

static enum kerr find_member(struct beating *b)
{
    char generated[23];
    struct str id = b->in->member_id;
    if (is_full_group(b))
        return fail(b, KERR_GROUP_MAX_SIZE_REACHED, NULL);
    if (id.len <= 0) {
        uuid_format(uuid_random(), generated);
        id = str_of(generated);
    }
    return str_is_null(b->in->instance_id) ? find_dynamic(b, id) : find_static(b, id);
}

static void leave(struct beating *b)
{
    struct cmember *m = str_is_null(b->in->instance_id)
                            ? cgroup_find(b->cg, b->in->member_id)
                            : cgroup_find_instance(b->cg, b->in->instance_id);
    heartbeat_response *out = b->c->out;
    if (!m || !str_eq(m->id, b->in->member_id)) {
        refuse(b->c, m ? KERR_FENCED_INSTANCE_ID : KERR_UNKNOWN_MEMBER_ID, NULL);
        return;
    }
    out->member_id = arena_str(b->c->arena, m->id);
    out->member_epoch = b->in->member_epoch;
    if (b->in->member_epoch == CGROUP_EPOCH_LEAVE)
        cgroup_remove(b->cg, &b->step, m, "it leaves");
    else
        cgroup_part(b->cg, &b->step, m);
    cstep_end(&b->step, b->c);
}

static void beat(struct beating *b)
{
    enum kerr e = find_member(b);
    if (e != KERR_NONE && !b->step.failed) {
        refuse(b->c, e, b->message);
        return;
    }
    struct cmember *m = b->beat.m;
    struct part_set before = PART_SET_EMPTY;
    int rc = b->step.failed ? -ENOMEM : part_set_copy(&m->assigned, &before);
    if (!rc)
        rc = say(b);
    if (!rc)
        rc = cgroup_advance(b->cg, &b->step, &b->beat);
    if (!rc) {
        cmember_touch(m);
        answer(b->c, m, is_full(b->in) || !part_set_equal(&before, &m->assigned));
    }
    b->step.failed |= rc != 0;
    part_set_free(&before);
    cstep_end(&b->step, b->c);
}

void cgroup_heartbeat(struct group *g, struct group_call *c)
{
    struct beating b = {.cg = g->consumers, .c = c, .in = c->in};
    b.beat.owned = b.in->topic_partitions.n >= 0 ? &b.owned.parts : NULL;
    cstep_begin(&b.step, b.cg);
    if (b.in->member_epoch < 0)
        leave(&b);
    else
        beat(&b);
    cowned_free(&b.owned);
}
