/* chaos_switch.c - an Ethernet switch between network namespaces that does to frames what bad
 * networks do.
 *
 *   chaos_switch SEED NAMESPACE...      node 1, 2, ... in that order
 *
 * Each namespace gets a TAP device "eth0"; the last byte of a MAC address is the node's number, and
 * frames go where it says. (The kernel's own netem knows no pairs of nodes, and not every kernel
 * has it.) Lines of standard input:
 *
 *   FROM TO DELAY_US JITTER_US LOSS DUPLICATE REORDER     per million; LOSS 1000000 is a cut
 *   stats                                                 prints the counts of frames since the
 * start
 *
 * Prints "ready" once the devices are there. The rule of a pair holds for one direction. A frame
 * that is delayed keeps its place among those of its pair unless it is chosen for reordering: then
 * it waits longer than its successors. Ends with its input. One thread. */
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum {
    NODES_MAX = 32,
    FRAME_MAX = 16384,
    QUEUE_MAX = 65536,
    REORDER_NS = 8000000,
    MILLION = 1000000
};

struct rule {
    int64_t delay_ns, jitter_ns;
    uint32_t loss, duplicate, reorder;
    int64_t last_due; /* of the frames in order */
};

struct frame {
    int64_t due;
    uint64_t number; /* frames due at the same time leave as they came */
    int to;
    uint32_t size;
    uint8_t *bytes;
};

struct network {
    int nodes;
    int tap[NODES_MAX];
    struct rule rules[NODES_MAX][NODES_MAX];
    struct frame heap[QUEUE_MAX];
    size_t waiting;
    uint64_t random, numbers;
    uint64_t passed, lost, duplicated, reordered, delayed;
};

static int64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static void die(const char *what)
{
    fprintf(stderr, "chaos_switch: %s: %s\n", what, strerror(errno));
    exit(1);
}

static uint64_t random_next(struct network *n)
{
    n->random ^= n->random << 13;
    n->random ^= n->random >> 7;
    n->random ^= n->random << 17;
    return n->random;
}

static int chance(struct network *n, uint32_t per_million)
{
    return per_million && random_next(n) % MILLION < per_million;
}

/* The device is made in the namespace; its descriptor works from anywhere. */
static int tap_open(const char *namespace, int home)
{
    char path[256];
    snprintf(path, sizeof path, "/run/netns/%s", namespace);
    int ns = open(path, O_RDONLY | O_CLOEXEC);
    if (ns < 0 || setns(ns, CLONE_NEWNET) != 0)
        die(path);
    int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        die("/dev/net/tun");
    struct ifreq ifr = {.ifr_flags = IFF_TAP | IFF_NO_PI};
    memcpy(ifr.ifr_name, "eth0", 5);
    if (ioctl(fd, TUNSETIFF, &ifr) != 0)
        die("TUNSETIFF");
    if (setns(home, CLONE_NEWNET) != 0)
        die("setns");
    close(ns);
    return fd;
}

static int earlier(const struct frame *a, const struct frame *b)
{
    return a->due != b->due ? a->due < b->due : a->number < b->number;
}

static void heap_push(struct network *n, struct frame f)
{
    size_t at = n->waiting++;
    while (at > 0 && earlier(&f, &n->heap[(at - 1) / 2])) {
        n->heap[at] = n->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    n->heap[at] = f;
}

static struct frame heap_pop(struct network *n)
{
    struct frame top = n->heap[0], last = n->heap[--n->waiting];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= n->waiting)
            break;
        if (child + 1 < n->waiting && earlier(&n->heap[child + 1], &n->heap[child]))
            child++;
        if (!earlier(&n->heap[child], &last))
            break;
        n->heap[at] = n->heap[child];
        at = child;
    }
    n->heap[at] = last;
    return top;
}

/* A full device loses the frame, as a full queue of a real switch does. */
static void deliver(const struct network *n, int to, const uint8_t *bytes, uint32_t size)
{
    if (write(n->tap[to], bytes, size) < 0 && errno != EAGAIN && errno != EIO)
        die("write");
}

static void enqueue(struct network *n, int64_t due, int to, const uint8_t *bytes, uint32_t size)
{
    uint8_t *copy = n->waiting < QUEUE_MAX ? malloc(size) : NULL;
    if (!copy) {
        n->lost++;
        return;
    }
    memcpy(copy, bytes, size);
    heap_push(n, (struct frame){due, n->numbers++, to, size, copy});
}

static void pass_once(struct network *n, int from, int to, const uint8_t *bytes, uint32_t size)
{
    struct rule *r = &n->rules[from][to];
    int64_t now = now_ns();
    int64_t due = now + r->delay_ns;
    if (r->jitter_ns)
        due += (int64_t)(random_next(n) % (uint64_t)r->jitter_ns);
    if (chance(n, r->reorder)) {
        n->reordered++;
        enqueue(n, due + REORDER_NS, to, bytes, size);
        return;
    }
    if (due < r->last_due)
        due = r->last_due;
    r->last_due = due;
    if (due <= now) {
        deliver(n, to, bytes, size);
        return;
    }
    n->delayed++;
    enqueue(n, due, to, bytes, size);
}

static void pass(struct network *n, int from, const uint8_t *bytes, uint32_t size)
{
    if (size < 14 || bytes[0] != 2 || bytes[5] < 1 || bytes[5] > n->nodes)
        return; /* broadcasts: addresses are known, nobody needs them */
    int to = bytes[5] - 1;
    if (chance(n, n->rules[from][to].loss)) {
        n->lost++;
        return;
    }
    n->passed++;
    pass_once(n, from, to, bytes, size);
    if (chance(n, n->rules[from][to].duplicate)) {
        n->duplicated++;
        pass_once(n, from, to, bytes, size);
    }
}

static void drain(struct network *n, int from)
{
    static uint8_t bytes[FRAME_MAX];
    for (int i = 0; i < 64; i++) {
        ssize_t size = read(n->tap[from], bytes, sizeof bytes);
        if (size <= 0)
            return;
        pass(n, from, bytes, (uint32_t)size);
    }
}

static void obey(struct network *n, const char *line)
{
    int from, to;
    long long delay, jitter;
    unsigned loss, duplicate, reorder;
    if (strncmp(line, "stats", 5) == 0) {
        printf("passed %llu lost %llu duplicated %llu reordered %llu delayed %llu\n",
               (unsigned long long)n->passed, (unsigned long long)n->lost,
               (unsigned long long)n->duplicated, (unsigned long long)n->reordered,
               (unsigned long long)n->delayed);
        fflush(stdout);
        return;
    }
    if (sscanf(line, "%d %d %lld %lld %u %u %u", &from, &to, &delay, &jitter, &loss, &duplicate,
               &reorder) != 7 ||
        from < 1 || to < 1 || from > n->nodes || to > n->nodes) {
        fprintf(stderr, "chaos_switch: what is '%s'?\n", line);
        exit(1);
    }
    struct rule *r = &n->rules[from - 1][to - 1];
    *r = (struct rule){delay * 1000, jitter * 1000, loss, duplicate, reorder, r->last_due};
}

/* Whole lines of what has come. 0: the input has ended. */
static int listen_once(struct network *n)
{
    static char text[4096];
    static size_t length;
    ssize_t got = read(0, text + length, sizeof text - 1 - length);
    if (got <= 0)
        return 0;
    length += (size_t)got;
    text[length] = 0;
    char *line = text;
    for (char *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        *end = 0;
        obey(n, line);
    }
    length -= (size_t)(line - text);
    memmove(text, line, length);
    return length < sizeof text - 1;
}

static void release(struct network *n)
{
    int64_t now = now_ns();
    while (n->waiting && n->heap[0].due <= now) {
        struct frame f = heap_pop(n);
        deliver(n, f.to, f.bytes, f.size);
        free(f.bytes);
    }
}

/* Until the next delayed frame is due. */
static struct timespec patience(const struct network *n)
{
    int64_t ns = n->waiting ? n->heap[0].due - now_ns() : 1000000000;
    if (ns < 0)
        ns = 0;
    return (struct timespec){ns / 1000000000, ns % 1000000000};
}

int main(int argc, char **argv)
{
    static struct network n;
    if (argc < 3 || argc - 2 > NODES_MAX) {
        fprintf(stderr, "usage: chaos_switch SEED NAMESPACE...\n");
        return 2;
    }
    n.random = strtoull(argv[1], NULL, 10) * 2 + 0x9E3779B97F4A7C15u;
    int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    struct pollfd polls[NODES_MAX + 1] = {{0, POLLIN, 0}};
    for (; n.nodes < argc - 2; n.nodes++) {
        n.tap[n.nodes] = tap_open(argv[n.nodes + 2], home);
        polls[n.nodes + 1] = (struct pollfd){n.tap[n.nodes], POLLIN, 0};
    }
    printf("ready\n");
    fflush(stdout);
    for (;;) {
        struct timespec wait = patience(&n);
        if (ppoll(polls, (nfds_t)n.nodes + 1, &wait, NULL) < 0 && errno != EINTR)
            die("ppoll");
        release(&n);
        for (int i = 0; i < n.nodes; i++)
            if (polls[i + 1].revents & POLLIN)
                drain(&n, i);
        if (polls[0].revents && !listen_once(&n))
            return 0;
    }
}
