/* floor.c - the least CPU that a log broker can spend on this machine, measured with the same
 * system calls and nothing around them.
 *
 *   floor produce DIR MB CHUNK   a peer sends chunks over loopback; we receive, CRC-32C and append
 * each to a file floor fetch   DIR MB CHUNK   a peer reads; we sendfile a cached file in chunks
 *
 * Prints one JSON line: {"mb_s": .., "cpu_s_per_gb": ..}; CPU is that of the receiving (sending)
 * process alone. MB and GB are powers of two. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/checksum.h"

static const off_t file_limit =
    1 << 30; /* the file is written round, so that a probe needs 1 GiB at most */

static void die(const char *what)
{
    fprintf(stderr, "floor: %s: %s\n", what, strerror(errno));
    exit(1);
}

static double now_s(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static double cpu_s(void)
{
    struct rusage ru;
    getrusage(RUSAGE_SELF, &ru);
    return (double)(ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) +
           (double)(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) / 1e6;
}

/* A connected TCP pair over loopback: pair[0] accepted, pair[1] connecting side. */
static void tcp_pair(int pair[2])
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&at, sizeof at) || listen(listener, 1) ||
        getsockname(listener, (struct sockaddr *)&at, &len))
        die("listen");
    pair[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (pair[1] < 0 || connect(pair[1], (struct sockaddr *)&at, sizeof at))
        die("connect");
    pair[0] = accept(listener, NULL, NULL);
    if (pair[0] < 0)
        die("accept");
    close(listener);
}

static void fill(uint8_t *p, size_t n)
{
    uint64_t x = 88172645463325252u;
    for (size_t i = 0; i < n; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        p[i] = (uint8_t)x;
    }
}

/* A file without a name in dir. */
static int open_file(const char *dir)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/floor.XXXXXX", dir);
    int file = mkstemp(path);
    if (file < 0)
        die(path);
    unlink(path);
    return file;
}

static void send_all(int fd, const uint8_t *chunk, size_t chunk_n, uint64_t total)
{
    for (uint64_t sent = 0; sent < total;) {
        size_t at = sent % chunk_n;
        ssize_t n = send(fd, chunk + at, chunk_n - at, MSG_NOSIGNAL);
        if (n <= 0)
            die("send");
        sent += (uint64_t)n;
    }
}

static void drain(int fd)
{
    static uint8_t sink[1 << 20];
    while (read(fd, sink, sizeof sink) > 0)
        ;
}

static uint32_t receive_and_append(int sock, const char *dir, uint8_t *chunk, size_t chunk_n,
                                   uint64_t total)
{
    uint32_t crc = 0;
    off_t at = 0;
    int file = open_file(dir);
    for (uint64_t done = 0; done < total; done += chunk_n) {
        for (size_t got = 0; got < chunk_n;) {
            ssize_t n = read(sock, chunk + got, chunk_n - got);
            if (n <= 0)
                die("read");
            got += (size_t)n;
        }
        crc ^= crc32c(chunk, chunk_n);
        if (at + (off_t)chunk_n > file_limit) {
            close(file);
            file = open_file(dir);
            at = 0;
        }
        if (pwrite(file, chunk, chunk_n, at) != (ssize_t)chunk_n)
            die("pwrite");
        at += (off_t)chunk_n;
    }
    close(file);
    return crc;
}

static void send_file_over(int sock, int file, size_t chunk_n, uint64_t total, off_t file_n)
{
    off_t at = 0;
    for (uint64_t done = 0; done < total;) {
        if (at >= file_n)
            at = 0;
        ssize_t n = sendfile(sock, file, &at, chunk_n);
        if (n <= 0)
            die("sendfile");
        done += (uint64_t)n;
    }
}

static off_t make_file(int file, uint8_t *chunk, size_t chunk_n)
{
    off_t n = 0;
    for (; n < (256 << 20); n += (off_t)chunk_n)
        if (pwrite(file, chunk, chunk_n, n) != (ssize_t)chunk_n)
            die("pwrite");
    return n;
}

int main(int argc, char **argv)
{
    if (argc != 5 || (strcmp(argv[1], "produce") && strcmp(argv[1], "fetch"))) {
        fprintf(stderr, "usage: floor produce|fetch DIR MB CHUNK_BYTES\n");
        return 1;
    }
    int produce = argv[1][0] == 'p';
    size_t chunk_n = (size_t)strtoull(argv[4], NULL, 10);
    uint64_t total = strtoull(argv[3], NULL, 10) << 20;
    if (chunk_n == 0 || total < chunk_n)
        die("MB and CHUNK_BYTES");
    total -= total % chunk_n;
    uint8_t *chunk = malloc(chunk_n);
    int file = open_file(argv[2]), pair[2];
    if (!chunk)
        die("malloc");
    fill(chunk, chunk_n);
    off_t file_n = produce ? 0 : make_file(file, chunk, chunk_n);
    tcp_pair(pair);

    pid_t peer = fork();
    if (peer == 0) {
        close(pair[0]);
        if (produce)
            send_all(pair[1], chunk, chunk_n, total);
        else
            drain(pair[1]);
        _exit(0);
    }
    close(pair[1]);
    double wall = now_s(), cpu = cpu_s();
    uint32_t crc = 0;
    if (produce)
        crc = receive_and_append(pair[0], argv[2], chunk, chunk_n, total);
    else
        send_file_over(pair[0], file, chunk_n, total, file_n);
    cpu = cpu_s() - cpu;
    wall = now_s() - wall;
    close(pair[0]);
    waitpid(peer, NULL, 0);
    double mb = (double)total / (1 << 20);
    printf("{\"mb_s\": %.1f, \"cpu_s_per_gb\": %.4f, \"crc\": %u}\n", mb / wall, cpu / (mb / 1024),
           crc);
    free(chunk);
    return 0;
}
