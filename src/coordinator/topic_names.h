/* topic_names.h - a set of topic names, and those in the subscription of a consumer.
 *
 *   subscription  int16 version; array of string topics; what follows is of no interest here */
#ifndef COORDINATOR_TOPIC_NAMES_H
#define COORDINATOR_TOPIC_NAMES_H

#include "base/hmap.h"

struct topic_names {
    struct hmap map;
};

void topic_names_init(struct topic_names *s);
void topic_names_free(struct topic_names *s);
/* Copies. 0 or -ENOMEM. */
int topic_names_add(struct topic_names *s, struct str name);
bool topic_names_has(const struct topic_names *s, struct str name);
/* Adds the topics of a subscription, read as version 0 whatever version it says (later ones begin
 * with the same fields). 0, -EBADMSG, or -ENOMEM; after an error some may have been added. */
int topic_names_add_subscription(struct topic_names *s, struct bytes subscription);

#endif
