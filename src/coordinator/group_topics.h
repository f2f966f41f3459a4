/* group_topics.h - a set of topic names, and those in the subscription of a consumer.
 *
 *   subscription  int16 version; array of string topics; what follows is of no interest here */
#ifndef COORDINATOR_GROUP_TOPICS_H
#define COORDINATOR_GROUP_TOPICS_H

#include "base/hmap.h"

struct group_topics {
    struct hmap map;
};

void group_topics_init(struct group_topics *s);
void group_topics_free(struct group_topics *s);
/* Copies. 0 or -ENOMEM. */
int group_topics_add(struct group_topics *s, struct str name);
bool group_topics_has(const struct group_topics *s, struct str name);
/* Adds the topics of a subscription, read as version 0 whatever version it says (later ones begin
 * with the same fields). 0, -EBADMSG, or -ENOMEM; after an error some may have been added. */
int group_topics_add_subscription(struct group_topics *s, struct bytes subscription);

#endif
