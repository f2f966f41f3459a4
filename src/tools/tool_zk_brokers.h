/* tool_zk_brokers.h - `--zookeeper` of the 2.x tools: a session with it, and the brokers that are
 * registered there, who are asked for most things. */
#ifndef TOOLS_TOOL_ZK_BROKERS_H
#define TOOLS_TOOL_ZK_BROKERS_H

#include <stdbool.h>

struct props;
struct store;

/* A session with that ZooKeeper, or the end of the process with a line. The log is silent until it
 * is closed. Returns owned: tool_zk_close. @blocks */
struct store *tool_zk_open(const char *connect);
/* The same as whom a file of settings says (NULL: as nobody): zookeeper.digest.auth, and
 * zookeeper.set.acl for what is made. */
struct store *tool_zk_open_as(const char *connect, const char *path);
/* The same by settings that are read already; flag: what it is about, in lines of what goes wrong.
 * make: the folder (chroot), if it is not there. */
struct store *tool_zk_open_by(const char *flag, const char *connect, const struct props *p,
                              bool make);
void tool_zk_close(struct store *s);
/* The same, and makes the folder (chroot) if it is not there, as a broker does at its first start.
 */
struct store *tool_zk_open_or_make(const char *connect, const char *path);
/* Ends the process: "--zookeeper: <why>". */
_Noreturn void tool_zk_die(const char *why);

/* "host:port,host:port". Ends the process with a line when ZooKeeper does not answer or knows of no
 * broker. Returns owned. @blocks */
char *tool_zk_brokers(const char *connect);

#endif
