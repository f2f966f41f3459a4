/* handle_sasl.c - SaslHandshake and SaslAuthenticate where no login is due: on listeners without
 * SASL, and after one (sasl_gate.c has the logins). Both are answered, and the connection stays. */
#include "protocol/msg/sasl_authenticate.h"
#include "protocol/msg/sasl_handshake.h"
#include "server/handlers.h"
#include "server/request.h"

void handle_sasl_handshake(struct request *req)
{
    struct sasl_handshake_response out;
    sasl_handshake_response_init(&out);
    out.error_code = KERR_ILLEGAL_SASL_STATE;
    request_respond(req, &out);
}

void handle_sasl_authenticate(struct request *req)
{
    struct sasl_authenticate_response out;
    sasl_authenticate_response_init(&out);
    out.error_code = KERR_ILLEGAL_SASL_STATE;
    out.error_message =
        STR_LIT("SaslAuthenticate request received after successful authentication");
    request_respond(req, &out);
}
