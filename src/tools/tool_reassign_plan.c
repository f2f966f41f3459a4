/* tool_reassign_plan.c - see tool_reassign_plan.h: plans and the files of them. */
#include "tools/tool_reassign_plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "tools/tool_options.h"

static const char no_memory[] = "out of memory";
static const char any_dir[] = "any";

/* ---- order ---- */

static int by_partition(const void *a, const void *b)
{
    const struct reassign_part *x = a, *y = b;
    int order = strcmp(x->topic, y->topic);
    return order ? order : (x->partition > y->partition) - (x->partition < y->partition);
}

void reassign_plan_sort(struct reassign_plan *p)
{
    if (p->n)
        qsort(p->v, (size_t)p->n, sizeof *p->v, by_partition);
}

struct reassign_part *reassign_plan_find(const struct reassign_plan *p, const char *topic,
                                         int32_t partition)
{
    struct reassign_part key = {.topic = topic, .partition = partition};
    return p->n ? bsearch(&key, p->v, (size_t)p->n, sizeof *p->v, by_partition) : NULL;
}

const char **reassign_plan_topics(const struct reassign_plan *p, struct arena *a, size_t *n)
{
    const char **topics = arena_array(a, const char *, (size_t)p->n + 1);
    *n = 0;
    for (int i = 0; topics && i < p->n; i++)
        if (i == 0 || strcmp(p->v[i].topic, p->v[i - 1].topic) != 0)
            topics[(*n)++] = p->v[i].topic;
    return topics;
}

static int by_id(const void *a, const void *b)
{
    const int32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

void reassign_sort_ids(struct id_list *l)
{
    if (l->n > 0)
        qsort(l->v, (size_t)l->n, sizeof *l->v, by_id);
}

void reassign_add_id(struct id_list *l, int32_t id)
{
    if (!id_list_has(*l, id))
        l->v[l->n++] = id;
}

char *reassign_format_ids(struct id_list l, struct arena *a)
{
    char *text = arena_printf(a, "%s", "");
    for (int i = 0; text && i < l.n; i++)
        text = arena_printf(a, "%s%s%d", text, i ? "," : "", l.v[i]);
    return text;
}

/* ---- reading ---- */

static const char *check_version(const json_t *document, struct arena *a)
{
    if (!json_is_object(document))
        return arena_printf(a, "the file does not hold a JSON object");
    const json_t *version = json_object_get(document, "version");
    if (version && !json_is_integer(version))
        return arena_printf(a, "\"version\" is not a whole number");
    if (version && json_integer_value(version) != 1)
        return arena_printf(a, "Not supported version field value %lld",
                            (long long)json_integer_value(version));
    return NULL;
}

static const char *read_text(const json_t *o, const char *key, struct arena *a, const char **out)
{
    const json_t *v = json_object_get(o, key);
    if (!v)
        return arena_printf(a, "No such field exists: `%s`", key);
    if (!json_is_string(v))
        return arena_printf(a, "\"%s\" is not a text", key);
    *out = arena_str(a, str_of(json_string_value(v))).p;
    return *out ? NULL : no_memory;
}

static bool is_id(const json_t *v)
{
    return json_is_integer(v) && json_integer_value(v) >= INT32_MIN &&
           json_integer_value(v) <= INT32_MAX;
}

static const char *read_ids(const json_t *o, struct arena *a, struct id_list *out)
{
    const json_t *list = json_object_get(o, "replicas");
    if (!list)
        return arena_printf(a, "No such field exists: `replicas`");
    if (!json_is_array(list))
        return arena_printf(a, "\"replicas\" is not a list");
    size_t n = json_array_size(list);
    out->v = arena_array(a, int32_t, n);
    for (size_t i = 0; out->v && i < n; i++) {
        if (!is_id(json_array_get(list, i)))
            return arena_printf(a, "\"replicas\" is not a list of broker ids");
        out->v[out->n++] = (int32_t)json_integer_value(json_array_get(list, i));
    }
    return out->v ? NULL : no_memory;
}

static char *java_list(struct id_list ids, struct arena *a)
{
    char *text = arena_printf(a, "%s", "[");
    for (int i = 0; text && i < ids.n; i++)
        text = arena_printf(a, "%s%s%d", text, i ? ", " : "", ids.v[i]);
    return text ? arena_printf(a, "%s]", text) : NULL;
}

static const char *read_dirs(const json_t *o, struct arena *a, struct reassign_part *p)
{
    const json_t *list = json_object_get(o, "log_dirs");
    if (!list)
        return NULL;
    if (!json_is_array(list))
        return arena_printf(a, "\"log_dirs\" is not a list");
    size_t n = json_array_size(list);
    char *given = arena_printf(a, "%s", "[");
    p->dirs = arena_array(a, const char *, n);
    for (size_t i = 0; p->dirs && given && i < n; i++) {
        const char *dir = json_string_value(json_array_get(list, i));
        if (!dir)
            return arena_printf(a, "\"log_dirs\" is not a list of texts");
        given = arena_printf(a, "%s%s%s", given, i ? ", " : "", dir);
        p->dirs[i] = strcmp(dir, any_dir) == 0 ? NULL : arena_str(a, str_of(dir)).p;
    }
    if (!p->dirs || !given)
        return no_memory;
    if (n != (size_t)p->replicas.n)
        return arena_printf(a,
                            "Size of replicas list %s is different from size of log dirs list %s] "
                            "for partition %s-%d",
                            java_list(p->replicas, a), given, p->topic, p->partition);
    return NULL;
}

static const char *read_part(const json_t *o, struct arena *a, struct reassign_part *p)
{
    const char *wrong = read_text(o, "topic", a, &p->topic);
    const json_t *number = json_object_get(o, "partition");
    if (wrong)
        return wrong;
    if (!number)
        return arena_printf(a, "No such field exists: `partition`");
    if (!is_id(number))
        return arena_printf(a, "\"partition\" is not a partition's number");
    p->partition = (int32_t)json_integer_value(number);
    wrong = read_ids(o, a, &p->replicas);
    return wrong ? wrong : read_dirs(o, a, p);
}

const char *reassign_plan_parse(const json_t *document, struct arena *a, struct reassign_plan *out)
{
    const char *wrong = check_version(document, a);
    const json_t *list = json_object_get(document, "partitions");
    *out = (struct reassign_plan){NULL, 0};
    if (!wrong && list && !json_is_array(list))
        wrong = arena_printf(a, "\"partitions\" is not a list");
    if (wrong || !list)
        return wrong;
    out->v = arena_array(a, struct reassign_part, json_array_size(list));
    if (!out->v)
        return no_memory;
    for (size_t i = 0; !wrong && i < json_array_size(list); i++)
        wrong = read_part(json_array_get(list, i), a, &out->v[out->n++]);
    reassign_plan_sort(wrong ? &(struct reassign_plan){NULL, 0} : out);
    return wrong;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* One that is named more than once, or NULL. (Also without memory: then nothing goes on anyhow.) */
static const char *named_twice(const char *const *topics, size_t n, struct arena *a)
{
    const char **sorted = arena_array(a, const char *, n);
    if (!sorted || n == 0)
        return NULL;
    memcpy(sorted, topics, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, by_text);
    for (size_t i = 1; i < n; i++)
        if (strcmp(sorted[i], sorted[i - 1]) == 0)
            return sorted[i];
    return NULL;
}

const char *reassign_topics_parse(const json_t *document, struct arena *a, const char ***topics,
                                  size_t *n)
{
    const char *wrong = check_version(document, a);
    const json_t *list = json_object_get(document, "topics");
    *n = 0;
    if (!wrong && list && !json_is_array(list))
        wrong = arena_printf(a, "\"topics\" is not a list");
    if (wrong)
        return wrong;
    *topics = arena_array(a, const char *, json_array_size(list) + 1);
    if (!*topics)
        return no_memory;
    for (size_t i = 0; i < json_array_size(list); i++, ++*n) {
        wrong = read_text(json_array_get(list, i), "topic", a, &(*topics)[*n]);
        if (wrong)
            return wrong;
    }
    const char *twice = named_twice(*topics, *n, a);
    return twice ? arena_printf(a, "List of topics to reassign contains duplicate entries: [%s]",
                                twice)
                 : NULL;
}

const char *reassign_brokers_parse(const char *text, struct arena *a, struct id_list *out)
{
    size_t room = 1;
    for (const char *p = text; *p; p++)
        room += *p == ',';
    *out = (struct id_list){arena_array(a, int32_t, room), 0};
    for (const char *p = text;; p++) {
        int64_t id;
        size_t len = strcspn(p, ",");
        char *word = arena_printf(a, "%.*s", (int)len, p);
        if (!out->v || !word)
            return no_memory;
        if (!tool_int_of(word, &id) || id < INT32_MIN || id > INT32_MAX)
            return arena_printf(a, "For input string: \"%s\"", word);
        if (id_list_has(*out, (int32_t)id))
            return arena_printf(a, "Broker list contains duplicate entries: [%d]", (int)id);
        out->v[out->n++] = (int32_t)id;
        p += len;
        if (!*p)
            return NULL;
    }
}

/* ---- checking ---- */

/* The ids that are in it more than once: "1,2", NULL: none. */
static char *repeated(struct id_list l, struct arena *a)
{
    struct id_list seen = {arena_array(a, int32_t, (size_t)l.n), 0};
    struct id_list twice = {arena_array(a, int32_t, (size_t)l.n), 0};
    for (int i = 0; seen.v && twice.v && i < l.n; i++) {
        if (id_list_has(seen, l.v[i]))
            reassign_add_id(&twice, l.v[i]);
        else
            seen.v[seen.n++] = l.v[i];
    }
    return twice.n ? reassign_format_ids(twice, a) : NULL;
}

const char *reassign_plan_check(const struct reassign_plan *p, struct arena *a)
{
    const char *parts = NULL, *lists = NULL;
    if (p->n == 0)
        return arena_printf(a, "Partition reassignment list cannot be empty");
    for (int i = 0; i < p->n; i++) {
        const struct reassign_part *x = &p->v[i];
        if (x->replicas.n == 0)
            return arena_printf(a, "Partition replica list cannot be empty");
        bool again = i > 0 && by_partition(x, x - 1) == 0;
        if (again && !(i > 1 && by_partition(x, x - 2) == 0))
            parts = arena_printf(a, "%s%s%s-%d", parts ? parts : "", parts ? "," : "", x->topic,
                                 x->partition);
        const char *ids = repeated(x->replicas, a);
        if (ids)
            lists =
                arena_printf(a, "%s%s%s-%d contains multiple entries for %s", lists ? lists : "",
                             lists ? ". " : "", x->topic, x->partition, ids);
    }
    if (parts)
        return arena_printf(a, "Partition reassignment contains duplicate topic partitions: %s",
                            parts);
    if (lists)
        return arena_printf(a, "Partition replica lists may not contain duplicate entries: %s",
                            lists);
    return NULL;
}

/* ---- writing ---- */

static json_t *part_json(const struct reassign_part *p)
{
    json_t *ids = json_array(), *dirs = json_array();
    for (int i = 0; i < p->replicas.n; i++) {
        json_array_append_new(ids, json_integer(p->replicas.v[i]));
        json_array_append_new(dirs, json_string(any_dir));
    }
    return json_pack("{s:s, s:i, s:o, s:o}", "topic", p->topic, "partition", p->partition,
                     "replicas", ids, "log_dirs", dirs);
}

char *reassign_plan_format(const struct reassign_plan *p, struct arena *a)
{
    json_t *list = json_array();
    bool complete = true;
    for (int i = 0; i < p->n; i++)
        complete &= json_array_append_new(list, part_json(&p->v[i])) == 0;
    json_t *document = json_pack("{s:i, s:o}", "version", 1, "partitions", list);
    char *text = json_dumps(document, JSON_COMPACT);
    char *kept = text && complete ? (char *)arena_str(a, str_of(text)).p : NULL;
    free(text);
    json_decref(document);
    return kept;
}
