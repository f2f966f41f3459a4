/* acl_test.h - what tests of ACLs share: short forms of bindings and filters. */
#ifndef TESTS_ACL_TEST_H
#define TESTS_ACL_TEST_H

#include <stdio.h>
#include <string.h>

#include "acl/acl.h"

#include "unit.h"

/* "topic:name", with a '+' in front of the type for a prefixed one: "+topic:pre". */
static inline struct acl_pattern pattern(const char *text)
{
    const char *colon = strchr(text, ':');
    struct acl_pattern p = {.kind = *text == '+' ? ACL_PREFIXED : ACL_LITERAL};
    text += *text == '+';
    p.type = acl_resource_of_text((struct str){text, (int32_t)(colon - text)});
    p.name = str_of(colon + 1);
    return p;
}

static inline struct acl_entry entry(enum acl_permission permission, const char *principal,
                                     const char *operation, const char *host)
{
    return (struct acl_entry){str_of(principal), str_of(host),
                              acl_operation_of_text(str_of(operation)), permission};
}

static inline struct acl_binding binding(const char *text, enum acl_permission permission,
                                         const char *principal, const char *operation)
{
    return (struct acl_binding){pattern(text), entry(permission, principal, operation, "*")};
}

#endif
