/* zookeeper-shell - looks at, and changes, the nodes of a ZooKeeper: one command, or those that
 * standard input brings. */
#define THREADED /* the library's header then declares the calls that wait */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "metadata/zookeeper_connect.h"
#include "metadata/zookeeper_log.h"
#include "tools/tool_zk_shell.h"

enum { SESSION_MS = 30000, CONNECT_SECONDS = 30 };

struct args {
    const char *connect;
    int timeout_ms;
    int words_n;
    char **words;
};

/* The library's callbacks run on threads of its own. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool connected, over;
} session = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, false};

static const char about[] = "Looks at and changes the nodes of a ZooKeeper.";
static const char synopsis[] =
    "zookeeper_host:port[/path] [-zk-tls-config-file file] [command [args...]]";

static void usage(FILE *out)
{
    fprintf(out, "USAGE: zookeeper-shell %s\n", synopsis);
}

/* What stands in the place of a command line. */
static bool tell_of_itself(const char *flag)
{
    if (strcmp(flag, "--help") == 0)
        printf("%s\nUSAGE: zookeeper-shell %s\nhelp as the command lists the commands.\n", about,
               synopsis);
    else if (strcmp(flag, "--version") == 0)
        puts("kafkad " KAFKAD_VERSION);
    else if (strcmp(flag, "--print-options") == 0) /* for manual.py */
        printf("about\t%s\nwords\t%s\n", about, synopsis);
    else
        return false;
    return true;
}

static const char *state_name(int state)
{
    return state == ZOO_CONNECTED_STATE         ? "SyncConnected"
           : state == ZOO_EXPIRED_SESSION_STATE ? "Expired"
           : state == ZOO_AUTH_FAILED_STATE     ? "AuthFailed"
                                                : "Disconnected";
}

static const char *type_name(int type)
{
    return type == ZOO_CREATED_EVENT   ? "NodeCreated"
           : type == ZOO_DELETED_EVENT ? "NodeDeleted"
           : type == ZOO_CHANGED_EVENT ? "NodeDataChanged"
           : type == ZOO_CHILD_EVENT   ? "NodeChildrenChanged"
                                       : "None";
}

static void on_event(zhandle_t *zh, int type, int state, const char *path, void *context)
{
    (void)zh;
    (void)context;
    bool node = type != ZOO_SESSION_EVENT;
    pthread_mutex_lock(&session.lock);
    if (node || state == ZOO_CONNECTED_STATE || session.connected)
        printf("\nWATCHER::\n\nWatchedEvent state:%s type:%s path:%s\n",
               state_name(node ? ZOO_CONNECTED_STATE : state), type_name(type),
               node ? path : "null");
    fflush(stdout);
    if (!node) {
        session.connected = state == ZOO_CONNECTED_STATE;
        session.over |= state == ZOO_EXPIRED_SESSION_STATE || state == ZOO_AUTH_FAILED_STATE;
        pthread_cond_signal(&session.changed);
    }
    pthread_mutex_unlock(&session.lock);
}

static bool wait_connected(void)
{
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += CONNECT_SECONDS;
    pthread_mutex_lock(&session.lock);
    int rc = 0;
    while (!session.connected && !session.over && !rc)
        rc = pthread_cond_timedwait(&session.changed, &session.lock, &end);
    bool connected = session.connected;
    pthread_mutex_unlock(&session.lock);
    return connected;
}

/* The library's complaints are news only as long as nobody answers. */
static void say_what_fails(const char *message)
{
    pthread_mutex_lock(&session.lock);
    bool connected = session.connected;
    pthread_mutex_unlock(&session.lock);
    if (!connected)
        zookeeper_log(message);
}

static zhandle_t *connect_to(const struct args *a)
{
    struct zookeeper_connect where;
    char err[512], *hosts;
    if (zookeeper_connect_parse(a->connect, &where, err, sizeof(err))) {
        fprintf(stderr, "%s\n", err);
        return NULL;
    }
    printf("Connecting to %s\n", a->connect);
    fflush(stdout);
    if (asprintf(&hosts, "%s%s", where.hosts, where.chroot) < 0)
        hosts = NULL;
    zookeeper_connect_clear(&where);
    zhandle_t *zh = hosts ? zookeeper_init2(hosts, on_event, a->timeout_ms, NULL, NULL,
                                            ZOO_NO_LOG_CLIENTENV, say_what_fails)
                          : NULL;
    free(hosts);
    if (zh && wait_connected())
        return zh;
    fprintf(stderr, "Unable to connect to %s\n", a->connect);
    if (zh)
        zookeeper_close(zh);
    return NULL;
}

/* Flags that stand between the server and the command. false: usage. */
static bool read_args(int argc, char **argv, struct args *a)
{
    *a = (struct args){.timeout_ms = SESSION_MS};
    int i = 1;
    if (i < argc && strcmp(argv[i], "-server") == 0)
        i++;
    if (i >= argc || argv[i][0] == '-')
        return false;
    a->connect = argv[i++];
    for (; i < argc && argv[i][0] == '-'; i++) {
        if (strcmp(argv[i], "-zk-tls-config-file") == 0) {
            fputs("-zk-tls-config-file: this version has no TLS towards ZooKeeper\n", stderr);
            return false;
        } else if (strcmp(argv[i], "-timeout") == 0 && i + 1 < argc) {
            a->timeout_ms = atoi(argv[++i]);
        } else if (strcmp(argv[i], "-r") != 0 && strcmp(argv[i], "-waitforconnection") != 0) {
            return false;
        }
    }
    a->words_n = argc - i;
    a->words = argv + i;
    return a->timeout_ms > 0;
}

static int read_commands(struct zk_shell *sh)
{
    bool prompt = isatty(STDIN_FILENO);
    char *line = NULL, *words[ZK_SHELL_WORDS];
    size_t room = 0;
    int status = 0;
    fputs("Welcome to ZooKeeper!\n", stdout);
    while (!sh->quit) {
        if (prompt)
            fputs("> ", stdout);
        fflush(stdout);
        if (getline(&line, &room, stdin) < 0)
            break;
        int n = zk_shell_split(line, words);
        if (n)
            status = zk_shell_run(sh, n, words);
    }
    free(line);
    return prompt ? 0 : status;
}

int main(int argc, char **argv)
{
    struct args a;
    if (argc > 1 && tell_of_itself(argv[1]))
        return fflush(stdout) == 0 ? 0 : 1;
    if (!read_args(argc, argv, &a)) {
        usage(stderr);
        return 1;
    }
    signal(SIGPIPE, SIG_IGN);
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    struct zk_shell sh = {.zh = connect_to(&a), .out = stdout, .err = stderr};
    if (!sh.zh)
        return 1;
    int status = a.words_n ? zk_shell_run(&sh, a.words_n, a.words) : read_commands(&sh);
    zookeeper_close(sh.zh);
    return status;
}
