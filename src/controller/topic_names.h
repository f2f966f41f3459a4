/* topic_names.h - the names of all topics there are or are being made, to find those that collide
 * ('.' and '_' count as one). A mirror of the children of /brokers/topics that is brought up to
 * date by listings, in full or of what is new.
 * THREADS  one at a time. */
#ifndef CONTROLLER_TOPIC_NAMES_H
#define CONTROLLER_TOPIC_NAMES_H

#include "base/hmap.h"
#include "metadata/store.h"

struct topic_names {
    struct hmap map; /* of struct topic_name, by the name with '.' for '_' */
    int listed_n;    /* of them found in the store */
    int64_t as_of;   /* of the last listing; 0 = none yet */
};

void topic_names_init(struct topic_names *n);
void topic_names_free(struct topic_names *n);
/* Only a name that has one of the two characters can collide. */
bool topic_name_may_collide(struct str name);
/* What to ask: a listing of what is new. */
struct store_op topic_names_listing(const struct topic_names *n);
/* Takes the answer in. 0; -EAGAIN: something went, a listing in full is needed (the next
 * topic_names_listing asks for it); -ENOMEM. */
int topic_names_update(struct topic_names *n, const struct store_op *answer);
/* Another name that `name` collides with; null when there is none. Borrowed until the next call. */
struct str topic_names_collision(const struct topic_names *n, struct str name);
/* A name about to be made; it counts at once. 0 or -ENOMEM. */
int topic_names_begin(struct topic_names *n, struct str name);
/* It was made or not: from now on the listings tell. */
void topic_names_end(struct topic_names *n, struct str name);

#endif
