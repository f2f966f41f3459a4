/* broker_cleaner.c - the log cleaner by the broker's settings, which may change while it runs. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/logline.h"
#include "server/broker_private.h"
#include "server/dynamic_config.h"

enum { BACKOFF_LEAST_MS = 10 /* a pause of 0 must not spin */ };

static struct cleaner_options options_of(const struct broker *b, const struct config *c)
{
    int64_t backoff = config_int(c, "log.cleaner.backoff.ms");
    return (struct cleaner_options){
        .logs = b->logs,
        .clock = b->clock,
        .threads = (int)config_int(c, "log.cleaner.threads"),
        .dedupe_bytes = config_int(c, "log.cleaner.dedupe.buffer.size"),
        .load_factor = config_double(c, "log.cleaner.io.buffer.load.factor"),
        .io_buffer_bytes = config_int(c, "log.cleaner.io.buffer.size"),
        .max_bytes_per_second = config_double(c, "log.cleaner.io.max.bytes.per.second"),
        .backoff_ms = backoff < BACKOFF_LEAST_MS ? BACKOFF_LEAST_MS : backoff,
    };
}

int broker_make_cleaner(struct broker *b, char *err, size_t err_n)
{
    const struct config *c = dynamic_config_ref(b->dynamic);
    struct cleaner_options o = options_of(b, c);
    bool enabled = config_bool(c, "log.cleaner.enable");
    config_unref(c);
    if (!enabled)
        return 0;
    int rc = cleaner_new(&o, &b->cleaner);
    if (rc == -EINVAL)
        snprintf(err, err_n,
                 "log.cleaner.dedupe.buffer.size and log.cleaner.io.buffer.load.factor leave no "
                 "room for keys; raise one of them");
    else if (rc)
        snprintf(err, err_n, "cannot make the log cleaner: %s", strerror(-rc));
    return rc;
}

int broker_start_cleaner(struct broker *b, char *err, size_t err_n)
{
    int rc = b->cleaner ? cleaner_start(b->cleaner) : 0;
    if (rc)
        snprintf(err, err_n, "cannot start the log cleaner: %s", strerror(-rc));
    return rc;
}

static bool same(const struct cleaner_options *a, const struct cleaner_options *b)
{
    return a->threads == b->threads && a->dedupe_bytes == b->dedupe_bytes &&
           a->load_factor == b->load_factor && a->io_buffer_bytes == b->io_buffer_bytes &&
           a->max_bytes_per_second == b->max_bytes_per_second && a->backoff_ms == b->backoff_ms;
}

int broker_cleaner_changed(struct broker *b, const struct config *old, const struct config *now)
{
    struct cleaner_options before = options_of(b, old), o = options_of(b, now);
    if (!b->cleaner || same(&before, &o))
        return 0;
    int rc = cleaner_set_options(b->cleaner, &o);
    if (rc == -EINVAL) {
        say_error("cleaner", "its settings leave no room for keys: it goes on as it was");
        rc = 0;
    }
    return rc;
}
