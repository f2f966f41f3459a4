/* zookeeper_acl.c - see zookeeper_acl.h. */
#include "metadata/zookeeper_acl.h"

#include <stddef.h>
#include <string.h>

/* Credentials and passwords lie here. */
static const char *const private_trees[] = {"/config/users", "/config/brokers",
                                            "/delegation_token/tokens"};

static bool inside(const char *path, const char *tree)
{
    size_t n = strlen(tree);
    return strncmp(path, tree, n) == 0 && (!path[n] || path[n] == '/');
}

enum node_access zookeeper_node_access(const char *path, bool protect)
{
    if (!protect || strcmp(path, "/consumers") == 0) /* old consumers write there themselves */
        return NODE_OPEN;
    for (size_t i = 0; i < sizeof(private_trees) / sizeof(private_trees[0]); i++)
        if (inside(path, private_trees[i]))
            return NODE_PRIVATE;
    return NODE_READABLE;
}
