/* client_conf.h - settings of a client: what was set, over the table's defaults
 * (client_config.def).
 *
 * THREADS  any; a conf belongs to one at a time while it is changed. A client has a copy of its
 * own, which nobody changes. */
#ifndef CLIENT_CLIENT_CONF_H
#define CLIENT_CLIENT_CONF_H

#include <kafka/common.h>
#include <kafka/consumer.h>
#include <kafka/producer.h>

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

enum client_scope { SCOPE_PRODUCER = 1, SCOPE_CONSUMER = 2, SCOPE_ADMIN = 4 };

/* Copies conf (NULL: empty). */
kafka_conf_t *client_conf_copy(const kafka_conf_t *conf);
/* Checks what only a client of this scope can know: bootstrap.servers is there; unknown keys get a
 * log line. */
kafka_err_t client_conf_check(const kafka_conf_t *conf, enum client_scope scope, char *err,
                              size_t err_n);
/* Effective values; the key must be in the table for the scope. */
int64_t client_conf_int(const kafka_conf_t *conf, enum client_scope scope, const char *key);
bool client_conf_bool(const kafka_conf_t *conf, enum client_scope scope, const char *key);
const char *client_conf_string(const kafka_conf_t *conf, enum client_scope scope, const char *key);
bool client_conf_is_set(const kafka_conf_t *conf, const char *key);

/* Of a value of security.protocol. */
bool client_protocol_has_tls(const char *protocol);
bool client_protocol_has_sasl(const char *protocol);

/* The next host:port of a list; false at the end. *at moves on. Spaces around entries are skipped;
 * IPv6 in brackets. -1 in *port when the entry has none or it is not a number. */
bool client_next_address(const char **at, char host[256], int *port);

/* Does any entry of a list of host:port have an address? Each that has none gets a log line.
 * @blocks for the resolver */
bool client_any_resolvable(const char *servers);

/* An assignor of the application by its name, or NULL. Borrowed from conf. */
const kafka_assignor_t *client_conf_assignor(const kafka_conf_t *conf, const char *name);

/* Functions of the application; borrowed from conf. */
struct client_hooks {
    kafka_partitioner_fn partitioner; /* NULL: none */
    void *partitioner_arg;
    kafka_producer_interceptor_t *producer;
    size_t producer_n;
    kafka_consumer_interceptor_t *consumer;
    size_t consumer_n;
};
const struct client_hooks *client_conf_hooks(const kafka_conf_t *conf);

/* The words for an error: of a topic, a group or transactional id (NULL: not known) that may not be
 * used Kafka's own, with its name; else the code's text. Borrowed, from out or static. */
enum { CLIENT_WORDS = 320 };
const char *client_words(kafka_err_t err, const char *topic, const char *id,
                         char out[CLIENT_WORDS]);

/* Keeps the line for kafka_last_error; returns err. */
kafka_err_t client_fail(kafka_err_t err, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* The library's log. level as in kafka_log_set_sink. */
void client_log_init(void); /* lines of the rooms below come here, too */
void client_log(int level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
