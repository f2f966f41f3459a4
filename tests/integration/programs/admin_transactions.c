/* admin_transactions.c - the admin client's calls on transactions that no tool makes.
 *
 *   admin_transactions SERVERS fence ID...    "ID ERROR PRODUCER_ID EPOCH", a line for each
 *   admin_transactions SERVERS states ID...   "ID ERROR STATE COORDINATOR" */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kafka/admin.h>

static void fence(kafka_admin_t *a, const char *const *ids, size_t n)
{
    kafka_fenced_producer_t *out = calloc(n, sizeof *out);
    kafka_admin_fence_producers(a, ids, n, -1, out);
    for (size_t i = 0; out && i < n; i++)
        printf("%s %s %lld %d\n", ids[i], kafka_err_name(out[i].err), (long long)out[i].producer_id,
               (int)out[i].producer_epoch);
    free(out);
}

static void states(kafka_admin_t *a, const char *const *ids, size_t n)
{
    kafka_transaction_infos_t *infos = NULL;
    if (kafka_admin_describe_transactions(a, ids, n, -1, &infos) != KAFKA_OK)
        return;
    for (size_t i = 0; i < infos->n; i++)
        printf("%s %s %s %d\n", infos->v[i].transactional_id, kafka_err_name(infos->v[i].err),
               infos->v[i].state, (int)infos->v[i].coordinator);
    kafka_transaction_infos_free(infos);
}

int main(int argc, char **argv)
{
    char err[256];
    if (argc < 4)
        return 2;
    kafka_conf_t *conf = kafka_conf_new();
    kafka_conf_set(conf, "bootstrap.servers", argv[1], err, sizeof err);
    kafka_admin_t *a = kafka_admin_new(conf, err, sizeof err);
    if (!a) {
        fprintf(stderr, "%s\n", err);
        return 1;
    }
    const char *const *ids = (const char *const *)argv + 3;
    if (strcmp(argv[2], "fence") == 0)
        fence(a, ids, (size_t)argc - 3);
    else
        states(a, ids, (size_t)argc - 3);
    kafka_admin_close(a);
    kafka_conf_free(conf);
    return 0;
}
