/* A server with a TLS listener: blocking OpenSSL clients, clients that do not finish their
 * handshakes, and peers. */
#include "net_test.h"
#include "tls_test.h"

#include <openssl/ssl.h>

#include "base/uv_executor.h"
#include "net/peer.h"
#include "protocol/errors.h"
#include "protocol/msg/api_versions.h"
#include "protocol/msg/metadata.h"

struct tls_server {
    struct server_test *st;
    struct identity id;
    struct tls *tls;
    SSL_CTX *client;
    int port;
    char user[200]; /* of the last connection that was asked */
};

static bool note_user(void *arg, struct conn *c)
{
    struct tls_server *t = arg;
    struct str user = conn_principal(c);
    pthread_mutex_lock(&t->st->lock);
    snprintf(t->user, sizeof(t->user), "%.*s", STR_ARG(user));
    pthread_cond_broadcast(&t->st->changed);
    pthread_mutex_unlock(&t->st->lock);
    return true;
}

static struct tls_server *tls_server_new(void)
{
    struct tls_server *t = calloc(1, sizeof(*t));
    identity_init(&t->id);
    t->st = server_new();
    t->client = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_session_cache_mode(t->client, SSL_SESS_CACHE_OFF);
    return t;
}

static void tls_server_begin(struct tls_server *t, int reactors)
{
    t->tls = tls_loaded(true, &t->id.server_settings);
    server_begin(t->st, reactors);
    struct listen_security security = {.tls = t->tls, .secured = note_user, .arg = t};
    assert_int_equal(
        net_server_listen_secured(t->st->server, "SSL", "127.0.0.1", 0, &security, &t->port), 0);
    net_server_accept(t->st->server);
}

static void tls_server_end(struct tls_server *t)
{
    server_end(t->st);
    tls_unref(t->tls);
    SSL_CTX_free(t->client);
    identity_free(&t->id);
    free(t);
}

static int dial(struct tls_server *t)
{
    int fd = client_socket();
    assert_int_equal(client_dial(fd, t->port), 0);
    return fd;
}

static SSL *tls_dial(struct tls_server *t)
{
    SSL *s = SSL_new(t->client);
    SSL_set_fd(s, dial(t));
    assert_int_equal(SSL_connect(s), 1);
    return s;
}

static void tls_hang_up(SSL *s)
{
    int fd = SSL_get_fd(s);
    SSL_shutdown(s);
    SSL_free(s);
    close(fd);
}

static void tls_write(SSL *s, const void *p, size_t n)
{
    size_t wrote;
    for (const char *at = p; n > 0; at += wrote, n -= wrote)
        assert_int_equal(SSL_write_ex(s, at, n, &wrote), 1);
}

static void tls_read(SSL *s, void *p, size_t n)
{
    size_t got;
    for (char *at = p; n > 0; at += got, n -= got)
        if (SSL_read_ex(s, at, n, &got) != 1)
            fail_msg("%zu bytes did not come", n);
}

static void tls_send_frame(SSL *s, const char *text)
{
    uint8_t all[4096];
    size_t n = strlen(text);
    put_be32(all, (uint32_t)n);
    memcpy(all + 4, text, n);
    tls_write(s, all, 4 + n);
}

static void tls_expect(SSL *s, const char *text)
{
    uint8_t head[4];
    char got[4096];
    tls_read(s, head, 4);
    uint32_t n = get_be32(head);
    assert_true(n < sizeof(got));
    tls_read(s, got, n);
    got[n] = 0;
    assert_string_equal(got, text);
}

static void frames_cross(void **state)
{
    struct tls_server *t = tls_server_new();
    tls_server_begin(t, 2);
    SSL *s[4];
    for (int i = 0; i < 4; i++)
        s[i] = tls_dial(t);
    for (int i = 0; i < 4; i++) {
        tls_send_frame(s[i], "echo");
        tls_expect(s[i], "echo");
    }
    assert_string_equal(t->user, "ANONYMOUS");
    for (int i = 0; i < 4; i++)
        tls_hang_up(s[i]);
    wait_until(t->st, t->st->closed == 4);
    tls_server_end(t);
}

/* Many frames in one record, and a frame in many. */
static void pipelined_and_large(void **state)
{
    struct tls_server *t = tls_server_new();
    tls_server_begin(t, 1);
    SSL *s = tls_dial(t);
    struct buf b = BUF_INIT;
    for (int i = 0; i < 300; i++) {
        char text[16];
        int n = snprintf(text, sizeof(text), "e%d", i);
        buf_put_i32(&b, n);
        buf_put(&b, text, (size_t)n);
    }
    tls_write(s, b.p, b.len);
    for (int i = 0; i < 300; i++) {
        char text[16];
        snprintf(text, sizeof(text), "e%d", i);
        tls_expect(s, text);
    }
    buf_free(&b);
    size_t n = 3 << 20;
    char *large = malloc(n + 4), *back = malloc(n + 4);
    memset(large, 'e', n + 4);
    put_be32((uint8_t *)large, (uint32_t)n);
    tls_write(s, large, n + 4);
    tls_read(s, back, n + 4);
    assert_memory_equal(back, large, n + 4);
    free(large);
    free(back);
    tls_hang_up(s);
    tls_server_end(t);
}

/* A client that does not read gets all of it in the end, and holds nobody up. */
static void files_to_a_slow_reader(void **state)
{
    struct tls_server *t = tls_server_new();
    struct temp_dir dir;
    size_t n = 4 << 20;
    uint8_t *bytes = malloc(n), *got = malloc(n), head[4];
    for (size_t i = 0; i < n; i++)
        bytes[i] = (uint8_t)(i * 2654435761u >> 11);
    temp_dir_make(&dir);
    write_bytes(temp_dir_path(&dir, "f"), bytes, n);
    assert_int_equal(fs_open(fs_posix(), temp_dir_path(&dir, "f"), O_RDONLY, &t->st->file), 0);
    tls_server_begin(t, 1);
    SSL *slow = tls_dial(t), *other = tls_dial(t);
    tls_send_frame(slow, "f0,4194304");
    wait_until(t->st, t->st->requests == 1);
    tls_send_frame(other, "echo");
    tls_expect(other, "echo");
    tls_read(slow, head, 4);
    assert_int_equal(get_be32(head), n);
    tls_read(slow, got, n);
    assert_memory_equal(got, bytes, n);
    tls_hang_up(slow);
    tls_hang_up(other);
    file_unref(t->st->file);
    temp_dir_remove(&dir);
    free(bytes);
    free(got);
    tls_server_end(t);
}

static void a_half_open_handshake_ends_in_time(void **state)
{
    struct tls_server *t = tls_server_new();
    t->st->limits.max_secure_ms = 50;
    tls_server_begin(t, 1);
    int silent = dial(t), halfway = dial(t);
    client_send(halfway, "\x16\x03\x01\x02\x00\x01", 6); /* a record that goes on */
    client_expect_end(silent);
    client_expect_end(halfway);
    wait_until(t->st, log_lines(t->st, "its TLS handshake takes too long") == 2);
    close(silent);
    SSL *s = tls_dial(t); /* who has finished has all the time */
    silent = dial(t);
    client_expect_end(silent); /* this one was later */
    tls_send_frame(s, "echo");
    tls_expect(s, "echo");
    tls_hang_up(s);
    close(silent);
    close(halfway);
    tls_server_end(t);
}

static void a_flood_of_half_open_ones_costs_the_oldest(void **state)
{
    struct tls_server *t = tls_server_new();
    int fds[5];
    t->st->limits.max_securing = 3;
    tls_server_begin(t, 1);
    for (int i = 0; i < 5; i++) {
        fds[i] = dial(t);
        wait_until(t->st, t->st->opened == i + 1);
    }
    client_expect_end(fds[0]);
    client_expect_end(fds[1]);
    SSL *s = tls_dial(t); /* takes the place of the third */
    tls_send_frame(s, "echo");
    tls_expect(s, "echo");
    client_expect_end(fds[2]);
    settle(t->st);
    assert_int_equal(net_server_connections(t->st->server), 3);
    tls_hang_up(s);
    for (int i = 0; i < 5; i++)
        close(fds[i]);
    tls_server_end(t);
}

static void who_speaks_no_tls_is_told_apart(void **state)
{
    struct tls_server *t = tls_server_new();
    tls_server_begin(t, 1);
    int fd = dial(t);
    client_send_frame(fd, "echo");
    client_expect_end(fd);
    wait_until(t->st, log_lines(t->st, "does not speak TLS") == 1);
    wait_until(t->st, t->st->closed == 1);
    assert_int_equal(read_count(t->st, &t->st->requests), 0);
    close(fd);
    fd = client_connect(t->st); /* and TLS where there is none */
    client_send(fd, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11);
    client_expect_end(fd);
    wait_until(t->st, log_lines(t->st, "a TLS ClientHello") == 1);
    close(fd);
    for (int i = 0; i < 3; i++) { /* who goes on trying does not fill the log */
        fd = dial(t);
        client_send_frame(fd, "echo");
        client_expect_end(fd);
        close(fd);
        fd = client_connect(t->st);
        client_send(fd, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11);
        client_expect_end(fd);
        close(fd);
    }
    wait_until(t->st, t->st->closed == 8);
    assert_int_equal(log_lines(t->st, "does not speak TLS"), 1);
    assert_int_equal(log_lines(t->st, "a TLS ClientHello"), 1);
    tls_server_end(t);
}

static void a_certificate_names_the_user(void **state)
{
    struct tls_server *t = tls_server_new();
    t->id.server_settings.client_auth = "required";
    t->id.server_settings.principal_rules = "RULE:^CN=(.*?),.*$/$1/";
    assert_int_equal(SSL_CTX_use_cert_and_key(t->client, t->id.client.x, t->id.client.key, NULL, 1),
                     1);
    tls_server_begin(t, 1);
    SSL *s = tls_dial(t);
    tls_send_frame(s, "echo");
    tls_expect(s, "echo");
    assert_string_equal(t->user, "Alice");
    tls_hang_up(s);
    tls_server_end(t);
}

static void the_stop_waits_for_no_handshake(void **state)
{
    struct tls_server *t = tls_server_new();
    tls_server_begin(t, 2);
    int a = dial(t), b = dial(t);
    wait_until(t->st, t->st->opened == 2);
    net_server_stop(t->st->server, 60000);
    client_expect_end(a);
    client_expect_end(b);
    close(a);
    close(b);
    tls_server_end(t);
}

static void a_listener_goes_with_its_handshakes(void **state)
{
    struct tls_server *t = tls_server_new();
    tls_server_begin(t, 2);
    int fd = dial(t);
    SSL *s = tls_dial(t);
    assert_int_equal(net_server_unlisten(t->st->server, "SSL"), 0);
    client_expect_end(fd);
    wait_until(t->st, t->st->closed == 2);
    tls_hang_up(s);
    close(fd);
    tls_server_end(t);
}

/* Renegotiation would be work without end for one byte of the client's. */
static void no_renegotiation(void **state)
{
    struct tls_server *t = tls_server_new();
    tls_server_begin(t, 1);
    SSL_CTX_set_max_proto_version(t->client, TLS1_2_VERSION);
    SSL *s = tls_dial(t);
    char c;
    assert_int_equal(SSL_renegotiate(s), 1);
    assert_true(SSL_do_handshake(s) <= 0 || SSL_read(s, &c, 1) <= 0);
    tls_hang_up(s);
    s = tls_dial(t);
    tls_send_frame(s, "echo");
    tls_expect(s, "echo");
    tls_hang_up(s);
    tls_server_end(t);
}

/* Keys change in the middle of a stream when the client says so (TLSv1.3). */
static void keys_are_updated(void **state)
{
    struct tls_server *t = tls_server_new();
    tls_server_begin(t, 1);
    SSL *s = tls_dial(t);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(SSL_key_update(s, SSL_KEY_UPDATE_REQUESTED), 1);
        tls_send_frame(s, "echo");
        tls_expect(s, "echo");
    }
    tls_hang_up(s);
    tls_server_end(t);
}

/* ---- peers ---- */

static void answer_message(struct net_request *r, int32_t id, int header, int version,
                           const struct msg_desc *d, const void *m)
{
    struct writer w = WRITER_INIT;
    struct chain c;
    chain_init(&c);
    response_header_encode(&w, header, id);
    msg_encode(d, version, &w, m);
    assert_int_equal(chain_add_writer(&c, &w, true), 0);
    net_request_answer(r, &c);
}

static void on_broker_request(void *arg, struct net_request *r)
{
    static struct api_versions_response_api_key offered[] = {{API_METADATA, 0, 9},
                                                             {API_API_VERSIONS, 0, 3}};
    struct tls_server *t = arg;
    struct request_header h;
    struct reader in = reader_of(r->frame, r->frame_len);
    assert_int_equal(request_header_decode(&in, &h), 0);
    lock_and_count(t->st, &t->st->requests);
    if (h.api_key == API_API_VERSIONS) {
        struct api_versions_response m;
        api_versions_response_init(&m);
        m.api_keys.v = offered;
        m.api_keys.n = 2;
        answer_message(r, h.correlation_id, 0, h.api_version, &api_versions_response_desc, &m);
    } else {
        char *long_name = malloc(30000); /* more than a record */
        struct metadata_response m;
        memset(long_name, 'c', 30000);
        metadata_response_init(&m);
        m.cluster_id = (struct str){long_name, 30000};
        answer_message(r, h.correlation_id, 1, h.api_version, &metadata_response_desc, &m);
        free(long_name);
    }
}

struct peer_call {
    struct tls_server *t;
    struct uv_executor *ex;
    struct peer *peer;
    struct peer_options options;
    const char *host;
    int status, calls, wanted;
    char failure[300];
};

static void on_metadata(void *arg, int status, int version, const void *response)
{
    struct peer_call *c = arg;
    const struct metadata_response *m = response;
    if (status == 0)
        assert_int_equal(m->cluster_id.len, 30000);
    pthread_mutex_lock(&c->t->st->lock);
    c->status = status;
    c->calls++;
    snprintf(c->failure, sizeof(c->failure), "%s",
             peer_failure(c->peer) ? peer_failure(c->peer) : "");
    pthread_cond_broadcast(&c->t->st->changed);
    pthread_mutex_unlock(&c->t->st->lock);
}

static void ask_metadata(void *arg)
{
    struct peer_call *c = arg;
    struct metadata_request m;
    metadata_request_init(&m);
    if (!c->peer)
        c->peer = peer_new(uv_executor_loop(c->ex), uv_executor_ex(c->ex), c->host, c->t->port,
                           &c->options);
    for (int i = 0; i < 50; i++)
        assert_int_equal(
            peer_send(c->peer, API_METADATA, -1, -1, &m, WAIT_S * 1000, true, on_metadata, c), 0);
}

static void drop_peer(void *arg)
{
    struct peer_call *c = arg;
    peer_free(c->peer);
}

/* 50 requests at once; their common status. */
static int asked(struct tls_server *t, struct tls *tls, const char *host, int port, char *failure,
                 size_t failure_n)
{
    struct peer_call c = {.t = t, .host = host};
    c.options = (struct peer_options){.security = {.tls = tls},
                                      .request_timeout_ms = WAIT_S * 1000,
                                      .connect_timeout_ms = WAIT_S * 1000,
                                      .quiet = true};
    int own = t->port;
    t->port = port;
    assert_int_equal(uv_executor_start("peer", &c.ex), 0);
    call_on(uv_executor_ex(c.ex), ask_metadata, &c);
    wait_until(t->st, c.calls == 50);
    call_on(uv_executor_ex(c.ex), drop_peer, &c);
    uv_executor_stop(c.ex);
    t->port = own;
    snprintf(failure, failure_n, "%s", c.failure);
    return c.status;
}

static void peers_speak_tls(void **state)
{
    struct tls_server *t = tls_server_new();
    char why[300];
    t->st->handler = (struct conn_handler){.request = on_broker_request, .arg = t};
    tls_server_begin(t, 1);
    struct tls *good = tls_loaded(false, &t->id.client_settings);
    assert_int_equal(asked(t, good, "localhost", t->port, why, sizeof(why)), 0);
    assert_string_equal(why, "");

    struct tls *stranger = tls_loaded(false, &(struct tls_settings){0});
    assert_int_equal(asked(t, stranger, "localhost", t->port, why, sizeof(why)), -EACCES);
    assert_non_null(strstr(why, "unknown CA"));
    /* with TLS on a port that has none, and the reverse */
    assert_int_equal(asked(t, good, "127.0.0.1", t->st->port, why, sizeof(why)), -ECONNRESET);
    assert_non_null(strstr(why, "security protocol SSL?"));
    assert_int_equal(asked(t, NULL, "127.0.0.1", t->port, why, sizeof(why)), -ECONNRESET);
    tls_unref(good);
    tls_unref(stranger);
    tls_server_end(t);
}

static void a_peer_without_a_certificate_hears_of_it(void **state)
{
    struct tls_server *t = tls_server_new();
    char why[300];
    t->st->handler = (struct conn_handler){.request = on_broker_request, .arg = t};
    t->id.server_settings.client_auth = "required";
    tls_server_begin(t, 1);
    struct tls *bare = tls_loaded(false, &t->id.client_settings);
    assert_int_equal(asked(t, bare, "localhost", t->port, why, sizeof(why)), -EACCES);
    assert_non_null(strstr(why, "it wants a certificate of us"));
    identity_show_client(&t->id);
    struct tls *named = tls_loaded(false, &t->id.client_settings);
    assert_int_equal(asked(t, named, "localhost", t->port, why, sizeof(why)), 0);
    assert_string_equal(t->user, "CN=Alice,OU=Users,O=Org,C=DE");
    tls_unref(bare);
    tls_unref(named);
    tls_server_end(t);
}

static void a_peers_handshake_has_an_end(void **state)
{
    struct tls_server *t = tls_server_new();
    tls_server_begin(t, 1);
    struct tls *tls = tls_loaded(false, &t->id.client_settings);
    struct peer_call c = {.t = t, .host = "127.0.0.1"};
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(a);
    int silent = client_socket(); /* takes connections, and says nothing */
    assert_int_equal(bind(silent, (struct sockaddr *)&a, n), 0);
    assert_int_equal(listen(silent, 5), 0);
    assert_int_equal(getsockname(silent, (struct sockaddr *)&a, &n), 0);
    c.options =
        (struct peer_options){.security = {.tls = tls}, .request_timeout_ms = 40, .quiet = true};
    int own = t->port;
    t->port = ntohs(a.sin_port);
    assert_int_equal(uv_executor_start("peer", &c.ex), 0);
    call_on(uv_executor_ex(c.ex), ask_metadata, &c);
    wait_until(t->st, c.calls == 50);
    call_on(uv_executor_ex(c.ex), drop_peer, &c);
    uv_executor_stop(c.ex);
    t->port = own;
    assert_int_equal(c.status, -ETIMEDOUT);
    assert_non_null(strstr(c.failure, "security protocol SSL?"));
    close(silent);
    tls_unref(tls);
    tls_server_end(t);
}

UNIT_MAIN(unit_test(frames_cross), unit_test(pipelined_and_large),
          unit_test(files_to_a_slow_reader), unit_test(a_half_open_handshake_ends_in_time),
          unit_test(a_flood_of_half_open_ones_costs_the_oldest),
          unit_test(who_speaks_no_tls_is_told_apart), unit_test(a_certificate_names_the_user),
          unit_test(the_stop_waits_for_no_handshake),
          unit_test(a_listener_goes_with_its_handshakes), unit_test(no_renegotiation),
          unit_test(keys_are_updated), unit_test(peers_speak_tls),
          unit_test(a_peer_without_a_certificate_hears_of_it),
          unit_test(a_peers_handshake_has_an_end))
