/* Delegation tokens in memory and in the store: secrets, logins, look-ups, changes. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "metadata/embedded_store.h"
#include "server/broker_tokens.h"
#include "server/token_follow.h"
#include "unit.h"

struct world {
    struct sim_clock clock;
    struct store *s;
    struct tokens *t, *other; /* other: with the same secret, knows what is loaded */
    struct arena a;
};

static int begin(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    struct embedded_options o = {.clock = clock_real()};
    char err[256] = "";
    sim_clock_init(&w->clock, 1000);
    assert_int_equal(embedded_store_open(&o, &w->s, err, sizeof(err)), 0);
    w->t = tokens_new("secret", &w->clock.clock);
    w->other = tokens_new("secret", &w->clock.clock);
    arena_init(&w->a, 0);
    assert_int_equal(token_follow_load(w->s, w->t), 0);
    *state = w;
    return 0;
}

static int end(void **state)
{
    struct world *w = *state;
    tokens_free(w->t);
    tokens_free(w->other);
    store_close(w->s);
    arena_free(&w->a);
    free(w);
    return 0;
}

static struct token_info token(const char *id, const char *owner)
{
    static struct str renewers[] = {STR_LIT("User:r")};
    return (struct token_info){.id = str_of(id),
                               .owner = str_of(owner),
                               .requester = str_of(owner),
                               .renewers = renewers,
                               .renewers_n = 1,
                               .issue_ms = 1000,
                               .max_ms = 3000,
                               .expiry_ms = 2000};
}

/* RFC 4231, case 2. */
static void secrets(void **state)
{
    static const uint8_t begins[] = {0x16, 0x4b, 0x7a, 0x7b, 0xfc, 0xf8, 0x19, 0xe2};
    uint8_t hmac[TOKEN_HMAC_LEN];
    (void)state;
    assert_true(token_hmac(STR_LIT("Jefe"), STR_LIT("what do ya want for nothing?"), hmac));
    assert_memory_equal(hmac, begins, sizeof(begins));
}

static bool logs_in(struct world *w, enum sasl_mechanism m, const char *id, const char *user)
{
    struct sasl_token out;
    bool known = tokens_login(w->t, m, str_of(id), &w->a, &out);
    if (known) {
        assert_true(str_eqz(out.user, user));
        assert_int_equal(out.credential.iterations, SCRAM_MIN_ITERATIONS);
        assert_int_equal(out.expires_ms, 2000);
    }
    return known;
}

static void logins(void **state)
{
    struct world *w = *state;
    struct token_info a = token("a", "User:alice:x"), g = token("g", "Group:alice");
    assert_int_equal(tokens_put(w->t, &a), 0);
    assert_int_equal(tokens_put(w->t, &g), 0);
    assert_true(logs_in(w, SASL_SCRAM_SHA_256, "a", "alice:x"));
    assert_true(logs_in(w, SASL_SCRAM_SHA_512, "a", "alice:x"));
    assert_false(logs_in(w, SASL_SCRAM_SHA_256, "b", NULL));
    assert_false(logs_in(w, SASL_SCRAM_SHA_256, "g", NULL));
    sim_clock_advance(&w->clock, 1000); /* it expires at this moment, and is good */
    assert_true(logs_in(w, SASL_SCRAM_SHA_256, "a", "alice:x"));
    sim_clock_advance(&w->clock, 1);
    assert_false(logs_in(w, SASL_SCRAM_SHA_256, "a", NULL));
    tokens_remove(w->t, a.id);
    tokens_remove(w->t, a.id);
    assert_int_equal(tokens_find(w->t, a.id, &w->a, &a), -ENOENT);
}

static void found_by_their_hmac(void **state)
{
    struct world *w = *state;
    struct token_info a = token("a", "User:a"), b = token("b", "User:b"), out;
    uint8_t hmac[TOKEN_HMAC_LEN];
    struct bytes key = {hmac, TOKEN_HMAC_LEN};
    assert_int_equal(tokens_put(w->t, &a), 0);
    assert_int_equal(tokens_put(w->t, &b), 0);
    assert_true(tokens_hmac(w->t, b.id, hmac));
    assert_int_equal(tokens_find_hmac(w->t, key, &w->a, &out), 0);
    assert_true(str_eqz(out.owner, "User:b"));
    hmac[63] ^= 1;
    assert_int_equal(tokens_find_hmac(w->t, key, &w->a, &out), -ENOENT);
    key.len = 63;
    assert_int_equal(tokens_find_hmac(w->t, key, &w->a, &out), -ENOENT);
    assert_int_equal(tokens_find_hmac(w->t, BYTES_NULL, &w->a, &out), -ENOENT);
}

static int64_t expiry_in(struct world *w, struct tokens *t, const char *id)
{
    struct token_info out;
    return tokens_find(t, str_of(id), &w->a, &out) ? -1 : out.expiry_ms;
}

/* Each change is in the store, and known, and there is a notice of it. */
static void changes(void **state)
{
    struct world *w = *state;
    struct token_info a = token("a", "User:a");
    struct store_stat st;
    struct bytes notice;
    assert_int_equal(token_store_add(w->s, w->t, &a), 0);
    assert_int_equal(token_store_add(w->s, w->t, &a), -EEXIST);
    assert_int_equal(token_follow_load(w->s, w->other), 0);
    assert_int_equal(expiry_in(w, w->other, "a"), 2000);
    a.expiry_ms = 2500;
    assert_int_equal(token_store_set(w->s, w->t, &a), 0);
    assert_int_equal(expiry_in(w, w->t, "a"), 2500);
    assert_int_equal(expiry_in(w, w->other, "a"), 2000);
    assert_int_equal(token_follow_load(w->s, w->other), 0);
    assert_int_equal(expiry_in(w, w->other, "a"), 2500);
    assert_int_equal(token_store_remove(w->s, w->t, a.id), 0);
    assert_int_equal(expiry_in(w, w->t, "a"), -1);
    assert_int_equal(token_store_remove(w->s, w->t, a.id), -ENOENT);
    /* who renews what is gone does not bring it back */
    assert_int_equal(token_store_set(w->s, w->t, &a), -ENOENT);
    assert_int_equal(expiry_in(w, w->t, "a"), -1);
    assert_int_equal(store_get(w->s, PATH_TOKENS "/a", &notice, &st), -ENOENT);
    assert_int_equal(store_get(w->s, PATH_TOKEN_CHANGES "/token_change_0000000002", &notice, &st),
                     0);
    assert_int_equal(notice.len, 1);
    assert_memory_equal(notice.p, "a", 1);
    free((void *)notice.p);
}

static void expiry(void **state)
{
    static const struct {
        int64_t now, max, expiry;
        bool expired;
    } v[] = {{5, 10, 7, false}, {7, 10, 7, false}, {8, 10, 7, true}, {8, 7, 10, true}};
    (void)state;
    for (size_t i = 0; i < sizeof(v) / sizeof(*v); i++) {
        struct token_info t = {.max_ms = v[i].max, .expiry_ms = v[i].expiry};
        assert_int_equal(token_expired(&t, v[i].now), v[i].expired);
    }
}

/* A broker that starts with thousands of tokens must not make a credential, some milliseconds of
 * work, for each: only who logs in needs one, and only once. */
static void credentials_are_made_for_logins(void **state)
{
    struct world *w = *state;
    for (int i = 0; i < 3000; i++) {
        char id[16];
        snprintf(id, sizeof(id), "t%d", i);
        struct token_info one = token(id, "User:alice");
        assert_int_equal(tokens_put(w->t, &one), 0);
    }
    assert_int_equal(tokens_credentials(w->t), 0);
    struct sasl_token first, again;
    struct str id = STR_LIT("t7");
    struct token_info renewed = token("t7", "User:alice");
    assert_true(tokens_login(w->t, SASL_SCRAM_SHA_512, id, &w->a, &first));
    assert_int_equal(tokens_credentials(w->t), 1);
    renewed.expiry_ms = 2500;
    assert_int_equal(tokens_put(w->t, &renewed), 0); /* and it keeps it */
    assert_true(tokens_login(w->t, SASL_SCRAM_SHA_512, id, &w->a, &again));
    assert_int_equal(again.expires_ms, 2500);
    assert_memory_equal(&first.credential, &again.credential, sizeof(first.credential));
    assert_int_equal(tokens_credentials(w->t), 1);
    assert_true(logs_in(w, SASL_SCRAM_SHA_256, "t8", "alice"));
    assert_int_equal(tokens_credentials(w->t), 2);
}

/* ZooKeeper would end the connection over it. */
static void too_large_for_the_store(void **state)
{
    struct world *w = *state;
    static char long_name[40000] = "User:";
    static struct str many[30];
    struct token_info big = token("big", "User:a");
    memset(long_name + 5, 'x', sizeof(long_name) - 6);
    for (int i = 0; i < 30; i++)
        many[i] = str_of(long_name);
    big.renewers = many;
    big.renewers_n = 30;
    assert_int_equal(token_store_add(w->s, w->t, &big), -E2BIG);
    assert_int_equal(expiry_in(w, w->t, "big"), -1);
    big.renewers_n = 20;
    assert_int_equal(token_store_add(w->s, w->t, &big), 0);
}

/* Also when others have removed some of them before (a new controller and the old one). */
static void expired_ones_are_removed(void **state)
{
    static const char *const ids[] = {"a", "b", "c", "d", "e", "f"};
    struct world *w = *state;
    struct token_info *left;
    int n;
    for (int i = 0; i < 6; i++) {
        struct token_info one = token(ids[i], "User:a");
        one.expiry_ms = i == 5 ? 2900 : 2000;
        assert_int_equal(token_store_add(w->s, w->t, &one), 0);
    }
    for (int i = 0; i < 4; i++)
        assert_int_equal(token_store_remove(w->s, w->other, str_of(ids[i])), 0);
    assert_int_equal(token_store_remove_expired(w->s, w->t, 2500), 0);
    assert_int_equal(tokens_list(w->t, &w->a, &left, &n), 0);
    assert_int_equal(n, 1);
    assert_int_equal(expiry_in(w, w->t, "f"), 2900);
}

#define world_test(f) cmocka_unit_test_setup_teardown(f, begin, end)
UNIT_MAIN(unit_test(secrets), unit_test(expiry), world_test(logins),
          world_test(found_by_their_hmac), world_test(changes),
          world_test(credentials_are_made_for_logins), world_test(too_large_for_the_store),
          world_test(expired_ones_are_removed))
