/* lists.c - see lists.h. */
#include "client/lists.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of a string in the block; neighbours of one topic share theirs. */
static size_t room_for(const char *s, const char *before)
{
    return !s || (before && strcmp(s, before) == 0) ? 0 : strlen(s) + 1;
}

static const char *put_string(char **at, const char *s, const char *before, const char *before_copy)
{
    if (!s)
        return NULL;
    if (before && strcmp(s, before) == 0)
        return before_copy;
    char *to = *at;
    *at = stpcpy(to, s) + 1;
    return to;
}

kafka_partition_list_t *partition_list_copy(const kafka_topic_partition_t *v, size_t n)
{
    size_t size = sizeof(kafka_partition_list_t) + n * sizeof *v;
    for (size_t i = 0; i < n; i++)
        size += room_for(v[i].topic, i ? v[i - 1].topic : NULL);
    kafka_partition_list_t *list = malloc(size);
    if (!list)
        return NULL;
    kafka_topic_partition_t *to = (kafka_topic_partition_t *)(list + 1);
    char *at = (char *)(to + n);
    for (size_t i = 0; i < n; i++) {
        to[i].topic =
            put_string(&at, v[i].topic, i ? v[i - 1].topic : NULL, i ? to[i - 1].topic : NULL);
        to[i].partition = v[i].partition;
    }
    list->v = to;
    list->n = n;
    return list;
}

kafka_offset_list_t *offset_list_copy(const kafka_offset_t *v, size_t n)
{
    size_t size = sizeof(kafka_offset_list_t) + n * sizeof *v;
    for (size_t i = 0; i < n; i++)
        size += room_for(v[i].topic, i ? v[i - 1].topic : NULL) + room_for(v[i].metadata, NULL);
    kafka_offset_list_t *list = malloc(size);
    if (!list)
        return NULL;
    kafka_offset_t *to = (kafka_offset_t *)(list + 1);
    char *at = (char *)(to + n);
    for (size_t i = 0; i < n; i++) {
        to[i] = v[i];
        to[i].topic =
            put_string(&at, v[i].topic, i ? v[i - 1].topic : NULL, i ? to[i - 1].topic : NULL);
        to[i].metadata = put_string(&at, v[i].metadata, NULL, NULL);
    }
    list->v = to;
    list->n = n;
    return list;
}

void kafka_partition_list_free(kafka_partition_list_t *list)
{
    free(list);
}

void kafka_offset_list_free(kafka_offset_list_t *list)
{
    free(list);
}

int topic_partition_cmp(const void *a, const void *b)
{
    const kafka_topic_partition_t *x = a, *y = b;
    int c = strcmp(x->topic, y->topic);
    return c ? c : (x->partition > y->partition) - (x->partition < y->partition);
}
