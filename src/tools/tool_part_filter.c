/* tool_part_filter.c - see tool_part_filter.h. A filter is a list of rules; one that matches is
 * enough. A rule is a pattern of topics and a range of partitions. */
#include "tools/tool_part_filter.h"

#include <stdlib.h>
#include <string.h>

#include "tools/tool_io.h"
#include "tools/tool_options.h"

struct rule {
    bool any_topic;
    struct tool_regex topic;
    int64_t from, to; /* to is left out */
};

struct part_filter {
    struct rule *rules;
    size_t n;
};

static int64_t read_id(const char *text, size_t n, const char *whole)
{
    char digits[12] = "";
    int64_t id;
    if (n > 0 && n < sizeof digits)
        memcpy(digits, text, n);
    if (strspn(digits, "0123456789") != n || !tool_int_of(digits, &id) || id > INT32_MAX)
        tool_die("Error occurred: %s: `%.*s` is not a partition", whole, (int)n, text);
    return id;
}

static struct rule *add_rule(struct part_filter *f, const char *topic, size_t n, bool commas)
{
    struct rule *grown = realloc(f->rules, (f->n + 1) * sizeof *grown);
    char *pattern = strndup(topic, n);
    if (!grown || !pattern)
        tool_die("Error occurred: out of memory");
    f->rules = grown;
    struct rule *r = &f->rules[f->n++];
    *r = (struct rule){.any_topic = n == 0, .from = 0, .to = INT64_MAX};
    if (!r->any_topic)
        tool_regex_init(&r->topic, pattern, commas);
    free(pattern);
    return r;
}

/* "5", "0-3", "5-", "-3" */
static void read_range(struct rule *r, const char *text, size_t n, const char *whole)
{
    const char *dash = memchr(text, '-', n);
    if (!dash) {
        r->from = read_id(text, n, whole);
        r->to = r->from + 1;
        return;
    }
    size_t left = (size_t)(dash - text), right = n - left - 1;
    if (left)
        r->from = read_id(text, left, whole);
    if (right)
        r->to = read_id(dash + 1, right, whole);
}

/* Each entry of --topic-partitions: PATTERN, PATTERN:RANGE, :RANGE. */
static void read_entries(struct part_filter *f, const char *text)
{
    for (const char *at = text;; at++) {
        size_t n = strcspn(at, ",");
        const char *colon = memchr(at, ':', n);
        struct rule *r = add_rule(f, at, colon ? (size_t)(colon - at) : n, false);
        if (colon && colon + 1 < at + n)
            read_range(r, colon + 1, n - (size_t)(colon - at) - 1, text);
        at += n;
        if (!*at)
            return;
    }
}

static void read_partitions(struct part_filter *f, const char *topic, const char *partitions)
{
    for (const char *at = partitions;; at++) {
        size_t n = strcspn(at, ",");
        struct rule *r = add_rule(f, topic, strlen(topic), true);
        r->from = read_id(at, n, partitions);
        r->to = r->from + 1;
        at += n;
        if (!*at)
            return;
    }
}

struct part_filter *part_filter_new(const char *topic, const char *partitions,
                                    const char *topic_partitions)
{
    struct part_filter *f = calloc(1, sizeof *f);
    if (!f)
        tool_die("Error occurred: out of memory");
    topic = topic ? topic : "";
    if (topic_partitions)
        read_entries(f, topic_partitions);
    else if (partitions && *partitions)
        read_partitions(f, topic, partitions);
    else
        add_rule(f, topic, strlen(topic), true);
    return f;
}

void part_filter_free(struct part_filter *f)
{
    for (size_t i = 0; i < f->n; i++)
        if (!f->rules[i].any_topic)
            tool_regex_fini(&f->rules[i].topic);
    free(f->rules);
    free(f);
}

bool part_filter_matches(const struct part_filter *f, const char *topic, int32_t partition)
{
    for (size_t i = 0; i < f->n; i++) {
        const struct rule *r = &f->rules[i];
        if (partition >= r->from && partition < r->to &&
            (r->any_topic || tool_regex_matches(&r->topic, topic)))
            return true;
    }
    return false;
}
