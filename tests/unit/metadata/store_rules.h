/* store_rules.h - the promises of store.h as tests that every form of the store passes: the
 * embedded one (test_embedded_store.c) and ZooKeeper (integration/zookeeper_store.c). Each runs on
 * an empty tree. */
#ifndef TESTS_METADATA_STORE_RULES_H
#define TESTS_METADATA_STORE_RULES_H

#include "metadata/store.h"

/* What a form brings along. */
struct store_rules {
    struct store *s;
    struct executor *ex; /* for watches and answers */
    bool simulated;      /* ex runs in whoever waits, so only one thread may */
    /* Nothing runs on ex until settle. */
    void (*hold)(struct store_rules *t);
    /* All that has been done is told: what it posted to ex has run. */
    void (*settle)(struct store_rules *t);
    /* Another session on the same tree; the test closes it. */
    struct store *(*attach)(struct store_rules *t);
    /* The session has ended, and the store knows. With ex held. */
    void (*expire)(struct store_rules *t, struct store *s);
};

struct store_rule {
    const char *name;
    void (*test)(void **state); /* *state: struct store_rules */
};
extern const struct store_rule store_rules[];
extern const size_t store_rules_n;

/* Runs them all, or those whose name matches; what cmocka_run_group_tests returns. */
int store_rules_run(const char *pattern, int (*setup)(void **state), int (*teardown)(void **state));

#endif
