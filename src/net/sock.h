/* sock.h - sockets and addresses: options, names as text, binding.
 *
 * THREADS  any: no state. */
#ifndef NET_SOCK_H
#define NET_SOCK_H

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

enum { SOCK_HOST_MAX = 46, SOCK_NAME_MAX = SOCK_HOST_MAX + 8 };

/* An address as text: host "127.0.0.1" or "::1", name "127.0.0.1:53412" or "[::1]:53412". IPv4 that
 * came in through an IPv6 socket reads as IPv4. */
void sock_text(const struct sockaddr_storage *a, char host[SOCK_HOST_MAX],
               char name[SOCK_NAME_MAX]);
/* The address alone, IPv4 as IPv4-mapped IPv6: one key for both families. */
struct in6_addr sock_ip(const struct sockaddr_storage *a);
int sock_port(const struct sockaddr_storage *a);
/* Address of a name; an IPv4 one if it has several. 0 or -errno. @blocks */
int sock_resolve(const char *host, struct in6_addr *out);

/* What every connection gets: no delay, keep-alive, buffers (<= 0: the system's). */
void sock_tune(int fd, int send_buffer, int receive_buffer);
/* The receive buffer is made that large (as SO_RCVBUF would) if the system would begin with less;
 * else it stays the system's, which makes it larger where that helps. */
void sock_receive_at_least(int fd, int bytes);
/* Binds and listens, non-blocking. host "" or "0.0.0.0": all addresses, IPv6 and IPv4 by one socket
 * where the machine has both. Returns the descriptor, or -errno. @blocks on looking a name up */
int sock_listen(const char *host, int port, int backlog, int receive_buffer);
int sock_bound_port(int fd);
/* Is the connection reset, or closed on both sides? */
bool sock_broken(int fd);

#endif
