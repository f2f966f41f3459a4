/* entity_apply.h - what the settings of an entity do in this broker. For entity_configs.c.
 *
 * THREADS  one call at a time, on the queue of settings or at the start. @blocks on looking names
 * of hosts up */
#ifndef SERVER_ENTITY_APPLY_H
#define SERVER_ENTITY_APPLY_H

#include "metadata/znode.h"
#include "server/broker.h"

struct quota_entity;

/* Does a change of it mean anything here? */
bool entity_concerns(const struct broker *b, struct str path);
/* 0 or -errno. */
int entity_apply(struct broker *b, struct str path, struct config_list list);
int entity_apply_quota(struct broker *b, const struct quota_entity *e, struct config_list list);

#endif
