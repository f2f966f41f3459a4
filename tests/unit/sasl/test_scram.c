/* SCRAM's numbers against RFC 7677 and the vectors of Kafka; stored credentials; messages. */
#include "sasl/scram_messages.h"

#include "sasl/base64.h"
#include "unit.h"

static struct arena mem;

static int setup(void **state)
{
    arena_init(&mem, 0);
    return 0;
}

static int teardown(void **state)
{
    arena_free(&mem);
    return 0;
}

static const char salt64[] = "W22ZaJ0SNY7soEsUEjb6gQ==";

static void check_credential(enum sasl_mechanism m, const char *stored, const char *server)
{
    struct scram_key salted;
    struct scram_credential c, again;
    struct bytes salt = base64_decode(str_of(salt64), &mem);
    assert_true(scram_salted_password(m, STR_LIT("pencil"), salt, 4096, &salted));
    assert_true(scram_credential_of_salted(m, &salted, salt, 4096, &c));
    const char *due = arena_printf(&mem, "salt=%s,stored_key=%s,server_key=%s,iterations=4096",
                                   salt64, stored, server);
    struct str text = scram_credential_format(m, &c, &mem);
    assert_string_equal(text.p, due);
    assert_true(scram_credential_parse(m, text, &mem, &again));
    assert_memory_equal(&again.stored_key, &c.stored_key, (size_t)scram_hash_len(m));
    assert_memory_equal(again.salt, c.salt, (size_t)c.salt_len);
    assert_int_equal(again.iterations, 4096);
}

static void keys_are_those_of_the_vectors(void **state)
{
    check_credential(SASL_SCRAM_SHA_256, "WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=",
                     "wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=");
    check_credential(
        SASL_SCRAM_SHA_512,
        "6AAub3065EYRmyFpM2RNwqK+eGnrkYuEWbXn19LsEmBqzu8QaCXNc1FwpnX9NhH2hK/60dzj9DoO5DvVkOHbvg==",
        "jZHbYjC1aHh0/hKbxyBuGFjDrgjgKTT1esA7awWiKcRZ0o/0b1yWEebBeSVkkCFewf91nLDfKF24mvD5nmE6rA==");
}

static void the_exchange_of_rfc_7677(void **state)
{
    const enum sasl_mechanism m = SASL_SCRAM_SHA_256;
    struct str auth = scram_auth_message(
        STR_LIT("n=user,r=rOprNGfwEbeRWgbNEkqO"),
        STR_LIT("r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,"
                "i=4096"),
        STR_LIT("c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"), &mem);
    struct scram_key salted, client, stored, server, signature, proof;
    assert_true(scram_salted_password(m, STR_LIT("pencil"), base64_decode(str_of(salt64), &mem),
                                      4096, &salted));
    assert_true(scram_client_key(m, &salted, &client) && scram_stored_key(m, &client, &stored) &&
                scram_server_key(m, &salted, &server));
    assert_true(scram_hmac(m, &stored, auth, &signature));
    proof = client;
    scram_xor(m, &proof, &signature);
    assert_string_equal(base64_encode(proof.b, 32, &mem).p,
                        "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=");
    assert_true(scram_hmac(m, &server, auth, &signature));
    assert_string_equal(base64_encode(signature.b, 32, &mem).p,
                        "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
}

#define K32 "WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY="

static void stored_credentials_that_are_none(void **state)
{
    static const char *const bad[] = {
        "",
        "salt=,stored_key=" K32 ",server_key=" K32,
        "salt=AA==,stored_key=" K32 ",server_key=" K32 ",iterations=",
        "salt=AA==,stored_key=" K32 ",server_key=" K32 ",iterations=0",
        "salt=AA==,stored_key=" K32 ",server_key=" K32 ",iterations=-4096",
        "salt=AA==,stored_key=" K32 ",server_key=" K32 ",iterations=99999999999999999999",
        "salt=AA==,stored_key=AA==,server_key=" K32 ",iterations=4096",
        "salt=A,stored_key=" K32 ",server_key=" K32 ",iterations=4096",
        "salt=AA==,salt=AA==,server_key=" K32 ",iterations=4096",
        "salt=AA==,stored_key=" K32 ",server_key=" K32 ",iterations=4096,more=1",
        "salt",
    };
    struct scram_credential c;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        if (scram_credential_parse(SASL_SCRAM_SHA_256, str_of(bad[i]), &mem, &c))
            fail_msg("taken: %s", bad[i]);
    /* keys of the other hash */
    assert_false(scram_credential_parse(
        SASL_SCRAM_SHA_512,
        STR_LIT("salt=AA==,stored_key=" K32 ",server_key=" K32 ",iterations=4096"), &mem, &c));
    assert_true(scram_credential_parse(
        SASL_SCRAM_SHA_256,
        STR_LIT("iterations=8192,server_key=" K32 ",stored_key=" K32 ",salt=AA=="), &mem, &c));
    assert_int_equal(c.iterations, 8192);
}

static void names_are_escaped_and_back(void **state)
{
    struct str out = scram_name_encode(STR_LIT("a=b,c"), &mem);
    assert_string_equal(out.p, "a=3Db=2Cc");
    assert_string_equal(scram_name_decode(out, &mem).p, "a=b,c");
    assert_true(str_is_null(scram_name_decode(STR_LIT("a=b"), &mem)));
    assert_true(str_is_null(scram_name_decode(STR_LIT("a="), &mem)));
    assert_true(str_is_null(scram_name_decode(STR_LIT("a=3d"), &mem)));
    assert_true(str_is_null(scram_name_decode(STR_LIT(""), &mem)));
    assert_true(str_is_null(scram_name_decode(STR_LIT("a\xff"), &mem)));
    assert_true(str_is_null(scram_name_decode(STR_LIT("a\0b"), &mem)));
}

static void client_first_messages(void **state)
{
    static const char *const bad[] = {
        "",
        "n",
        "n,",
        "n,,",
        "y,,n=u,r=x",
        "p=tls,,n=u,r=x",
        "n,u,n=u,r=x",
        "n,a=,n=u,r=x",
        "n,,n=,r=x",
        "n,,n=u",
        "n,,n=u,r=",
        "n,,r=x,n=u",
        "n,,n=u,r=x y",
        "n,,m=x,n=u,r=x",
        "n,,n=u,r=x,m=y",
        "n,,n=u,r=x,",
        "n,,n=u,r=x,1=y",
        "n,,n=u=,r=x",
    };
    struct scram_client_first m;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        if (scram_client_first_parse(str_of(bad[i]), &mem, &m))
            fail_msg("taken: %s", bad[i]);
    assert_true(scram_client_first_parse(STR_LIT("n,,n=us=2Cer,r=ab!"), &mem, &m));
    assert_string_equal(m.user.p, "us,er");
    assert_true(str_eqz(m.gs2, "n,,") && str_eqz(m.bare, "n=us=2Cer,r=ab!") &&
                str_eqz(m.nonce, "ab!") && str_is_null(m.authzid) && !m.token_auth);
    assert_true(scram_client_first_parse(STR_LIT("n,a=x,n=u,r=y,tokenauth=true"), &mem, &m));
    assert_true(str_eqz(m.authzid, "x") && str_eqz(m.gs2, "n,a=x,") && m.token_auth);
}

static void the_other_messages(void **state)
{
    static const char *const bad_first[] = {"",
                                            "r=x,s=AA==",
                                            "r=x,s=,i=1",
                                            "r=,s=AA==,i=1",
                                            "r=x,s=AA==,i=0",
                                            "r=x,s=AA==,i=",
                                            "r=x,s=AA==,i=1x",
                                            "m=y,r=x,s=AA==,i=1",
                                            "r=x,s=AA==,i=99999999999"};
    static const char *const bad_final[] = {"",
                                            "c=biws,r=x",
                                            "c=,r=x,p=AA==",
                                            "c=biws,p=AA==",
                                            "c=biws,r=x,p=",
                                            "c=biws,r=x,p=AA==,x=y",
                                            "c=biws,r=x,p=A",
                                            "r=x,c=biws,p=AA=="};
    struct scram_server_first f;
    struct scram_client_final m;
    struct scram_server_final v;
    for (size_t i = 0; i < sizeof(bad_first) / sizeof(*bad_first); i++)
        assert_false(scram_server_first_parse(str_of(bad_first[i]), &mem, &f));
    for (size_t i = 0; i < sizeof(bad_final) / sizeof(*bad_final); i++)
        assert_false(scram_client_final_parse(str_of(bad_final[i]), &mem, &m));
    assert_true(scram_server_first_parse(STR_LIT("r=xy,s=AQI=,i=4096,e=1"), &mem, &f));
    assert_true(str_eqz(f.nonce, "xy") && f.salt.len == 2 && f.iterations == 4096);
    assert_true(scram_client_final_parse(STR_LIT("c=biws,r=xy,a=b,p=AQI="), &mem, &m));
    assert_true(str_eqz(m.without_proof, "c=biws,r=xy,a=b") && m.proof.len == 2);
    assert_true(scram_server_final_parse(STR_LIT("e=other-error"), &mem, &v));
    assert_true(str_eqz(v.error, "other-error"));
    assert_true(scram_server_final_parse(STR_LIT("v=AQI="), &mem, &v));
    assert_true(str_is_null(v.error) && v.signature.len == 2);
    assert_false(scram_server_final_parse(STR_LIT("v="), &mem, &v));
    assert_false(scram_server_final_parse(STR_LIT("x=AQI="), &mem, &v));
}

static void base64_both_alphabets(void **state)
{
    static const char *const text[] = {"", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE="};
    for (size_t n = 0; n < 6; n++) {
        assert_string_equal(base64_encode("foobar", n, &mem).p, text[n]);
        struct bytes b = base64_decode(str_of(text[n]), &mem);
        assert_int_equal(b.len, n);
        assert_memory_equal(b.p, "foobar", n);
        struct str u = base64_url_encode("\xff\xfe\xfd\xfc\xfb\xfa", n, &mem);
        b = base64_url_decode(u, &mem);
        assert_int_equal(b.len, n);
        assert_memory_equal(b.p, "\xff\xfe\xfd\xfc\xfb\xfa", n);
    }
    static const char *const bad[] = {
        "Z", "Zg", "Zg=", "Zh==", "Zm9=", "====", "Zg==Zg==", "Z*==", "Zm 9v"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        assert_true(base64_decode(str_of(bad[i]), &mem).len < 0);
    assert_int_equal(base64_url_decode(STR_LIT("Zg=="), &mem).len, 1);
    assert_int_equal(base64_url_decode(STR_LIT("-_8"), &mem).len, 2);
    assert_true(base64_url_decode(STR_LIT("+/8"), &mem).len < 0);
    assert_true(base64_url_decode(STR_LIT("Zg="), &mem).len < 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
UNIT_MAIN(T(keys_are_those_of_the_vectors), T(the_exchange_of_rfc_7677),
          T(stored_credentials_that_are_none), T(names_are_escaped_and_back),
          T(client_first_messages), T(the_other_messages), T(base64_both_alphabets))
