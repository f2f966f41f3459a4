/* tool_zk_shell.c - see tool_zk_shell.h. */
#define THREADED /* the library's header then declares the calls that wait */
#include "tools/tool_zk_shell.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WORDS_MAX = 4, DATA_MAX = 16 << 20 };

/* What the words behind a command mean. */
struct arguments {
    bool stat, watch, deep, ephemeral, sequential; /* flags */
    int version;                                   /* -v; -1 any */
    char *word[WORDS_MAX];
    int n;
};

struct command {
    const char *name, *usage;
    const char *flags; /* letters that it knows; v takes a number */
    int least, most;   /* words */
    int (*run)(struct zk_shell *sh, const struct arguments *a); /* 0 or the library's code */
};

/* ---- what is printed ---- */

static void print_time(FILE *out, const char *name, int64_t ms)
{
    char text[64];
    time_t t = (time_t)(ms / 1000);
    struct tm tm;
    localtime_r(&t, &tm);
    strftime(text, sizeof(text), "%a %b %d %H:%M:%S %Z %Y", &tm);
    fprintf(out, "%s = %s\n", name, text);
}

void zk_shell_print_stat(FILE *out, const struct Stat *st)
{
    fprintf(out, "cZxid = 0x%" PRIx64 "\n", st->czxid);
    print_time(out, "ctime", st->ctime);
    fprintf(out, "mZxid = 0x%" PRIx64 "\n", st->mzxid);
    print_time(out, "mtime", st->mtime);
    fprintf(out,
            "pZxid = 0x%" PRIx64 "\ncversion = %d\ndataVersion = %d\naclVersion = %d\n"
            "ephemeralOwner = 0x%" PRIx64 "\ndataLength = %d\nnumChildren = %d\n",
            st->pzxid, st->cversion, st->version, st->aversion, st->ephemeralOwner, st->dataLength,
            st->numChildren);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void sort_names(struct String_vector *v)
{
    if (v->count)
        qsort(v->data, (size_t)v->count, sizeof(char *), by_name);
}

static int complain(struct zk_shell *sh, int rc, const char *path)
{
    static const struct {
        int rc;
        const char *text;
    } texts[] = {
        {ZNONODE, "Node does not exist"},
        {ZNODEEXISTS, "Node already exists"},
        {ZNOTEMPTY, "Node not empty"},
        {ZNOAUTH, "Insufficient permission"},
        {ZBADVERSION, "version No is not valid"},
        {ZNOCHILDRENFOREPHEMERALS, "Ephemerals cannot have children"},
        {ZINVALIDACL, "Acl is not valid"},
        {ZBADARGUMENTS, "Path is not valid"},
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (texts[i].rc == rc) {
            fprintf(sh->err, "%s%s %s\n", texts[i].text, rc == ZBADVERSION ? " :" : ":", path);
            return 1;
        }
    fprintf(sh->err, "%s for %s\n", zerror(rc), path);
    return 1;
}

/* ---- reading ---- */

static char *child_path(const char *path, const char *name)
{
    char *out;
    return asprintf(&out, "%s/%s", strcmp(path, "/") ? path : "", name) < 0 ? NULL : out;
}

/* The node and all below it, parents first. */
static int walk(struct zk_shell *sh, const char *path,
                int (*each)(struct zk_shell *sh, const char *path), bool children_first)
{
    struct String_vector v = {0, NULL};
    int rc = zoo_get_children(sh->zh, path, 0, &v);
    if (rc)
        return rc;
    sort_names(&v);
    if (!children_first)
        rc = each(sh, path);
    for (int i = 0; i < v.count && !rc; i++) {
        char *child = child_path(path, v.data[i]);
        rc = child ? walk(sh, child, each, children_first) : ZSYSTEMERROR;
        free(child);
        if (rc == ZNONODE) /* it went meanwhile */
            rc = ZOK;
    }
    deallocate_String_vector(&v);
    return children_first && !rc ? each(sh, path) : rc;
}

static int print_path(struct zk_shell *sh, const char *path)
{
    fprintf(sh->out, "%s\n", path);
    return ZOK;
}

static int run_ls(struct zk_shell *sh, const struct arguments *a)
{
    if (a->deep)
        return walk(sh, a->word[0], print_path, false);
    struct String_vector v = {0, NULL};
    struct Stat st;
    int rc = zoo_get_children2(sh->zh, a->word[0], a->watch, &v, &st);
    if (rc)
        return rc;
    sort_names(&v);
    fputc('[', sh->out);
    for (int i = 0; i < v.count; i++)
        fprintf(sh->out, "%s%s", i ? ", " : "", v.data[i]);
    fputs("]\n", sh->out);
    if (a->stat)
        zk_shell_print_stat(sh->out, &st);
    deallocate_String_vector(&v);
    return ZOK;
}

static int run_get(struct zk_shell *sh, const struct arguments *a)
{
    struct Stat st;
    int rc = zoo_exists(sh->zh, a->word[0], 0, &st);
    for (int room = rc ? 0 : st.dataLength; !rc;) {
        int len = room;
        char *data = malloc((size_t)room + 1);
        if (!data)
            return ZSYSTEMERROR;
        rc = zoo_get(sh->zh, a->word[0], a->watch, data, &len, &st);
        bool whole = st.dataLength <= room;
        if (!rc && whole && len >= 0)
            fwrite(data, 1, (size_t)len, sh->out);
        else if (!rc && whole)
            fputs("null", sh->out);
        free(data);
        if (rc || whole)
            break;
        room = st.dataLength; /* it has grown meanwhile */
    }
    if (rc)
        return rc;
    fputc('\n', sh->out);
    if (a->stat)
        zk_shell_print_stat(sh->out, &st);
    return ZOK;
}

static int run_stat(struct zk_shell *sh, const struct arguments *a)
{
    struct Stat st;
    int rc = zoo_exists(sh->zh, a->word[0], a->watch, &st);
    if (!rc)
        zk_shell_print_stat(sh->out, &st);
    return rc;
}

static int count_path(struct zk_shell *sh, const char *path)
{
    (void)path;
    sh->counted++;
    return ZOK;
}

static int run_count(struct zk_shell *sh, const struct arguments *a)
{
    sh->counted = -1; /* not the node itself */
    int rc = walk(sh, a->word[0], count_path, false);
    if (!rc)
        fprintf(sh->out, "%d\n", sh->counted);
    return rc;
}

/* ---- changing ---- */

static int run_set(struct zk_shell *sh, const struct arguments *a)
{
    struct Stat st;
    int rc = zoo_set2(sh->zh, a->word[0], a->word[1], (int)strlen(a->word[1]), a->version, &st);
    if (!rc && a->stat)
        zk_shell_print_stat(sh->out, &st);
    return rc;
}

static int run_delete(struct zk_shell *sh, const struct arguments *a)
{
    return zoo_delete(sh->zh, a->word[0], a->version);
}

static int delete_path(struct zk_shell *sh, const char *path)
{
    int rc = zoo_delete(sh->zh, path, -1);
    return rc == ZNONODE ? ZOK : rc;
}

static int run_deleteall(struct zk_shell *sh, const struct arguments *a)
{
    return walk(sh, a->word[0], delete_path, true);
}

/* ---- access lists: "world:anyone:cdrwa,auth::r" ---- */

static const char perm_letters[] = "rwcda"; /* bit 0 on */

static int parse_perms(const char *text)
{
    int perms = 0;
    for (; *text; text++) {
        const char *at = strchr(perm_letters, *text);
        if (!at)
            return -1;
        perms |= 1 << (at - perm_letters);
    }
    return perms;
}

/* In place. How many, or -1. */
static int parse_acl(char *text, struct ACL *out, int most)
{
    int n = 0;
    char *save = NULL;
    for (char *one = strtok_r(text, ",", &save); one; one = strtok_r(NULL, ",", &save), n++) {
        char *first = strchr(one, ':'), *last = strrchr(one, ':');
        if (n == most || !first || first == last)
            return -1;
        *first = *last = 0;
        out[n] = (struct ACL){.perms = parse_perms(last + 1), .id = {one, first + 1}};
        if (out[n].perms < 0)
            return -1;
    }
    return n;
}

enum { ACLS_MAX = 32 };

static int run_set_acl(struct zk_shell *sh, const struct arguments *a)
{
    struct ACL acl[ACLS_MAX];
    int n = parse_acl(a->word[1], acl, ACLS_MAX);
    if (n <= 0)
        return ZINVALIDACL;
    struct ACL_vector v = {n, acl};
    return zoo_set_acl(sh->zh, a->word[0], a->version, &v);
}

static int run_get_acl(struct zk_shell *sh, const struct arguments *a)
{
    struct ACL_vector v = {0, NULL};
    struct Stat st;
    int rc = zoo_get_acl(sh->zh, a->word[0], &v, &st);
    if (rc)
        return rc;
    static const char order[] = "cdrwa";
    for (int i = 0; i < v.count; i++) {
        fprintf(sh->out, "'%s,'%s\n: ", v.data[i].id.scheme, v.data[i].id.id);
        for (const char *p = order; *p; p++)
            if (v.data[i].perms >> (strchr(perm_letters, *p) - perm_letters) & 1)
                fputc(*p, sh->out);
        fputc('\n', sh->out);
    }
    if (a->stat)
        zk_shell_print_stat(sh->out, &st);
    deallocate_ACL_vector(&v);
    return ZOK;
}

static int run_create(struct zk_shell *sh, const struct arguments *a)
{
    char made[4096];
    struct ACL acl[ACLS_MAX];
    struct ACL_vector given = {0, acl};
    const char *data = a->n > 1 ? a->word[1] : NULL;
    if (a->n > 2 && (given.count = parse_acl(a->word[2], acl, ACLS_MAX)) <= 0)
        return ZINVALIDACL;
    int mode = (a->ephemeral ? ZOO_EPHEMERAL : 0) | (a->sequential ? ZOO_PERSISTENT_SEQUENTIAL : 0);
    int rc = zoo_create(sh->zh, a->word[0], data, data ? (int)strlen(data) : -1,
                        given.count ? &given : &ZOO_OPEN_ACL_UNSAFE, mode, made, sizeof(made));
    if (!rc)
        fprintf(sh->out, "Created %s\n", made);
    return rc;
}

/* Its answer is not waited for: it goes ahead of whatever is asked next. */
static int run_addauth(struct zk_shell *sh, const struct arguments *a)
{
    const char *cert = a->n > 1 ? a->word[1] : "";
    return zoo_add_auth(sh->zh, a->word[0], cert, (int)strlen(cert), NULL, NULL);
}

static int run_quit(struct zk_shell *sh, const struct arguments *a)
{
    (void)a;
    sh->quit = true;
    return ZOK;
}

static int run_help(struct zk_shell *sh, const struct arguments *a);

/* ---- commands ---- */

static const struct command commands[] = {
    {"addauth", "addauth scheme auth", "", 1, 2, run_addauth},
    {"create", "create [-s] [-e] path [data] [acl]", "se", 1, 3, run_create},
    {"delete", "delete [-v version] path", "v", 1, 1, run_delete},
    {"deleteall", "deleteall path", "", 1, 1, run_deleteall},
    {"get", "get [-s] [-w] path", "sw", 1, 1, run_get},
    {"getAcl", "getAcl [-s] path", "s", 1, 1, run_get_acl},
    {"getAllChildrenNumber", "getAllChildrenNumber path", "", 1, 1, run_count},
    {"help", "help", "", 0, 0, run_help},
    {"ls", "ls [-s] [-w] [-R] path", "swR", 1, 1, run_ls},
    {"quit", "quit", "", 0, 0, run_quit},
    {"rmr", "rmr path", "", 1, 1, run_deleteall},
    {"set", "set [-s] [-v version] path data", "sv", 2, 2, run_set},
    {"setAcl", "setAcl [-v version] path acl", "v", 2, 2, run_set_acl},
    {"stat", "stat [-w] path", "w", 1, 1, run_stat},
};

static int run_help(struct zk_shell *sh, const struct arguments *a)
{
    (void)a;
    fputs("ZooKeeper -server host:port cmd args\n", sh->out);
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
        fprintf(sh->out, "\t%s\n", commands[i].usage);
    return ZOK;
}

static const struct command *find(const char *name)
{
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

static bool set_flag(struct arguments *a, const struct command *c, char letter)
{
    if (!strchr(c->flags, letter))
        return false;
    if (letter == 's' && strcmp(c->name, "create") == 0)
        a->sequential = true;
    else if (letter == 's')
        a->stat = true;
    a->watch |= letter == 'w';
    a->deep |= letter == 'R';
    a->ephemeral |= letter == 'e';
    return true;
}

static bool read_arguments(const struct command *c, int n, char **words, struct arguments *a)
{
    *a = (struct arguments){.version = -1};
    for (int i = 1; i < n; i++) {
        char *w = words[i];
        bool is_flag = w[0] == '-' && w[1] && !w[2];
        if (is_flag && w[1] == 'v' && strchr(c->flags, 'v')) {
            char *end = NULL;
            if (++i == n)
                return false;
            a->version = (int)strtol(words[i], &end, 10);
            if (!*words[i] || *end)
                return false;
        } else if (is_flag && set_flag(a, c, w[1])) {
            continue;
        } else if (a->n == WORDS_MAX || a->n == c->most) {
            return false;
        } else {
            a->word[a->n++] = w;
        }
    }
    return a->n >= c->least;
}

int zk_shell_run(struct zk_shell *sh, int n, char **words)
{
    const struct command *c = n ? find(words[0]) : NULL;
    struct arguments a;
    if (!c) {
        fprintf(sh->err, "Command not found: Command not found %s\n", n ? words[0] : "");
        return 1;
    }
    if (!read_arguments(c, n, words, &a)) {
        fprintf(sh->err, "%s\n", c->usage);
        return 1;
    }
    if (a.n && a.word[0][0] != '/' && strcmp(c->name, "addauth") != 0) {
        fprintf(sh->err, "Path must start with / character\n");
        return 1;
    }
    int rc = c->run(sh, &a);
    fflush(sh->out);
    return rc ? complain(sh, rc, a.n ? a.word[0] : "") : 0;
}

int zk_shell_split(char *line, char *words[ZK_SHELL_WORDS])
{
    int n = 0;
    char *at = line;
    for (;;) {
        at += strspn(at, " \t\r\n");
        if (!*at || n == ZK_SHELL_WORDS)
            return n;
        char quote = *at == '"' || *at == '\'' ? *at : 0;
        words[n++] = quote ? ++at : at;
        at += quote ? strcspn(at, (char[]){quote, 0}) : strcspn(at, " \t\r\n");
        if (*at)
            *at++ = 0;
    }
}
