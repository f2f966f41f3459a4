/* registration.h - this broker's node under /brokers/ids: made at start and again with each new
 * session. Its creation's transaction id is the broker epoch.
 *
 * If the node is there already: owned by the present session, an answer had got lost and it is
 * ours; by an earlier session of this process, it is replaced; by anyone else (the predecessor's
 * session has not timed out yet, or another broker has this id), it is waited for, up to wait_ms.
 * THREADS  all on the executor, but broker_registrar_epoch, _run and _update. */
#ifndef METADATA_REGISTRATION_H
#define METADATA_REGISTRATION_H

#include "metadata/metadata_cache.h"
#include "metadata/store.h"

struct broker_registrar;

struct broker_registrar_options {
    struct store *store;
    struct executor *ex;
    const struct clock *clock;
    const struct broker_info *self; /* advertised endpoints, rack; copied */
    int32_t jmx_port;               /* -1 none */
    int64_t wait_ms;
    /* Each time it is registered, before anybody is told. On ex. May be NULL. */
    void (*registered)(void *arg, int64_t epoch);
    void *arg;
};
int broker_registrar_new(const struct broker_registrar_options *o, struct broker_registrar **out);
/* The node stays; the session takes it along. A registration under way is given up (-ECANCELED);
 * memory goes when what it asked is answered. Before the store is closed. */
void broker_registrar_free(struct broker_registrar *r);

/* status: 0 and the new epoch; -EEXIST the id is taken; -EADDRINUSE another broker advertises one
 * of our endpoints; -ESTALE; -errno. One at a time. A log line tells why. */
void broker_registrar_register(struct broker_registrar *r,
                               void (*done)(void *arg, int status, int64_t epoch), void *arg);
/* The same, waiting; `epoch` may be NULL. Not on the executor. @blocks */
int broker_registrar_run(struct broker_registrar *r, int64_t *epoch);
/* Other endpoints: the node is changed now, and has them whenever it is made again. 0 or -errno (a
 * node that is not there is no error: it comes with them). Not on the executor. @blocks */
int broker_registrar_update(struct broker_registrar *r, const struct broker_info *self);
/* Of the latest registration; -1 before the first. @thread any */
int64_t broker_registrar_epoch(const struct broker_registrar *r);

#endif
