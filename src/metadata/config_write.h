/* config_write.h - writing the configuration of an entity as any broker does: guarded by the
 * version of /controller, then a notice under /config/changes that makes every broker read it. */
#ifndef METADATA_CONFIG_WRITE_H
#define METADATA_CONFIG_WRITE_H

#include "metadata/store.h"
#include "metadata/znode.h"
#include "protocol/errors.h"

/* entity_path: below /config, e.g. "topics/t"; the list replaces what was there. Both are copied.
 * done runs on ex: NONE; STALE_CONTROLLER_EPOCH: no controller, or one of a migration;
 * UNKNOWN_SERVER_ERROR. 0, or -ENOMEM and no done. @thread any */
int config_write(struct store *s, struct executor *ex, struct str entity_path,
                 struct config_list list, void (*done)(void *arg, enum kerr error), void *arg);

#endif
