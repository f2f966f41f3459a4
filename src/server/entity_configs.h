/* entity_configs.h - settings in the store that change while the broker runs: of topics, of brokers
 * (all, or this one), quotas of users and client ids, rates of addresses. They are read and put to
 * use at the start and after each notice, and written for clients.
 *
 * An entity is named by its path below /config: "topics/t", "brokers/<default>", "brokers/1",
 * "users/u/clients/c", "ips/<default>".
 *
 * ORDER    All that reads or writes one goes through one queue of this broker, so a change by a
 *          client is based on the one before it, and what is put to use last is what was read last.
 *          Among brokers the last writer wins.
 * THREADS  stated at each function. */
#ifndef SERVER_ENTITY_CONFIGS_H
#define SERVER_ENTITY_CONFIGS_H

#include "metadata/znode.h"
#include "server/broker.h"
#include "server/control_queue.h"

#define ENTITY_ALL_BROKERS "brokers/<default>"

/* This broker's entity. In the arena; NULL without memory. */
char *entity_own_path(const struct broker *b, struct arena *a);

/* The queue; with the workers, before anything below. 0 or -ENOMEM. */
int entity_configs_make(struct broker *b);
/* At the start: the settings of brokers, before anything is made of them; the others, when the
 * network is there. 0 or -errno. @blocks */
int entity_configs_load_brokers(struct broker *b);
int entity_configs_load_clients(struct broker *b);
/* A notice named the entity: its settings are read again, soon, and until the store has answered.
 * @thread any */
void entity_configs_changed(struct broker *b, struct str path);

/* Work that reads and writes settings, in its turn. @thread any */
void entity_configs_submit(struct broker *b, struct control_op *op);
/* For such work. The list is in the arena; an absent entity has an empty one. 0 or -errno. @blocks
 */
int entity_configs_read(struct broker *b, struct str path, struct arena *a,
                        struct config_list *out);
/* Writes, tells all brokers, and puts it to use in this one. A quota entity without settings is
 * removed. @blocks */
enum kerr entity_configs_write(struct broker *b, struct str path, struct config_list list);

/* All quota entities in the store: each(arg, entity, list) for those below `folder` ("users",
 * "clients", "ips"; users with and without client ids). 0 or -errno, or what `each` returned if not
 * 0. @blocks */
struct quota_entity;
int entity_configs_each(struct broker *b, const char *folder, struct arena *a,
                        int (*each)(void *arg, const struct quota_entity *e,
                                    struct config_list list),
                        void *arg);

#endif
