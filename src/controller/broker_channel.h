/* broker_channel.h - how the controller reaches a broker with LeaderAndIsr, UpdateMetadata and
 * StopReplica: a queue in order, one request at a time, the same message structs whether the broker
 * is this process or another machine.
 * THREADS  the controller's. */
#ifndef CONTROLLER_BROKER_CHANNEL_H
#define CONTROLLER_BROKER_CHANNEL_H

#include <stdint.h>

struct histogram;

/* status 0 and the decoded response, or -errno and NULL; on the controller's executor. */
typedef void (*channel_cb)(void *arg, int status, const void *response);

struct broker_channel {
    int32_t broker_id;
    /* Queues the request, which must live until cb (the caller's arena). Responses come in order.
     */
    void (*send)(struct broker_channel *c, int16_t api_key, int version, const void *request,
                 channel_cb cb, void *arg);
    /* Ends the channel: no send afterwards. Each cb still comes, at once from inside or later on
     * the executor (what was not sent: -ECANCELED); the channel frees itself after the last. */
    void (*close)(struct broker_channel *c);
    /* How many requests have no answer yet, and how long (us) those that were sent had waited
     * before: borrowed, NULL where they do not wait to be sent. NULL: it does not know. */
    int (*waiting)(struct broker_channel *c, const struct histogram **waited_us);
};

#endif
