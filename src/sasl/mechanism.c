/* mechanism.c - see mechanism.h. */
#include "sasl/mechanism.h"

static const struct {
    const char *name;
    bool served;
} mechanisms[SASL_MECHANISMS] = {
    [SASL_PLAIN] = {"PLAIN", true},
    [SASL_SCRAM_SHA_256] = {"SCRAM-SHA-256", true},
    [SASL_SCRAM_SHA_512] = {"SCRAM-SHA-512", true},
    [SASL_OAUTHBEARER] = {"OAUTHBEARER", true},
    [SASL_GSSAPI] = {"GSSAPI", false},
};

const char *sasl_mechanism_name(enum sasl_mechanism m)
{
    return mechanisms[m].name;
}

bool sasl_mechanism_served(enum sasl_mechanism m)
{
    return mechanisms[m].served;
}

bool sasl_mechanism_find(struct str name, enum sasl_mechanism *out)
{
    for (int m = 0; m < SASL_MECHANISMS; m++) {
        if (!str_eqz(name, mechanisms[m].name))
            continue;
        *out = (enum sasl_mechanism)m;
        return true;
    }
    return false;
}
