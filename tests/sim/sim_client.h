/* sim_client.h - requests of simulated clients: blocking calls from fibers of the clients' host, on
 * connections of their own. */
#ifndef TESTS_SIM_SIM_CLIENT_H
#define TESTS_SIM_SIM_CLIENT_H

#include "base/arena.h"
#include "protocol/api.h"
#include "protocol/errors.h"
#include "sim.h"

struct client;
struct client *client_new(const char *name);
/* The answer, copied into the arena: 0 or -errno. */
int client_call(struct client *c, int broker, int16_t api_key, int max_version, const void *request,
                struct arena *a, const void **response);
/* From metadata of some broker, asked anew when `fresh`; -1: none known. */
int client_leader(struct client *c, const char *topic, int32_t partition, bool fresh);
/* The controller, as some broker knows it; -1. */
int client_controller(struct client *c);
int client_any_broker(void);

#endif
