/* kafka-delegation-tokens - makes, renews, ends and lists delegation tokens. */
#include <stdio.h>
#include <string.h>

#include "tools/tool_conf.h"
#include "tools/tool_date.h"
#include "tools/tool_io.h"
#include "tools/tool_visible.h"

struct args {
    const char *bootstrap, *config, *secret;
    struct tool_texts owners, renewers;
    int64_t life, renewal, expiry;
    bool create, renew, expire, describe;
};

#define ROW(field, flag, how, value, text, ...) \
    TOOL_ROW(struct args, field, flag, how, value, text, __VA_ARGS__)

static const struct tool_option options[] = {
    ROW(bootstrap, "bootstrap-server", TOOL_TEXT, "String: server(s) to use for bootstrapping",
        "The brokers to connect to, host:port[,host:port...].", .required = true),
    ROW(config, "command-config", TOOL_TEXT, "String: Admin client property file",
        "Property file with settings for the admin client. Only who has logged in, by SASL or with "
        "a certificate, and not with a token, may ask for tokens: how is told here.",
        .required = true),
    ROW(create, "create", TOOL_FLAG, NULL,
        "Create a new delegation token. Use --renewer-principal option to pass renewer "
        "principals."),
    ROW(renew, "renew", TOOL_FLAG, NULL,
        "Renew delegation token. Use --renew-time-period option to set renew time period."),
    ROW(expire, "expire", TOOL_FLAG, NULL,
        "Expire delegation token. Use --expiry-time-period option to expire the token."),
    ROW(describe, "describe", TOOL_FLAG, NULL,
        "Describe the delegation tokens that the principals of --owner-principal own, asked for or "
        "may renew; without it all that the user may see."),
    ROW(owners, "owner-principal", TOOL_TEXTS, "String: owner-principal",
        "Owner of a token, in principalType:name format. Creating one for somebody else needs the "
        "right CreateTokens on him."),
    ROW(renewers, "renewer-principal", TOOL_TEXTS, "String: renewer-principal",
        "Who, besides its owner, may renew the new token, in principalType:name format."),
    ROW(life, "max-life-time-period", TOOL_INT, "Long: ms",
        "Max life period for the token in milliseconds. -1: the server's "
        "delegation.token.max.lifetime.ms."),
    ROW(renewal, "renew-time-period", TOOL_INT, "Long: ms",
        "Renew time period in milliseconds. -1: the server's delegation.token.expiry.time.ms."),
    ROW(expiry, "expiry-time-period", TOOL_INT, "Long: ms",
        "Expiry time period in milliseconds. -1: the token is removed at once."),
    ROW(secret, "hmac", TOOL_TEXT, "String: hmac", "HMAC of the delegation token, in base64."),
};

static const struct tool tool = {
    .name = "kafka-delegation-tokens",
    .about = "This tool helps to create, renew, expire, or describe delegation tokens.",
    .options = options,
    .options_n = sizeof options / sizeof *options,
};

/* ---- flags that need or exclude each other ---- */

static void needs(const struct args *a, const char *flag)
{
    if (!tool_given(&tool, a, flag))
        tool_usage_error(&tool, "Missing required argument \"[%s]\"", flag);
}

static void check_args(const struct args *a)
{
    static const char *const not_create[] = {"hmac", "renew-time-period", "expiry-time-period",
                                             NULL};
    static const char *const not_renew[] = {"renewer-principal", "max-life-time-period",
                                            "expiry-time-period", "owner-principal", NULL};
    static const char *const not_expire[] = {"renewer-principal", "max-life-time-period",
                                             "renew-time-period", "owner-principal", NULL};
    static const char *const not_describe[] = {"renewer-principal", "max-life-time-period", "hmac",
                                               "renew-time-period", "expiry-time-period",   NULL};
    if (a->create + a->renew + a->expire + a->describe != 1)
        tool_usage_error(&tool, "Command must include exactly one action: --create, --renew, "
                                "--expire or --describe");
    if (a->create)
        needs(a, "max-life-time-period");
    if (a->renew || a->expire)
        needs(a, "hmac");
    if (a->renew)
        needs(a, "renew-time-period");
    if (a->expire)
        needs(a, "expiry-time-period");
    tool_excludes(&tool, a, "create", not_create);
    tool_excludes(&tool, a, "renew", not_renew);
    tool_excludes(&tool, a, "expire", not_expire);
    tool_excludes(&tool, a, "describe", not_describe);
    if (a->create && a->owners.n > 1)
        tool_usage_error(&tool, "--owner-principal: a token has one owner");
}

/* ---- output ---- */

enum { DATE_MAX = 64 };

static const char *date(char out[DATE_MAX], int64_t ms)
{
    tool_date(out, DATE_MAX, "yyyy-MM-dd'T'HH:mm", ms);
    return out;
}

/* As Java prints a list: [a, b]. Returns the characters. */
static int print_list(const char *const *v, size_t n)
{
    int width = printf("[");
    for (size_t i = 0; i < n; i++)
        width += printf("%s%s", i ? ", " : "", tool_shown(v[i]));
    return width + printf("]");
}

static void print_token(const kafka_token_t *t)
{
    char issued[DATE_MAX], expires[DATE_MAX], ends[DATE_MAX];
    printf("\n%-15s %-30s %-15s %-15s ", tool_shown(t->id), t->secret, tool_shown(t->owner),
           tool_shown(t->requester));
    int width = print_list(t->renewers, t->renewers_n);
    printf("%*s %-15s %-15s %-15s\n", width < 25 ? 25 - width : 0, "", date(issued, t->issue_ms),
           date(expires, t->expiry_ms), date(ends, t->max_ms));
}

static void print_tokens(const kafka_tokens_t *tokens)
{
    printf("\n%-15s %-30s %-15s %-15s %-25s %-15s %-15s %-15s\n", "TOKENID", "HMAC", "OWNER",
           "REQUESTER", "RENEWERS", "ISSUEDATE", "EXPIRYDATE", "MAXDATE");
    for (size_t i = 0; i < tokens->n; i++)
        print_token(&tokens->v[i]);
}

/* ---- actions ---- */

static void check(kafka_err_t err)
{
    if (err != KAFKA_OK)
        tool_die("Error while executing delegation token command : %s", tool_error(err));
}

static void create(kafka_admin_t *admin, const struct args *a, int64_t timeout)
{
    kafka_tokens_t *made;
    printf("Calling create token operation with renewers :");
    print_list(a->renewers.v, a->renewers.n);
    printf(" , max-life-time-period :%lld\n", (long long)a->life);
    check(kafka_admin_create_token(admin, a->owners.n ? a->owners.v[0] : NULL, a->renewers.v,
                                   a->renewers.n, a->life, timeout, &made));
    printf("Created delegation token with tokenId : %s\n", tool_shown(made->v[0].id));
    print_tokens(made);
    kafka_tokens_free(made);
}

static void renew(kafka_admin_t *admin, const struct args *a, int64_t timeout)
{
    char until[DATE_MAX];
    int64_t expiry;
    printf("Calling renew token operation with hmac :%s , renew-time-period :%lld\n", a->secret,
           (long long)a->renewal);
    check(kafka_admin_renew_token(admin, a->secret, a->renewal, timeout, &expiry));
    printf("Completed renew operation. New expiry date : %s\n", date(until, expiry));
}

static void expire(kafka_admin_t *admin, const struct args *a, int64_t timeout)
{
    char until[DATE_MAX];
    int64_t expiry;
    printf("Calling expire token operation with hmac :%s , expire-time-period :%lld\n", a->secret,
           (long long)a->expiry);
    check(kafka_admin_expire_token(admin, a->secret, a->expiry, timeout, &expiry));
    printf("Completed expire operation. New expiry date : %s\n", date(until, expiry));
}

static void describe(kafka_admin_t *admin, const struct args *a, int64_t timeout)
{
    kafka_tokens_t *all;
    if (a->owners.n) {
        printf("Calling describe token operation for owners: ");
        print_list(a->owners.v, a->owners.n);
        printf("\n");
    } else {
        printf("Calling describe token operation for current user.\n");
    }
    check(kafka_admin_describe_tokens(admin, a->owners.n ? a->owners.v : NULL, a->owners.n, timeout,
                                      &all));
    printf("Total number of tokens : %zu", all->n);
    print_tokens(all);
    kafka_tokens_free(all);
}

int main(int argc, char **argv)
{
    static struct args a;
    tool_start();
    tool_parse(&tool, argc, argv, &a);
    check_args(&a);
    kafka_conf_t *conf = tool_conf_new();
    tool_conf_load(conf, a.config);
    tool_conf_servers(&tool, conf, a.bootstrap, NULL);
    kafka_admin_t *admin = tool_admin(conf);
    int64_t timeout = tool_api_timeout(conf);
    (a.create ? create : a.renew ? renew : a.expire ? expire : describe)(admin, &a, timeout);
    kafka_admin_close(admin);
    kafka_conf_free(conf);
    return tool_finish(0);
}
