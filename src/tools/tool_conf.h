/* tool_conf.h - client settings of a tool: from its flags, from files, from key=value pairs. Every
 * function ends the process with a line on standard error when a setting is not legal. */
#ifndef TOOLS_TOOL_CONF_H
#define TOOLS_TOOL_CONF_H

#include <kafka/admin.h>
#include <kafka/consumer.h>
#include <kafka/producer.h>

#include "tools/tool_options.h"

/* Returns owned. */
kafka_conf_t *tool_conf_new(void);
void tool_conf_set(kafka_conf_t *conf, const char *key, const char *value);
/* value TOOL_NOT_GIVEN: nothing. */
void tool_conf_set_int(kafka_conf_t *conf, const char *key, int64_t value);
/* Only when it is not set yet. */
void tool_conf_default(kafka_conf_t *conf, const char *key, const char *value);
/* path NULL: nothing. */
void tool_conf_load(kafka_conf_t *conf, const char *path);
void tool_conf_pairs(kafka_conf_t *conf, const struct tool_texts *pairs);
/* bootstrap.servers from --bootstrap-server or else --broker-list; each entry needs a port. */
void tool_conf_servers(const struct tool *tool, kafka_conf_t *conf, const char *bootstrap_server,
                       const char *broker_list);

/* Into props: the file's (NULL: none), then the pairs "name=value". */
struct props;
void tool_props(struct props *props, const char *file, const struct tool_texts *pairs);

/* Splits "key=value": *value points behind the `=`, or at the end when there is none. The key's
 * length, 0 when there is no key. */
size_t tool_pair(const char *pair, const char **value);

/* Clients, or the end of the process. Owned. */
kafka_admin_t *tool_admin(const kafka_conf_t *conf);
kafka_consumer_t *tool_consumer(const kafka_conf_t *conf);
kafka_producer_t *tool_producer(const kafka_conf_t *conf);

/* Calls of the admin client wait this long: default.api.timeout.ms. */
int64_t tool_api_timeout(const kafka_conf_t *conf);

/* What a call that just failed on this thread has to say: its own line where there is one, else the
 * code's text. Borrowed until the next call. */
const char *tool_error(kafka_err_t err);

#endif
