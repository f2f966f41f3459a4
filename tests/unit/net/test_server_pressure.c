/* Back-pressure and fairness: what a client may make the server do, and hold, at most. */
#include <stdatomic.h>

#include "net_test.h"

#include <fcntl.h>
#include <limits.h>

static void a_client_that_never_reads_is_no_longer_read(void **state)
{
    struct server_test *st = server_new();
    st->limits.max_unsent = 2 << 20;
    server_begin(st, 1);
    int greedy = client_connect(st), other = client_connect(st);
    enum { ASKED = 200 };
    for (int i = 0; i < ASKED; i++)
        client_send_frame(greedy, "b1000000"); /* 200 MB asked for in 2.4 kB */
    for (int i = 0; i < 20; i++)
        client_round_trip(other, "eother");
    settle(st);
    /* two answers unsent, one over, and what the kernel's buffers took (4 MB and 6 MB at most) */
    assert_true(read_count(st, &st->requests) < 20 + 3 + 11);
    /* and when it reads after all, it gets all */
    for (int i = 0; i < ASKED; i++) {
        uint32_t n;
        free(client_recv_frame(greedy, &n));
        assert_int_equal(n, 1000000);
    }
    client_round_trip(greedy, "efine");
    close(greedy);
    close(other);
    server_end(st);
}

static void reserve_a_lot(void *arg)
{
    net_request_reserve(arg, 1 << 20);
}

/* Answers that are being made elsewhere count before they are there. */
static void reserved_answers_hold_reading_back(void **state)
{
    struct server_test *st = server_new();
    st->limits.max_unsent = 2 << 20;
    server_begin(st, 1);
    int fd = client_connect(st);
    enum { FIRST = 3, ASKED = 20 };
    for (int i = 0; i < FIRST; i++)
        client_send_frame(fd, "l");
    wait_until(st, st->kept_n == FIRST);
    for (int i = 0; i < FIRST; i++)
        call_on(conn_executor(st->kept[i]->conn), reserve_a_lot, st->kept[i]);
    for (int i = FIRST; i < ASKED; i++)
        client_send_frame(fd, "l");
    settle(st);
    assert_int_equal(read_count(st, &st->kept_n), FIRST);
    finish_kept(st, 0, "x"); /* given back: all the others come */
    client_expect(fd, "x");
    wait_until(st, st->kept_n == ASKED);
    client_break(fd); /* those in work give theirs back as well */
    wait_until(st, st->aborted == ASKED - 1);
    for (int i = 1; i < ASKED; i++)
        finish_kept(st, i, "nobody hears it");
    server_end(st);
}

static void no_more_requests_in_work_than_allowed(void **state)
{
    struct server_test *st = server_new();
    st->limits.max_pipelined = 3;
    server_begin(st, 1);
    int fd = client_connect(st);
    enum { ASKED = 50 };
    for (int i = 0; i < ASKED; i++)
        client_send_frame(fd, "l");
    settle(st);
    for (int i = 0; i < ASKED; i++) {
        int most = i + 3 < ASKED ? i + 3 : ASKED;
        wait_until(st, st->kept_n == most);
        settle(st);
        assert_int_equal(read_count(st, &st->kept_n), most);
        finish_kept(st, i, "x");
        client_expect(fd, "x");
    }
    close(fd);
    server_end(st);
}

struct sends {
    int fd;
    const void *frame;
    uint32_t n;
    int times;
};

static void *send_many(void *arg)
{
    struct sends *s = arg;
    for (int i = 0; i < s->times; i++)
        client_send_frame_n(s->fd, s->frame, s->n);
    return NULL;
}

static void no_more_frame_bytes_in_work_than_allowed(void **state)
{
    struct server_test *st = server_new();
    st->limits.max_pipelined_bytes = 150000;
    server_begin(st, 1);
    int fd = client_connect(st);
    enum { ASKED = 20, SIZE = 100000 };
    char *frame = calloc(1, SIZE);
    frame[0] = 'l';
    pthread_t sender;
    struct sends s = {fd, frame, SIZE, ASKED};
    assert_int_equal(pthread_create(&sender, NULL, send_many, &s), 0);
    for (int i = 0; i < ASKED; i++) { /* one, and one that passes the limit */
        int most = i + 2 < ASKED ? i + 2 : ASKED;
        wait_until(st, st->kept_n == most);
        settle(st);
        assert_int_equal(read_count(st, &st->kept_n), most);
        finish_kept(st, i, "x");
        client_expect(fd, "x");
    }
    pthread_join(sender, NULL);
    free(frame);
    close(fd);
    server_end(st);
}

static void mute_stops_reading_and_ends(void **state)
{
    struct server_test *st = server_new();
    server_begin(st, 1);
    int fd = client_connect(st);
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    client_send_frame(fd, "m50");
    client_send_frame(fd, "e1"); /* perhaps in the same read: must wait all the same */
    client_expect(fd, "m50");
    client_send_frame(fd, "e2");
    client_expect(fd, "e1");
    clock_gettime(CLOCK_MONOTONIC, &to);
    int64_t ms = (to.tv_sec - from.tv_sec) * 1000 + (to.tv_nsec - from.tv_nsec) / 1000000;
    assert_true(ms >= 49);
    client_expect(fd, "e2");

    client_send_frame(fd, "m600000"); /* ten minutes: only closing ends it */
    client_send_frame(fd, "e3");
    client_expect(fd, "m600000");
    settle(st);
    assert_int_equal(read_count(st, &st->requests), 4);
    close(fd);
    server_end(st);
}

static void mute_long_then_short(void *arg, struct net_request *r)
{
    if (r->frame[0] == 'M') {
        conn_mute_for(r->conn, 600000);
        conn_mute_for(r->conn, 1);
        answer_bytes(r, "M", 1);
    } else {
        on_test_request(arg, r);
    }
}

static void shorter_mutes_do_not_cut_longer_ones(void **state)
{
    struct server_test *st = server_new();
    st->handler.request = mute_long_then_short;
    server_begin(st, 1);
    int fd = client_connect(st), other = client_connect(st);
    client_send_frame(fd, "M");
    client_send_frame(fd, "e");
    client_expect(fd, "M");
    client_round_trip(other, "m20"); /* on the same reactor: when this mute is over, 1 ms is, too */
    client_round_trip(other, "eafter");
    assert_int_equal(read_count(st, &st->requests), 2);
    close(fd);
    close(other);
    server_end(st);
}

static long resident_kib(void)
{
    long pages = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%ld %ld", &pages, &resident), 2);
    fclose(f);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static void slow_drips_cost_nothing(void **state)
{
    struct server_test *st = server_new();
    server_begin(st, 1);
    enum { DRIPS = 200 };
    int drip[DRIPS], other = client_connect(st);
    client_round_trip(other, "ewarm");
    long before = resident_kib();
    for (int i = 0; i < DRIPS; i++) { /* 20 GB promised */
        drip[i] = client_connect(st);
        client_send(drip[i],
                    "\x06\x3f\xff\xff"
                    "e and no more",
                    16);
    }
    client_round_trip(other, "eserved");
    settle(st);
    /* 64 KiB each at most, were all of it touched */
    assert_true(resident_kib() - before < DRIPS * 64 + 8192);
    for (int i = 0; i < DRIPS; i++)
        close(drip[i]);
    wait_until(st, st->closed == DRIPS);
    close(other);
    server_end(st);
}

static void frames_in_memory_are_limited_over_all_connections(void **state)
{
    for (int reactors = 1; reactors <= 2; reactors++) {
        struct server_test *st = server_new();
        st->limits.max_inflight_bytes = 1000;
        server_begin(st, reactors);
        int a = client_connect(st), b = client_connect(st), c = client_connect(st);
        char big[1500];
        memset(big, 'x', sizeof(big));
        big[0] = 'l';
        client_send_frame_n(a, big, sizeof(big)); /* alone it may pass the limit */
        wait_until(st, st->kept_n == 1);
        client_send_frame(b, "lb");
        client_send_frame(c, "lc");
        settle(st);
        assert_int_equal(read_count(st, &st->kept_n), 1);
        finish_kept(st, 0, "a");
        client_expect(a, "a");
        wait_until(st, st->kept_n == 3);
        /* one that waits and closes leaves nothing behind */
        finish_kept(st, 1, "x");
        finish_kept(st, 2, "x");
        client_send_frame_n(a, big, sizeof(big));
        wait_until(st, st->kept_n == 4);
        client_send_frame(b, "l never");
        settle(st);
        int closed = read_count(st, &st->closed);
        close(b);
        client_send_frame(c, "eyes");
        settle(st);
        finish_kept(st, 3, "a");
        /* what it had sent is a request all the same */
        wait_until(st, st->closed == closed + 1 && st->aborted == 1);
        finish_kept(st, 4, "x");
        client_expect(c, "x");
        client_expect(c, "eyes");
        /* a frame that arrives in part counts, and is given back when its client goes */
        int d = client_connect(st);
        client_send(d, "\0\0\x10\0half", 8);
        settle(st);
        client_send_frame(c, "eno");
        settle(st);
        char byte;
        assert_int_equal(recv(c, &byte, 1, MSG_DONTWAIT), -1);
        close(d);
        client_expect(c, "eno");
        close(a);
        close(c);
        server_end(st);
    }
}

/* Frames that are announced and do not come hold the memory for a while only; one that comes is
 * left in peace. */
static void announced_frames_that_do_not_come_make_room(void **state)
{
    for (int reactors = 1; reactors <= 2; reactors++) {
        struct server_test *st = server_new();
        st->limits.max_inflight_bytes = 1000;
        st->limits.max_stall_ms = 50;
        server_begin(st, reactors);
        int silent[4], waiting = client_connect(st), coming = client_connect(st);
        for (int i = 0; i < 4; i++) {
            silent[i] = client_connect(st);
            client_send(silent[i], i % 2 ? "\0\0\x10\0" : "\0\0\x10\0half", i % 2 ? 4 : 8);
        }
        settle(st);
        client_send_frame(waiting, "e here");
        client_expect(waiting, "e here"); /* at once, or when one of the others has gone */
        enum { SIZE = 4 << 20 };
        char *large = calloc(1, SIZE);
        large[0] = 'n';
        client_send_frame_n(coming, large, SIZE);
        client_round_trip(coming, "e I was slow, but came");
        free(large);
        for (int i = 0; i < 4; i++) { /* each in its turn; the first may be all the memory */
            client_round_trip(waiting, "e again");
            close(silent[i]);
        }
        close(waiting);
        close(coming);
        server_end(st);
    }
}

/* One client floods a reactor with pipelined work; another gets its turns. */
static void a_busy_client_does_not_starve_others(void **state)
{
    struct server_test *st = server_new();
    st->limits.max_unsent = 64 << 20;
    st->limits.max_pipelined = INT_MAX;
    server_begin(st, 1);
    int busy = client_connect(st), other = client_connect(st);
    enum { FLOOD = 20000 };
    struct buf all = BUF_INIT;
    for (int i = 0; i < FLOOD; i++)
        buf_put(&all, "\0\0\0\5b1000", 9);
    client_send(busy, all.p, all.len);
    buf_free(&all);
    client_round_trip(other, "eother");
    for (int i = 0; i < FLOOD; i++) {
        uint32_t n;
        free(client_recv_frame(busy, &n));
        assert_int_equal(n, 1000);
        if (i % 1000 == 0)
            client_round_trip(other, "eother");
    }
    close(busy);
    close(other);
    server_end(st);
}

/* Frames that have begun come to their end; others wait, unread; nobody is forgotten. */
static void hold_server(int reactors)
{
    struct server_test *st = server_new();
    int fd[20];
    server_begin(st, reactors);
    int begun = client_connect(st);
    client_send(begun, "\0\0\0\005eab", 7);
    for (int i = 0; i < 20; i++) {
        fd[i] = client_connect(st);
        client_round_trip(fd[i], "e"); /* with one reactor, `begun` was read before */
    }
    if (reactors > 1)
        client_send(begun, "cd", 2);
    if (reactors > 1)
        client_expect(begun, "eabcd");
    int before = read_count(st, &st->requests);
    net_server_hold(st->server, true);
    for (int i = 0; i < 20; i++)
        client_send_frame(fd[i], i % 2 ? "ehello" : "n");
    if (reactors == 1) {
        client_send(begun, "cd", 2);
        client_expect(begun, "eabcd");
        before++;
    }
    settle(st);
    assert_int_equal(read_count(st, &st->requests), before);
    close(fd[0]);                      /* it is not read: nobody notices yet */
    net_server_hold(st->server, true); /* again changes nothing */
    net_server_hold(st->server, false);
    for (int i = 1; i < 20; i += 2)
        client_expect(fd[i], "ehello");
    wait_until(st, st->requests >= before + 19);
    for (int i = 1; i < 20; i++) {
        client_round_trip(fd[i], "eon");
        close(fd[i]);
    }
    close(begun);
    server_end(st);
}

/* Who waits for the end of a hold does not wait for memory: nobody is closed for being slow with a
 * frame, however long the hold is. Here it is as long as it takes to be idle, many looks. */
static void a_hold_closes_no_slow_sender(void **state)
{
    struct server_test *st = server_new();
    st->limits.max_inflight_bytes = 1000;
    st->limits.max_stall_ms = 20;
    st->limits.max_idle_ms = 400;
    server_begin(st, 1);
    int slow = client_connect(st), waiting = client_connect(st);
    client_send(slow, "\0\0\0\x64half", 8);
    client_round_trip(waiting, "e"); /* so that the other was read before */
    net_server_hold(st->server, true);
    client_send_frame(waiting, "e");
    wait_until(st, st->closed == 2);
    assert_int_equal(log_lines(st, "queued.max.request.bytes"), 0);
    close(slow);
    close(waiting);
    server_end(st);
}

/* A hold that comes while some wait for memory: when it is over they still get it. */
static void after_a_hold_memory_is_looked_for_again(void **state)
{
    struct server_test *st = server_new();
    st->limits.max_inflight_bytes = 1000;
    st->limits.max_stall_ms = 20;
    server_begin(st, 2);
    int silent = client_connect(st), waiting = client_connect(st);
    client_round_trip(waiting, "e");
    net_server_hold(st->server, true);
    client_send_frame(waiting, "e after all");
    client_send(silent, "\0\0\x10\0", 4);
    settle(st);
    net_server_hold(st->server, false);
    client_expect(waiting, "e after all");
    for (int i = 0; i < 3; i++)
        client_round_trip(waiting, "e again"); /* the silent one has, or gives back, the memory */
    close(silent);
    close(waiting);
    server_end(st);
}

static void while_held_no_frame_begins(void **state)
{
    hold_server(1);
    hold_server(3);
}

static void a_server_stops_while_it_is_held(void **state)
{
    struct server_test *st = server_new();
    server_begin(st, 2);
    int fd = client_connect(st);
    client_round_trip(fd, "e");
    net_server_hold(st->server, true);
    client_send_frame(fd, "e");
    settle(st);
    server_end(st);
    close(fd);
}

static void release_kept(void *arg)
{
    net_request_release_frame(arg);
}

/* A request that waits without its frame holds up nobody: neither its own connection nor others. */
static void a_released_frame_does_not_count(void **state)
{
    struct server_test *st = server_new();
    st->limits.max_inflight_bytes = 1000;
    st->limits.max_pipelined_bytes = 1000;
    server_begin(st, 2);
    char frame[1001] = "l";
    memset(frame + 1, 'x', sizeof(frame) - 2);
    int a = client_connect(st), b = client_connect(st);
    client_send_frame(a, frame);
    wait_until(st, st->kept_n == 1);
    client_send_frame(a, frame);
    settle(st);
    assert_int_equal(read_count(st, &st->kept_n), 1);
    call_on(conn_executor(st->kept[0]->conn), release_kept, st->kept[0]);
    wait_until(st, st->kept_n == 2);
    assert_null(st->kept[0]->frame);
    assert_int_equal(st->kept[0]->frame_len, 1000);
    client_send_frame(b, "eb");
    settle(st);
    assert_int_equal(read_count(st, &st->requests), 2);
    call_on(conn_executor(st->kept[1]->conn), release_kept, st->kept[1]);
    client_expect(b, "eb");
    finish_kept(st, 1, "second");
    finish_kept(st, 0, "first");
    client_expect(a, "first");
    client_expect(a, "second");
    for (int i = 2; i < 4; i++) { /* one that closes, and one that is finished after that */
        client_send_frame(a, frame);
        wait_until(st, st->kept_n == i + 1);
        call_on(conn_executor(st->kept[i]->conn), release_kept, st->kept[i]);
    }
    client_break(a);
    wait_until(st, st->aborted == 2);
    finish_kept(st, 2, "too late");
    finish_kept(st, 3, NULL);
    client_round_trip(b, frame + 1);
    close(b);
    server_end(st);
}

/* ---- answers that are not taken, over all connections ---- */

enum { GREEDY = 20, ANSWER = 100000, EACH = 100, BUDGET = 2 << 20 };

static struct server_test *server_with_budget(int64_t stall_ms, int fds[GREEDY])
{
    struct server_test *st = server_new();
    st->limits.max_answer_bytes = BUDGET;
    st->limits.max_stall_ms = stall_ms;
    server_begin(st, 2);
    for (int i = 0; i < GREEDY; i++) {
        fds[i] = client_socket();
        int small = 4096; /* so that little of it lies in sockets */
        setsockopt(fds[i], SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
        assert_int_equal(client_dial(fds[i], st->port), 0);
    }
    wait_until(st, st->opened == GREEDY);
    return st;
}

static void ask(int fd)
{
    for (int k = 0; k < EACH; k++)
        client_send_frame(fd, "b100000");
}

/* Not all are served, though no single one comes near its own limit; one that reads is served as
 * ever; and those that begin to read get all their answers. */
static void answers_in_memory_are_limited_over_all_connections(void **state)
{
    int fds[GREEDY];
    struct server_test *st = server_with_budget(1 << 30, fds);
    int reader = client_connect(st);
    for (int i = 0; i < GREEDY; i++) {
        ask(fds[i]);
        client_round_trip(reader, "ebystander");
    }
    settle(st);
    int answered = read_count(st, &st->requests) - GREEDY; /* without the reader's */
    /* What is in memory, one that passes the share for each, and what the sockets took. */
    int sockets = GREEDY * 6;
    assert_in_range(answered, GREEDY, BUDGET / ANSWER + GREEDY + sockets);
    for (int i = 0; i < EACH; i++)
        client_round_trip(reader, "e");
    for (int i = 0; i < GREEDY; i++) {
        for (int k = 0; k < EACH; k++) {
            uint32_t n;
            free(client_recv_frame(fds[i], &n));
            assert_int_equal(n, ANSWER);
        }
        client_round_trip(fds[i], "eafter");
        close(fds[i]);
    }
    close(reader);
    wait_until(st, st->closed == GREEDY + 1);
    assert_int_equal(log_lines(st, "closing"), 0);
    server_end(st);
}

/* While memory is short, those that take nothing go; one that takes a little now and then stays. */
static void those_that_take_no_answers_go_when_memory_is_short(void **state)
{
    int fds[GREEDY];
    struct server_test *st = server_with_budget(100, fds);
    for (int i = 0; i < GREEDY; i++)
        ask(fds[i]);
    wait_until(st, st->closed > 0 && log_lines(st, "does not take its answers") == st->closed);
    /* It ends when there is room again: what the last ones hold is no trouble. */
    int fd = client_connect(st);
    for (int i = 0; i < 50; i++)
        client_round_trip(fd, "e");
    for (int i = 0; i < GREEDY; i++)
        close(fds[i]);
    wait_until(st, st->closed == GREEDY);
    client_round_trip(fd, "e");
    close(fd);
    server_end(st);
}

static void a_large_answer_is_refused_when_much_too_much_is_held(void **state)
{
    int fds[GREEDY];
    struct server_test *st = server_with_budget(1 << 30, fds);
    int fd = client_connect(st);
    for (int i = 0; i < GREEDY && read_count(st, &st->closed) == 0; i++) {
        client_send_frame(fds[i], "b1500000"); /* one always, whatever the others hold */
        wait_until(st, st->requests == 2 * i + 1);
        settle(st); /* it is answered, or refused */
        client_round_trip(fd, "e");
    }
    wait_until(st, st->closed == 1 && log_lines(st, "too many answers") == 1);
    client_send_frame(fd, "b500000"); /* not a large one */
    uint32_t n;
    free(client_recv_frame(fd, &n));
    assert_int_equal(n, 500000);
    for (int i = 0; i < GREEDY; i++)
        close(fds[i]);
    wait_until(st, st->closed == GREEDY);
    close(fd);
    server_end(st);
}

/* ---- requests that take long ---- */

static struct {
    atomic_bool begun, go;
    atomic_int slow, slow_before_other;
} slow_work;

static void slow_or_not(void *arg, struct net_request *r)
{
    if (r->frame[0] == 's') {
        atomic_store(&slow_work.begun, true);
        while (!atomic_load(&slow_work.go))
            ;
        nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL); /* the work */
        atomic_fetch_add(&slow_work.slow, 1);
    } else {
        atomic_store(&slow_work.slow_before_other, atomic_load(&slow_work.slow));
    }
    on_test_request(arg, r);
}

/* A turn is not so many requests, whatever they take, and a round not so many turns. */
static void slow_requests_of_some_do_not_hold_up_others(void **state)
{
    enum { CLIENTS = 16, SLOW = 16 };
    struct server_test *st = server_new();
    st->handler.request = slow_or_not;
    server_begin(st, 1);
    int fds[CLIENTS], other = client_connect(st);
    client_round_trip(other, "e");
    for (int i = 0; i < CLIENTS; i++) {
        fds[i] = client_connect(st);
        uint8_t all[SLOW * 5];
        for (int k = 0; k < SLOW; k++)
            memcpy(all + (size_t)k * 5, "\0\0\0\1s", 5);
        client_send(fds[i], all, sizeof(all));
    }
    while (!atomic_load(&slow_work.begun))
        ;
    client_send_frame(other, "e");
    atomic_store(&slow_work.go, true);
    client_expect(other, "e");
    /* The turn that was on, one of each whose socket was readable with it, and a round of turns. */
    assert_in_range(atomic_load(&slow_work.slow_before_other), 1, 2 * CLIENTS);
    for (int i = 0; i < CLIENTS; i++) {
        for (int k = 0; k < SLOW; k++)
            client_expect(fds[i], "s");
        close(fds[i]);
    }
    close(other);
    server_end(st);
}

UNIT_MAIN(unit_test(a_client_that_never_reads_is_no_longer_read),
          unit_test(reserved_answers_hold_reading_back),
          unit_test(no_more_requests_in_work_than_allowed),
          unit_test(no_more_frame_bytes_in_work_than_allowed),
          unit_test(mute_stops_reading_and_ends), unit_test(shorter_mutes_do_not_cut_longer_ones),
          unit_test(slow_drips_cost_nothing),
          unit_test(frames_in_memory_are_limited_over_all_connections),
          unit_test(announced_frames_that_do_not_come_make_room),
          unit_test(a_busy_client_does_not_starve_others), unit_test(while_held_no_frame_begins),
          unit_test(a_server_stops_while_it_is_held), unit_test(a_hold_closes_no_slow_sender),
          unit_test(after_a_hold_memory_is_looked_for_again),
          unit_test(a_released_frame_does_not_count),
          unit_test(answers_in_memory_are_limited_over_all_connections),
          unit_test(those_that_take_no_answers_go_when_memory_is_short),
          unit_test(a_large_answer_is_refused_when_much_too_much_is_held),
          unit_test(slow_requests_of_some_do_not_hold_up_others))
