/* tool_zk_configs.h - settings of entities in ZooKeeper, for what tools do without a broker.
 *
 * An entity is named by its path below /config: "topics/t", "users/alice". All @blocks.
 *
 * THREADS  one. */
#ifndef TOOLS_TOOL_ZK_CONFIGS_H
#define TOOLS_TOOL_ZK_CONFIGS_H

#include <kafka/admin.h>
#include <stdbool.h>

#include "base/arena.h"

struct store;

/* Sets these (value NULL: takes it away), and lets the brokers know if that changed anything.
 * Others' changes meanwhile are kept. 0 or -errno. */
int tool_zk_configure(struct store *s, struct arena *mem, const char *entity,
                      const kafka_config_t *configs, size_t n, bool *changed);
/* "users/<name as it stands in paths>", in the arena; NULL without memory. */
const char *tool_zk_user_entity(const char *user, struct arena *mem);
/* The settings of one user, or (NULL) of each; those without any are left out. 0 or -errno. */
int tool_zk_users(struct store *s, const char *user,
                  void (*each)(void *arg, const char *user, const kafka_config_t *pairs, size_t n),
                  void *arg);

#endif
