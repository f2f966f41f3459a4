/* kafkad_main.c - the daemon: command line, settings, signals.
 *
 * SIGNALS  are blocked in every thread but one, which waits for them: the first SIGTERM, SIGINT or
 *          SIGHUP ends the broker cleanly, a second one half a second later or more the process at
 *          once (see stop_signals.h). SIGQUIT asks for a few lines about what the broker is doing,
 *          as it asks a JVM.
 * EXIT     0 stopped on request; 1 start refused, broker died, or stopped at once. */
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/logline.h"
#include "base/std_fds.h"
#include "server/broker.h"
#include "server/broker_dump.h"
#include "server/log_dir_probe.h"
#include "server/stop_signals.h"

enum action { ACTION_RUN, ACTION_CHECK, ACTION_DOCS };

struct command_line {
    enum action action;
    const char *file; /* NULL = none */
    struct props *overrides;
};

static const char usage[] =
    "Usage: kafkad [--override key=value]... [server.properties]\n"
    "Runs a Kafka broker with the settings of the file (Apache Kafka's server.properties).\n"
    "\n"
    "  --override key=value   wins over the file; may be given again and again\n"
    "  --check-config         checks the settings and exits: 0 when the broker would take them\n"
    "  --print-config-docs    prints the page of all settings (docs/configuration.md)\n"
    "  --version, --help\n"
    "\n"
    "SIGTERM, SIGINT and SIGHUP stop the broker cleanly; a second one ends the process at once,\n"
    "with status 1 (within half a second of the first it is the same wish told twice, and\n"
    "ignored). SIGQUIT logs what the broker is doing.\n";

/* ---- command line ---- */

/* key=value; "key" and "key=" give an empty value. */
static bool add_override(struct props *p, const char *text)
{
    const char *eq = strchr(text, '=');
    char *key = eq ? strndup(text, (size_t)(eq - text)) : strdup(text);
    bool good = key && *key && props_set(p, key, eq ? eq + 1 : "") == 0;
    free(key);
    return good;
}

static void bad_usage(const char *why, const char *what)
{
    fprintf(stderr, "kafkad: %s%s\n%s", why, what, usage);
    exit(1);
}

static struct command_line parse_command_line(int argc, char **argv)
{
    static const struct option options[] = {
        {"override", required_argument, NULL, 'o'},
        {"check-config", no_argument, NULL, 'c'},
        {"print-config-docs", no_argument, NULL, 'd'},
        {"version", no_argument, NULL, 'v'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    struct command_line line = {.overrides = props_new()};
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (c) {
        case 'o':
            if (!line.overrides || !add_override(line.overrides, optarg))
                bad_usage("--override needs key=value, not ", optarg);
            break;
        case 'c':
            line.action = ACTION_CHECK;
            break;
        case 'd':
            line.action = ACTION_DOCS;
            break;
        case 'v':
            printf("kafkad %s\n", KAFKAD_VERSION);
            exit(fflush(stdout) == 0 ? 0 : 1);
        case 'h':
            fputs(usage, stdout);
            exit(fflush(stdout) == 0 ? 0 : 1);
        default:
            fputs(usage, stderr);
            exit(1);
        }
    }
    if (optind < argc)
        line.file = argv[optind++];
    if (optind < argc)
        bad_usage("one settings file at most, not also ", argv[optind]);
    return line;
}

static int print_docs(void)
{
    struct buf b = BUF_INIT;
    config_docs_print(&b);
    bool good = !b.failed && fwrite(b.p, 1, b.len, stdout) == b.len && fflush(stdout) == 0;
    buf_free(&b);
    return good ? 0 : 1;
}

/* ---- settings ---- */

static struct props *read_file(const char *path)
{
    struct props *p = props_new();
    int line = 0;
    int rc = p && path ? props_load(p, path, &line) : 0;
    if (rc == -EINVAL)
        say_fatal("kafkad", "%s, line %d: malformed \\u escape or a NUL", path, line);
    else if (rc)
        say_fatal("kafkad", "cannot read %s: %s", path, strerror(-rc));
    if (rc) {
        props_free(p);
        return NULL;
    }
    return p;
}

/* Each line of `problems` as one of the log, behind where the settings come from. */
static void say_refused(const struct command_line *line, char *problems)
{
    bool overridden = props_count(line->overrides) > 0;
    for (char *save, *p = strtok_r(problems, "\n", &save); p; p = strtok_r(NULL, "\n", &save))
        say_fatal("kafkad", "%s%s%s%s%s", line->file ? line->file : "",
                  line->file && overridden ? " with " : "", overridden ? "--override" : "",
                  line->file || overridden ? ": " : "", p);
}

/* Kafka asks for a file; who forgot it must see what runs instead. */
static void say_no_file(const struct command_line *line, const struct config *c)
{
    int shown = 0;
    char listeners[400] = "";
    for (int i = 0; i < c->listeners_n && shown < (int)sizeof(listeners); i++)
        shown += snprintf(listeners + shown, sizeof(listeners) - (size_t)shown, "%s%s://%s:%d",
                          i ? "," : "", c->listeners[i].name, c->listeners[i].host,
                          c->listeners[i].port);
    char but[64] = "";
    if (props_count(line->overrides) > 0)
        snprintf(but, sizeof(but), " but for %zu --override", props_count(line->overrides));
    say_info("kafkad",
             "no settings file was given: the defaults hold%s; log dir %s%s, listeners %s", but,
             c->log_dirs[0], c->log_dirs_n > 1 ? " and more" : "", listeners);
}

/* The file with the overrides on top; NULL with lines logged. */
static struct config *read_settings(const struct command_line *line)
{
    static char problems[32768]; /* as many lines as anyone would mend at once */
    struct props *given = read_file(line->file);
    if (!given)
        return NULL;
    for (size_t i = 0; i < props_count(line->overrides); i++) {
        const char *key, *value;
        props_at(line->overrides, i, &key, &value);
        props_set(given, key, value);
    }
    struct config *config;
    if (config_load(given, &config, problems, sizeof(problems)) != 0) {
        say_refused(line, problems);
        return NULL;
    }
    if (!line->file)
        say_no_file(line, config);
    return config;
}

static int check_settings(const struct command_line *line, struct config *config)
{
    char problems[8192] = "";
    int rc = broker_check_supported(config, problems, sizeof(problems));
    size_t at = strlen(problems);
    if (at)
        problems[at++] = '\n';
    int dirs = log_dirs_probe(config, problems + at, sizeof(problems) - at);
    rc = rc ? rc : dirs;
    if (rc)
        say_refused(line, problems);
    else
        say_info("kafkad", "the settings are good");
    config_free(config);
    return rc ? 1 : 0;
}

/* ---- signals ---- */

struct stopper {
    pthread_mutex_t lock;
    pthread_cond_t cond;
    bool wished, died;     /* under lock, as below */
    struct broker *broker; /* while it serves */
    sigset_t signals;
};

/* The broker is not stopped meanwhile. */
static void dump(struct stopper *s)
{
    pthread_mutex_lock(&s->lock);
    if (s->broker)
        broker_dump(s->broker);
    pthread_mutex_unlock(&s->lock);
}

static void set_broker(struct stopper *s, struct broker *b)
{
    pthread_mutex_lock(&s->lock);
    s->broker = b;
    pthread_mutex_unlock(&s->lock);
}

static void wish_stop(struct stopper *s)
{
    pthread_mutex_lock(&s->lock);
    s->wished = true;
    pthread_cond_signal(&s->cond);
    pthread_mutex_unlock(&s->lock);
}

static void take_stop_signal(struct stopper *s, struct stop_signals *seen, const char *name)
{
    switch (stop_signals_take(seen, clock_mono_ms(clock_real()))) {
    case STOP_CLEANLY:
        say_info("kafkad", "%s: stopping", name);
        wish_stop(s);
        break;
    case STOP_IGNORE_FIRST:
        say_info("kafkad",
                 "another %s: already stopping; one that comes %d ms after the first ends "
                 "the process at once",
                 name, STOP_AT_ONCE_AFTER_MS);
        break;
    case STOP_IGNORE:
        break;
    case STOP_AT_ONCE:
        say_warn("kafkad", "another %s: stopping at once", name);
        _exit(1);
    }
}

static void *wait_for_signals(void *arg)
{
    struct stopper *s = arg;
    struct stop_signals seen = {0};
    for (;;) {
        int signal;
        if (sigwait(&s->signals, &signal) != 0)
            continue;
        if (signal == SIGQUIT)
            dump(s);
        else
            take_stop_signal(s, &seen, strsignal(signal));
    }
    return NULL;
}

static void on_fatal(void *arg, const char *why)
{
    struct stopper *s = arg;
    pthread_mutex_lock(&s->lock);
    s->died = true;
    pthread_cond_signal(&s->cond);
    pthread_mutex_unlock(&s->lock);
}

static void catch_signals(struct stopper *s)
{
    pthread_t thread;
    signal(SIGPIPE, SIG_IGN);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->cond, NULL);
    sigemptyset(&s->signals);
    sigaddset(&s->signals, SIGTERM);
    sigaddset(&s->signals, SIGINT);
    sigaddset(&s->signals, SIGHUP);
    sigaddset(&s->signals, SIGQUIT);
    pthread_sigmask(SIG_BLOCK, &s->signals, NULL);
    if (pthread_create(&thread, NULL, wait_for_signals, s) == 0)
        pthread_detach(thread);
}

/* True when the broker died by itself. */
static bool wait_for_end(struct stopper *s)
{
    pthread_mutex_lock(&s->lock);
    while (!s->wished && !s->died)
        pthread_cond_wait(&s->cond, &s->lock);
    bool died = s->died;
    pthread_mutex_unlock(&s->lock);
    return died;
}

/* A descriptor per segment and connection: as many as the system lets us have. */
static void raise_file_limit(void)
{
    struct rlimit l;
    if (getrlimit(RLIMIT_NOFILE, &l) != 0 || l.rlim_cur == l.rlim_max)
        return;
    l.rlim_cur = l.rlim_max;
    setrlimit(RLIMIT_NOFILE, &l);
}

static int run(struct config *config)
{
    static struct stopper stopper; /* outlives the signal thread */
    struct broker *broker;
    char err[8192] = "";
    catch_signals(&stopper);
    raise_file_limit();
    say_info("kafkad", "version %s", KAFKAD_VERSION);
    if (broker_start(config, &broker, err, sizeof(err)) != 0) {
        for (char *save, *p = strtok_r(err, "\n", &save); p; p = strtok_r(NULL, "\n", &save))
            say_fatal("kafkad", "start refused: %s", p);
        return 1;
    }
    broker_on_fatal(broker, on_fatal, &stopper);
    set_broker(&stopper, broker);
    bool died = wait_for_end(&stopper);
    set_broker(&stopper, NULL);
    broker_stop(broker);
    return died ? 1 : 0;
}

int main(int argc, char **argv)
{
    std_fds_fill(); /* a log line must never end up in a segment */
    struct command_line line = parse_command_line(argc, argv);
    if (line.action == ACTION_DOCS)
        return print_docs();
    struct config *config = read_settings(&line);
    int status = !config                       ? 1
                 : line.action == ACTION_CHECK ? check_settings(&line, config)
                                               : run(config);
    props_free(line.overrides);
    return status;
}
