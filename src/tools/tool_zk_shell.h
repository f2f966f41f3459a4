/* tool_zk_shell.h - the commands of zookeeper-shell, and how its lines are split into words.
 *
 * Output and messages are those of ZooKeeper's own command line client.
 *
 * THREADS  one, the main one. */
#ifndef TOOLS_TOOL_ZK_SHELL_H
#define TOOLS_TOOL_ZK_SHELL_H

#include <stdbool.h>
#include <stdio.h>
#include <zookeeper/zookeeper.h>

struct zk_shell {
    zhandle_t *zh;
    FILE *out, *err; /* answers; complaints */
    bool quit;       /* "quit" was given */
    int counted;     /* private: by getAllChildrenNumber */
};

/* One command, words[0] its name. 0, or 1 after a complaint. @blocks */
int zk_shell_run(struct zk_shell *sh, int n, char **words);

enum { ZK_SHELL_WORDS = 32 };
/* Splits the line in place at white space; '...' and "..." hold a word together. Returns how many;
 * what is behind the last one that has room is dropped. */
int zk_shell_split(char *line, char *words[ZK_SHELL_WORDS]);
/* The lines of `stat`. */
void zk_shell_print_stat(FILE *out, const struct Stat *st);

#endif
