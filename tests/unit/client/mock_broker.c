/* mock_broker.c - the mock's thread, connections and scripts. See mock_broker.h. */
#include "unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/list.h"
#include "client/mock_private.h"

enum { WAIT_S = 60 };

int64_t mock_now_ms(void)
{
    return clock_mono_ms(clock_real());
}

static void wake(struct mock *m)
{
    assert_int_equal(write(m->wake, &(uint64_t){1}, sizeof(uint64_t)), sizeof(uint64_t));
}

/* ---- connections ---- */

static void drop_answer(struct mock_answer *a)
{
    list_remove(&a->link);
    buf_free(&a->bytes);
    free(a);
}

static void close_conn(struct mock *m, int i)
{
    struct mock_conn *c = m->conns[i];
    while (!list_empty(&c->answers))
        drop_answer(list_entry(c->answers.next, struct mock_answer, link));
    close(c->fd);
    buf_free(&c->in);
    free(c);
    m->conns[i] = m->conns[--m->conns_n];
    pthread_cond_broadcast(&m->changed);
}

static void accept_conn(struct mock *m, int node)
{
    int fd = accept(m->listeners[node], NULL, NULL);
    assert_true(fd >= 0 && m->conns_n < MOCK_CONNS);
    struct mock_conn *c = calloc(1, sizeof *c);
    assert_non_null(c);
    c->fd = fd;
    c->node = node;
    list_init(&c->answers);
    m->conns[m->conns_n++] = c;
}

/* What may go of the answers goes, in order. false: the client is gone. */
static bool flush_answers(struct mock_conn *c, int64_t now)
{
    while (!list_empty(&c->answers)) {
        struct mock_answer *a = list_entry(c->answers.next, struct mock_answer, link);
        if (a->held || a->due_ms > now)
            return true;
        uint8_t length[4];
        put_be32(length, (uint32_t)a->bytes.len);
        if (send(c->fd, length, 4, MSG_NOSIGNAL | MSG_MORE) != 4)
            return false;
        for (size_t at = 0; at < a->bytes.len;) {
            ssize_t n = send(c->fd, a->bytes.p + at, a->bytes.len - at, MSG_NOSIGNAL);
            if (n <= 0)
                return false;
            at += (size_t)n;
        }
        drop_answer(a);
    }
    return true;
}

void mock_appended(struct mock *m)
{
    for (int i = 0; i < m->conns_n; i++) {
        list_each (it, &m->conns[i]->answers) {
            struct mock_answer *a = list_entry(it, struct mock_answer, link);
            if (a->on_append)
                a->due_ms = 0;
        }
    }
}

/* ---- requests ---- */

static struct mock_step next_step(struct mock *m, int16_t api)
{
    struct mock_step *steps = m->steps[api], step = {MOCK_FINE, 0, 0};
    if (m->steps_n[api] == 0)
        return step;
    step = steps[0];
    if (steps[0].times > 0 && --steps[0].times == 0)
        memmove(steps, steps + 1, (size_t)--m->steps_n[api] * sizeof *steps);
    return step;
}

/* false: the connection ends. */
static bool serve(struct mock *m, struct mock_conn *c, const uint8_t *frame, size_t n)
{
    struct arena arena;
    struct mock_request r = {.m = m, .node = c->node, .body = reader_of(frame, n), .arena = &arena};
    arena_init(&arena, 0);
    int rc = request_header_decode(&r.body, &r.head);
    assert_true(rc == 0 || (rc == -ENOTSUP && r.head.api_key == API_API_VERSIONS));
    struct mock_step step = next_step(m, r.head.api_key);
    bool answered = false;
    r.answer = calloc(1, sizeof *r.answer);
    assert_non_null(r.answer);
    list_init(&r.answer->link);
    r.error = step.action == MOCK_ERROR || step.action == MOCK_HOLD ? step.error : 0;
    r.answer->held = step.action == MOCK_HOLD || step.action == MOCK_IGNORE;
    r.answer->for_good = step.action == MOCK_IGNORE;
    if (step.action == MOCK_IGNORE)
        answered = true;
    else if (step.action != MOCK_DROP)
        answered = mock_handle(&r);
    m->seen[r.head.api_key]++;
    pthread_cond_broadcast(&m->changed);
    arena_free(&arena);
    if (answered && step.action != MOCK_DO_AND_DROP)
        list_push_back(&c->answers, &r.answer->link);
    else
        drop_answer(r.answer);
    return step.action != MOCK_DROP && step.action != MOCK_DO_AND_DROP;
}

/* Reads what there is, serves whole frames. false: the connection ends. */
static bool read_conn(struct mock *m, struct mock_conn *c)
{
    enum { STEP = 256 * 1024 };
    assert_true(buf_reserve(&c->in, STEP));
    ssize_t n = recv(c->fd, c->in.p + c->in.len, STEP, MSG_DONTWAIT);
    if (n <= 0)
        return n < 0 && errno == EAGAIN;
    c->in.len += (size_t)n;
    size_t at = 0;
    bool alive = true;
    while (alive && c->in.len - at >= 4) {
        size_t length = get_be32(c->in.p + at);
        if (c->in.len - at - 4 < length)
            break;
        alive = serve(m, c, c->in.p + at + 4, length);
        at += 4 + length;
    }
    memmove(c->in.p, c->in.p + at, c->in.len - at);
    c->in.len -= at;
    return alive;
}

static int64_t first_due(struct mock *m, int64_t now)
{
    int64_t wait = 1000;
    for (int i = 0; i < m->conns_n; i++)
        list_each (it, &m->conns[i]->answers) {
            int64_t due = list_entry(it, struct mock_answer, link)->due_ms;
            if (due > 0 && due - now < wait)
                wait = due > now ? due - now : 0;
        }
    return wait;
}

static void serve_round(struct mock *m)
{
    struct pollfd p[1 + MOCK_NODES + MOCK_CONNS];
    int n = 0, conns = m->conns_n;
    p[n++] = (struct pollfd){m->wake, POLLIN, 0};
    for (int i = 0; i < m->nodes; i++)
        p[n++] = (struct pollfd){m->listeners[i], POLLIN, 0};
    for (int i = 0; i < conns; i++)
        p[n++] = (struct pollfd){m->conns[i]->fd, POLLIN, 0};
    int wait = (int)first_due(m, mock_now_ms());
    pthread_mutex_unlock(&m->lock);
    poll(p, (nfds_t)n, wait);
    pthread_mutex_lock(&m->lock);
    uint64_t count;
    if (p[0].revents)
        assert_int_equal(read(m->wake, &count, sizeof count), sizeof count);
    for (int i = conns - 1; i >= 0; i--) {
        bool alive =
            !m->conns[i]->doomed && (!p[1 + m->nodes + i].revents || read_conn(m, m->conns[i]));
        if (!alive || !flush_answers(m->conns[i], mock_now_ms()))
            close_conn(m, i);
    }
    for (int i = 0; i < m->nodes; i++)
        if (p[1 + i].revents)
            accept_conn(m, i);
}

static void *run(void *arg)
{
    struct mock *m = arg;
    pthread_mutex_lock(&m->lock);
    while (!m->stopping)
        serve_round(m);
    pthread_mutex_unlock(&m->lock);
    return NULL;
}

/* ---- life ---- */

static void listen_on(struct mock *m, int node)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(fd, 64), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &n), 0);
    m->listeners[node] = fd;
    m->ports[node] = m->told_ports[node] = ntohs(a.sin_port);
}

struct mock *mock_start(int nodes)
{
    struct mock *m = calloc(1, sizeof *m);
    assert_non_null(m);
    m->nodes = nodes;
    m->max_batch = SIZE_MAX;
    m->next_producer_id = 1000;
    m->txn = (struct mock_txn){.id = -1, .epoch = -1, .last_epoch = 32766, .refused_partition = -1};
    m->wake = eventfd(0, EFD_CLOEXEC);
    pthread_mutex_init(&m->lock, NULL);
    pthread_cond_init(&m->changed, NULL);
    for (int i = 0; i <= API_KEY_MAX; i++)
        m->caps[i] = INT16_MAX;
    for (int i = 0; i < nodes; i++)
        listen_on(m, i);
    snprintf(m->servers, sizeof m->servers, "127.0.0.1:%d", m->ports[0]);
    assert_int_equal(pthread_create(&m->thread, NULL, run, m), 0);
    return m;
}

void mock_stop(struct mock *m)
{
    pthread_mutex_lock(&m->lock);
    m->stopping = true;
    pthread_mutex_unlock(&m->lock);
    wake(m);
    pthread_join(m->thread, NULL);
    while (m->conns_n)
        close_conn(m, m->conns_n - 1);
    for (int i = 0; i < m->nodes; i++)
        close(m->listeners[i]);
    for (int i = 0; i < m->topics_n; i++) {
        for (int k = 0; k < m->topics[i].parts_n; k++)
            buf_free(&m->topics[i].parts[k].log);
        free(m->topics[i].parts);
    }
    close(m->wake);
    pthread_cond_destroy(&m->changed);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

void mock_advertise(struct mock *m, int node, int port)
{
    pthread_mutex_lock(&m->lock);
    m->told_ports[node] = port;
    pthread_mutex_unlock(&m->lock);
}

int mock_port(struct mock *m, int node)
{
    return m->ports[node];
}

const char *mock_servers(struct mock *m)
{
    return m->servers;
}

/* ---- orders ---- */

void mock_topic(struct mock *m, const char *name, int partitions)
{
    pthread_mutex_lock(&m->lock);
    mock_add_topic(m, str_of(name), partitions);
    pthread_mutex_unlock(&m->lock);
}

void mock_delete_topic(struct mock *m, const char *name)
{
    pthread_mutex_lock(&m->lock);
    struct mock_topic_state *t = mock_find_topic(m, str_of(name));
    assert_non_null(t);
    t->name[0] = 0;
    pthread_mutex_unlock(&m->lock);
}

void mock_damage(struct mock *m, const char *topic, int partition, size_t at)
{
    pthread_mutex_lock(&m->lock);
    struct mock_part *p = mock_find_part(m, str_of(topic), partition);
    assert_true(at < p->log.len);
    p->log.p[at] ^= 1;
    pthread_mutex_unlock(&m->lock);
}

void mock_watch(struct mock *m, mock_see fn, void *arg)
{
    pthread_mutex_lock(&m->lock);
    m->see = fn;
    m->see_arg = arg;
    pthread_mutex_unlock(&m->lock);
}

void mock_auto_create(struct mock *m)
{
    pthread_mutex_lock(&m->lock);
    m->auto_create = true;
    pthread_mutex_unlock(&m->lock);
}

void mock_refuse_topic(struct mock *m, const char *name, int16_t error)
{
    pthread_mutex_lock(&m->lock);
    snprintf(m->refused, sizeof m->refused, "%s", name);
    m->refused_error = error;
    pthread_mutex_unlock(&m->lock);
}

void mock_move_leader(struct mock *m, const char *topic, int partition, int node)
{
    pthread_mutex_lock(&m->lock);
    struct mock_part *p = mock_find_part(m, str_of(topic), partition);
    p->leader = node;
    p->leader_epoch++;
    pthread_mutex_unlock(&m->lock);
}

void mock_script(struct mock *m, int16_t api, enum mock_action action, int16_t error, int times)
{
    pthread_mutex_lock(&m->lock);
    int *n = &m->steps_n[api];
    if (*n && m->steps[api][*n - 1].times < 0)
        (*n)--;
    assert_true(*n < MOCK_STEPS);
    m->steps[api][(*n)++] = (struct mock_step){action, error, times};
    pthread_mutex_unlock(&m->lock);
}

void mock_release(struct mock *m)
{
    pthread_mutex_lock(&m->lock);
    for (int i = 0; i < m->conns_n; i++)
        list_each (it, &m->conns[i]->answers)
            list_entry(it, struct mock_answer, link)->held =
                list_entry(it, struct mock_answer, link)->for_good;
    pthread_mutex_unlock(&m->lock);
    wake(m);
}

void mock_drop_node(struct mock *m, int node)
{
    pthread_mutex_lock(&m->lock);
    for (int i = 0; i < m->conns_n; i++)
        m->conns[i]->doomed |= m->conns[i]->node == node;
    pthread_mutex_unlock(&m->lock);
    wake(m);
}

void mock_max_batch(struct mock *m, size_t bytes)
{
    pthread_mutex_lock(&m->lock);
    m->max_batch = bytes;
    pthread_mutex_unlock(&m->lock);
}

void mock_cap_version(struct mock *m, int16_t api, int16_t max)
{
    pthread_mutex_lock(&m->lock);
    m->caps[api] = max;
    pthread_mutex_unlock(&m->lock);
}

int mock_seen(struct mock *m, int16_t api)
{
    pthread_mutex_lock(&m->lock);
    int n = m->seen[api];
    pthread_mutex_unlock(&m->lock);
    return n;
}

/* Waits until *what is `count`. */
static void await_value(struct mock *m, const int *what, int count)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WAIT_S;
    pthread_mutex_lock(&m->lock);
    while (*what != count)
        if (pthread_cond_timedwait(&m->changed, &m->lock, &until))
            break;
    int value = *what;
    pthread_mutex_unlock(&m->lock);
    assert_int_equal(value, count);
}

void mock_await_connections(struct mock *m, int count)
{
    await_value(m, &m->conns_n, count);
}

void mock_await_topics_asked(struct mock *m, int count)
{
    await_value(m, &m->topics_asked, count);
}

void mock_await(struct mock *m, int16_t api, int count)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WAIT_S;
    pthread_mutex_lock(&m->lock);
    while (m->seen[api] < count)
        if (pthread_cond_timedwait(&m->changed, &m->lock, &until))
            break;
    int seen = m->seen[api];
    pthread_mutex_unlock(&m->lock);
    assert_true(seen >= count);
}
