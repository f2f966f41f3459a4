/* A peer's login by SASL, frame by frame: the test plays the broker with bytes. */
#include "net/peer_sasl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/list.h"
#include "protocol/api.h"
#include "protocol/errors.h"
#include "protocol/msg/api_versions.h"
#include "protocol/msg/sasl_authenticate.h"
#include "protocol/msg/sasl_handshake.h"
#include "sasl/sasl_server.h"
#include "sasl/scram.h"
#include "unit.h"

struct test {
    struct arena mem;
    struct peer_auth *auth;
    struct peer_exchange *x;
    struct writer out;
    char why[256];
    struct request_header header; /* of the last frame */
    struct reader body;
};

static struct test *begin(const char *mechanism, const char *module, bool again)
{
    struct test *t = calloc(1, sizeof(*t));
    struct sasl_client_config *c;
    char jaas[300];
    snprintf(jaas, sizeof(jaas), "%s required username=alice password=secret;", module);
    struct sasl_client_settings s = {.mechanism = mechanism, .jaas = jaas};
    assert_int_equal(sasl_client_config_new(&s, &c, t->why, sizeof(t->why)), 0);
    struct peer_auth_with with = {"h", 9092, "me", again};
    t->auth = peer_sasl_new(c, clock_real());
    t->x = t->auth->ops->begin(t->auth, &with);
    arena_init(&t->mem, 0);
    return t;
}

static void end(struct test *t)
{
    t->x->ops->free(t->x);
    peer_sasl_free(t->auth);
    writer_free(&t->out);
    arena_free(&t->mem);
    free(t);
}

static int step(struct test *t, const void *p, size_t n)
{
    writer_free(&t->out);
    t->out = WRITER_INIT;
    return t->x->ops->step(t->x, p, n, &t->out, t->why, sizeof(t->why));
}

/* The frame that it sent is a request of this API. */
static void expect(struct test *t, int16_t key, int version)
{
    t->body = reader_of(t->out.buf.p, t->out.buf.len);
    assert_int_equal(request_header_decode(&t->body, &t->header), 0);
    assert_int_equal(t->header.api_key, key);
    assert_int_equal(t->header.api_version, version);
    assert_true(str_eqz(t->header.client_id, "me"));
}

static int answer(struct test *t, const void *body)
{
    const struct api_desc *api = api_find(t->header.api_key);
    struct writer w = WRITER_INIT;
    int version = t->header.api_version;
    response_header_encode(&w, api_response_header_version(api, version), t->header.correlation_id);
    msg_encode(api->response, version, &w, body);
    int rc = step(t, w.buf.p, w.buf.len);
    writer_free(&w);
    return rc;
}

static int answer_versions(struct test *t, int handshake, int token)
{
    struct api_versions_response_api_key keys[2] = {
        {.api_key = 17, .max_version = (int16_t)handshake},
        {.api_key = 36, .max_version = (int16_t)token}};
    struct api_versions_response m;
    api_versions_response_init(&m);
    m.api_keys.v = handshake < 0 ? keys + 1 : keys;
    m.api_keys.n = (handshake >= 0) + (token >= 0);
    return answer(t, &m);
}

static int answer_handshake(struct test *t, int16_t error)
{
    struct str names[] = {STR_LIT("A"), STR_LIT("B")};
    struct sasl_handshake_response m = {.error_code = error};
    m.mechanisms.v = names;
    m.mechanisms.n = 2;
    return answer(t, &m);
}

static int answer_token(struct test *t, int16_t error, const char *text, struct bytes token,
                        int64_t lifetime_ms)
{
    struct sasl_authenticate_response m;
    sasl_authenticate_response_init(&m);
    m.error_code = error;
    m.error_message = str_of(text);
    m.auth_bytes = token;
    m.session_lifetime_ms = lifetime_ms;
    return answer(t, &m);
}

static struct bytes token_of(struct test *t)
{
    struct sasl_authenticate_request m;
    assert_int_equal(sasl_authenticate_request_decode(&m, t->header.api_version, &t->body, &t->mem),
                     0);
    return m.auth_bytes;
}

#define PLAIN "org.apache.kafka.common.security.plain.PlainLoginModule"
#define SCRAM "org.apache.kafka.common.security.scram.ScramLoginModule"
static const struct bytes empty = {(const uint8_t *)"", 0};

static void versions_handshake_token(void **state)
{
    static const int tokens[][2] = {{0, 0}, {1, 1}, {2, 2}, {9, 2}};
    for (size_t i = 0; i < 4; i++) {
        struct test *t = begin("PLAIN", PLAIN, false);
        assert_int_equal(step(t, NULL, 0), PEER_AUTH_MORE);
        expect(t, API_API_VERSIONS, 0);
        assert_int_equal(answer_versions(t, 1, tokens[i][0]), PEER_AUTH_MORE);
        expect(t, API_SASL_HANDSHAKE, 1);
        assert_int_equal(answer_handshake(t, 0), PEER_AUTH_MORE);
        expect(t, API_SASL_AUTHENTICATE, tokens[i][1]);
        struct bytes b = token_of(t);
        assert_int_equal(b.len, 13);
        assert_memory_equal(b.p, "\0alice\0secret", 13);
        assert_int_equal(answer_token(t, 0, NULL, empty, 100000), PEER_AUTH_DONE);
        int64_t again = t->x->ops->again_after_ms(t->x);
        if (tokens[i][1] == 0)
            assert_int_equal(again, 0);
        else
            assert_true(again >= 85000 && again <= 95000);
        end(t);
    }
}

static void bare_tokens_for_old_brokers(void **state)
{
    struct test *t = begin("PLAIN", PLAIN, false);
    step(t, NULL, 0);
    expect(t, API_API_VERSIONS, 0);
    assert_int_equal(answer_versions(t, 0, -1), PEER_AUTH_MORE);
    expect(t, API_SASL_HANDSHAKE, 0);
    assert_int_equal(answer_handshake(t, 0), PEER_AUTH_MORE);
    assert_int_equal(t->out.buf.len, 13);
    assert_int_equal(step(t, "", 0), PEER_AUTH_DONE);
    assert_int_equal(t->x->ops->again_after_ms(t->x), 0);
    end(t);
}

static void a_renewal_begins_with_the_handshake(void **state)
{
    struct test *t = begin("PLAIN", PLAIN, true);
    assert_int_equal(step(t, NULL, 0), PEER_AUTH_MORE);
    expect(t, API_SASL_HANDSHAKE, 1);
    assert_int_equal(answer_handshake(t, 0), PEER_AUTH_MORE);
    expect(t, API_SASL_AUTHENTICATE, 1);
    assert_int_equal(answer_token(t, 0, NULL, empty, 1), PEER_AUTH_DONE);
    assert_int_equal(t->x->ops->again_after_ms(t->x), 1);
    end(t);
}

static bool find(void *arg, enum sasl_mechanism m, struct str user, struct scram_credential *out)
{
    return scram_credential_make(m, STR_LIT("secret"), 4096, out);
}

static void scram_works_between_two_answers(void **state)
{
    struct sasl_server_settings s = {.mechanism = SASL_SCRAM_SHA_512, .credential = find};
    struct sasl_server_config *c;
    struct test *t = begin("SCRAM-SHA-512", SCRAM, false);
    struct bytes out;
    assert_int_equal(sasl_server_config_new(&s, &c, t->why, sizeof(t->why)), 0);
    struct sasl_server *server = sasl_server_new(c);
    step(t, NULL, 0);
    expect(t, API_API_VERSIONS, 0);
    answer_versions(t, 1, 2);
    expect(t, API_SASL_HANDSHAKE, 1);
    assert_int_equal(answer_handshake(t, 0), PEER_AUTH_MORE);
    expect(t, API_SASL_AUTHENTICATE, 2);
    assert_int_equal(sasl_server_step(server, token_of(t), 0, &out), SASL_CONTINUE);
    assert_int_equal(answer_token(t, 0, NULL, out, 0), PEER_AUTH_WORK);
    t->x->ops->work(t->x);
    assert_int_equal(step(t, NULL, 0), PEER_AUTH_MORE);
    expect(t, API_SASL_AUTHENTICATE, 2);
    assert_int_equal(sasl_server_step(server, token_of(t), 0, &out), SASL_COMPLETE);
    assert_int_equal(answer_token(t, 0, NULL, out, 0), PEER_AUTH_DONE);
    sasl_server_free(server);
    sasl_server_config_free(c);
    end(t);
}

static void check_why(struct test *t, int rc, int due, const char *words)
{
    assert_int_equal(rc, due);
    if (!strstr(t->why, "PLAIN, user alice: ") || !strstr(t->why, words) ||
        strstr(t->why, "secret"))
        fail_msg("%s", t->why);
    end(t);
}

/* Up to the frame whose answer is due. */
static struct test *at(int stage)
{
    struct test *t = begin("PLAIN", PLAIN, false);
    step(t, NULL, 0);
    expect(t, API_API_VERSIONS, 0);
    if (stage > 0) {
        answer_versions(t, 1, 2);
        expect(t, API_SASL_HANDSHAKE, 1);
    }
    if (stage > 1) {
        answer_handshake(t, 0);
        expect(t, API_SASL_AUTHENTICATE, 2);
    }
    return t;
}

static void what_goes_wrong_is_told(void **state)
{
    struct test *t = at(0);
    check_why(t, answer_versions(t, -1, 2), -EACCES, "no SASL on this listener");
    t = at(1);
    check_why(t, answer_handshake(t, KERR_UNSUPPORTED_SASL_MECHANISM), -EACCES, "only A, B");
    t = at(1);
    check_why(t, answer_handshake(t, KERR_ILLEGAL_SASL_STATE), -EACCES, "is there SASL");
    t = at(2);
    check_why(t, answer_token(t, KERR_SASL_AUTHENTICATION_FAILED, "go away", empty, 0), -EACCES,
              "go away");
    t = at(2);
    check_why(t, answer_token(t, KERR_SASL_AUTHENTICATION_FAILED, NULL, empty, 0), -EACCES,
              "SASL authentication failed");
    for (int stage = 0; stage < 3; stage++) {
        t = at(stage);
        check_why(t, step(t, "\0\0\0\x63xxxx", 8), -EPROTO, "does not decode");
        t = at(stage);
        check_why(t, step(t, "", 0), -EPROTO, "does not decode");
    }
}

UNIT_MAIN(unit_test(versions_handshake_token), unit_test(bare_tokens_for_old_brokers),
          unit_test(a_renewal_begins_with_the_handshake),
          unit_test(scram_works_between_two_answers), unit_test(what_goes_wrong_is_told))
