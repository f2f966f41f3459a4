/* dn.c - see dn.h. */
#include "net/dn.h"

#include <openssl/objects.h>
#include <string.h>

#include "base/buf.h"

static const char *keyword(int nid)
{
    static const struct {
        int nid;
        const char *name;
    } known[] = {
        {NID_commonName, "CN"},
        {NID_countryName, "C"},
        {NID_localityName, "L"},
        {NID_stateOrProvinceName, "ST"},
        {NID_streetAddress, "STREET"},
        {NID_organizationName, "O"},
        {NID_organizationalUnitName, "OU"},
        {NID_domainComponent, "DC"},
        {NID_userId, "UID"},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (known[i].nid == nid)
            return known[i].name;
    return NULL;
}

static bool put_value(const ASN1_STRING *value, struct buf *out)
{
    unsigned char *text;
    int n = ASN1_STRING_to_UTF8(&text, value);
    if (n < 0)
        return false;
    for (int i = 0; i < n; i++) {
        char c = (char)text[i];
        bool edge = c == ' ' && (i == 0 || i == n - 1);
        if (strchr(",=+<>#;\"\\", c) || edge)
            buf_put(out, "\\", 1);
        buf_put(out, &c, 1);
    }
    bool whole = memchr(text, 0, (size_t)n) == NULL; /* nobody's name has a NUL in it */
    OPENSSL_free(text);
    return whole;
}

static bool put_unknown(const ASN1_OBJECT *type, const ASN1_STRING *value, struct buf *out)
{
    char number[128];
    unsigned char *der = NULL;
    if (OBJ_obj2txt(number, sizeof(number), type, 1) <= 0)
        return false;
    int n = i2d_ASN1_TYPE(
        &(ASN1_TYPE){.type = ASN1_STRING_type(value), .value.asn1_string = (ASN1_STRING *)value},
        &der);
    buf_printf(out, "%s=#", number);
    for (int i = 0; i < n; i++)
        buf_printf(out, "%02x", der[i]);
    OPENSSL_free(der);
    return n > 0;
}

char *dn_text(const X509_NAME *name)
{
    struct buf out = BUF_INIT;
    bool ok = true;
    int set = -1;
    for (int i = X509_NAME_entry_count(name) - 1; ok && i >= 0; i--) {
        const X509_NAME_ENTRY *e = X509_NAME_get_entry(name, i);
        const ASN1_OBJECT *type = X509_NAME_ENTRY_get_object(e);
        const ASN1_STRING *value = X509_NAME_ENTRY_get_data(e);
        const char *known = keyword(OBJ_obj2nid(type));
        if (out.len)
            buf_put(&out, X509_NAME_ENTRY_set(e) == set ? "+" : ",", 1);
        set = X509_NAME_ENTRY_set(e);
        if (known) {
            buf_printf(&out, "%s=", known);
            ok = put_value(value, &out);
        } else {
            ok = put_unknown(type, value, &out);
        }
    }
    buf_put_i8(&out, 0);
    if (ok && !out.failed)
        return (char *)buf_take(&out, &(size_t){0});
    buf_free(&out);
    return NULL;
}
