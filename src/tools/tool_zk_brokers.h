/* tool_zk_brokers.h - `--zookeeper` of the 2.x tools: the brokers that are registered there are
 * asked. */
#ifndef TOOLS_TOOL_ZK_BROKERS_H
#define TOOLS_TOOL_ZK_BROKERS_H

/* "host:port,host:port". Ends the process with a line when ZooKeeper does not answer or knows of no
 * broker. Returns owned. @blocks */
char *tool_zk_brokers(const char *connect);

#endif
