/* sim_world.c - see sim.h: events, fibers and the loop. The world is the process's: what is
 * replaced beneath the brokers (pthread_mutex_lock ...) has no place for an argument. */
#include "sim.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define WITH_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ASAN 1
#endif
#endif
#ifdef WITH_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
enum { STACK_BYTES = 1 << 20 };
#else
enum { STACK_BYTES = 256 << 10 };
#endif

enum { BUSY_MAX = 20000000 }; /* turns of fibers within one instant: more is a loop */

enum fiber_state { FIBER_READY, FIBER_BLOCKED, FIBER_DONE };

struct fiber {
    struct list link; /* the host's */
    struct list wait; /* the host's held ones */
    struct sim_host *host;
    ucontext_t context;
    void *stack;
    void *fake_stack; /* ASan's */
    void *(*run)(void *arg);
    void *arg, *result;
    enum fiber_state state;
    const void *on;
    uint64_t blocked_at; /* a number of its own for each wait */
    bool timed_out, doomed;
    int saved_errno;
    char name[16];
};

struct event {
    struct list link; /* held_events */
    int64_t time;
    uint64_t order;
    struct sim_host *host;
    uint32_t life;
    void (*fn)(void *arg);
    void *arg;
};

static struct world {
    struct sim_options o;
    double preempt;
    int64_t now;
    uint64_t random[4];
    uint64_t trace, steps, order, waits;
    struct event *heap;
    size_t heap_n, heap_cap;
    struct sim_host hosts[SIM_HOSTS];
    struct fiber **ready;
    size_t ready_n, ready_cap;
    struct fiber *current;
    ucontext_t main_context;
    void *main_fake_stack;
    const void *main_stack;
    size_t main_stack_size;
    void *stacks[64];
    int stacks_n;
} W;

/* ---- chance ---- */

static uint64_t rotl(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

/* xoshiro256** */
uint64_t sim_random(void)
{
    uint64_t *s = W.random, result = rotl(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotl(s[3], 45);
    return result;
}

uint64_t sim_below(uint64_t n)
{
    return n ? sim_random() % n : 0;
}

int64_t sim_between(int64_t low, int64_t high)
{
    return low + (int64_t)sim_below((uint64_t)(high - low + 1));
}

bool sim_chance(double p)
{
    return (double)(sim_random() >> 11) * 0x1p-53 < p;
}

static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

void sim_trace(uint64_t v)
{
    W.trace = mix(W.trace ^ v);
}

uint64_t sim_trace_hash(void)
{
    return W.trace;
}

uint64_t sim_steps(void)
{
    return W.steps;
}

int64_t sim_now(void)
{
    return W.now;
}

int64_t sim_wall_ms(void)
{
    return 1700000000000LL + W.now / SIM_MS;
}

bool sim_shows_requests(void)
{
    return W.o.requests;
}

bool sim_verbose(void)
{
    return W.o.verbose;
}

/* ---- hosts ---- */

struct sim_host *sim_host(int id)
{
    return &W.hosts[id];
}

struct sim_host *sim_host_named(const char *name)
{
    for (int i = 0; i < SIM_HOSTS; i++)
        if (strcmp(W.hosts[i].name, name) == 0)
            return &W.hosts[i];
    return NULL;
}

struct sim_host *sim_here(void)
{
    return W.current ? W.current->host : NULL;
}

void sim_init(const struct sim_options *o)
{
    W.o = *o;
    W.now = 1000 * SIM_S; /* the machines have been up for a while */
    for (int i = 0; i < 4; i++)
        W.random[i] = mix(o->seed * 4 + (uint64_t)i);
    for (int i = 0; i < SIM_HOSTS; i++) {
        struct sim_host *h = &W.hosts[i];
        h->id = i;
        snprintf(h->name, sizeof(h->name), i == SIM_ZK ? "zk" : i == SIM_CLIENTS ? "c" : "b%d", i);
        h->powered = true;
        list_init(&h->fibers);
        list_init(&h->held);
        list_init(&h->held_events);
    }
}

/* ---- events: a heap by time, then order ---- */

static bool sooner(const struct event *a, const struct event *b)
{
    return a->time != b->time ? a->time < b->time : a->order < b->order;
}

static void heap_put(struct event e)
{
    if (W.heap_n == W.heap_cap) {
        W.heap_cap = W.heap_cap ? 2 * W.heap_cap : 1024;
        W.heap = realloc(W.heap, W.heap_cap * sizeof(*W.heap));
    }
    size_t i = W.heap_n++;
    for (; i && sooner(&e, &W.heap[(i - 1) / 2]); i = (i - 1) / 2)
        W.heap[i] = W.heap[(i - 1) / 2];
    W.heap[i] = e;
}

static struct event heap_take(void)
{
    struct event first = W.heap[0], last = W.heap[--W.heap_n];
    size_t i = 0;
    for (;;) {
        size_t c = 2 * i + 1;
        if (c >= W.heap_n)
            break;
        if (c + 1 < W.heap_n && sooner(&W.heap[c + 1], &W.heap[c]))
            c++;
        if (!sooner(&W.heap[c], &last))
            break;
        W.heap[i] = W.heap[c];
        i = c;
    }
    W.heap[i] = last;
    return first;
}

void sim_after(int64_t ns, struct sim_host *h, void (*fn)(void *arg), void *arg)
{
    heap_put((struct event){.time = W.now + (ns > 0 ? ns : 0),
                            .order = ++W.order,
                            .host = h,
                            .life = h ? h->life : 0,
                            .fn = fn,
                            .arg = arg});
}

/* ---- switching ---- */

static void before_switch(void **save, const void *bottom, size_t size)
{
#ifdef WITH_ASAN
    __sanitizer_start_switch_fiber(save, bottom, size);
#else
    (void)save, (void)bottom, (void)size;
#endif
}

static void after_switch(void *saved, const void **bottom, size_t *size)
{
#ifdef WITH_ASAN
    __sanitizer_finish_switch_fiber(saved, bottom, size);
#else
    (void)saved, (void)bottom, (void)size;
#endif
}

static void to_main(void)
{
    struct fiber *f = W.current;
    f->saved_errno = errno;
    before_switch(f->doomed || f->state == FIBER_DONE ? NULL : &f->fake_stack, W.main_stack,
                  W.main_stack_size);
    swapcontext(&f->context, &W.main_context);
    after_switch(f->fake_stack, NULL, NULL);
    errno = f->saved_errno;
}

static void *stack_new(void)
{
    if (W.stacks_n)
        return W.stacks[--W.stacks_n];
    void *p = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        abort();
    mprotect(p, 4096, PROT_NONE);
    return p;
}

static void stack_free(void *p)
{
#ifdef WITH_ASAN
    __asan_unpoison_memory_region((char *)p + 4096, STACK_BYTES - 4096);
#endif
    if (W.stacks_n < 64)
        W.stacks[W.stacks_n++] = p;
    else
        munmap(p, STACK_BYTES);
}

static void make_ready(struct fiber *f)
{
    f->state = FIBER_READY;
    f->on = NULL;
    if (f->host->paused) {
        list_push_back(&f->host->held, &f->wait);
        return;
    }
    if (W.ready_n == W.ready_cap) {
        W.ready_cap = W.ready_cap ? 2 * W.ready_cap : 64;
        W.ready = realloc(W.ready, W.ready_cap * sizeof(*W.ready));
    }
    W.ready[W.ready_n++] = f;
}

static void entry(void)
{
    struct fiber *f = W.current;
    after_switch(NULL, &W.main_stack, &W.main_stack_size);
    f->result = f->run(f->arg);
    f->state = FIBER_DONE;
    fiber_wake_all(f->host, f);
    to_main();
}

struct fiber *fiber_start(struct sim_host *h, const char *name, void *(*run)(void *), void *arg)
{
    struct fiber *f = calloc(1, sizeof(*f));
    f->host = h;
    f->stack = stack_new();
    f->run = run;
    f->arg = arg;
    snprintf(f->name, sizeof(f->name), "%s", name);
    list_init(&f->wait);
    list_push_back(&h->fibers, &f->link);
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = (char *)f->stack + 4096;
    f->context.uc_stack.ss_size = STACK_BYTES - 4096;
    makecontext(&f->context, entry, 0);
    make_ready(f);
    return f;
}

struct fiber *fiber_self(void)
{
    return W.current;
}

const char *fiber_name(const struct fiber *f)
{
    return f->name;
}

bool fiber_is_done(const struct fiber *f)
{
    return f->state == FIBER_DONE;
}

void fiber_block(const void *on)
{
    struct fiber *f = W.current;
    if (!f)
        sim_violation("the simulator would wait for itself");
    f->state = FIBER_BLOCKED;
    f->on = on;
    f->blocked_at = ++W.waits;
    f->timed_out = false;
    to_main();
}

struct alarm {
    struct fiber *f;
    uint64_t blocked_at;
};

static void ring(void *arg)
{
    struct alarm *a = arg;
    struct fiber *f = a->f;
    if (f->state == FIBER_BLOCKED && f->blocked_at == a->blocked_at) {
        f->timed_out = true;
        make_ready(f);
    }
    free(a);
}

bool fiber_block_for(const void *on, int64_t ns)
{
    struct alarm *a = malloc(sizeof(*a));
    *a = (struct alarm){W.current, W.waits + 1};
    sim_after(ns, W.current->host, ring, a);
    fiber_block(on);
    return !W.current->timed_out;
}

static struct fiber *longest_waiting(struct sim_host *h, const void *on)
{
    struct fiber *found = NULL;
    list_each (it, &h->fibers) {
        struct fiber *f = list_entry(it, struct fiber, link);
        if (f->state == FIBER_BLOCKED && f->on == on &&
            (!found || f->blocked_at < found->blocked_at))
            found = f;
    }
    return found;
}

void fiber_wake_one(struct sim_host *h, const void *on)
{
    struct fiber *f = longest_waiting(h, on);
    if (f)
        make_ready(f);
}

void fiber_wake_all(struct sim_host *h, const void *on)
{
    struct fiber *f;
    while ((f = longest_waiting(h, on)))
        make_ready(f);
}

void fiber_yield(void)
{
    if (!W.current)
        return;
    make_ready(W.current);
    to_main();
}

void sim_set_preempt(double p)
{
    W.preempt = p;
}

void fiber_maybe_yield(void)
{
    if (W.current && W.preempt > 0 && sim_chance(W.preempt))
        fiber_yield();
}

void fiber_sleep(int64_t ns)
{
    struct fiber *f = W.current;
    fiber_block_for(&f->name, ns);
}

void *fiber_join(struct fiber *f)
{
    while (f->state != FIBER_DONE)
        fiber_block(f);
    return f->result;
}

/* ---- ends and pauses ---- */

static void bury(struct fiber *f)
{
    if (f->stack)
        stack_free(f->stack);
    f->stack = NULL;
    f->state = FIBER_DONE;
    list_remove(&f->link);
}

void sim_host_die(struct sim_host *h)
{
    h->life++;
    h->up = false;
    h->locks_held = 0;
    h->paused = false;
    h->moved = true;
    while (list_pop(&h->held))
        ;
    while (list_pop(&h->held_events))
        ;
    size_t n = 0;
    for (size_t i = 0; i < W.ready_n; i++)
        if (W.ready[i]->host != h)
            W.ready[n++] = W.ready[i];
    W.ready_n = n;
    list_each_safe (it, &h->fibers) {
        struct fiber *f = list_entry(it, struct fiber, link);
        if (f != W.current)
            bury(f);
    }
    if (W.current && W.current->host == h) {
        W.current->doomed = true;
        to_main();
    }
}

void sim_host_pause(struct sim_host *h, bool paused)
{
    if (h->paused == paused)
        return;
    h->paused = paused;
    if (paused) {
        size_t n = 0;
        for (size_t i = 0; i < W.ready_n; i++) {
            if (W.ready[i]->host == h)
                list_push_back(&h->held, &W.ready[i]->wait);
            else
                W.ready[n++] = W.ready[i];
        }
        W.ready_n = n;
        return;
    }
    struct list *it;
    while ((it = list_pop(&h->held)))
        make_ready(list_entry(it, struct fiber, wait));
    while ((it = list_pop(&h->held_events))) {
        struct event *e = list_entry(it, struct event, link);
        e->time = W.now;
        e->order = ++W.order;
        heap_put(*e);
        free(e);
    }
}

/* ---- the loop ---- */

static void run_fiber(struct fiber *f)
{
    W.current = f;
    f->host->moved = true;
    before_switch(&W.main_fake_stack, (char *)f->stack + 4096, STACK_BYTES - 4096);
    swapcontext(&W.main_context, &f->context);
    after_switch(W.main_fake_stack, NULL, NULL);
    W.current = NULL;
    if (f->doomed || f->state == FIBER_DONE)
        bury(f);
}

static void run_ready(void)
{
    for (int turns = 0; W.ready_n; turns++) {
        size_t i = W.ready_n > 1 ? (size_t)sim_below(W.ready_n) : 0;
        struct fiber *f = W.ready[i];
        W.ready[i] = W.ready[--W.ready_n];
        run_fiber(f);
        if (turns > BUSY_MAX)
            sim_violation("a loop without end on %s, thread %s", f->host->name, f->name);
    }
}

bool sim_step(void)
{
    run_ready();
    if (W.o.look)
        W.o.look();
    if (!W.heap_n)
        return false;
    struct event e = heap_take();
    W.now = e.time;
    if (e.host && e.life != e.host->life)
        return true;
    if (e.host && e.host->paused) {
        struct event *held = malloc(sizeof(*held));
        *held = e;
        list_push_back(&e.host->held_events, &held->link);
        return true;
    }
    W.steps++;
    sim_trace((uint64_t)e.time);
    e.fn(e.arg);
    return true;
}

/* ---- words ---- */

static void put_time(FILE *out)
{
    fprintf(out, "%10.6f %8llu ", (double)(W.now - 1000 * SIM_S) / 1e9,
            (unsigned long long)W.steps);
}

void sim_say(const char *fmt, ...)
{
    if (!W.o.verbose)
        return;
    va_list ap;
    put_time(stderr);
    fputs("**** ", stderr);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
}

void sim_violation(const char *fmt, ...)
{
    va_list ap;
    fflush(stdout);
    put_time(stderr);
    fputs("VIOLATION: ", stderr);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fprintf(stderr, "\n  seed %llu, step %llu, simulated time %.6f s\n",
            (unsigned long long)W.o.seed, (unsigned long long)W.steps,
            (double)(W.now - 1000 * SIM_S) / 1e9);
    fflush(stderr);
    if (getenv("KAFKAD_SIM_ABORT"))
        abort();
    _exit(1);
}
