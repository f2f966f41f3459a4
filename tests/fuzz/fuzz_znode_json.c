/* fuzz_znode_json.c - nodes written by strangers: refused or read; what is read and written again
 * reads back the same.
 *
 * INPUT  byte 0: which kind of node. Then its data.
 *
 * Rooms: acl metadata */
#include <errno.h>
#include <stdlib.h>

#include "acl/acl_node.h"
#include "metadata/token_node.h"
#include "metadata/znode.h"

#include "fuzz.h"

static int broker(struct bytes data, struct arena *a)
{
    struct broker_info b, again;
    int err = znode_broker_decode(data, 1, a, &b);
    if (err)
        return err;
    struct bytes out = znode_broker_encode(&b, -1, 1, a);
    /* a listener named twice has one protocol in the map, and a host may hold brackets */
    if (out.p && !znode_broker_decode(out, 1, a, &again))
        must(again.endpoints_n == b.endpoints_n && str_eq(again.rack, b.rack));
    return 0;
}

static int topic(struct bytes data, struct arena *a)
{
    struct topic_node t, again;
    int err = znode_topic_decode(data, a, &t);
    if (err)
        return err;
    must(znode_topic_decode(znode_topic_encode(&t, a), a, &again) == 0);
    must(uuid_eq(t.id, again.id) && t.partitions_n == again.partitions_n);
    for (int i = 0; i < t.partitions_n; i++) {
        must(t.partitions[i].partition == again.partitions[i].partition);
        must(id_list_eq(t.partitions[i].replicas, again.partitions[i].replicas));
        must(id_list_eq(t.partitions[i].adding, again.partitions[i].adding));
        must(id_list_eq(t.partitions[i].removing, again.partitions[i].removing));
        must(i == 0 || t.partitions[i].partition > t.partitions[i - 1].partition);
    }
    return 0;
}

static int partition(struct bytes data, struct arena *a)
{
    struct partition_node p, again;
    int err = znode_partition_decode(data, a, &p);
    if (err)
        return err;
    must(znode_partition_decode(znode_partition_encode(&p, a), a, &again) == 0);
    must(id_list_eq(p.isr, again.isr) && p.leader == again.leader &&
         p.leader_epoch == again.leader_epoch && p.recovering == again.recovering);
    return 0;
}

static int controller(struct bytes data, struct arena *a)
{
    struct controller_node c, again;
    int32_t epoch;
    if (!znode_epoch_decode(data, &epoch))
        must(epoch >= 0);
    int err = znode_controller_decode(data, &c);
    if (err)
        return err;
    must(znode_controller_decode(znode_controller_encode(&c, a), &again) == 0);
    must(c.broker == again.broker && c.kraft_epoch == again.kraft_epoch &&
         c.timestamp_ms == again.timestamp_ms);
    return 0;
}

static int config(struct bytes data, struct arena *a)
{
    struct config_list l, again;
    int err = znode_config_decode(data, a, &l);
    if (err)
        return err;
    struct bytes out = znode_config_encode(l, a);
    if (!out.p) /* a name with a NUL in it */
        return 0;
    must(znode_config_decode(out, a, &again) == 0);
    must(again.n <= l.n);
    return 0;
}

static int others(struct bytes data, struct arena *a)
{
    struct str path, id, again;
    struct producer_id_block block;
    int32_t version, status;
    if (!znode_config_change_decode(data, a, &path)) {
        struct bytes out = znode_config_change_encode(path, a);
        must(!out.p || (!znode_config_change_decode(out, a, &again) && str_eq(path, again)));
    }
    if (!znode_producer_ids_decode(data, &block))
        must(block.start >= 0 && block.end >= block.start);
    znode_cluster_id_decode(data, a, &id);
    znode_feature_decode(data, &version, &status);
    return 0;
}

static bool same_entries(const struct acl_node *x, const struct acl_node *y)
{
    bool same = x->n == y->n && x->strange_n == y->strange_n;
    for (int i = 0; same && i < x->n; i++)
        same = acl_entry_eq(&x->entries[i], &y->entries[i]);
    return same;
}

/* What is not known stays, though not always to the byte: a number may be written in another way.
 */
static int acls(struct bytes data, struct arena *a)
{
    struct acl_node node, again;
    int err = acl_node_decode(data, a, &node);
    if (err)
        return err;
    for (int i = 0; i < node.n; i++)
        must(node.entries[i].operation > ACL_OPERATION_ANY &&
             node.entries[i].permission > ACL_PERMISSION_ANY &&
             acl_principal_ok(node.entries[i].principal));
    must(acl_node_decode(acl_node_encode(&node, a), a, &again) == 0);
    must(same_entries(&node, &again));
    return 0;
}

static int acl_notices(struct bytes data, struct arena *a)
{
    for (int kind = ACL_LITERAL; kind <= ACL_PREFIXED; kind++) {
        struct acl_pattern p, again;
        if (acl_notice_decode(data, (enum acl_pattern_type)kind, a, &p))
            continue;
        struct bytes out = acl_notice_encode(&p, a);
        must(!out.p || (!acl_notice_decode(out, p.kind, a, &again) && acl_pattern_eq(&p, &again)));
        must(acl_node_path_parse(str_of(acl_node_path(&p, a)), &again) &&
             acl_pattern_eq(&p, &again));
    }
    return 0;
}

static int token(struct bytes data, struct arena *a)
{
    struct token_info t, again;
    int err = token_node_decode(data, a, &t);
    if (err)
        return err;
    must(token_node_decode(token_node_encode(&t, a), a, &again) == 0);
    must(str_eq(t.id, again.id) && str_eq(t.owner, again.owner) &&
         str_eq(t.requester, again.requester) && t.renewers_n == again.renewers_n);
    for (int i = 0; i < t.renewers_n; i++)
        must(str_eq(t.renewers[i], again.renewers[i]));
    must(t.issue_ms == again.issue_ms && t.max_ms == again.max_ms &&
         t.expiry_ms == again.expiry_ms);
    return 0;
}

static int (*const kinds[])(struct bytes data, struct arena *a) = {
    broker, topic, partition, controller, config, others, acls, acl_notices, token};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct arena a;
    if (n < 1)
        return 0;
    arena_init(&a, 0);
    uint8_t *data = malloc(n); /* exactly as long as it is, so that a byte too far is seen */
    if (n > 1)
        memcpy(data, p + 1, n - 1);
    int err = kinds[p[0] % KINDS]((struct bytes){data, (int32_t)(n - 1)}, &a);
    must(err == 0 || err == -EBADMSG);
    free(data);
    arena_free(&a);
    return 0;
}
