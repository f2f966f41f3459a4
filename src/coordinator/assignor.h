/* assignor.h - the broker's own assignors: who shall read which partitions. Pure: the same members,
 * topics and former targets give the same result.
 *
 *   range    topic by topic, each member the next few of its partitions: the topics' equal numbers
 *            go together
 *   uniform  everyone as many as the others, and as few partitions as possible change hands
 *
 * Kafka walks hash maps where the order of members or topics matters; here it is by id and by name.
 */
#ifndef COORDINATOR_ASSIGNOR_H
#define COORDINATOR_ASSIGNOR_H

#include "coordinator/part_set.h"

struct assign_topic { /* borrowed */
    struct str name;
    struct uuid id;
    int32_t partitions;
};
struct assign_member {       /* borrowed, but for out */
    struct str id, instance; /* instance null = dynamic */
    const int *topics;       /* subscribed: places in the topics' array, ascending, each once */
    int topics_n;
    const struct part_set *old; /* former target */
    struct part_set out;        /* empty; the result, a set */
};
struct assign_spec {
    struct assign_topic *topics; /* in order of name */
    int topics_n;
    struct assign_member *members; /* in order of id */
    int members_n;
    bool same_topics; /* all members read all of them */
};

struct assignor {
    const char *name;       /* as clients ask for it */
    const char *class_name; /* as group.consumer.assignors lists it */
    /* 0 or -ENOMEM; the caller frees the members' results in both cases. */
    int (*assign)(struct assign_spec *s);
};

/* NULL when there is none of that name, or class name. Static. */
const struct assignor *assignor_find(struct str name);
const struct assignor *assignor_of_class(struct str class_name);

/* Order of Java's strings: by UTF-16 code units. */
int java_cmp(struct str a, struct str b);

int assign_range(struct assign_spec *s);
int assign_uniform(struct assign_spec *s);
/* Its two forms: all members read all topics, or some. */
int assign_uniform_same(struct assign_spec *s);
int assign_uniform_mixed(struct assign_spec *s);

#endif
