/* tool_partition_file.c - see tool_partition_file.h. */
#include "tools/tool_partition_file.h"

#include <stdlib.h>
#include <string.h>

#include "tools/tool_io.h"

static json_t *load(const char *path)
{
    json_error_t error;
    json_t *document = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (!document && error.line <= 0) /* not to be read: the text names the file */
        tool_die("%s", error.text);
    if (!document)
        tool_die("%s: %s (line %d)", path, error.text, error.line);
    if (!json_is_object(document))
        tool_die("%s: not a JSON object", path);
    json_t *version = json_object_get(document, "version");
    if (version && (!json_is_integer(version) || json_integer_value(version) != 1))
        tool_die("%s: not supported version field value", path);
    if (!json_is_array(json_object_get(document, "partitions")))
        tool_die("%s: missing partitions field", path);
    return document;
}

static int64_t integer(const json_t *o, const char *key, const char *path)
{
    const json_t *v = json_object_get(o, key);
    if (!json_is_integer(v))
        tool_die("%s: a partition has no whole number \"%s\"", path, key);
    return json_integer_value(v);
}

static int by_partition(const void *a, const void *b)
{
    const kafka_topic_partition_t *const *x = a, *const *y = b;
    int order = strcmp((*x)->topic, (*y)->topic);
    return order ? order
                 : ((*x)->partition > (*y)->partition) - ((*x)->partition < (*y)->partition);
}

static void refuse_duplicates(const struct partition_file *f, const char *path)
{
    const kafka_topic_partition_t **sorted = calloc(f->n + 1, sizeof *sorted);
    if (!sorted)
        tool_die("out of memory");
    for (size_t i = 0; i < f->n; i++)
        sorted[i] = &f->v[i];
    qsort(sorted, f->n, sizeof *sorted, by_partition);
    for (size_t i = 1; i < f->n; i++)
        if (by_partition(&sorted[i - 1], &sorted[i]) == 0)
            tool_die("%s contains duplicate topic partitions: %s-%d", path, sorted[i]->topic,
                     sorted[i]->partition);
    free(sorted);
}

struct partition_file partition_file_read(const char *path, bool with_offsets)
{
    struct partition_file f = {.document = load(path)};
    json_t *list = json_object_get(f.document, "partitions");
    f.n = json_array_size(list);
    f.v = calloc(f.n + 1, sizeof *f.v);
    f.offsets = with_offsets ? calloc(f.n + 1, sizeof *f.offsets) : NULL;
    if (!f.v || (with_offsets && !f.offsets))
        tool_die("out of memory");
    for (size_t i = 0; i < f.n; i++) {
        const json_t *o = json_array_get(list, i);
        const char *topic = json_string_value(json_object_get(o, "topic"));
        int64_t partition = integer(o, "partition", path);
        if (!topic || partition < 0 || partition > INT32_MAX)
            tool_die("%s: a partition has no topic, or no number", path);
        f.v[i] = (kafka_topic_partition_t){topic, (int32_t)partition};
        if (with_offsets)
            f.offsets[i] = integer(o, "offset", path);
    }
    refuse_duplicates(&f, path);
    return f;
}

void partition_file_free(struct partition_file *f)
{
    json_decref(f->document);
    free(f->v);
    free(f->offsets);
}
