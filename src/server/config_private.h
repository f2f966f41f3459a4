/* config_private.h - the parts of config_load, one file each. For config*.c only. */
#ifndef SERVER_CONFIG_PRIVATE_H
#define SERVER_CONFIG_PRIVATE_H

#include "server/config_value.h"

/* Each reads values and fills its part of *c. 0, -ENOMEM, or -EINVAL with the reason in err. */
int config_listeners_load(struct config *c, char *err, size_t err_n);
int config_log_defaults_load(struct config *c, char *err, size_t err_n);

void config_listeners_free(struct config *c);

#endif
