/* zookeeper-shell: how a line becomes words, and what is refused before anybody is asked. */
#include <stdlib.h>
#include <string.h>

#include "tools/tool_zk_shell.h"

#include "unit.h"

static void split_to(const char *text, const char *joined)
{
    char line[256], *words[ZK_SHELL_WORDS], out[256] = "";
    snprintf(line, sizeof(line), "%s", text);
    int n = zk_shell_split(line, words);
    for (int i = 0; i < n; i++) {
        strcat(out, i ? "|" : "");
        strcat(out, words[i]);
    }
    assert_string_equal(out, joined);
}

static void a_line_is_split_at_white_space_outside_of_quotes(void **state)
{
    split_to("", "");
    split_to(" \t\n", "");
    split_to("ls /\n", "ls|/");
    split_to("  create  -e   /a x ", "create|-e|/a|x");
    split_to("set /a '{\"b\": 1}'\n", "set|/a|{\"b\": 1}");
    split_to("set /a \"it's\"", "set|/a|it's");
    split_to("set /a \"\"", "set|/a|");
    split_to("set /a \"open end", "set|/a|open end");
    split_to("get /it's", "get|/it's");
}

static void there_is_an_end_to_words(void **state)
{
    char line[256] = "", *words[ZK_SHELL_WORDS];
    for (int i = 0; i < 100; i++)
        strcat(line, "a ");
    assert_int_equal(zk_shell_split(line, words), ZK_SHELL_WORDS);
}

/* What it complains of, without a server. */
static void refused(const char *text, const char *complaint)
{
    char line[256], *words[ZK_SHELL_WORDS], *said = NULL;
    size_t size;
    FILE *out = open_memstream(&said, &size);
    snprintf(line, sizeof(line), "%s", text);
    int n = zk_shell_split(line, words);
    struct zk_shell sh = {.out = out, .err = out};
    assert_int_equal(zk_shell_run(&sh, n, words), 1);
    fclose(out);
    assert_non_null(strstr(said, complaint));
    free(said);
}

static void wrong_commands_are_refused(void **state)
{
    refused("dance /", "Command not found: Command not found dance");
    refused("ls", "ls [-s] [-w] [-R] path");
    refused("ls / /", "ls [-s] [-w] [-R] path");
    refused("ls -x /", "ls [-s] [-w] [-R] path");
    refused("get a", "Path must start with / character");
    refused("set /a", "set [-s] [-v version] path data");
    refused("set -v x /a b", "set [-s] [-v version] path data");
    refused("set /a b -v", "set [-s] [-v version] path data");
    refused("setAcl /a world:anyone", "Acl is not valid: /a");
    refused("setAcl /a world:anyone:xyz", "Acl is not valid: /a");
    refused("create /a b digest", "Acl is not valid: /a");
}

static void a_stat_is_printed_as_zookeeper_prints_it(void **state)
{
    char *said = NULL;
    size_t size;
    FILE *out = open_memstream(&said, &size);
    setenv("TZ", "UTC", 1);
    struct Stat st = {.czxid = 0x1a,
                      .mzxid = 0x2b,
                      .ctime = 1700000000123,
                      .mtime = 0,
                      .version = 3,
                      .cversion = 4,
                      .aversion = 5,
                      .ephemeralOwner = 0x10000123,
                      .dataLength = 6,
                      .numChildren = 7,
                      .pzxid = 0x3c};
    zk_shell_print_stat(out, &st);
    fclose(out);
    assert_string_equal(said, "cZxid = 0x1a\nctime = Tue Nov 14 22:13:20 UTC 2023\nmZxid = 0x2b\n"
                              "mtime = Thu Jan 01 00:00:00 UTC 1970\npZxid = 0x3c\ncversion = 4\n"
                              "dataVersion = 3\naclVersion = 5\nephemeralOwner = 0x10000123\n"
                              "dataLength = 6\nnumChildren = 7\n");
    free(said);
}

UNIT_MAIN(unit_test(a_line_is_split_at_white_space_outside_of_quotes),
          unit_test(there_is_an_end_to_words), unit_test(wrong_commands_are_refused),
          unit_test(a_stat_is_printed_as_zookeeper_prints_it))
