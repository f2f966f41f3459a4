/* kafka-replica-verification - reads all replicas of topics along, and compares them.
 *
 * One round asks each broker for all partitions that it has a replica of, from the offset up to
 * which they were found alike; then they are compared. Each round begins with another partition, so
 * that none is kept out of the answers by others in front of it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "client/admin_private.h"
#include "protocol/api.h"
#include "protocol/msg/fetch.h"
#include "tools/tool_conf.h"
#include "tools/tool_date.h"
#include "tools/tool_io.h"
#include "tools/tool_regex.h"
#include "tools/tool_replicas.h"

enum { RETRY_MS = 1000, FOLLOWERS_FROM = 11, NAMES_UP_TO = 12 /* versions of Fetch */ };

struct args {
    const char *brokers, *include, *white_list;
    int64_t fetch_size, max_wait, time, interval;
};

#define ROW(field, flag, how, value, text, ...) \
    TOOL_ROW(struct args, field, flag, how, value, text, __VA_ARGS__)

static const struct tool_option options[] = {
    ROW(brokers, "broker-list", TOOL_TEXT, "String: hostname:port,...,hostname:port",
        "The brokers to connect to.", .required = true),
    ROW(include, "topics-include", TOOL_TEXT, "String: Java regex (String)",
        "Pattern of the topics to verify (default: .*)."),
    ROW(white_list, "topic-white-list", TOOL_TEXT, "String: Java regex (String)",
        "Deprecated: use --topics-include."),
    ROW(fetch_size, "fetch-size", TOOL_INT, "Integer: bytes",
        "How much to ask for of each partition.", .fallback = "1048576", .min = 1,
        .max = INT32_MAX),
    ROW(max_wait, "max-wait-ms", TOOL_INT, "Integer: ms", "How long a broker may wait for records.",
        .fallback = "1000", .min = 0, .max = INT32_MAX),
    ROW(time, "time", TOOL_INT, "Long: timestamp/-1(latest)/-2(earliest)", "Where to begin.",
        .fallback = "-1", .min = -2, .max = INT64_MAX),
    ROW(interval, "report-interval-ms", TOOL_INT, "Long: ms", "How often to report.",
        .fallback = "30000", .min = 1, .max = INT32_MAX),
};

static const struct tool tool = {
    .name = "kafka-replica-verification",
    .about = "Validate that all replicas for a set of topics have the same data.",
    .options = options,
    .options_n = sizeof options / sizeof *options,
};

struct verifying {
    const struct args *args;
    kafka_admin_t *admin;
    kafka_cluster_info_t *info; /* topics' names are borrowed from it */
    struct replicated *parts;
    size_t parts_n, first; /* first: of this round */
    bool differ;
};

static void tell(const char *line, void *arg)
{
    char at[64];
    tool_date(at, sizeof at, "yyyy-MM-dd HH:mm:ss,SSS", clock_wall_ms(clock_real()));
    printf("%s: %s\n", at, line);
    fflush(stdout);
}

static void *array(size_t n, size_t size)
{
    void *p = calloc(n + 1, size);
    if (!p)
        tool_die("out of memory");
    return p;
}

/* ---- partitions ---- */

static void add_part(struct verifying *v, const char *topic, const kafka_partition_info_t *p)
{
    struct replicated *r = &v->parts[v->parts_n++];
    *r = (struct replicated){.topic = topic,
                             .partition = p->partition,
                             .replicas = array(p->replicas_n, sizeof *r->replicas),
                             .replicas_n = p->replicas_n};
    for (size_t i = 0; i < p->replicas_n; i++)
        r->replicas[i] = (struct replica){.broker = p->replicas[i], .high_watermark = -1};
}

static void find_parts(struct verifying *v, int64_t timeout)
{
    const char *pattern = v->args->include      ? v->args->include
                          : v->args->white_list ? v->args->white_list
                                                : ".*";
    struct tool_regex re;
    size_t most = 0;
    kafka_err_t err = kafka_admin_describe(v->admin, NULL, 0, timeout, &v->info);
    if (err != KAFKA_OK)
        tool_die("%s: %s", kafka_err_name(err), tool_error(err));
    tool_regex_init(&re, pattern, true);
    for (size_t i = 0; i < v->info->topics_n; i++)
        most += v->info->topics[i].partitions_n;
    v->parts = array(most, sizeof *v->parts);
    for (size_t i = 0; i < v->info->topics_n; i++) {
        const kafka_topic_info_t *t = &v->info->topics[i];
        for (size_t p = 0; p < t->partitions_n && tool_regex_matches(&re, t->name); p++)
            add_part(v, t->name, &t->partitions[p]);
    }
    tool_regex_fini(&re);
    if (v->parts_n == 0) {
        tool_log_error("No topics found. %s, if specified, is either filtering out all topics or "
                       "there is no topic.",
                       pattern);
        _exit(1);
    }
}

static void find_starts(struct verifying *v, const kafka_conf_t *conf)
{
    kafka_topic_partition_t *tps = array(v->parts_n, sizeof *tps);
    int64_t *times = array(v->parts_n, sizeof *times),
            *offsets = array(v->parts_n, sizeof *offsets);
    kafka_err_t *errs = array(v->parts_n, sizeof *errs);
    kafka_consumer_t *c = tool_consumer(conf);
    for (size_t i = 0; i < v->parts_n; i++) {
        tps[i] = (kafka_topic_partition_t){v->parts[i].topic, v->parts[i].partition};
        times[i] = v->args->time;
    }
    kafka_err_t err = kafka_consumer_list_offsets(c, tps, times, v->parts_n, tool_api_timeout(conf),
                                                  offsets, NULL, errs);
    for (size_t i = 0; i < v->parts_n; i++) {
        kafka_err_t one = err != KAFKA_OK ? err : errs[i];
        if (one != KAFKA_OK)
            tool_die("the first offset of %s-%d: %s", tps[i].topic, tps[i].partition,
                     kafka_err_text(one));
        v->parts[i].offset = offsets[i] < 0 ? 0 : offsets[i];
    }
    kafka_consumer_close(c);
    free(tps);
    free(times);
    free(offsets);
    free(errs);
}

/* ---- a round ---- */

/* A question to one broker: the partitions of the request, in its order. */
struct asking {
    struct verifying *v;
    int32_t broker;
    struct replicated **parts;
    size_t n, next; /* next: where the answer is expected to go on */
};

static struct replica *replica_at(struct replicated *r, int32_t broker)
{
    for (size_t i = 0; i < r->replicas_n; i++)
        if (r->replicas[i].broker == broker)
            return &r->replicas[i];
    return NULL;
}

/* Brokers answer in the order of the request, or topic by topic: the search seldom goes far. */
static struct replica *find(struct asking *a, struct str topic, int32_t partition)
{
    for (size_t i = 0; i < a->n; i++) {
        struct replicated *r = a->parts[(a->next + i) % a->n];
        if (r->partition == partition && str_eqz(topic, r->topic)) {
            a->next = (a->next + i + 1) % a->n;
            return replica_at(r, a->broker);
        }
    }
    return NULL;
}

static kafka_err_t on_fetched(struct op *op, int version, const void *response)
{
    const struct fetch_response *m = response;
    struct asking *a = op->arg;
    if (m->error_code)
        return m->error_code;
    for (int32_t t = 0; t < m->responses.n; t++) {
        for (int32_t i = 0; i < m->responses.v[t].partitions.n; i++) {
            const struct fetch_response_partition *p = &m->responses.v[t].partitions.v[i];
            struct replica *to = find(a, m->responses.v[t].topic, p->partition_index);
            if (!to)
                return KAFKA_ERR_BAD_RESPONSE;
            if (p->error_code != 0)
                continue; /* as if it had nothing: seen as lag */
            to->high_watermark = p->high_watermark;
            if (p->records.len > 0)
                buf_put(&to->records, p->records.p, (size_t)p->records.len);
            if (to->records.failed)
                return KAFKA_ERR_NO_MEMORY;
        }
    }
    return KAFKA_OK;
}

/* One topic a partition, in an order that begins with v->first. */
static bool fill(struct asking *a, struct fetch_request *req, struct arena *mem)
{
    struct verifying *v = a->v;
    req->topics.v = fetch_request_topic_new(mem, (int32_t)v->parts_n);
    struct fetch_request_partition *parts = fetch_request_partition_new(mem, (int32_t)v->parts_n);
    a->parts = arena_array(mem, struct replicated *, v->parts_n + 1);
    if (!req->topics.v || !parts || !a->parts)
        return false;
    for (size_t k = 0; k < v->parts_n; k++) {
        struct replicated *r = &v->parts[(v->first + k) % v->parts_n];
        if (!replica_at(r, a->broker))
            continue;
        struct fetch_request_partition *p = &parts[a->n];
        p->partition = r->partition;
        p->fetch_offset = r->offset;
        p->partition_max_bytes = (int32_t)v->args->fetch_size;
        req->topics.v[a->n].topic = str_of(r->topic);
        req->topics.v[a->n].partitions.v = p;
        req->topics.v[a->n].partitions.n = 1;
        a->parts[a->n++] = r;
    }
    req->topics.n = (int32_t)a->n;
    return true;
}

static kafka_err_t ask(struct verifying *v, int32_t broker, int64_t wait_ms)
{
    struct arena mem;
    struct fetch_request req;
    struct asking a = {.v = v, .broker = broker};
    kafka_err_t err = KAFKA_ERR_NO_MEMORY;
    arena_init(&mem, 0);
    fetch_request_init(&req);
    req.max_wait_ms = (int32_t)wait_ms;
    req.min_bytes = 1;
    req.session_epoch = -1; /* no session */
    struct op op = {.node = broker,
                    .once = true,
                    .api_key = API_FETCH,
                    .min_version = FOLLOWERS_FROM,
                    .max_version = NAMES_UP_TO,
                    .request = &req,
                    .handle = on_fetched,
                    .arg = &a};
    if (fill(&a, &req, &mem))
        err = a.n ? op_run(v->admin->cluster, &op, wait_ms + 30000) : KAFKA_OK;
    arena_free(&mem);
    return err;
}

static void one_round(struct verifying *v)
{
    int64_t wait = v->args->max_wait; /* once in a round: the first broker waits */
    for (size_t i = 0; i < v->parts_n; i++)
        for (size_t k = 0; k < v->parts[i].replicas_n; k++) {
            v->parts[i].replicas[k].records.len = 0;
            v->parts[i].replicas[k].high_watermark = -1;
        }
    for (size_t i = 0; i < v->info->nodes_n && !tool_interrupted(); i++) {
        kafka_err_t err = ask(v, v->info->nodes[i].id, wait);
        if (err != KAFKA_OK && !tool_interrupted()) {
            tool_log_error("asking broker %d: %s", v->info->nodes[i].id, tool_error(err));
            tool_sleep_ms(RETRY_MS);
        }
        wait = 0;
    }
    for (size_t i = 0; i < v->parts_n; i++)
        if (!replicas_compare(&v->parts[i], tell, NULL))
            v->differ = true;
    v->first = (v->first + 1) % v->parts_n;
}

static void report(const struct verifying *v)
{
    char line[512];
    const struct replicated *most = &v->parts[0];
    for (size_t i = 1; i < v->parts_n; i++)
        if (replicas_lag(&v->parts[i]) > replicas_lag(most))
            most = &v->parts[i];
    snprintf(line, sizeof line,
             "max lag is %" PRId64 " for partition %s-%d at offset %" PRId64
             " among %zu partitions",
             replicas_lag(most), most->topic, most->partition, most->offset, v->parts_n);
    tell(line, NULL);
}

static void run(struct verifying *v)
{
    int64_t next = clock_mono_ms(clock_real()) + v->args->interval;
    tell("verification process is started", NULL);
    while (!tool_interrupted() && !v->differ && tool_output_ok()) {
        one_round(v);
        int64_t now = clock_mono_ms(clock_real());
        if (now >= next && !tool_interrupted()) {
            report(v);
            next = now + v->args->interval;
        }
    }
}

static void free_parts(struct verifying *v)
{
    for (size_t i = 0; i < v->parts_n; i++) {
        for (size_t k = 0; k < v->parts[i].replicas_n; k++)
            buf_free(&v->parts[i].replicas[k].records);
        free(v->parts[i].replicas);
    }
    free(v->parts);
    kafka_cluster_info_free(v->info);
}

int main(int argc, char **argv)
{
    static const char *const apart[] = {"topic-white-list", NULL};
    static struct args a;
    tool_start();
    tool_parse(&tool, argc, argv, &a);
    tool_excludes(&tool, &a, "topics-include", apart);
    kafka_conf_t *conf = tool_conf_new();
    tool_conf_servers(&tool, conf, a.brokers, NULL);
    tool_conf_set(conf, "allow.auto.create.topics", "false");
    struct verifying v = {.args = &a, .admin = tool_admin(conf)};
    find_parts(&v, tool_api_timeout(conf));
    find_starts(&v, conf);
    tool_on_interrupt(NULL, NULL);
    run(&v);
    kafka_admin_close(v.admin);
    free_parts(&v);
    kafka_conf_free(conf);
    return tool_finish(v.differ ? 1 : 0);
}
