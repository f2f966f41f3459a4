/* broker_dump.h - what a running broker is doing, as lines of its log: for SIGQUIT, which asks a
 * JVM for the same. */
#ifndef SERVER_BROKER_DUMP_H
#define SERVER_BROKER_DUMP_H

struct broker;

/* @thread any, while the broker serves. @blocks for moments */
void broker_dump(struct broker *b);

#endif
