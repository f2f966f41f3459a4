/* tool_options.c - see tool_options.h. getopt_long does the reading, in order and without moving
 * words, so that a word can be told to belong to the flag in front of it. */
#include "tools/tool_options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kafka/common.h>

#include "tools/tool_io.h"
#include "tools/tool_usage.h"

/* What a tool of Kafka's says to --version: scripts look at the first word to learn what flags
 * there are. */
#define KAFKA_COMPATIBLE "3.9.0"

enum { CODE_WORD = 1, CODE_OPTION = 1000, CODE_HELP = 900, CODE_VERSION, CODE_ROWS };

static void *field(const struct tool_option *o, void *args)
{
    return (char *)args + o->at;
}

void tool_usage_error(const struct tool *tool, const char *fmt, ...)
{
    va_list ap;
    if (tool->terse) {
        fprintf(stderr, "usage: %s [options], see --help\n%s: error: ", tool->name, tool->name);
    }
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    if (!tool->terse)
        tool_usage_print(tool, stderr);
    fflush(stdout);
    _exit(1);
}

bool tool_int_of(const char *text, int64_t *out)
{
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    *out = v;
    return *text && *end == 0 && errno == 0;
}

static void set_int(const struct tool *tool, const struct tool_option *o, const char *text,
                    int64_t *to)
{
    bool bounded = o->min || o->max;
    if (!tool_int_of(text, to) || *to == TOOL_NOT_GIVEN)
        tool_usage_error(tool, "Cannot parse argument '%s' of option %s: a whole number is wanted",
                         text, o->name);
    if (bounded && *to < o->min)
        tool_usage_error(tool, "%s is %s: must be at least %lld", o->name, text, (long long)o->min);
    if (bounded && *to > o->max)
        tool_usage_error(tool, "%s is %s: must be at most %lld", o->name, text, (long long)o->max);
}

static void set_real(const struct tool *tool, const struct tool_option *o, const char *text,
                     double *to)
{
    char *end;
    *to = strtod(text, &end);
    if (!*text || *end || !isfinite(*to))
        tool_usage_error(tool, "Cannot parse argument '%s' of option %s: a number is wanted", text,
                         o->name);
}

static void add_text(struct tool_texts *list, const char *text)
{
    const char **grown = realloc(list->v, (list->n + 1) * sizeof *grown);
    if (!grown) {
        fputs("out of memory\n", stderr);
        exit(1);
    }
    list->v = grown;
    list->v[list->n++] = text;
}

static void set(const struct tool *tool, const struct tool_option *o, void *args, const char *text)
{
    switch (o->kind) {
    case TOOL_FLAG:
        *(bool *)field(o, args) = true;
        break;
    case TOOL_TEXT:
    case TOOL_MAYBE:
        *(const char **)field(o, args) = text ? text : "";
        break;
    case TOOL_INT:
        set_int(tool, o, text, field(o, args));
        break;
    case TOOL_REAL:
        set_real(tool, o, text, field(o, args));
        break;
    case TOOL_TEXTS:
    case TOOL_WORDS:
        if (text)
            add_text(field(o, args), text);
        break;
    }
}

static bool is_set(const struct tool_option *o, const void *args)
{
    const void *at = (const char *)args + o->at;
    switch (o->kind) {
    case TOOL_FLAG:
        return *(const bool *)at;
    case TOOL_INT:
        return *(const int64_t *)at != TOOL_NOT_GIVEN;
    case TOOL_REAL:
        return !isnan(*(const double *)at);
    case TOOL_TEXTS:
    case TOOL_WORDS:
        return ((const struct tool_texts *)at)->n > 0;
    default:
        return *(const char *const *)at != NULL;
    }
}

static void clear(const struct tool *tool, void *args)
{
    for (size_t i = 0; i < tool->options_n; i++) {
        const struct tool_option *o = &tool->options[i];
        switch (o->kind) {
        case TOOL_FLAG:
            *(bool *)field(o, args) = false;
            break;
        case TOOL_INT:
            *(int64_t *)field(o, args) = TOOL_NOT_GIVEN;
            break;
        case TOOL_REAL:
            *(double *)field(o, args) = NAN;
            break;
        case TOOL_TEXTS:
        case TOOL_WORDS:
            *(struct tool_texts *)field(o, args) = (struct tool_texts){NULL, 0};
            break;
        default:
            *(const char **)field(o, args) = NULL;
        }
    }
    if (tool->words)
        *(struct tool_texts *)((char *)args + tool->words_at) = (struct tool_texts){NULL, 0};
}

static struct option *long_options(const struct tool *tool)
{
    struct option *rows = calloc(tool->options_n + 4, sizeof *rows);
    if (!rows)
        abort();
    size_t n = 0;
    for (; n < tool->options_n; n++) {
        enum tool_kind kind = tool->options[n].kind;
        int has = kind == TOOL_FLAG                          ? no_argument
                  : kind == TOOL_MAYBE || kind == TOOL_WORDS ? optional_argument
                                                             : required_argument;
        rows[n] = (struct option){tool->options[n].name, has, NULL, CODE_OPTION + (int)n};
    }
    rows[n++] = (struct option){"help", no_argument, NULL, CODE_HELP};
    rows[n++] = (struct option){"version", no_argument, NULL, CODE_VERSION};
    rows[n] = (struct option){"print-options", no_argument, NULL, CODE_ROWS};
    return rows;
}

/* "--top=x" and the flag "topic": getopt took a short form, which Kafka's tools do not have. */
static bool is_abbreviated(const char *word, const char *flag)
{
    if (strncmp(word, "--", 2) != 0)
        return false;
    size_t n = strcspn(word + 2, "=");
    return n != strlen(flag) || strncmp(word + 2, flag, n) != 0;
}

static void refuse_word(const struct tool *tool, const char *word)
{
    tool_usage_error(tool, "%s is not a recognized option", word);
}

static void on_option(const struct tool *tool, const struct tool_option *o, const char *word,
                      const char *value, void *args)
{
    if (is_abbreviated(word, o->name))
        refuse_word(tool, word);
    bool once = o->kind != TOOL_TEXTS && o->kind != TOOL_WORDS && o->kind != TOOL_FLAG;
    if (once && is_set(o, args))
        tool_usage_error(tool, "Found multiple arguments for option %s, but you asked for only one",
                         o->name);
    set(tool, o, args, value);
}

/* A word without dashes: the value of the flag in front of it, or one of the tool's own. Returns
 * the flag that may take the next word, too. */
static const struct tool_option *on_word(const struct tool *tool, const struct tool_option *open,
                                         const char *word, void *args)
{
    if (open) {
        set(tool, open, args, word);
        return open->kind == TOOL_WORDS ? open : NULL;
    }
    if (!tool->words)
        refuse_word(tool, word);
    add_text((struct tool_texts *)((char *)args + tool->words_at), word);
    return NULL;
}

static void help(const struct tool *tool)
{
    if (tool->about)
        printf("%s\n", tool->about);
    tool_usage_print(tool, stdout);
    exit(tool_finish(0));
}

static void refuse(const struct tool *tool, int code, const char *word)
{
    const struct tool_option *o =
        optopt >= CODE_OPTION ? &tool->options[optopt - CODE_OPTION] : NULL;
    if (o && is_abbreviated(word, o->name))
        refuse_word(tool, word);
    if (code == ':')
        tool_usage_error(tool, "Option %s requires an argument", o ? o->name : word);
    if (o && o->kind == TOOL_FLAG)
        tool_usage_error(tool, "Option %s takes no argument", o->name);
    refuse_word(tool, word);
}

/* For getopt: words in order, a missing value told apart, the letters. */
static char *short_options(const struct tool *tool)
{
    char *out = calloc(1, 2 * tool->options_n + 8), *at = out;
    if (!out)
        abort();
    at = stpcpy(at, "-:h");
    for (size_t i = 0; i < tool->options_n; i++) {
        if (!tool->options[i].letter)
            continue;
        *at++ = tool->options[i].letter;
        if (tool->options[i].kind != TOOL_FLAG)
            *at++ = ':';
    }
    return out;
}

static int code_of_letter(const struct tool *tool, int letter)
{
    for (size_t i = 0; i < tool->options_n; i++)
        if (tool->options[i].letter && tool->options[i].letter == letter)
            return CODE_OPTION + (int)i;
    return letter;
}

static void read_all(const struct tool *tool, int argc, char **argv, void *args)
{
    struct option *rows = long_options(tool);
    char *letters = short_options(tool);
    const struct tool_option *open = NULL;
    int code, at = 1;
    opterr = 0;
    optind = 1;
    while ((code = getopt_long(argc, argv, letters, rows, NULL)) != -1) {
        const char *word = argv[at];
        code = code_of_letter(tool, code);
        at = optind;
        if (code == CODE_WORD) {
            open = on_word(tool, open, optarg, args);
            continue;
        }
        open = NULL;
        if (code == CODE_HELP || code == 'h') {
            help(tool);
        } else if (code == CODE_ROWS) { /* for the build: manual.py */
            tool_usage_rows(tool, stdout);
            exit(tool_finish(0));
        } else if (code == CODE_VERSION) {
            printf("%s (kafkad %s)\n", KAFKA_COMPATIBLE, kafka_version());
            exit(tool_finish(0));
        } else if (code >= CODE_OPTION) {
            const struct tool_option *o = &tool->options[code - CODE_OPTION];
            on_option(tool, o, word, optarg, args);
            open = (o->kind == TOOL_MAYBE && !optarg) || o->kind == TOOL_WORDS ? o : NULL;
        } else {
            refuse(tool, code, word);
        }
    }
    for (; optind < argc; optind++) /* behind "--" */
        open = on_word(tool, open, argv[optind], args);
    free(letters);
    free(rows);
}

void tool_parse(const struct tool *tool, int argc, char **argv, void *args)
{
    clear(tool, args);
    if (argc == 1 && tool->help_if_bare)
        help(tool);
    if (argc == 1)
        tool_usage_error(tool, "%s", tool->about);
    read_all(tool, argc, argv, args);
    for (size_t i = 0; i < tool->options_n; i++) {
        const struct tool_option *o = &tool->options[i];
        if (is_set(o, args))
            continue;
        if (o->required)
            tool_usage_error(tool, "Missing required argument \"[%s]\"", o->name);
        if (o->fallback)
            set(tool, o, args, o->fallback);
    }
}

static const struct tool_option *find(const struct tool *tool, const char *flag)
{
    for (size_t i = 0; i < tool->options_n; i++)
        if (strcmp(tool->options[i].name, flag) == 0)
            return &tool->options[i];
    abort(); /* a name that is not in the tool's table */
}

bool tool_given(const struct tool *tool, const void *args, const char *flag)
{
    return is_set(find(tool, flag), args);
}

void tool_excludes(const struct tool *tool, const void *args, const char *flag,
                   const char *const *others)
{
    if (!tool_given(tool, args, flag))
        return;
    for (; *others; others++)
        if (tool_given(tool, args, *others))
            tool_usage_error(tool, "Option \"[%s]\" can't be used with option \"[%s]\"", flag,
                             *others);
}
