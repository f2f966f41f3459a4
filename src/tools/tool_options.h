/* tool_options.h - the command line of a tool, from one table: parsing, checks, --help, --version.
 *
 * The rules are those of Apache Kafka's tools: `--flag value` or `--flag=value`, no abbreviations,
 * a flag that wants one value may stand there once only. Anything wrong prints a line (and, where
 * the tool's kind does, the usage table) to standard error and exits 1; --help exits 0.
 *
 * OWNERSHIP  values point into argv, lists are malloc'ed and live as long as the process. */
#ifndef TOOLS_TOOL_OPTIONS_H
#define TOOLS_TOOL_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tool_kind {
    TOOL_FLAG,  /* bool */
    TOOL_TEXT,  /* const char *; NULL when not given */
    TOOL_MAYBE, /* const char *; "" when given without its value */
    TOOL_INT,   /* int64_t; TOOL_NOT_GIVEN */
    TOOL_REAL,  /* double; NAN when not given */
    TOOL_TEXTS, /* struct tool_texts; may be given again and again */
    TOOL_WORDS, /* struct tool_texts; all words up to the next flag */
};
#define TOOL_NOT_GIVEN INT64_MIN

struct tool_texts {
    const char **v;
    size_t n;
};

struct tool_option {
    const char *name; /* without the dashes */
    enum tool_kind kind;
    size_t at;            /* where in the tool's struct of arguments the value goes */
    const char *value;    /* "String: topic"; NULL for flags */
    const char *text;     /* for --help */
    const char *fallback; /* taken when not given (TEXT, INT, REAL), and shown */
    int64_t min, max;     /* INT: both 0 = any */
    bool required;
    char letter; /* `-b` is the same; 0: none */
};

struct tool {
    const char *name;
    const char *about; /* one sentence */
    const struct tool_option *options;
    size_t options_n;
    bool terse;        /* errors as `usage:` and `name: error:` lines, without the table */
    bool help_if_bare; /* no argument at all: help and exit 0, not usage and exit 1 */
    /* Words that belong to no flag: none unless words is set ("broker_list topic ..."). */
    const char *words;
    size_t words_at; /* struct tool_texts */
};

/* Rows of a table: TOOL_ROW(struct args, topic, "topic", TOOL_TEXT, "String: topic", "...") */
#define TOOL_ROW(type, field, flag, how, value_name, words, ...)                     \
    {                                                                                \
        .name = flag, .kind = how, .at = offsetof(type, field), .value = value_name, \
        .text = words, __VA_ARGS__                                                   \
    }

/* Fills `args` (all of it that the table names) or ends the process. */
void tool_parse(const struct tool *tool, int argc, char **argv, void *args);
/* A line to standard error, the usage, exit 1. */
void tool_usage_error(const struct tool *tool, const char *fmt, ...)
    __attribute__((format(printf, 2, 3), noreturn));
/* For checks of flags that exclude or need each other: tests all pairs at once. `given` tells
 * whether the flag stood on the command line. */
bool tool_given(const struct tool *tool, const void *args, const char *flag);
/* Ends the process if `flag` and one of the others (a list ended by NULL) were both given. */
void tool_excludes(const struct tool *tool, const void *args, const char *flag,
                   const char *const *others);

/* The whole of text as a number within bounds. */
bool tool_int_of(const char *text, int64_t *out);

#endif
