/* scram.h - what SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, 7677) compute, and the form in which
 * Kafka stores a user's credential.
 *
 * The password is UTF-8 as it is: no SASLprep, as in Kafka. All functions here are pure; those
 * that say "slow" take some milliseconds.
 *
 * ERRORS  those that return bool fail when libcrypto has no memory, or does not have the hash.
 * THREADS  any: no state. */
#ifndef SASL_SCRAM_H
#define SASL_SCRAM_H

#include "base/arena.h"
#include "sasl/mechanism.h"

enum {
    SCRAM_HASH_MAX = 64,
    SCRAM_SALT_MAX = 256,
    SCRAM_MIN_ITERATIONS = 4096,
    SCRAM_MAX_ITERATIONS = 16384,    /* of new credentials */
    SCRAM_MOST_ITERATIONS = 1 << 20, /* that a client works for a server that asks for more */
};

struct scram_key {
    uint8_t b[SCRAM_HASH_MAX]; /* scram_hash_len of them */
};

/* What a server knows of a user. */
struct scram_credential {
    uint8_t salt[SCRAM_SALT_MAX];
    int salt_len;
    struct scram_key stored_key, server_key;
    int32_t iterations;
};

int scram_hash_len(enum sasl_mechanism m);
/* The protocol's number of a mechanism (1, 2), and back; false: there is no such. */
int8_t scram_code(enum sasl_mechanism m);
bool scram_of_code(int8_t code, enum sasl_mechanism *out);

/* PBKDF2. Slow. */
bool scram_salted_password(enum sasl_mechanism m, struct str password, struct bytes salt,
                           int iterations, struct scram_key *out);
/* From the salted password. */
bool scram_client_key(enum sasl_mechanism m, const struct scram_key *salted, struct scram_key *out);
bool scram_server_key(enum sasl_mechanism m, const struct scram_key *salted, struct scram_key *out);
bool scram_stored_key(enum sasl_mechanism m, const struct scram_key *client_key,
                      struct scram_key *out);
bool scram_hmac(enum sasl_mechanism m, const struct scram_key *key, struct str text,
                struct scram_key *out);
/* a ^= b */
void scram_xor(enum sasl_mechanism m, struct scram_key *a, const struct scram_key *b);
/* In a time that does not tell where they differ. */
bool scram_equal(enum sasl_mechanism m, const struct scram_key *a, const struct scram_key *b);

/* Salt: at most SCRAM_SALT_MAX bytes. */
bool scram_credential_of_salted(enum sasl_mechanism m, const struct scram_key *salted,
                                struct bytes salt, int iterations, struct scram_credential *out);
/* With a salt of its own. Slow. */
bool scram_credential_make(enum sasl_mechanism m, struct str password, int iterations,
                           struct scram_credential *out);
/* "salt=...,stored_key=...,server_key=...,iterations=4096", in the arena; null without memory. */
struct str scram_credential_format(enum sasl_mechanism m, const struct scram_credential *c,
                                   struct arena *a);
/* The four in any order. false: not that, keys of another length, or no memory. */
bool scram_credential_parse(enum sasl_mechanism m, struct str text, struct arena *a,
                            struct scram_credential *out);

/* A new one, printable, of 144 random bits; in the arena. Null without memory or randomness. */
struct str scram_nonce(struct arena *a);

#endif
