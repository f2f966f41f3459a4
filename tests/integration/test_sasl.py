"""The broker's side of SASL, frame by frame: what is answered before, during and after a login, by every mechanism, by
right and by wrong clients; sessions that end; floods."""
import json
import struct
import tempfile
import time
import unittest

import harness
import kwire
import saslwire
import zookeeper
from saslwire import Refused

UNSUPPORTED_MECHANISM, ILLEGAL_STATE, UNSUPPORTED_VERSION, FAILED = 33, 34, 35, 58
PLAIN = {"plain_sasl_jaas_config": saslwire.users(admin="adminpw", alice="alicepw", bob="bob\xe4")}
OAUTH = {"oauthbearer_sasl_jaas_config": saslwire.OAUTH_MODULE + " required;"}
ALL = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER"


def broker(mechanisms=ALL, more=None, **settings):
    own = dict(PLAIN, **OAUTH) if mechanisms == ALL else dict(PLAIN)
    own.update(settings)
    overrides = saslwire.listener(mechanisms, **own)
    overrides.update(more or {})
    return harness.Broker(overrides=overrides, listeners="PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0")


class Logins(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.b = broker(connection_failed_authentication_delay_ms="20")
        with kwire.Conn(cls.b.port) as k:
            codes = saslwire.alter(k, [saslwire.upsertion("alice", "SCRAM-SHA-256", "a256"),
                                       saslwire.upsertion("alice", "SCRAM-SHA-512", "a512", 8192),
                                       saslwire.upsertion("o,=dd \xe4", "SCRAM-SHA-512", "pw")])
        assert set(codes.values()) == {0}, codes

    @classmethod
    def tearDownClass(cls):
        cls.b.close()

    def conn(self):
        return kwire.Conn(self.b.ports["SASL_PLAINTEXT"])

    def refused(self, code, call, *args, **kw):
        with self.assertRaises(Refused) as c:
            call(*args, **kw)
        self.assertEqual(c.exception.code, code, c.exception.text)
        return c.exception.text

    def test_every_mechanism_lets_in_who_knows_the_password(self):
        for mechanism, user, password in (("PLAIN", "alice", "alicepw"), ("PLAIN", "bob", "bob\xe4"),
                                          ("SCRAM-SHA-256", "alice", "a256"), ("SCRAM-SHA-512", "alice", "a512"),
                                          ("SCRAM-SHA-512", "o,=dd \xe4", "pw")):
            for versions in (False, True):
                with self.conn() as k:
                    saslwire.login(k, mechanism, user, password, versions)
                    self.assertEqual(k.lifetime_ms, 0)
                    self.assertEqual(k.call("ApiVersions", 3, client_software_name="x",
                                            client_software_version="1")["error_code"], 0)
                    self.assertEqual([b["node_id"] for b in k.call("Metadata", 9, topics=[])["brokers"]], [0])
        with self.conn() as k:
            saslwire.handshake(k, "OAUTHBEARER")
            jwt = saslwire.unsecured_jwt(b'{"sub":"carol","exp":%d}' % (time.time() + 100))
            self.assertEqual(saslwire.token(k, saslwire.oauth(jwt, "carol")), b"")
            self.assertTrue(0 < k.lifetime_ms <= 100000, k.lifetime_ms)
            k.call("Metadata", 9, topics=[])

    def test_every_version_and_bare_tokens(self):
        for version in (0, 1, 2):
            with self.conn() as k:
                saslwire.handshake(k, "SCRAM-SHA-256")
                saslwire.exchange(k, "SCRAM-SHA-256", "alice", "a256", version=version)
                k.call("Metadata", 1, topics=[])
        for mechanism, password, last in (("PLAIN", "alicepw", b""), ("SCRAM-SHA-512", "a512", None)):
            with self.conn() as k:
                self.assertEqual(saslwire.handshake(k, mechanism, version=0), ALL.split(","))
                got = saslwire.exchange(k, mechanism, "alice", password, send=saslwire.bare)
                self.assertTrue(last is None or got == last)
                k.call("Metadata", 1, topics=[])

    def test_wrong_users_and_passwords_are_told_alike(self):
        for mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"):
            texts = set()
            for user, password in (("alice", "wrong"), ("nobody", "wrong"), ("nobody", "alicepw")):
                with self.conn() as k:
                    saslwire.handshake(k, mechanism)
                    texts.add(self.refused(FAILED, saslwire.exchange, k, mechanism, user, password))
                    self.assertTrue(k.is_closed())
            self.assertEqual(len(texts), 1, texts)
        # each SCRAM mechanism has its own entry
        with self.conn() as k:
            saslwire.handshake(k, "SCRAM-SHA-256")
            self.refused(FAILED, saslwire.exchange, k, "SCRAM-SHA-256", "o,=dd \xe4", "pw")

    def test_a_bare_token_that_is_wrong_only_closes(self):
        with self.conn() as k:
            saslwire.handshake(k, "PLAIN", version=0)
            k.send_frame(saslwire.plain("alice", "wrong"))
            self.assertTrue(k.is_closed())

    def test_a_mechanism_that_is_not_there(self):
        for mechanism in ("GSSAPI", "plain", "", "X" * 300):
            for version in (0, 1):
                with self.conn() as k:
                    self.assertEqual(self.refused(UNSUPPORTED_MECHANISM, saslwire.handshake, k, mechanism, version), ALL)
                    self.assertTrue(k.is_closed())

    def test_other_requests_before_the_login(self):
        for api, version in (("Metadata", 9), ("SaslAuthenticate", 2), ("Produce", 9), ("Fetch", 4)):
            for first in (False, True):
                with self.conn() as k:
                    if first:
                        k.call("ApiVersions", 0)
                    k.send(api, version)
                    self.assertTrue(k.is_closed())
        with self.conn() as k:
            k.call("ApiVersions", 0)
            k.send("ApiVersions", 0)
            self.assertTrue(k.is_closed())
        for data in (b"", b"\x60\x23", b"GET / HTTP/1.1\r\n", saslwire.plain("alice", "alicepw"), b"\xff" * 100):
            with self.conn() as k:
                k.send_frame(data)
                self.assertTrue(k.is_closed())

    def test_api_versions_that_do_not_count(self):
        with self.conn() as k:
            k.send_frame(saslwire.frame(18, 99, 7))
            self.assertEqual(struct.unpack(">ih", k.read_frame()[:6]), (7, UNSUPPORTED_VERSION))
            answer = k.call("ApiVersions", 3, client_software_name="-", client_software_version="")
            self.assertEqual(answer["error_code"], 42)
            keys = {a["api_key"] for a in k.call("ApiVersions", 0)["api_keys"]}
            self.assertTrue({17, 36} <= keys)
            saslwire.login(k, "PLAIN", "alice", "alicepw", versions=False)

    def test_other_requests_among_the_tokens(self):
        for api, version in (("Metadata", 9), ("ApiVersions", 2), ("SaslHandshake", 1)):
            with self.conn() as k:
                saslwire.handshake(k, "SCRAM-SHA-256")
                saslwire.token(k, saslwire.Scram("SCRAM-SHA-256", "alice", "a256").first())
                answer = k.call(api, version)
                self.assertEqual(answer.get("error_code", ILLEGAL_STATE), ILLEGAL_STATE)
                self.assertTrue(k.is_closed())
        with self.conn() as k:
            saslwire.handshake(k, "PLAIN")
            k.send_frame(b"\0alice\0alicepw")  # a bare token where a framed one is due
            self.assertTrue(k.is_closed())

    def test_after_the_login_and_without_sasl(self):
        def told(k):
            self.assertEqual(k.call("SaslHandshake", 1, mechanism="PLAIN"), {"error_code": ILLEGAL_STATE, "mechanisms": []})
            answer = k.call("SaslAuthenticate", 1, auth_bytes=b"\0a\0b")
            self.assertEqual(answer["error_code"], ILLEGAL_STATE)
            k.call("Metadata", 9, topics=[])
        with self.conn() as k:
            saslwire.login(k, "PLAIN", "alice", "alicepw")
            told(k)
        with kwire.Conn(self.b.port) as k:
            told(k)

    def test_scram_messages_that_are_wrong(self):
        def start(k, s):
            saslwire.handshake(k, "SCRAM-SHA-256")
            return saslwire.token(k, s.first())
        bends = [lambda t: t.replace("c=biws", "c=bixh"), lambda t: t + "x", lambda t: t[:-1],
                 lambda t: "c=biws,r=" + "x" * 40]
        for bend in bends:
            with self.conn() as k:
                s = saslwire.Scram("SCRAM-SHA-256", "alice", "a256")
                first = start(k, s)
                self.refused(FAILED, saslwire.token, k, s.final(first, bend))
                self.assertTrue(k.is_closed())
        with self.conn() as k:  # as librdkafka before 2.6.1 says it
            s = saslwire.Scram("SCRAM-SHA-256", "alice", "a256")
            first = start(k, s)
            s.check(saslwire.token(k, s.final(first, lambda t: t.replace("r=", "r=" + s.nonce, 1))))
        for data in (b"", b"n,,", b"y,,n=alice,r=x", b"n,,n=alice,r=x,m=1", b"n,,n=al=ice,r=x", b"\0" * 1000):
            with self.conn() as k:
                saslwire.handshake(k, "SCRAM-SHA-256")
                self.refused(FAILED, saslwire.token, k, data)
        with self.conn() as k:  # another user's name as the authorization id; one's own is fine
            saslwire.handshake(k, "SCRAM-SHA-256")
            text = self.refused(FAILED, saslwire.token, k,
                                saslwire.Scram("SCRAM-SHA-256", "alice", "a256", authzid="bob").first())
            self.assertIn("authorization id", text)
        with self.conn() as k:
            s = saslwire.Scram("SCRAM-SHA-256", "alice", "a256", authzid="alice")
            s.check(saslwire.token(k, s.final(start(k, s))))
        with self.conn() as k:  # a user is no delegation token
            s = saslwire.Scram("SCRAM-SHA-256", "alice", "a256", extensions=",tokenauth=true")
            self.refused(FAILED, saslwire.token, k, s.final(start(k, s)))
        # a replay of another connection's messages
        with self.conn() as k, self.conn() as other:
            s = saslwire.Scram("SCRAM-SHA-256", "alice", "a256", nonce="always")
            final = s.final(start(k, s))
            saslwire.token(k, final)
            start(other, saslwire.Scram("SCRAM-SHA-256", "alice", "a256", nonce="always"))
            self.refused(FAILED, saslwire.token, other, final)

    def test_tokens_of_oauthbearer_that_are_wrong(self):
        now = time.time()
        for jwt in (saslwire.unsecured_jwt(b'{"sub":"a","exp":%d}' % (now - 5)), saslwire.unsecured_jwt(b'{"sub":"a"}'),
                    saslwire.unsecured_jwt(b'{"exp":%d}' % (now + 100)), b"nonsense",
                    saslwire.unsecured_jwt(b'{"sub":"a","exp":%d}' % (now + 100), b'{"alg":"RS256"}')):
            with self.conn() as k:
                saslwire.handshake(k, "OAUTHBEARER")
                self.assertEqual(json.loads(saslwire.token(k, saslwire.oauth(jwt)))["status"], "invalid_token")
                self.assertIn("invalid_token", self.refused(FAILED, saslwire.token, k, b"\x01"))
                self.assertTrue(k.is_closed())
        with self.conn() as k:
            saslwire.handshake(k, "OAUTHBEARER")
            jwt = saslwire.unsecured_jwt(b'{"sub":"a","exp":%d}' % (now + 100))
            self.refused(FAILED, saslwire.token, k, saslwire.oauth(jwt, "b"))

    def test_requests_of_two_users_pipelined_behind_the_login(self):
        """What comes in one piece is read one after the other: the login decides what the next frame means."""
        with self.conn() as k:
            data = b""
            for api, version, values in (("ApiVersions", 0, {}), ("SaslHandshake", 1, {"mechanism": "PLAIN"}),
                                         ("SaslAuthenticate", 1, {"auth_bytes": saslwire.plain("alice", "alicepw")}),
                                         ("Metadata", 9, {"topics": []}), ("Metadata", 9, {"topics": []})):
                f = kwire.request_frame(api, version, 5, values, "x")
                data += struct.pack(">i", len(f)) + f
            k.sock.sendall(data)
            for api, version in (("ApiVersions", 0), ("SaslHandshake", 1), ("SaslAuthenticate", 1), ("Metadata", 9),
                                 ("Metadata", 9)):
                self.assertEqual(k.receive(api, version, 5).get("error_code", 0), 0)

    def test_what_fails_is_in_the_log(self):
        with self.conn() as k:
            saslwire.handshake(k, "SCRAM-SHA-256")
            self.refused(FAILED, saslwire.exchange, k, "SCRAM-SHA-256", "mallory", "x")
        self.b.wait_line(r"WARN \[SocketServer listener=SASL_PLAINTEXT\] closing connection of 127\.0\.0\.1:\d+: "
                         r"authentication failed: SCRAM-SHA-256: user mallory: no credential")
        self.assertFalse(any("alicepw" in line or "a256" in line for line in self.b.lines))

    def test_a_flood_of_failing_logins_does_not_hurt_others(self):
        with self.conn() as good:
            saslwire.login(good, "SCRAM-SHA-256", "alice", "a256")
            flood = []
            for _ in range(300):
                k = self.conn()
                flood.append(k)
                k.send("SaslHandshake", 1, mechanism="PLAIN")
                k.send("SaslAuthenticate", 1, auth_bytes=saslwire.plain("alice", "guess"))
            good.call("Metadata", 9, topics=[])
            for k in flood[:150]:
                k.close()  # before they hear of it
            for k in flood[150:]:
                k.receive("SaslHandshake", 1, 1)
                self.assertEqual(k.receive("SaslAuthenticate", 1, 2)["error_code"], FAILED)
                self.assertTrue(k.is_closed())
                k.close()
            good.call("Metadata", 9, topics=[])
        with self.conn() as k:
            saslwire.login(k, "PLAIN", "alice", "alicepw")


class Sessions(unittest.TestCase):
    """KIP-368."""

    def renew(self, k, mechanism="PLAIN", user="alice", password="alicepw"):
        saslwire.handshake(k, mechanism)
        return saslwire.exchange(k, mechanism, user, password)

    def test_sessions_end_unless_they_are_renewed(self):
        with broker("PLAIN,SCRAM-SHA-256", plain_connections_max_reauth_ms="700") as b:
            sasl = b.ports["SASL_PLAINTEXT"]
            with kwire.Conn(b.port) as k:
                saslwire.alter(k, [saslwire.upsertion("alice", "SCRAM-SHA-256", "x")])
            with kwire.Conn(sasl) as k:  # the other mechanism has no end
                saslwire.login(k, "SCRAM-SHA-256", "alice", "x")
                self.assertEqual(k.lifetime_ms, 0)
            conns = [kwire.Conn(sasl) for _ in range(6)]
            renewed, expired, old, bare, other, idle = conns
            for k in conns[:2] + conns[4:]:
                saslwire.login(k, "PLAIN", "alice", "alicepw")
                self.assertEqual(k.lifetime_ms, 700)
            saslwire.handshake(old, "PLAIN")
            saslwire.token(old, saslwire.plain("alice", "alicepw"), version=0)  # is not told, and ends all the same
            saslwire.handshake(bare, "PLAIN", version=0)
            saslwire.bare(bare, saslwire.plain("alice", "alicepw"))
            time.sleep(0.8)
            self.renew(renewed)  # the first one may come at once, also after the end
            self.assertEqual(renewed.lifetime_ms, 700)
            renewed.call("Metadata", 9, topics=[])
            self.assertEqual(renewed.call("SaslHandshake", 1, mechanism="PLAIN")["error_code"], ILLEGAL_STATE)
            for k in (expired, old, bare):
                k.send("Metadata", 9, topics=[])
                self.assertTrue(k.is_closed())
            with self.assertRaises(Refused) as c:  # others may not take a connection over
                self.renew(other, user="admin", password="adminpw")
            self.assertEqual(c.exception.code, FAILED)
            self.assertIn("Cannot change principals", c.exception.text)
            self.assertTrue(other.is_closed())
            self.renew(idle)  # idle ones are not closed by a timer
            time.sleep(1.1)
            self.renew(renewed)  # the second one, a second later
            for k in conns:
                k.close()

    def test_what_a_renewal_may_not_be(self):
        with broker("PLAIN,SCRAM-SHA-256", connections_max_reauth_ms="60000") as b:
            def conn():
                k = kwire.Conn(b.ports["SASL_PLAINTEXT"])
                saslwire.login(k, "PLAIN", "alice", "alicepw")
                self.assertEqual(k.lifetime_ms, 60000)
                return k
            with conn() as k:  # wrong password
                with self.assertRaises(Refused) as c:
                    self.renew(k, password="x")
                self.assertEqual(c.exception.code, FAILED)
                self.assertTrue(k.is_closed())
            with conn() as k:  # another mechanism: the handshake is answered, and then it ends
                saslwire.handshake(k, "SCRAM-SHA-256")
                k.send("SaslAuthenticate", 1, auth_bytes=b"n,,n=alice,r=x")
                self.assertTrue(k.is_closed())
            with conn() as k:  # ApiVersions among its frames
                saslwire.handshake(k, "PLAIN")
                k.call("ApiVersions", 0)
                self.assertTrue(k.is_closed())
            with conn() as k:  # SaslAuthenticate without a handshake is an ordinary request
                self.assertEqual(k.call("SaslAuthenticate", 1, auth_bytes=b"")["error_code"], ILLEGAL_STATE)
                k.call("Metadata", 9, topics=[])

    def test_answers_of_before_come_first(self):
        """A renewal behind requests that wait: their answers keep their places."""
        with broker("PLAIN", connections_max_reauth_ms="60000") as b:
            with kwire.Conn(b.ports["SASL_PLAINTEXT"]) as k:
                saslwire.login(k, "PLAIN", "alice", "alicepw")
                kwire.create_topic(k, "t")
                f = k.send("Fetch", 11, **kwire.fetch_request(11, [("t", 0, 0)], max_wait_ms=300))
                h = k.send("SaslHandshake", 1, mechanism="PLAIN")
                t = k.send("SaslAuthenticate", 1, auth_bytes=saslwire.plain("alice", "alicepw"))
                m = k.send("Metadata", 9, topics=[])
                k.receive("Fetch", 11, f)
                self.assertEqual(k.receive("SaslHandshake", 1, h)["error_code"], 0)
                self.assertEqual(k.receive("SaslAuthenticate", 1, t)["error_code"], 0)
                k.receive("Metadata", 9, m)

    def test_a_token_that_expires_ends_the_session(self):
        with broker(ALL, connections_max_reauth_ms="50000") as b, kwire.Conn(b.ports["SASL_PLAINTEXT"]) as k:
            saslwire.handshake(k, "OAUTHBEARER")
            saslwire.token(k, saslwire.oauth(saslwire.unsecured_jwt(b'{"sub":"a","exp":%.1f}' % (time.time() + 1.2))))
            self.assertTrue(0 < k.lifetime_ms <= 1300, k.lifetime_ms)
            k.call("Metadata", 9, topics=[])
            time.sleep(1.4)
            k.send("Metadata", 9, topics=[])
            self.assertTrue(k.is_closed())


class Settings(unittest.TestCase):
    def check(self, text, words):
        with tempfile.NamedTemporaryFile("w", suffix=".properties") as f:
            f.write("listeners=SASL_PLAINTEXT://127.0.0.1:0\nlog.dirs=/tmp/nowhere\n"
                    "security.inter.broker.protocol=SASL_PLAINTEXT\n" + text)
            f.flush()
            status, _, err = harness.run([harness.program("kafkad"), "--check-config", f.name])
        self.assertEqual(status, 1 if words else 0, err)
        for word in [words] if isinstance(words, str) else words or []:
            self.assertIn(word, err)
        self.assertNotIn("s3cret", err)

    def test_what_is_missing_is_said(self):
        jaas = "listener.name.sasl_plaintext.plain.sasl.jaas.config=%s\n"
        plain = jaas % saslwire.users(admin="s3cret")
        both = "sasl.enabled.mechanisms=PLAIN\nsasl.mechanism.inter.broker.protocol=PLAIN\n"
        self.check(plain, "sasl.enabled.mechanisms: it is not set, or GSSAPI, the default")
        self.check("sasl.enabled.mechanisms=PLAIN,CRAM\n" + plain, "sasl.enabled.mechanisms: CRAM is not served")
        self.check("sasl.enabled.mechanisms=PLAIN\n" + plain, "sasl.mechanism.inter.broker.protocol: it is not set, or GSSAPI, the default")
        self.check(both, "plain.sasl.jaas.config: is not set")
        self.check(both + jaas % "x required password=s3cret;", "the login module is x, and for PLAIN it is")
        self.check(both + jaas % (saslwire.PLAIN_MODULE + ' required user_a="s3cret'), "does not end")
        self.check(both + jaas % (saslwire.PLAIN_MODULE + ' required user_a="s3cret";'), "no username")
        self.check("sasl.enabled.mechanisms=OAUTHBEARER\nsasl.mechanism.inter.broker.protocol=OAUTHBEARER\n"
                   "sasl.oauthbearer.jwks.endpoint.url=https://x/\n"
                   "sasl.jaas.config=%s required;\n" % saslwire.OAUTH_MODULE, "only file:///path is served")
        self.check("sasl.enabled.mechanisms=PLAIN\nsasl.mechanism.inter.broker.protocol=SCRAM-SHA-256\n" + plain,
                   "sasl.jaas.config: is not set")
        self.check(both + plain, None)
        self.check(both + "sasl.jaas.config=%s\n" % saslwire.users(admin="s3cret"), None)
        self.check(both.replace("PLAIN", "SCRAM-SHA-256") + "sasl.jaas.config=%s\n" %
                   saslwire.login_of(saslwire.SCRAM_MODULE, "admin", "s3cret"), None)

    def test_listeners_come_and_go_with_other_mechanisms(self):
        """A listener that is removed and added again has the settings of that day, and not those of its first life."""
        with broker("PLAIN") as b:
            port = zookeeper.free_ports(1)[0]
            here = ",".join("%s://127.0.0.1:%d" % (name, p) for name, p in b.ports.items())

            def alter(**values):
                values = {key.replace("__", "."): v for key, v in values.items()}
                with kwire.Conn(b.port) as k:  # a listener that gets its port by number is bound anew
                    answer = k.call("IncrementalAlterConfigs", 1, validate_only=False, resources=[{
                        "resource_type": 4, "resource_name": "0", "configs": [
                            {"name": n, "config_operation": 1 if v is None else 0, "value": v} for n, v in values.items()]}])
                return answer["responses"][0]
            sasl_map = "PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,EXTRA:SASL_PLAINTEXT"
            for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512", "SCRAM-SHA-256"):
                answer = alter(**{"listeners": "%s,EXTRA://127.0.0.1:%d" % (here, port),
                                  "listener__security__protocol__map": sasl_map,
                                  "listener__name__extra__sasl__enabled__mechanisms": mechanism})
                self.assertEqual(answer["error_code"], 0, answer)

                def offered():
                    try:
                        with kwire.Conn(port) as e:
                            return saslwire.handshake(e, mechanism)
                    except (Refused, OSError):
                        return None
                self.assertEqual(harness.until("it listens", offered), [mechanism])
                self.assertEqual(alter(listeners=here, listener__name__extra__sasl__enabled__mechanisms=None)["error_code"], 0)
            answer = alter(**{"listeners": "%s,EXTRA://127.0.0.1:%d" % (here, port), "listener__security__protocol__map": sasl_map,
                              "listener__name__extra__sasl__enabled__mechanisms": "GSSAPI"})
            self.assertEqual(answer["error_code"], 42)
            self.assertIn("it is not set, or GSSAPI", answer["error_message"])

    def test_secrets_are_not_shown(self):
        with broker("PLAIN", more={"sasl.jaas.config": saslwire.users(admin="adminpw")}) as b, kwire.Conn(b.port) as k:
            answer = k.call("DescribeConfigs", 4, include_synonyms=True, include_documentation=False, resources=[
                {"resource_type": 4, "resource_name": "0", "configuration_keys": None}])
            found = {c["name"]: c for c in answer["results"][0]["configs"]}
            self.assertTrue(found["sasl.jaas.config"]["is_sensitive"])
            self.assertNotIn("adminpw", repr(answer))
            self.assertNotIn("alicepw", repr(answer))
            answer = k.call("IncrementalAlterConfigs", 1, validate_only=False, resources=[{
                "resource_type": 4, "resource_name": "0", "configs": [
                    {"name": "listener.name.x.plain.sasl.jaas.config", "config_operation": 0, "value": "s3cret"}]}])
            self.assertNotEqual(answer["responses"][0]["error_code"], 0)
            self.assertFalse(any(w in line for line in b.lines for w in ("adminpw", "alicepw", "s3cret")))

    def test_frames_are_small_before_a_login(self):
        with broker("PLAIN", more={"sasl.server.max.receive.size": "1000"}) as b:
            with kwire.Conn(b.ports["SASL_PLAINTEXT"]) as k:
                k.sock.sendall(struct.pack(">i", 1001))
                self.assertTrue(k.is_closed())
            with kwire.Conn(b.ports["SASL_PLAINTEXT"]) as k:
                saslwire.handshake(k, "PLAIN")
                k.sock.sendall(struct.pack(">i", 100 << 20))
                self.assertTrue(k.is_closed())
            with kwire.Conn(b.ports["SASL_PLAINTEXT"]) as k:
                saslwire.login(k, "PLAIN", "alice", "alicepw")
                k.call("Metadata", 9, topics=[{"name": "t%d" % i} for i in range(500)])

    def test_an_answer_that_fails_is_held_back(self):
        with broker("PLAIN", connection_failed_authentication_delay_ms="1500") as b:
            with kwire.Conn(b.ports["SASL_PLAINTEXT"]) as k:
                saslwire.handshake(k, "PLAIN")
                k.send("SaslAuthenticate", 1, auth_bytes=saslwire.plain("alice", "x"))
                began = time.monotonic()
                self.assertEqual(k.receive("SaslAuthenticate", 1, 2)["error_code"], FAILED)
                self.assertGreater(time.monotonic() - began, 1.0)
                self.assertTrue(k.is_closed())
            with kwire.Conn(b.ports["SASL_PLAINTEXT"]) as k:  # a stop does not wait for long
                saslwire.handshake(k, "PLAIN")
                k.send("SaslAuthenticate", 1, auth_bytes=saslwire.plain("alice", "x"))
                b.stop()

    def test_users_have_their_quotas(self):
        """The principal of a connection is the user's, for what is counted by user."""
        with broker("PLAIN") as b, kwire.Conn(b.port) as admin, kwire.Conn(b.ports["SASL_PLAINTEXT"]) as alice, \
                kwire.Conn(b.ports["SASL_PLAINTEXT"]) as bob:
            admin.call("AlterClientQuotas", 1, entries=[{
                "entity": [{"entity_type": "user", "entity_name": "alice"}],
                "ops": [{"key": "producer_byte_rate", "value": 100.0, "remove": False}]}], validate_only=False)
            kwire.create_topic(admin, "t")
            throttled = {}
            for k, user, password in ((alice, "alice", "alicepw"), (bob, "bob", "bob\xe4")):
                saslwire.login(k, "PLAIN", user, password)
                request = kwire.produce_request([("t", 0, kwire.simple_batch(b"x" * 20000))])
                throttled[user] = k.call("Produce", 8, **request)["throttle_time_ms"]
            self.assertGreater(throttled["alice"], 0)
            self.assertEqual(throttled["bob"], 0)


if __name__ == "__main__":
    harness.main()
