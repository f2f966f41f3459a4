/* principal_rules.c - see principal_rules.h. */
#include "net/principal_rules.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "net/group_regex.h"

struct rule {
    struct group_regex *pattern; /* NULL: DEFAULT */
    char *replacement;
    char letters; /* 'L', 'U', or 0 */
};

struct principal_rules {
    struct rule *rules;
    int n;
};

void principal_rules_free(struct principal_rules *r)
{
    if (!r)
        return;
    for (int i = 0; i < r->n; i++) {
        group_regex_free(r->rules[i].pattern);
        free(r->rules[i].replacement);
    }
    free(r->rules);
    free(r);
}

/* ---- parsing ---- */

/* Up to the next slash that no backslash stands before; NULL = there is none. */
static const char *to_slash(const char *at)
{
    for (; *at && *at != '/'; at++)
        if (*at == '\\' && at[1])
            at++;
    return *at ? at : NULL;
}

static const char *skip_blanks(const char *at)
{
    while (isspace((unsigned char)*at))
        at++;
    return at;
}

/* Behind "RULE:". The end of the rule, or NULL with a line in err. */
static const char *parse_rule(struct rule *rule, const char *at, char *err, size_t err_n)
{
    const char *slash = to_slash(at), *second = slash ? to_slash(slash + 1) : NULL;
    char why[120];
    if (!second) {
        snprintf(err, err_n, "a rule is not RULE:pattern/replacement/[L|U]");
        return NULL;
    }
    if (group_regex_new(at, (size_t)(slash - at), &rule->pattern, why, sizeof(why)) != 0) {
        snprintf(err, err_n, "the pattern %.*s is refused: %s", (int)(slash - at), at, why);
        return NULL;
    }
    rule->replacement = strndup(slash + 1, (size_t)(second - slash - 1));
    at = second + 1;
    if (*at == 'L' || *at == 'U')
        rule->letters = *at++;
    if (!rule->replacement)
        snprintf(err, err_n, "out of memory");
    return rule->replacement ? at : NULL;
}

static int parse(struct principal_rules *r, const char *at, char *err, size_t err_n)
{
    at = skip_blanks(at);
    while (*at) {
        struct rule *more = realloc(r->rules, (size_t)(r->n + 1) * sizeof(*more));
        if (!more)
            return -ENOMEM;
        r->rules = more;
        struct rule *rule = &more[r->n++];
        *rule = (struct rule){0};
        if (strncmp(at, "DEFAULT", 7) == 0)
            at += 7;
        else if (strncmp(at, "RULE:", 5) != 0)
            return snprintf(err, err_n, "a rule is neither DEFAULT nor RULE:..."), -EINVAL;
        else if (!(at = parse_rule(rule, at + 5, err, err_n)))
            return -EINVAL;
        at = skip_blanks(at);
        if (*at && *at != ',')
            return snprintf(err, err_n, "a comma must follow a rule, not %.20s", at), -EINVAL;
        at = skip_blanks(at + (*at == ','));
    }
    return 0;
}

int principal_rules_new(const char *text, struct principal_rules **out, char *err, size_t err_n)
{
    struct principal_rules *r = calloc(1, sizeof(*r));
    *out = NULL;
    int rc = r ? parse(r, text, err, err_n) : -ENOMEM;
    if (rc)
        principal_rules_free(r);
    else
        *out = r;
    return rc;
}

/* ---- applying ---- */

static void replace(const struct rule *rule, const char *dn,
                    const struct group_span spans[GROUP_REGEX_MAX], struct buf *out)
{
    int groups = group_regex_groups(rule->pattern);
    for (const char *p = rule->replacement; *p; p++) {
        if (*p == '\\' && p[1]) {
            buf_put(out, ++p, 1);
        } else if (*p == '$' && isdigit((unsigned char)p[1]) && p[1] - '0' <= groups) {
            const struct group_span *s = &spans[*++p - '0'];
            if (s->at >= 0)
                buf_put(out, dn + s->at, (size_t)(s->end - s->at));
        } else {
            buf_put(out, p, 1);
        }
    }
}

static void change_letters(char *p, char letters)
{
    for (; letters && *p; p++)
        *p = (char)(letters == 'L' ? tolower((unsigned char)*p) : toupper((unsigned char)*p));
}

char *principal_rules_apply(const struct principal_rules *r, const char *dn, int *err)
{
    *err = -EACCES;
    for (int i = 0; i < r->n; i++) {
        const struct rule *rule = &r->rules[i];
        struct group_span spans[GROUP_REGEX_MAX];
        struct buf out = BUF_INIT;
        int rc = rule->pattern ? group_regex_match(rule->pattern, dn, strlen(dn), spans) : 1;
        if (rc == 0)
            continue;
        *err = -ENOMEM;
        if (rc < 0)
            return NULL;
        if (rule->pattern)
            replace(rule, dn, spans, &out);
        else
            buf_put(&out, dn, strlen(dn));
        buf_put_i8(&out, 0);
        if (out.failed) {
            buf_free(&out);
            return NULL;
        }
        char *user = (char *)buf_take(&out, &(size_t){0});
        change_letters(user, rule->letters);
        return user;
    }
    return NULL;
}
