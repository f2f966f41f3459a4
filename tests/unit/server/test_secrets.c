/* Memory that is freed holds no secret any more: free and realloc of the whole process look for one
 * in what they are given. Where a sanitizer has its own, nothing is looked at. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/props.h"
#include "sasl/sasl_client.h"
#include "sasl/sasl_server.h"
#include "server/config.h"
#include "server/sasl_listener.h"
#include "server/tokens.h"
#include "unit.h"

#define SECRET "correct-horse-battery-staple"
#define LOGIN "org.apache.kafka.common.security.plain.PlainLoginModule required "

static const void *volatile wanted = SECRET;
static volatile size_t wanted_n = sizeof(SECRET) - 1;
/* Compilers know free, and that it touches nothing of ours. */
static volatile bool looking;
static volatile int left_behind, freed;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
#define LOOKS false
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define LOOKS false
#endif
#endif

#ifndef LOOKS
#define LOOKS true

void __libc_free(void *p);

void free(void *p)
{
    if (p && looking) {
        freed++;
        left_behind += memmem(p, malloc_usable_size(p), wanted, wanted_n) != NULL;
    }
    __libc_free(p);
}

void *realloc(void *p, size_t n)
{
    void *moved = malloc(n);
    if (moved && p) {
        size_t had = malloc_usable_size(p);
        memcpy(moved, p, had < n ? had : n);
        free(p);
    }
    return moved;
}
#endif

static void look_for(const void *secret, size_t n)
{
    wanted = secret;
    wanted_n = n;
    left_behind = freed = 0;
    looking = true;
}

static void nothing_was_left(void)
{
    looking = false;
    if (LOOKS)
        assert_true(freed > 0);
    assert_int_equal(left_behind, 0);
}

static void the_looking_finds(void **state)
{
    char *p = strdup(SECRET);
    __asm__ volatile("" : : "r"(p) : "memory"); /* what is freed unread need not be written */
    look_for(SECRET, sizeof(SECRET) - 1);
    free(p);
    looking = false;
    assert_int_equal(left_behind, LOOKS);
}

static void arenas_with_secrets_are_wiped(void **state)
{
    struct arena a;
    arena_init(&a, 0);
    a.secret = true;
    assert_non_null(arena_str(&a, STR_LIT(SECRET)).p);
    arena_alloc(&a, 100000);
    assert_non_null(arena_printf(&a, "%70000d%s", 1, SECRET));
    look_for(SECRET, sizeof(SECRET) - 1);
    arena_free(&a);
    nothing_was_left();
}

static void buffers_with_secrets_are_wiped_also_when_they_grow(void **state)
{
    struct buf b = {.secret = true};
    look_for(SECRET, sizeof(SECRET) - 1);
    for (int i = 0; i < 100; i++)
        buf_put(&b, SECRET, sizeof(SECRET));
    assert_false(b.failed);
    buf_free(&b);
    nothing_was_left();
}

static void values_of_properties_are_wiped(void **state)
{
    char path[] = "/tmp/kafkad-test-secrets-XXXXXX";
    int fd = mkstemp(path), line;
    assert_true(fd >= 0);
    for (int i = 0; i < 500; i++)
        dprintf(fd, "%d.ssl.keystore.password = %s\\\n  %s\n", i, SECRET, SECRET);
    close(fd);
    struct props *p = props_new();
    look_for(SECRET, sizeof(SECRET) - 1);
    assert_int_equal(props_load(p, path, &line), 0);
    struct props *copy = props_copy(p);
    props_set(p, "0.ssl.keystore.password", SECRET SECRET);
    props_set(p, "0.ssl.keystore.password", "x");
    props_remove(p, "1.ssl.keystore.password");
    props_free(copy);
    props_free(p);
    nothing_was_left();
    unlink(path);
}

static struct sasl_server_config *plain_config(void)
{
    char err[256] = "";
    struct sasl_server_config *c;
    struct sasl_server_settings s = {.mechanism = SASL_PLAIN,
                                     .jaas = LOGIN "user_alice=\"" SECRET "\";"};
    if (sasl_server_config_new(&s, &c, err, sizeof(err)) != 0)
        fail_msg("%s", err);
    return c;
}

static void logins_leave_nothing_behind(void **state)
{
    char err[256] = "";
    struct sasl_client_config *cc;
    struct sasl_client_settings s = {.mechanism = "PLAIN",
                                     .jaas = LOGIN "username=alice password=\"" SECRET "\";"};
    struct bytes token, answer;
    look_for(SECRET, sizeof(SECRET) - 1);
    struct sasl_server_config *sc = plain_config();
    if (sasl_client_config_new(&s, &cc, err, sizeof(err)) != 0)
        fail_msg("%s", err);
    struct sasl_client *client = sasl_client_new(cc);
    struct sasl_server *server = sasl_server_new(sc);
    assert_int_equal(sasl_client_step(client, BYTES_NULL, 1, &token), SASL_CONTINUE);
    assert_int_equal(sasl_server_step(server, token, 1, &answer), SASL_COMPLETE);
    sasl_server_free(server);
    sasl_client_free(client);
    sasl_client_config_free(cc);
    sasl_server_config_free(sc);
    nothing_was_left();
}

static void settings_leave_nothing_behind(void **state)
{
    static const struct {
        const char *key, *value;
    } settings[] = {
        {"broker.id", "1"},
        {"log.dirs", "/tmp/kafkad-test-none"},
        {"listeners", "SASL_PLAINTEXT://127.0.0.1:0"},
        {"inter.broker.listener.name", "SASL_PLAINTEXT"},
        {"sasl.enabled.mechanisms", "PLAIN,SCRAM-SHA-256"},
        {"sasl.mechanism.inter.broker.protocol", "PLAIN"},
        {"ssl.keystore.password", SECRET},
        {"delegation.token.secret.key", SECRET},
        {"sasl.jaas.config", LOGIN "username=a password=\"" SECRET "\" user_a=\"" SECRET "\";"},
    };
    char err[600] = "";
    struct config *c, *again;
    struct props *given = props_new();
    look_for(SECRET, sizeof(SECRET) - 1);
    for (size_t i = 0; i < sizeof(settings) / sizeof(*settings); i++)
        props_set(given, settings[i].key, settings[i].value);
    if (config_load(given, &c, err, sizeof(err)) != 0)
        fail_msg("%s", err);
    const struct props *none[LAYERS] = {NULL};
    if (config_with_dynamic(c, none, &again, err, sizeof(err)) != 0 ||
        sasl_listener_check(again, again->listeners, err, sizeof(err)) != 0)
        fail_msg("%s", err);
    config_free(again);
    config_free(c);
    nothing_was_left();
}

static void tokens_leave_nothing_behind(void **state)
{
    uint8_t hmac[TOKEN_HMAC_LEN];
    struct str who = STR_LIT("User:a");
    struct token_info info = {
        .id = STR_LIT("id"), .owner = who, .requester = who, .expiry_ms = 2, .max_ms = 3};
    assert_true(token_hmac(STR_LIT(SECRET), info.id, hmac));
    for (int of_key = 0; of_key < 2; of_key++) {
        look_for(of_key ? (const void *)SECRET : hmac, of_key ? sizeof(SECRET) - 1 : sizeof(hmac));
        struct tokens *t = tokens_new(SECRET, clock_real());
        assert_int_equal(tokens_put(t, &info), 0);
        info.expiry_ms++;
        assert_int_equal(tokens_put(t, &info), 0);
        tokens_free(t);
        nothing_was_left();
    }
}

UNIT_MAIN(unit_test(the_looking_finds), unit_test(arenas_with_secrets_are_wiped),
          unit_test(buffers_with_secrets_are_wiped_also_when_they_grow),
          unit_test(values_of_properties_are_wiped), unit_test(logins_leave_nothing_behind),
          unit_test(settings_leave_nothing_behind), unit_test(tokens_leave_nothing_behind))
