/* scram_messages.h - the four messages of a SCRAM exchange, as text and taken apart.
 *
 *   client first   n,[a=<authzid>],n=<user>,r=<nonce>[,<extension>=<value>...]
 *   server first   r=<nonce of both>,s=<salt>,i=<iterations>
 *   client final   c=<base64 of what stands before n=>,r=<nonce of both>,p=<proof>
 *   server final   v=<signature> or e=<error>
 *
 * Names have "=" and "," as =3D and =2C. Channel binding and extensions that must be understood
 * (m=) are refused.
 *
 * OWNERSHIP  what is taken apart points into the message or the arena. Parsers return false when it
 * is not that message, or without memory.
 * THREADS  any: no state. */
#ifndef SASL_SCRAM_MESSAGES_H
#define SASL_SCRAM_MESSAGES_H

#include "sasl/scram.h"

struct scram_client_first {
    struct str gs2;     /* "n,," */
    struct str bare;    /* all behind it */
    struct str authzid; /* null: not given */
    struct str user, nonce;
    bool token_auth; /* the user is a delegation token */
};
struct scram_server_first {
    struct str nonce;
    struct bytes salt;
    int32_t iterations;
};
struct scram_client_final {
    struct str without_proof;
    struct bytes binding; /* the decoded c= */
    struct str nonce;
    struct bytes proof;
};
struct scram_server_final {
    struct str error; /* null: the signature counts */
    struct bytes signature;
};

bool scram_client_first_parse(struct str text, struct arena *a, struct scram_client_first *out);
bool scram_server_first_parse(struct str text, struct arena *a, struct scram_server_first *out);
bool scram_client_final_parse(struct str text, struct arena *a, struct scram_client_final *out);
bool scram_server_final_parse(struct str text, struct arena *a, struct scram_server_final *out);

/* "=" and "," written otherwise, and back; null: no such text, or no memory. */
struct str scram_name_encode(struct str name, struct arena *a);
struct str scram_name_decode(struct str text, struct arena *a);
/* Printable, without commas, not empty. */
bool scram_nonce_valid(struct str nonce);
/* client-first-bare "," server-first "," client-final-without-proof; null without memory. */
struct str scram_auth_message(struct str client_first_bare, struct str server_first,
                              struct str client_final_without_proof, struct arena *a);

#endif
