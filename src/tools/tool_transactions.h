/* tool_transactions.h - kafka-transactions, shared by its commands.
 *
 * THREADS  one. */
#ifndef TOOLS_TOOL_TRANSACTIONS_H
#define TOOLS_TOOL_TRANSACTIONS_H

#include <kafka/admin.h>

#include "tools/tool_options.h"

struct transactions_args {
    const char *bootstrap, *config, *id, *topic;
    int64_t duration, partition, broker, start_offset, producer_id, producer_epoch,
        coordinator_epoch, max_timeout;
    struct tool_texts words;
};

struct transactions {
    const struct transactions_args *args;
    kafka_admin_t *admin;
    int64_t timeout_ms;
};

/* ---- tables: each column as wide as its longest value, a TAB behind it ---- */

struct tool_table;
/* `header` has `columns` names; borrowed. Returns owned. */
struct tool_table *tool_table_new(const char *const *header, size_t columns);
/* The next value, row by row. */
void tool_table_put(struct tool_table *t, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Prints, and frees. */
void tool_table_print(struct tool_table *t);

/* "what: why" to standard error, and the end, unless err is KAFKA_OK. */
void transactions_check(kafka_err_t err, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

void transactions_abort(struct transactions *t);
void transactions_find_hanging(struct transactions *t);

#endif
