/* dn.h - the name in a certificate as Java writes it (RFC 2253): "CN=a,OU=b,C=c".
 *
 * Attributes: CN, C, L, ST, STREET, O, OU, DC, UID; others as their number and "#" with the value's
 * bytes in hex.
 *
 * THREADS  any: no state. */
#ifndef NET_DN_H
#define NET_DN_H

#include <openssl/x509.h>

/* Owned text; NULL without memory, or when a value is no text. */
char *dn_text(const X509_NAME *name);

#endif
