/* scram_messages.c - see scram_messages.h. */
#include "sasl/scram_messages.h"

#include "base/utf8.h"
#include "sasl/base64.h"

/* ---- pieces ---- */

/* Up to the next comma or the end; moves on behind the comma. False: nothing is left. */
static bool next_piece(struct str *rest, struct str *piece)
{
    if (rest->len < 0)
        return false;
    const char *comma = rest->len > 0 ? memchr(rest->p, ',', (size_t)rest->len) : NULL;
    *piece = (struct str){rest->p, comma ? (int32_t)(comma - rest->p) : rest->len};
    if (comma)
        *rest = (struct str){comma + 1, rest->len - piece->len - 1};
    else
        *rest = STR_NULL;
    return true;
}

/* The value of "<letter>=<value>". */
static bool value_of(struct str piece, char letter, struct str *out)
{
    if (piece.len < 2 || piece.p[0] != letter || piece.p[1] != '=')
        return false;
    *out = (struct str){piece.p + 2, piece.len - 2};
    return true;
}

static bool next_value(struct str *rest, char letter, struct str *out)
{
    struct str piece;
    return next_piece(rest, &piece) && value_of(piece, letter, out);
}

/* <letter>=<something>, none of those that must be understood. */
static bool is_extension(struct str piece)
{
    char c = piece.len > 2 ? (char)(piece.p[0] | 32) : 0;
    return c >= 'a' && c <= 'z' && piece.p[0] != 'm' && memchr(piece.p, '=', (size_t)piece.len);
}

static bool all_extensions(struct str rest)
{
    struct str piece;
    while (next_piece(&rest, &piece))
        if (!is_extension(piece))
            return false;
    return true;
}

bool scram_nonce_valid(struct str nonce)
{
    for (int32_t i = 0; i < nonce.len; i++)
        if (nonce.p[i] <= ' ' || nonce.p[i] > '~' || nonce.p[i] == ',')
            return false;
    return nonce.len > 0;
}

/* ---- names ---- */

struct str scram_name_encode(struct str name, struct arena *a)
{
    char *out = arena_alloc(a, 3 * (size_t)name.len + 1), *to = out;
    if (!out)
        return STR_NULL;
    for (int32_t i = 0; i < name.len; i++) {
        char c = name.p[i];
        if (c != '=' && c != ',') {
            *to++ = c;
            continue;
        }
        memcpy(to, c == '=' ? "=3D" : "=2C", 3);
        to += 3;
    }
    *to = 0;
    return (struct str){out, (int32_t)(to - out)};
}

struct str scram_name_decode(struct str text, struct arena *a)
{
    char *out = arena_alloc(a, (size_t)text.len + 1), *to = out;
    if (!out || text.len == 0 || memchr(text.p, 0, (size_t)text.len) ||
        !utf8_valid(text.p, (size_t)text.len))
        return STR_NULL;
    for (int32_t i = 0; i < text.len; i++) {
        if (text.p[i] != '=') {
            *to++ = text.p[i];
            continue;
        }
        bool comma = text.len - i >= 3 && memcmp(text.p + i, "=2C", 3) == 0;
        if (!comma && !(text.len - i >= 3 && memcmp(text.p + i, "=3D", 3) == 0))
            return STR_NULL;
        *to++ = comma ? ',' : '=';
        i += 2;
    }
    *to = 0;
    return (struct str){out, (int32_t)(to - out)};
}

/* ---- messages ---- */

static bool says_token(struct str rest)
{
    struct str piece;
    while (next_piece(&rest, &piece))
        if (str_eqz(piece, "tokenauth=true"))
            return true;
    return false;
}

bool scram_client_first_parse(struct str text, struct arena *a, struct scram_client_first *out)
{
    struct str rest = text, piece, name;
    *out = (struct scram_client_first){.authzid = STR_NULL};
    if (!next_piece(&rest, &piece) || !str_eqz(piece, "n") || !next_piece(&rest, &piece))
        return false;
    if (piece.len > 0) {
        if (!value_of(piece, 'a', &name))
            return false;
        out->authzid = scram_name_decode(name, a);
        if (str_is_null(out->authzid))
            return false;
    }
    if (str_is_null(rest))
        return false;
    out->bare = rest;
    out->gs2 = (struct str){text.p, (int32_t)(rest.p - text.p)};
    if (!next_value(&rest, 'n', &name) || !next_value(&rest, 'r', &out->nonce) ||
        !scram_nonce_valid(out->nonce) || !all_extensions(rest))
        return false;
    out->token_auth = says_token(rest);
    out->user = scram_name_decode(name, a);
    return !str_is_null(out->user);
}

bool scram_server_first_parse(struct str text, struct arena *a, struct scram_server_first *out)
{
    struct str rest = text, salt, iterations;
    int64_t n = 0;
    if (!next_value(&rest, 'r', &out->nonce) || !scram_nonce_valid(out->nonce) ||
        !next_value(&rest, 's', &salt) || !next_value(&rest, 'i', &iterations) ||
        !all_extensions(rest) || iterations.len == 0)
        return false;
    for (int32_t i = 0; i < iterations.len; i++) {
        if (iterations.p[i] < '0' || iterations.p[i] > '9' || n > INT32_MAX)
            return false;
        n = n * 10 + (iterations.p[i] - '0');
    }
    out->salt = base64_decode(salt, a);
    out->iterations = (int32_t)n;
    return out->salt.len > 0 && n > 0 && n <= INT32_MAX;
}

bool scram_client_final_parse(struct str text, struct arena *a, struct scram_client_final *out)
{
    struct str rest = text, binding, piece, proof = STR_NULL;
    if (!next_value(&rest, 'c', &binding) || !next_value(&rest, 'r', &out->nonce) ||
        !scram_nonce_valid(out->nonce))
        return false;
    while (next_piece(&rest, &piece)) {
        if (value_of(piece, 'p', &proof))
            break;
        if (!is_extension(piece))
            return false;
    }
    if (str_is_null(proof) || !str_is_null(rest))
        return false;
    out->without_proof = (struct str){text.p, (int32_t)(piece.p - 1 - text.p)};
    out->binding = base64_decode(binding, a);
    out->proof = base64_decode(proof, a);
    return out->binding.len > 0 && out->proof.len > 0;
}

bool scram_server_final_parse(struct str text, struct arena *a, struct scram_server_final *out)
{
    struct str rest = text, piece, signature;
    *out = (struct scram_server_final){.error = STR_NULL, .signature = BYTES_NULL};
    if (!next_piece(&rest, &piece) || !all_extensions(rest))
        return false;
    if (value_of(piece, 'e', &out->error))
        return true;
    if (!value_of(piece, 'v', &signature))
        return false;
    out->signature = base64_decode(signature, a);
    return out->signature.len > 0;
}

struct str scram_auth_message(struct str client_first_bare, struct str server_first,
                              struct str client_final_without_proof, struct arena *a)
{
    struct str parts[] = {client_first_bare, server_first, client_final_without_proof};
    size_t n = 2;
    for (int i = 0; i < 3; i++)
        n += (size_t)parts[i].len;
    char *out = arena_alloc(a, n + 1), *to = out;
    if (!out)
        return STR_NULL;
    for (int i = 0; i < 3; i++) {
        memcpy(to, parts[i].p, (size_t)parts[i].len);
        to += parts[i].len;
        *to++ = i < 2 ? ',' : 0;
    }
    return (struct str){out, (int32_t)n};
}
