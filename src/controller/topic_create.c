/* topic_create.c - CreateTopics: checks that need only the request and the metadata cache, then
 * those that need the store, then one multi per topic.
 *
 * MULTI     check that /controller is as it was read, set or make /config/topics/<t>, make
 *           /brokers/topics/<t>: all or nothing, so that no settings are left without their topic.
 *           When something it was built on has changed meanwhile, the topic is looked at anew.
 * COLLISION a name counts in topic_names from its check to the end of its write, so that two calls
 *           at once cannot both make colliding names. */
#include <stdio.h>
#include <stdlib.h>

#include "controller/topic_admin_private.h"
#include "metadata/paths.h"

enum creation_state { CREATE_OVER, CREATE_LOOK, CREATE_WRITE };
enum { TRIES_MAX = 100 };

struct creation {
    struct new_topic *topic;
    enum creation_state state;
    int tries;
    bool counted;   /* by topic_names_begin */
    bool permitted; /* by topic->permit */
    /* What the store said. */
    int marked, there, configured; /* status of: delete mark, topic, config node */
    struct topic_node node;
};

struct create_call {
    struct admin_call call;
    struct creation *creations;
    int n;
    int controller_status;
    struct controller_node controller;
    int32_t controller_version;
    struct creation storage[]; /* creations */
};

static struct create_call *create_of(struct flow *f)
{
    return container_of(call_of(f), struct create_call, call);
}

#define refuse(t, code, ...) admin_refuse(&(t)->error, &(t)->message, (code), __VA_ARGS__)

/* What the request alone, and the metadata cache, tell. */
static void check_request(struct topic_admin *admin, const struct metadata_snapshot *s,
                          struct new_topic *t)
{
    const char *problem = topic_name_problem(t->name);
    if (str_eqz(t->name, "__cluster_metadata"))
        refuse(t, KERR_INVALID_REQUEST, "Creation of internal topic %.*s is prohibited.",
               STR_ARG(t->name));
    if (metadata_topic(s, t->name))
        refuse(t, KERR_TOPIC_ALREADY_EXISTS, "Topic '%.*s' already exists.", STR_ARG(t->name));
    for (int i = 0; i < t->configs_n; i++)
        if (str_is_null(t->configs[i].value))
            refuse(t, KERR_INVALID_CONFIG, "Null value not supported for topic configs: %.*s",
                   STR_ARG(t->configs[i].name));
    if (t->assignments && (t->partitions != -1 || t->replication != -1))
        refuse(t, KERR_INVALID_REQUEST,
               "Both numPartitions or replicationFactor and replicasAssignments were set. Both "
               "cannot be used at the same time.");
    t->made_partitions = t->partitions != -1 || t->assignments
                             ? t->partitions
                             : admin->o.default_partitions(admin->o.arg);
    t->made_replication = t->replication != -1 || t->assignments
                              ? t->replication
                              : admin->o.default_replication(admin->o.arg);
    if (!t->assignments && t->made_partitions <= 0)
        refuse(t, KERR_INVALID_PARTITIONS, "Number of partitions must be larger than 0.");
    if (!t->assignments && t->made_partitions > TOPIC_PARTITIONS_MAX)
        refuse(t, KERR_INVALID_PARTITIONS, "Number of partitions must not be larger than %d.",
               TOPIC_PARTITIONS_MAX);
    if (!t->assignments && t->made_replication <= 0)
        refuse(t, KERR_INVALID_REPLICATION_FACTOR, "Replication factor must be larger than 0.");
    int live = metadata_brokers(s, &(const struct broker_info *){NULL});
    if (!t->assignments && t->made_replication > live)
        refuse(t, KERR_INVALID_REPLICATION_FACTOR,
               "Replication factor: %d larger than available brokers: %d.", t->made_replication,
               live);
    if (problem)
        refuse(t, KERR_INVALID_TOPIC_EXCEPTION, "Topic name is invalid: %s.", problem);
}

/* The list given must name each partition once from 0 on, with as many replicas each. */
static void take_assignment(struct arena *a, struct creation *c)
{
    struct new_topic *t = c->topic;
    int n = t->assignments_n;
    if (n > TOPIC_PARTITIONS_MAX)
        refuse(t, KERR_INVALID_PARTITIONS, "Number of partitions must not be larger than %d.",
               TOPIC_PARTITIONS_MAX);
    if (!n)
        refuse(t, KERR_INVALID_REPLICA_ASSIGNMENT, "the assignment is empty");
    if (t->error)
        return;
    struct partition_assignment *p = arena_array(a, struct partition_assignment, (size_t)n);
    if (!p) {
        refuse(t, KERR_UNKNOWN_SERVER_ERROR, "no memory");
        return;
    }
    for (int i = 0; i < n; i++) {
        const struct manual_assignment *m = &t->assignments[i];
        if (m->partition < 0 || m->partition >= n || p[m->partition].replicas.v)
            refuse(t, KERR_INVALID_REPLICA_ASSIGNMENT,
                   "partitions should be a consecutive 0-based integer sequence");
        else if (m->brokers_n <= 0 || m->brokers_n > INT16_MAX)
            refuse(t, KERR_INVALID_REPLICA_ASSIGNMENT, "partition %d has %d replicas", m->partition,
                   m->brokers_n);
        else if (m->brokers_n != t->assignments[0].brokers_n)
            refuse(t, KERR_INVALID_REPLICA_ASSIGNMENT,
                   "All partitions should have the same number of replicas");
        if (t->error)
            return;
        if (id_list_has_twice((struct id_list){(int32_t *)m->brokers, m->brokers_n}, a))
            refuse(t, KERR_INVALID_REPLICA_ASSIGNMENT,
                   "Duplicate replica assignment found: partition %d", m->partition);
        p[m->partition].partition = m->partition;
        p[m->partition].replicas = (struct id_list){(int32_t *)m->brokers, m->brokers_n};
    }
    c->node.partitions = p;
    c->node.partitions_n = n;
    t->made_partitions = n;
    t->made_replication = (int16_t)t->assignments[0].brokers_n;
}

static void draw_assignment(struct topic_admin *admin, struct arena *a, struct creation *c)
{
    struct new_topic *t = c->topic;
    int n;
    struct assign_broker *brokers = admin_brokers(admin, a, &n);
    enum assign_racks racks = brokers ? assign_racks(brokers, n) : ASSIGN_NO_RACKS;
    if (brokers && t->made_replication > n) /* one went since the check */
        refuse(t, KERR_INVALID_REPLICATION_FACTOR,
               "Replication factor: %d larger than available brokers: %d.", t->made_replication, n);
    if (racks == ASSIGN_SOME_RACKS && !t->any_racks)
        refuse(t, KERR_UNKNOWN_SERVER_ERROR,
               "Not all brokers have rack information for replica rack aware assignment.");
    if (t->error)
        return;
    struct assign_args args = {.brokers = brokers,
                               .brokers_n = n,
                               .use_racks = racks == ASSIGN_ALL_RACKS,
                               .partitions = t->made_partitions,
                               .replication = t->made_replication};
    args.start = n ? admin_random(admin, n) : 0;
    args.shift = n ? admin_random(admin, n) : 0;
    int32_t *ids = brokers ? assign_replicas(&args, a) : NULL;
    struct partition_assignment *p =
        arena_array(a, struct partition_assignment, (size_t)t->made_partitions);
    if (!ids || !p) {
        refuse(t, KERR_UNKNOWN_SERVER_ERROR, "no memory");
        return;
    }
    for (int i = 0; i < t->made_partitions; i++)
        p[i] = (struct partition_assignment){
            .partition = i,
            .replicas = {ids + (size_t)i * (size_t)t->made_replication, t->made_replication}};
    c->node.partitions = p;
    c->node.partitions_n = t->made_partitions;
}

static void check_configs(struct topic_admin *admin, struct new_topic *t)
{
    for (int i = 0; i < t->configs_n && !t->error; i++) {
        char *why = admin->o.check_config(admin->o.arg, t->configs[i].name, t->configs[i].value);
        if (why)
            refuse(t, KERR_INVALID_CONFIG, "%s", why);
        free(why);
    }
}

/* Steps. */

static void check_requests(struct flow *f)
{
    struct create_call *call = create_of(f);
    const struct metadata_snapshot *s = metadata_acquire(call->call.admin->o.metadata);
    for (int i = 0; i < call->n; i++) {
        struct creation *c = &call->creations[i];
        if (!c->topic->error)
            check_request(call->call.admin, s, c->topic);
        c->state = c->topic->error ? CREATE_OVER : CREATE_LOOK;
    }
    metadata_release(s);
}

static void ask_exists(struct flow *f, const char *path, int *status)
{
    struct store_request *r =
        path ? store_batch_add(flow_ask(f), store_op_exists(path, false)) : NULL;
    if (r)
        r->user = status;
    else
        flow_fail(f, -ENOMEM);
}

static void ask_store(struct flow *f)
{
    struct create_call *call = create_of(f);
    bool any = false, names = false;
    for (int i = 0; i < call->n; i++) {
        struct creation *c = &call->creations[i];
        if (c->state != CREATE_LOOK)
            continue;
        if (!any)
            store_batch_add(flow_ask(f), store_op_get(PATH_CONTROLLER, false));
        any = true;
        if (!names && topic_name_may_collide(c->topic->name))
            names = store_batch_add(flow_ask(f), topic_names_listing(&call->call.admin->names));
        ask_exists(f, path_delete_topic(&f->arena, c->topic->name), &c->marked);
        ask_exists(f, path_topic(&f->arena, c->topic->name), &c->there);
        ask_exists(f, path_topic_config(&f->arena, c->topic->name), &c->configured);
    }
    if (!any)
        flow_end(f);
}

/* false: it has to be asked again, or the flow has failed. */
static bool take_answers(struct flow *f)
{
    struct create_call *call = create_of(f);
    bool good = true;
    store_batch_each (r, flow_answers(f)) {
        struct store_op *op = &r->ops[0];
        if (r->status && r->status != -ENOENT) {
            flow_fail(f, r->status);
            return false;
        }
        if (op->type == STORE_EXISTS) {
            *(int *)r->user = r->status;
        } else if (op->type == STORE_GET) {
            call->controller_status =
                r->status ? r->status : znode_controller_decode(op->result, &call->controller);
            call->controller_version = op->stat.version;
        } else {
            int err = topic_names_update(&call->call.admin->names, op);
            if (err == -EAGAIN)
                flow_goto(f, ask_store);
            else if (err)
                flow_fail(f, err);
            good = err == 0;
        }
    }
    return good;
}

static void check_against_store(struct create_call *call, struct creation *c)
{
    struct topic_admin *admin = call->call.admin;
    struct new_topic *t = c->topic;
    if (call->controller_status || call->controller.kraft_epoch > 0)
        refuse(t, KERR_STALE_CONTROLLER_EPOCH, "There is no active controller.");
    if (c->marked == 0)
        refuse(t, KERR_TOPIC_ALREADY_EXISTS, "Topic '%.*s' is marked for deletion.",
               STR_ARG(t->name));
    if (c->there == 0)
        refuse(t, KERR_TOPIC_ALREADY_EXISTS, "Topic '%.*s' already exists.", STR_ARG(t->name));
    struct str other = topic_name_may_collide(t->name) && !t->error
                           ? topic_names_collision(&admin->names, t->name)
                           : STR_NULL;
    if (!str_is_null(other))
        refuse(t, KERR_INVALID_TOPIC_EXCEPTION, "Topic '%.*s' collides with existing topics: %.*s",
               STR_ARG(t->name), STR_ARG(other));
}

static void uncount(struct create_call *call, struct creation *c)
{
    if (c->counted)
        topic_names_end(&call->call.admin->names, c->topic->name);
    c->counted = false;
}

static void end_creation(struct create_call *call, struct creation *c)
{
    uncount(call, c);
    c->state = CREATE_OVER;
    if (c->topic->error || call->call.validate_only)
        c->topic->id = UUID_ZERO;
}

static void ask_write(struct flow *f, struct creation *c)
{
    struct create_call *call = create_of(f);
    struct new_topic *t = c->topic;
    struct config_list list = {(struct config_pair *)t->configs, t->configs_n};
    struct bytes config = znode_config_encode(list, &f->arena);
    struct bytes node = znode_topic_encode(&c->node, &f->arena);
    char *config_path = path_topic_config(&f->arena, t->name);
    char *path = path_topic(&f->arena, t->name);
    if (!config.p) {
        refuse(t, KERR_INVALID_CONFIG, "A config value is not valid UTF-8.");
        return;
    }
    struct store_op ops[] = {store_op_check(PATH_CONTROLLER, call->controller_version),
                             c->configured == 0
                                 ? store_op_set(config_path, config, STORE_ANY_VERSION)
                                 : store_op_create(config_path, config, 0),
                             store_op_create(path, node, 0)};
    struct store_request *r =
        node.p && config_path && path ? store_batch_add_multi(flow_ask(f), ops, 3) : NULL;
    if (r)
        r->user = c;
    else
        flow_fail(f, -ENOMEM);
}

static void decide(struct flow *f)
{
    struct create_call *call = create_of(f);
    struct topic_admin *admin = call->call.admin;
    if (!take_answers(f))
        return;
    for (int i = 0; i < call->n; i++) {
        struct creation *c = &call->creations[i];
        struct new_topic *t = c->topic;
        if (c->state != CREATE_LOOK)
            continue;
        check_against_store(call, c);
        if (!t->error && !c->node.partitions_n) {
            if (t->assignments)
                take_assignment(&f->arena, c);
            else
                draw_assignment(admin, &f->arena, c);
            check_configs(admin, t);
            t->id = c->node.id = admin->o.topic_ids ? uuid_random() : UUID_ZERO;
        }
        /* counts from here on, for the next one of this call as well */
        if (!t->error && topic_name_may_collide(t->name)) {
            if (topic_names_begin(&admin->names, t->name))
                refuse(t, KERR_UNKNOWN_SERVER_ERROR, "no memory");
            else
                c->counted = true;
        }
        c->state = CREATE_WRITE;
        if (!t->error && !call->call.validate_only &&
            !admin_permitted(t->permit, &c->permitted, c->node.partitions_n))
            t->error = KERR_THROTTLING_QUOTA_EXCEEDED;
        if (!t->error && !call->call.validate_only)
            ask_write(f, c);
        if (t->error)
            end_creation(call, c);
    }
}

/* The topic is looked at anew. */
static void retry(struct create_call *call, struct creation *c)
{
    uncount(call, c);
    c->state = CREATE_LOOK;
}

static void look_at_write(struct flow *f)
{
    struct create_call *call = create_of(f);
    bool again = false;
    store_batch_each (r, flow_answers(f)) {
        struct creation *c = r->user;
        if (r->status == -EEXIST && r->ops[2].status == -EEXIST) {
            refuse(c->topic, KERR_TOPIC_ALREADY_EXISTS, "Topic '%.*s' already exists.",
                   STR_ARG(c->topic->name));
        } else if (r->status == -EEXIST || r->status == -ENOENT || r->status == STORE_BAD_VERSION) {
            if (++c->tries == TRIES_MAX) { /* a node that all rely on is missing */
                flow_fail(f, r->status);
                return;
            }
            retry(call, c); /* controller or settings node changed meanwhile */
            again = true;
            continue;
        } else if (r->status) {
            c->topic->error = admin_store_error(r->status);
        }
        end_creation(call, c);
    }
    if (again)
        flow_goto(f, ask_store);
}

static const flow_step steps[] = {check_requests, ask_store, decide, look_at_write, NULL};

static void end_all(struct create_call *call, enum kerr otherwise)
{
    for (int i = 0; i < call->n; i++) {
        struct creation *c = &call->creations[i];
        if (c->state != CREATE_OVER && !c->topic->error)
            c->topic->error = otherwise;
        end_creation(call, c);
    }
}

static void no_store(struct admin_call *c, enum kerr error)
{
    end_all(container_of(c, struct create_call, call), error);
}

/* A dry run holds names counted until here. */
static void finish(struct flow *f)
{
    end_all(create_of(f), KERR_NONE);
}

static const flow_step dry_steps[] = {check_requests, ask_store, decide, finish, NULL};

void topic_admin_create(struct topic_admin *t, struct new_topic *topics, int n, bool validate_only,
                        struct executor *done_on, void (*done)(void *arg), void *arg)
{
    struct create_call *call = calloc(1, sizeof(*call) + (size_t)n * sizeof(struct creation));
    for (int i = 0; !call && i < n; i++)
        if (!topics[i].error)
            topics[i].error = KERR_UNKNOWN_SERVER_ERROR;
    if (!call) {
        done(arg);
        return;
    }
    call->call = (struct admin_call){.validate_only = validate_only,
                                     .done_on = done_on,
                                     .done = done,
                                     .arg = arg,
                                     .no_store = no_store};
    call->creations = call->storage;
    call->n = n;
    for (int i = 0; i < n; i++)
        call->creations[i].topic = &topics[i];
    admin_call_start(t, &call->call, validate_only ? dry_steps : steps);
}
