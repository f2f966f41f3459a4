/* zookeeper_connect.h - the text of zookeeper.connect: "host[:port][,host[:port]...][/folder]"; and
 * of a server that was found by it.
 * THREADS  any. */
#ifndef METADATA_ZOOKEEPER_CONNECT_H
#define METADATA_ZOOKEEPER_CONNECT_H

#include <stddef.h>
#include <sys/socket.h>

struct zookeeper_connect {
    char *hosts;  /* "host:port,host:port", every host with its port */
    char *chroot; /* "/a/b", or "" for none */
};

/* 0; -EINVAL with what is wrong in err; -ENOMEM. Returns owned (zookeeper_connect_clear). */
int zookeeper_connect_parse(const char *text, struct zookeeper_connect *out, char *err,
                            size_t err_n);
void zookeeper_connect_clear(struct zookeeper_connect *c);

enum { ZOOKEEPER_SERVER_TEXT = 64 };
/* "address:port" in numbers, "?" for none. (The library's own text of it is one buffer for all
 * threads.) */
void zookeeper_server_text(const struct sockaddr *at, socklen_t len,
                           char out[ZOOKEEPER_SERVER_TEXT]);

#endif
