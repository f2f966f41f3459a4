/* jaas.c - see jaas.h. */
#include "sasl/jaas.h"

#include <ctype.h>
#include <errno.h>
#include <strings.h>

enum { MODULES_MAX = 16, OPTIONS_MAX = 10000 };

enum token { END, WORD, NUMBER, SIGN, UNENDED };

struct lexer {
    const char *at, *end;
    struct arena *arena;
    enum token token;
    char sign;       /* SIGN */
    struct str text; /* WORD */
};

static bool is_word(unsigned char c)
{
    return isalpha(c) || isdigit(c) || c >= 128 || (c && strchr("._-$", c));
}

static void skip_line(struct lexer *l)
{
    while (l->at < l->end && *l->at != '\n' && *l->at != '\r')
        l->at++;
}

static void skip_block(struct lexer *l)
{
    l->at += 2;
    while (l->at < l->end && !(l->at[0] == '*' && l->at + 1 < l->end && l->at[1] == '/'))
        l->at++;
    l->at = l->end - l->at > 2 ? l->at + 2 : l->end;
}

static void skip_space(struct lexer *l)
{
    while (l->at < l->end) {
        if ((unsigned char)*l->at <= ' ')
            l->at++;
        else if (*l->at == '/' && l->at + 1 < l->end && l->at[1] == '*')
            skip_block(l);
        else if (*l->at == '/')
            skip_line(l);
        else
            return;
    }
}

/* Behind the backslash. */
static char escape(struct lexer *l)
{
    static const char names[] = "abfnrtv", values[] = "\a\b\f\n\r\t\v";
    char c = *l->at++;
    if (c >= '0' && c <= '7') {
        int v = c - '0', most = c <= '3' ? 2 : 1;
        for (; most > 0 && l->at < l->end && *l->at >= '0' && *l->at <= '7'; most--)
            v = v * 8 + (*l->at++ - '0');
        return (char)v;
    }
    const char *at = c ? strchr(names, c) : NULL;
    return at ? values[at - names] : c;
}

static void quoted(struct lexer *l)
{
    char quote = *l->at++;
    char *out = arena_alloc(l->arena, (size_t)(l->end - l->at) + 1), *to = out;
    while (out && l->at < l->end && *l->at != quote && *l->at != '\n' && *l->at != '\r') {
        char c = *l->at++;
        *to++ = c == '\\' && l->at < l->end ? escape(l) : c;
    }
    l->token = out && l->at < l->end && *l->at == quote ? WORD : UNENDED;
    if (l->token == WORD) {
        *to = 0;
        l->text = (struct str){out, (int32_t)(to - out)};
        l->at++;
    }
}

static void next(struct lexer *l)
{
    skip_space(l);
    l->text = STR_NULL;
    if (l->at == l->end) {
        l->token = END;
    } else if (*l->at == '"' || *l->at == '\'') {
        quoted(l);
    } else if (!is_word((unsigned char)*l->at)) {
        l->token = SIGN;
        l->sign = *l->at++;
    } else {
        const char *from = l->at;
        while (l->at < l->end && is_word((unsigned char)*l->at))
            l->at++;
        l->token = isdigit((unsigned char)*from) || *from == '.' || *from == '-' ? NUMBER : WORD;
        l->text = arena_str(l->arena, (struct str){from, (int32_t)(l->at - from)});
    }
}

static int refuse(const char **problem, const char *text)
{
    *problem = text ? text : "no memory";
    return -EINVAL;
}

static bool is_flag(const struct lexer *l)
{
    static const char *const flags[] = {"required", "requisite", "sufficient", "optional"};
    for (size_t i = 0; l->token == WORD && i < sizeof(flags) / sizeof(*flags); i++)
        if (strcasecmp(l->text.p, flags[i]) == 0)
            return true;
    return false;
}

static bool is_sign(const struct lexer *l, char c)
{
    return l->token == SIGN && l->sign == c;
}

/* The lexer stands on the key. What is wrong names the option by its number: behind a value with a
 * blank and no quotes, what looks like a key is the rest of a password. */
static int parse_option(struct lexer *l, int number, struct jaas_option *out, const char **problem)
{
    if (l->token == UNENDED)
        return refuse(problem, "a quote does not end");
    if (l->token != WORD)
        return refuse(problem, "where a key=value or ; is due there is something else");
    out->key = l->text;
    next(l);
    bool is = is_sign(l, '=');
    if (is)
        next(l);
    if (is && l->token == UNENDED)
        return refuse(problem,
                      arena_printf(l->arena, "the quote of option %d does not end", number));
    if (!is || l->token != WORD)
        return refuse(problem,
                      arena_printf(l->arena, "option %d has no value (%s wants quotes)", number,
                                   is && l->token == NUMBER ? "one that begins like a number"
                                                            : "one with blanks or signs"));
    out->value = l->text;
    next(l);
    return 0;
}

static int grow(struct lexer *l, struct jaas_module *m)
{
    if (m->options_n & (m->options_n - 1))
        return 0; /* room for the next power of two */
    size_t room = m->options_n ? 2 * (size_t)m->options_n : 1;
    struct jaas_option *v = arena_array(l->arena, struct jaas_option, room);
    if (!v)
        return -ENOMEM;
    if (m->options_n)
        memcpy(v, m->options, (size_t)m->options_n * sizeof(*v));
    m->options = v;
    return 0;
}

/* The lexer stands on the module's name; afterwards behind its semicolon. */
static int parse_module(struct lexer *l, struct jaas_module *out, const char **problem)
{
    *out = (struct jaas_module){.name = l->text};
    if (l->token != WORD)
        return refuse(problem, "a login module's class is due");
    next(l);
    if (!is_flag(l))
        return refuse(problem, "behind the login module's class, one of required, requisite, "
                               "sufficient, optional is due");
    next(l);
    while (!is_sign(l, ';')) {
        if (l->token == END)
            return refuse(problem, "the semicolon at the end is missing");
        if (out->options_n == OPTIONS_MAX)
            return refuse(problem, "there are too many options");
        int rc = grow(l, out);
        if (!rc)
            rc = parse_option(l, out->options_n + 1, &out->options[out->options_n], problem);
        if (rc)
            return rc;
        out->options_n++;
    }
    next(l);
    return 0;
}

int jaas_parse(struct str text, struct arena *a, struct jaas_config *out, const char **problem)
{
    struct lexer l = {.at = text.p, .end = text.p + (text.len < 0 ? 0 : text.len), .arena = a};
    *out = (struct jaas_config){.modules = arena_array(a, struct jaas_module, MODULES_MAX)};
    *problem = NULL;
    if (!out->modules)
        return -ENOMEM;
    next(&l);
    if (l.token == END)
        return refuse(problem, "there is no login module in it");
    while (l.token != END) {
        if (out->modules_n == MODULES_MAX)
            return refuse(problem, "there are too many login modules");
        int rc = parse_module(&l, &out->modules[out->modules_n], problem);
        if (rc)
            return a->exhausted ? -ENOMEM : rc;
        out->modules_n++;
    }
    return a->exhausted ? -ENOMEM : 0;
}

const char *jaas_module_name(enum sasl_mechanism m)
{
    static const char *const names[SASL_MECHANISMS] = {
        [SASL_PLAIN] = "org.apache.kafka.common.security.plain.PlainLoginModule",
        [SASL_SCRAM_SHA_256] = "org.apache.kafka.common.security.scram.ScramLoginModule",
        [SASL_SCRAM_SHA_512] = "org.apache.kafka.common.security.scram.ScramLoginModule",
        [SASL_OAUTHBEARER] = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
        [SASL_GSSAPI] = "com.sun.security.auth.module.Krb5LoginModule",
    };
    return names[m];
}

int jaas_parse_for(struct str text, enum sasl_mechanism m, struct arena *a, struct jaas_module *out,
                   const char **problem)
{
    struct jaas_config c;
    int rc = jaas_parse(text, a, &c, problem);
    if (rc)
        return rc;
    *out = c.modules[0];
    if (c.modules_n != 1)
        return refuse(problem,
                      arena_printf(a, "there are %d login modules, and one is due", c.modules_n));
    if (str_eqz(out->name, jaas_module_name(m)))
        return 0;
    return refuse(problem, arena_printf(a, "the login module is %s, and for %s it is %s",
                                        out->name.p, sasl_mechanism_name(m), jaas_module_name(m)));
}

struct str jaas_get(const struct jaas_module *m, const char *key)
{
    for (int i = m->options_n - 1; i >= 0; i--)
        if (str_eqz(m->options[i].key, key))
            return m->options[i].value;
    return STR_NULL;
}
