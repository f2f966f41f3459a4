/* config_private.h - the parts of config_load, one file each. For config*.c only.
 *
 * THREADS    the one that loads; nobody else sees the config yet. */
#ifndef SERVER_CONFIG_PRIVATE_H
#define SERVER_CONFIG_PRIVATE_H

#include "server/config_value.h"

#define LISTENER_PREFIX "listener.name."

/* Each reads values and fills its part of *c. 0, -ENOMEM, or -EINVAL with the reason in err. */
int config_listeners_load(struct config *c, char *err, size_t err_n);
int config_log_defaults_load(struct config *c, char *err, size_t err_n);

void config_listeners_free(struct config *c);

/* ---- keys (config_keys.c) ---- */

/* 0, or -EINVAL when the file is one of another mode of Kafka. */
int config_keys_mode(const struct config *c, char *err, size_t err_n);
/* Warns of unknown keys, names those without effect, and checks the values of single listeners'
 * ones: 0, or -EINVAL with a line for each added to err. */
int config_keys_check(const struct config *c, char *err, size_t err_n);
/* The known key that one may have meant, NULL = none is like it. Static. */
const char *config_nearest(const char *key);

/* ---- problems: all of them are told, each in a line of its own ---- */

void config_add_problem(char *err, size_t err_n, const char *line);
/* rc of all that was done so far and of one more step: the first that failed, or want of memory. */
int config_first(int rc, int more);
/* Is there a sense in looking for more? Not behind want of memory; and who changes settings of a
 * running broker is answered with one line. */
bool config_goes_on(const struct config *c, int rc);

/* No other broker can ever join the one that keeps the metadata in its own log dir. */
bool config_is_alone(const struct config *c);

#endif
