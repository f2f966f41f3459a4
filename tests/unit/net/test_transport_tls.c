/* Two TLS transports and a wire between them that the test holds in its hands: it lets bytes pass
 * one by one, changes them, counts them, or cuts. */
#include "tls_test.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "net/transport.h"

enum { BIG = 1 << 20 };

struct wire {
    struct identity id;
    struct tls *client_tls, *server_tls;
    struct transport client, server;
    int to_client, to_server; /* our ends */
    size_t at_a_time;         /* bytes that pass in one step */
    size_t passed[2];         /* to the server, to the client */
    long spoil;               /* this byte to the server is changed; -1 = none */
    bool cut;                 /* nothing passes */
};

static void pair(int *ours, int *theirs)
{
    int fds[2], small = 4096;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
    setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
    *ours = fds[0];
    *theirs = fds[1];
}

static void connect_wire(struct wire *w, const char *host, const struct tls_session *session)
{
    int fd;
    pair(&w->to_client, &fd);
    assert_int_equal(transport_tls_init(&w->client, fd, w->client_tls, host, session), 0);
    pair(&w->to_server, &fd);
    assert_int_equal(transport_tls_init(&w->server, fd, w->server_tls, NULL, NULL), 0);
    w->passed[0] = w->passed[1] = 0;
}

static struct wire *wire_new(void)
{
    struct wire *w = calloc(1, sizeof(*w));
    identity_init(&w->id);
    w->at_a_time = 4096;
    w->spoil = -1;
    return w;
}

static void wire_begin(struct wire *w, const char *host)
{
    w->client_tls = tls_loaded(false, &w->id.client_settings);
    w->server_tls = tls_loaded(true, &w->id.server_settings);
    connect_wire(w, host, NULL);
}

static void hang_up(struct wire *w)
{
    w->client.ops->close(&w->client);
    w->server.ops->close(&w->server);
    close(w->to_client);
    close(w->to_server);
}

static void wire_end(struct wire *w)
{
    hang_up(w);
    tls_unref(w->client_tls);
    tls_unref(w->server_tls);
    identity_free(&w->id);
    free(w);
}

/* One direction. */
static bool pass(struct wire *w, int from, int to, int which)
{
    uint8_t bytes[4096];
    ssize_t n = recv(from, bytes, w->at_a_time, MSG_PEEK | MSG_DONTWAIT);
    if (n <= 0 || w->cut)
        return false;
    if (which == 0 && w->spoil >= (long)w->passed[0] && w->spoil < (long)w->passed[0] + n)
        bytes[w->spoil - (long)w->passed[0]] ^= 0x55;
    ssize_t sent = send(to, bytes, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent <= 0)
        return false;
    assert_int_equal(recv(from, bytes, (size_t)sent, 0), sent);
    w->passed[which] += (size_t)sent;
    return true;
}

static bool pass_both(struct wire *w)
{
    bool there = pass(w, w->to_client, w->to_server, 0);
    bool back = pass(w, w->to_server, w->to_client, 1);
    return there || back;
}

/* Both go on until both are done, or one has failed and the other can go no further. */
static void handshake(struct wire *w, int *client, int *server)
{
    *client = *server = -EAGAIN;
    for (int i = 0, idle = 0; i < 100000; i++) {
        if (*client == -EAGAIN)
            *client = w->client.ops->secure(&w->client);
        bool moved = pass_both(w);
        if (*server == -EAGAIN)
            *server = w->server.ops->secure(&w->server);
        moved |= pass_both(w);
        idle = moved ? 0 : idle + 1;
        if (idle > 4)
            return;
    }
    fail_msg("the handshake has no end");
}

static void expect_handshake(struct wire *w)
{
    int client, server;
    handshake(w, &client, &server);
    if (client || server)
        fail_msg("client %d %s, server %d %s", client, transport_why(&w->client), server,
                 transport_why(&w->server));
}

static void fill(uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)(i * 2654435761u >> 13);
}

/* Sends a chain of memory and a file range from one to the other, in small or large sips. */
static void carry(struct wire *w, struct transport *from, struct transport *to, size_t sip)
{
    struct temp_dir dir;
    uint8_t *sent = malloc(2 * BIG), *got = malloc(2 * BIG);
    size_t arrived = 0;
    temp_dir_make(&dir);
    fill(sent, 2 * BIG);
    write_bytes(temp_dir_path(&dir, "records"), sent, BIG);
    struct file *f;
    assert_int_equal(fs_open(fs_posix(), temp_dir_path(&dir, "records"), O_RDONLY, &f), 0);
    struct chain c;
    struct buf head = BUF_INIT, tail = BUF_INIT;
    chain_init(&c);
    buf_put(&head, sent, 100);
    buf_put(&tail, sent + BIG, BIG);
    assert_int_equal(chain_add_buf(&c, &head), 0);
    assert_int_equal(chain_add_file(&c, f, 100, BIG - 100), 0);
    assert_int_equal(chain_add_buf(&c, &tail), 0);
    for (int idle = 0; arrived < 2 * BIG && idle < 100;) {
        ssize_t n = c.left ? from->ops->send_chain(from, &c, sip) : 0;
        if (n < 0)
            fail_msg("send: %s, %s", strerror((int)-n), transport_why(from));
        bool moved = n > 0;
        while (pass_both(w))
            moved = true;
        struct iovec iov[2] = {{got + arrived, 1000}, {got + arrived + 1000, 2 * BIG}};
        if (2 * BIG - arrived <= 1000)
            iov[0].iov_len = 2 * BIG - arrived, iov[1].iov_len = 0;
        else
            iov[1].iov_len = 2 * BIG - arrived - 1000;
        n = to->ops->recv(to, iov, 2);
        assert_true(n > 0 || n == -EAGAIN);
        arrived += n > 0 ? (size_t)n : 0;
        idle = moved || n > 0 ? 0 : idle + 1;
    }
    assert_int_equal(arrived, 2 * BIG);
    assert_memory_equal(got, sent, 2 * BIG);
    chain_free(&c);
    file_unref(f);
    temp_dir_remove(&dir);
    free(sent);
    free(got);
}

static void bytes_cross_both_ways(void **state)
{
    static const char *const versions[] = {"TLSv1.3", "TLSv1.2"};
    for (int v = 0; v < 2; v++) {
        struct wire *w = wire_new();
        w->id.client_settings.enabled_protocols = versions[v];
        wire_begin(w, "localhost");
        expect_handshake(w);
        carry(w, &w->client, &w->server, BIG);
        carry(w, &w->server, &w->client, 7000);
        carry(w, &w->server, &w->client, 2 * BIG);
        wire_end(w);
    }
}

static void torn_records(void **state)
{
    static const size_t sizes[] = {1, 3, 17};
    for (int i = 0; i < 3; i++) {
        struct wire *w = wire_new();
        w->at_a_time = sizes[i];
        wire_begin(w, "127.0.0.1");
        expect_handshake(w);
        w->at_a_time = i == 0 ? 997 : 4096;
        carry(w, &w->client, &w->server, 100000);
        wire_end(w);
    }
}

/* What is left inside is told, as poll cannot know of it. */
static void what_waits_inside_is_told(void **state)
{
    struct wire *w = wire_new();
    wire_begin(w, "localhost");
    expect_handshake(w);
    struct chain c;
    struct buf b = BUF_INIT;
    char out[8];
    chain_init(&c);
    buf_put(&b, "0123456789", 10);
    assert_int_equal(chain_add_buf(&c, &b), 0);
    assert_int_equal(w->client.ops->send_chain(&w->client, &c, 100), 10);
    while (pass_both(w))
        ;
    assert_false(transport_holds(&w->server));
    struct iovec iov = {out, 4};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(w->server.ops->recv(&w->server, &iov, 1), 4);
        assert_true(w->server.ops->want(&w->server, true, false) & TRANSPORT_AGAIN);
        assert_false(w->server.ops->want(&w->server, false, false) & TRANSPORT_AGAIN);
    }
    assert_int_equal(w->server.ops->recv(&w->server, &iov, 1), 2);
    assert_false(transport_holds(&w->server));
    assert_int_equal(w->server.ops->recv(&w->server, &iov, 1), -EAGAIN);
    wire_end(w);
}

static void the_end_comes_behind_the_last_bytes(void **state)
{
    struct wire *w = wire_new();
    wire_begin(w, "localhost");
    expect_handshake(w);
    struct chain c;
    struct buf b = BUF_INIT;
    char out[100];
    chain_init(&c);
    buf_put(&b, "last", 4);
    assert_int_equal(chain_add_buf(&c, &b), 0);
    assert_int_equal(w->client.ops->send_chain(&w->client, &c, 100), 4);
    w->client.ops->finish(&w->client);
    while (pass_both(w))
        ;
    struct iovec iov = {out, sizeof(out)};
    assert_int_equal(w->server.ops->recv(&w->server, &iov, 1), 4);
    assert_true(transport_holds(&w->server)); /* the end is here as well */
    assert_int_equal(w->server.ops->recv(&w->server, &iov, 1), 0);
    wire_end(w);
}

/* Every region of the handshake and of the stream: nothing wrong ever gets through. */
static void spoilt_bytes_end_it(void **state)
{
    for (long at = 0; at < 1500; at += at < 300 ? 7 : 41) {
        struct wire *w = wire_new();
        int client, server;
        wire_begin(w, "localhost");
        w->spoil = at;
        handshake(w, &client, &server);
        struct chain c;
        struct buf b = BUF_INIT;
        char out[2000];
        memset(out, 'x', sizeof(out));
        chain_init(&c);
        buf_put(&b, out, 1500);
        assert_int_equal(chain_add_buf(&c, &b), 0);
        if (!client)
            (void)w->client.ops->send_chain(&w->client, &c, 2000);
        while (pass_both(w))
            ;
        struct iovec iov = {out, sizeof(out)};
        ssize_t n = server == 0 ? w->server.ops->recv(&w->server, &iov, 1) : server;
        if ((size_t)at < w->passed[0]) {
            assert_true(n != 1500);
            if (n < 0 && n != -EAGAIN) { /* and it stays so */
                assert_int_equal(w->server.ops->recv(&w->server, &iov, 1), n);
                assert_int_equal(w->server.ops->send_chain(&w->server, &c, 10), n);
            }
        }
        chain_free(&c);
        wire_end(w);
    }
}

static void words(const struct transport *t, const char *expected)
{
    const char *why = transport_why(t);
    if (!why || !strstr(why, expected))
        fail_msg("'%s' is not in: %s", expected, why ? why : "nothing");
}

/* The client does not accept the server; both have a line. */
static void refuses(struct wire *w, const char *host, const char *client_says,
                    const char *server_says)
{
    int client, server;
    wire_begin(w, host);
    handshake(w, &client, &server);
    assert_int_equal(client, -EACCES);
    words(&w->client, client_says);
    if (server == 0) { /* TLSv1.3: it hears of it a little later */
        char out[10];
        struct iovec iov = {out, sizeof(out)};
        server = (int)w->server.ops->recv(&w->server, &iov, 1);
    }
    assert_int_equal(server, -EACCES);
    words(&w->server, server_says);
    wire_end(w);
}

static void set_server(struct wire *w, struct cert c)
{
    cert_free(&w->id.server);
    free(w->id.server_text);
    free(w->id.server_key);
    w->id.server = c;
    w->id.server_settings.keystore_chain = w->id.server_text = cert_text(&c);
    w->id.server_settings.keystore_key = w->id.server_key = key_text(&c, NULL);
}

static void a_client_looks_at_the_servers_certificate(void **state)
{
    struct wire *w = wire_new();
    refuses(w, "example.org", "not that of host example.org, but of localhost, 127.0.0.1",
            "it ended the handshake (alert bad_certificate)");
    refuses(wire_new(), "127.0.0.2", "not that of host 127.0.0.2", "is the host that was dialed");

    w = wire_new();
    set_server(w, cert_make_at(&w->id.ca, "/CN=old", "DNS:localhost", false, -30, -1));
    refuses(w, "localhost", "has expired", "has expired");

    w = wire_new();
    set_server(w, cert_make_at(&w->id.ca, "/CN=young", "DNS:localhost", false, 3, 30));
    refuses(w, "localhost", "is not valid yet", "our certificate");

    w = wire_new();
    struct cert other = cert_make(NULL, "/CN=another authority", NULL);
    set_server(w, cert_make(&other, "/CN=broker", "DNS:localhost"));
    refuses(w, "localhost", "unknown CA", "does not know the CA");
    cert_free(&other);

    w = wire_new();
    set_server(w, cert_make(NULL, "/CN=broker", "DNS:localhost")); /* its own authority */
    refuses(w, "localhost", "unknown CA", "does not know the CA");
}

/* Nothing has signed for it yet when its names are told. */
static void addresses_of_no_length_are_passed_over(void **state)
{
    static const char *const names[] = {
        "DER:30:02:87:00",
        "DER:30:05:87:03:01:02:03",
        "DER:30:07:87:05:01:02:03:04:05",
        "DER:30:11:87:0f:01:02:03:04:05:06:07:08:09:0a:0b:0c:0d:0e:0f",
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        struct wire *w = wire_new();
        set_server(w, cert_make(&w->id.ca, "/CN=broker", names[i]));
        refuses(w, "localhost", "not that of host localhost, but of no host at all",
                "our certificate");
    }
}

static void a_host_is_not_looked_at_when_that_is_switched_off(void **state)
{
    struct wire *w = wire_new();
    w->id.client_settings.identification = "";
    wire_begin(w, "example.org");
    expect_handshake(w);
    wire_end(w);
}

static void a_trusted_certificate_needs_no_authority(void **state)
{
    struct wire *w = wire_new();
    w->id.client_settings.truststore_certificates = w->id.server_text;
    wire_begin(w, "localhost");
    expect_handshake(w);
    wire_end(w);
}

static void clients_with_and_without_a_certificate(void **state)
{
    static const char *const auth[] = {"none", "requested", "required"};
    for (int a = 0; a < 3; a++) {
        for (int shown = 0; shown < 2; shown++) {
            struct wire *w = wire_new();
            int client, server;
            w->id.server_settings.client_auth = auth[a];
            if (shown)
                identity_show_client(&w->id);
            wire_begin(w, "localhost");
            handshake(w, &client, &server);
            const char *name = w->server.ops->principal(&w->server);
            if (a == 2 && !shown) {
                assert_int_equal(server, -EACCES);
                words(&w->server, "shows no certificate");
            } else {
                assert_int_equal(server, 0);
                if (a > 0 && shown)
                    assert_string_equal(name, "CN=Alice,OU=Users,O=Org,C=DE");
                else
                    assert_null(name);
            }
            if (a == 2 && !shown) { /* TLSv1.3: the client is done before it hears of it */
                char out[10];
                struct iovec iov = {out, sizeof(out)};
                assert_int_equal(w->client.ops->recv(&w->client, &iov, 1), -EACCES);
                words(&w->client, "it wants a certificate of us");
            }
            wire_end(w);
        }
    }
}

static void a_client_of_another_authority(void **state)
{
    struct wire *w = wire_new();
    int client, server;
    struct cert other = cert_make(NULL, "/CN=another authority", NULL);
    struct cert mallory = cert_make(&other, "/CN=Alice", NULL);
    char *text = cert_text(&mallory), *key = key_text(&mallory, NULL);
    w->id.server_settings.client_auth = "requested";
    w->id.client_settings.keystore_type = "PEM";
    w->id.client_settings.keystore_chain = text;
    w->id.client_settings.keystore_key = key;
    wire_begin(w, "localhost");
    handshake(w, &client, &server);
    assert_int_equal(server, -EACCES);
    words(&w->server, "the client's certificate is signed by an unknown CA");
    wire_end(w);
    cert_free(&mallory);
    cert_free(&other);
    free(text);
    free(key);
}

static void rules_make_the_user(void **state)
{
    for (int fits = 0; fits < 2; fits++) {
        struct wire *w = wire_new();
        int client, server;
        identity_show_client(&w->id);
        w->id.server_settings.client_auth = "required";
        w->id.server_settings.principal_rules =
            fits ? "RULE:^CN=(.*?),.*$/$1/L" : "RULE:^CN=bob$/bob/";
        wire_begin(w, "localhost");
        handshake(w, &client, &server);
        if (fits) {
            assert_int_equal(server, 0);
            assert_string_equal(w->server.ops->principal(&w->server), "alice");
        } else {
            assert_int_equal(server, -EACCES);
            words(&w->server, "no rule of ssl.principal.mapping.rules fits CN=Alice,");
        }
        wire_end(w);
    }
}

static void nothing_in_common(void **state)
{
    struct wire *w = wire_new();
    int client, server;
    w->id.client_settings.enabled_protocols = "TLSv1.2";
    w->id.server_settings.enabled_protocols = "TLSv1.3";
    wire_begin(w, "localhost");
    handshake(w, &client, &server);
    assert_int_equal(server, -EPROTO);
    words(&w->server, "no TLS version in common");
    assert_int_equal(client, -EPROTO);
    words(&w->client, "no TLS version in common");
    wire_end(w);

    w = wire_new();
    w->id.client_settings.enabled_protocols = "TLSv1.2";
    w->id.client_settings.cipher_suites = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256";
    w->id.server_settings.cipher_suites =
        "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,TLS_AES_128_GCM_SHA256";
    wire_begin(w, "localhost");
    handshake(w, &client, &server);
    words(&w->server, "no cipher suite in common");
    words(&w->client, "no cipher suite in common");
    wire_end(w);
}

static void old_versions_when_asked_for(void **state)
{
    struct wire *w = wire_new();
    w->id.client_settings.enabled_protocols = "TLSv1.1";
    w->id.server_settings.enabled_protocols = "TLSv1,TLSv1.1,TLSv1.3";
    wire_begin(w, "localhost");
    expect_handshake(w);
    carry(w, &w->client, &w->server, BIG);
    wire_end(w);
}

/* Not TLS: told apart before OpenSSL sees a byte, and nothing is sent. */
static void who_does_not_speak_tls(void **state)
{
    static const char *const first[] = {"GET / HTTP/1.1\r\n", "", "SSH-2.0-x"};
    for (int i = 0; i < 3; i++) {
        struct wire *w = wire_new();
        wire_begin(w, "localhost");
        assert_int_equal(w->server.ops->secure(&w->server), -EAGAIN);
        assert_int_equal(w->server.ops->want(&w->server, true, true), UV_READABLE);
        const char frame[] = "\0\0\0\x10\0\x12";
        if (*first[i])
            send(w->to_server, first[i], strlen(first[i]), 0);
        else
            send(w->to_server, frame, 6, 0);
        assert_int_equal(w->server.ops->secure(&w->server), -EPROTO);
        words(&w->server, "does not speak TLS");
        char c;
        assert_int_equal(recv(w->to_server, &c, 1, MSG_DONTWAIT), -1);
        wire_end(w);
    }
    struct wire *w = wire_new(); /* a port without TLS closes on the client */
    wire_begin(w, "localhost");
    assert_int_equal(w->client.ops->secure(&w->client), -EAGAIN);
    shutdown(w->to_client, SHUT_WR);
    assert_int_equal(w->client.ops->secure(&w->client), -ECONNRESET);
    words(&w->client, "is the listener's security protocol SSL?");
    wire_end(w);
    w = wire_new(); /* or answers with what is no TLS */
    wire_begin(w, "localhost");
    assert_int_equal(w->client.ops->secure(&w->client), -EAGAIN);
    send(w->to_client, "HTTP/1.1 400 Bad Request\r\n\r\n", 28, 0);
    assert_int_equal(w->client.ops->secure(&w->client), -EPROTO);
    words(&w->client, "is not TLS");
    wire_end(w);
}

/* A session is taken along, and makes the next handshake short; not with other key stores. */
static void sessions_are_resumed(void **state)
{
    static const char *const versions[] = {"TLSv1.3", "TLSv1.2"};
    for (int v = 0; v < 2; v++) {
        struct wire *w = wire_new();
        char out[10];
        struct iovec iov = {out, sizeof(out)};
        w->id.client_settings.enabled_protocols = versions[v];
        w->id.server_settings.client_auth = "required";
        identity_show_client(&w->id);
        wire_begin(w, "localhost");
        expect_handshake(w);
        size_t full = w->passed[1];
        assert_int_equal(w->client.ops->recv(&w->client, &iov, 1), -EAGAIN); /* the ticket */
        struct tls_session *s = tls_take_session(&w->client);
        assert_non_null(s);
        hang_up(w);
        connect_wire(w, "localhost", s);
        expect_handshake(w);
        assert_true(w->passed[1] + 300 < full); /* no certificate crossed */
        assert_string_equal(w->server.ops->principal(&w->server), "CN=Alice,OU=Users,O=Org,C=DE");
        hang_up(w);
        char err[600];
        assert_int_equal(tls_load(w->server_tls, &w->id.server_settings, err, sizeof(err)), 0);
        connect_wire(w, "localhost", s);
        expect_handshake(w);
        assert_true(w->passed[1] + 300 > full);
        tls_session_free(s);
        wire_end(w);
    }
}

static void new_connections_get_the_new_certificate(void **state)
{
    struct wire *w = wire_new();
    char err[600];
    wire_begin(w, "localhost");
    expect_handshake(w);
    struct tls_settings s = w->id.server_settings;
    s.keystore_chain = "no certificate";
    assert_int_equal(tls_load(w->server_tls, &s, err, sizeof(err)), -EINVAL);
    hang_up(w);
    connect_wire(w, "localhost", NULL); /* a bad one changes nothing */
    expect_handshake(w);
    set_server(w, cert_make(&w->id.ca, "/CN=next", "DNS:next.example"));
    assert_int_equal(tls_load(w->server_tls, &w->id.server_settings, err, sizeof(err)), 0);
    carry(w, &w->client, &w->server, BIG); /* the old connection lives on */
    hang_up(w);
    connect_wire(w, "next.example", NULL);
    expect_handshake(w);
    wire_end(w);
}

static void nothing_is_loaded(void **state)
{
    struct tls *t = tls_new(true);
    struct transport tr;
    assert_int_equal(transport_tls_init(&tr, 0, t, NULL, NULL), -EINVAL);
    tls_unref(t);
}

UNIT_MAIN(unit_test(bytes_cross_both_ways), unit_test(torn_records),
          unit_test(what_waits_inside_is_told), unit_test(the_end_comes_behind_the_last_bytes),
          unit_test(spoilt_bytes_end_it), unit_test(a_client_looks_at_the_servers_certificate),
          unit_test(addresses_of_no_length_are_passed_over),
          unit_test(a_host_is_not_looked_at_when_that_is_switched_off),
          unit_test(a_trusted_certificate_needs_no_authority),
          unit_test(clients_with_and_without_a_certificate),
          unit_test(a_client_of_another_authority), unit_test(rules_make_the_user),
          unit_test(nothing_in_common), unit_test(old_versions_when_asked_for),
          unit_test(who_does_not_speak_tls), unit_test(sessions_are_resumed),
          unit_test(new_connections_get_the_new_certificate), unit_test(nothing_is_loaded))
