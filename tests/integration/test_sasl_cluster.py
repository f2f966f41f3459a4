"""Brokers that talk to each other by SASL, and the library and its tools as their clients: three brokers, PLAIN and SCRAM,
sessions that are renewed while records flow, a leader that dies, a broker with a wrong password."""
import datetime
import os
import subprocess
import tempfile
import time
import unittest

import cluster
import harness
import kwire
import saslwire
import zookeeper
from harness import until

LISTENERS = "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0"
MODULES = {"PLAIN": saslwire.PLAIN_MODULE, "SCRAM-SHA-256": saslwire.SCRAM_MODULE, "SCRAM-SHA-512": saslwire.SCRAM_MODULE}


def tool(name, *args, status=0, input=None, deadline=60):
    got, out, err = harness.run([harness.program(name)] + list(args), deadline=deadline, input=input)
    assert got == status, "%s %s: status %d\n%s%s" % (name, " ".join(args), got, out, err)
    return out if status == 0 else out + err


def make_user(zk, user, password, mechanism):
    tool("kafka-configs", "--zookeeper", zk, "--alter", "--entity-type", "users", "--entity-name", user,
         "--add-config", "%s=[password=%s]" % (mechanism, password))


def settings(mechanism, password="adminpw", offered=None, **more):
    own = {"sasl_jaas_config": None}
    own.update(more)
    del own["sasl_jaas_config"]
    overrides = saslwire.listener(offered or "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512", **own)
    prefix = "listener.name.sasl_plaintext."
    overrides[prefix + "plain.sasl.jaas.config"] = (
        '%s required username="admin" password="%s" user_admin="adminpw" user_alice="alicepw";' % (saslwire.PLAIN_MODULE, password))
    for m in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        overrides[prefix + m.lower() + ".sasl.jaas.config"] = saslwire.login_of(saslwire.SCRAM_MODULE, "admin", password)
    overrides.update({"listeners": LISTENERS, "inter.broker.listener.name": "SASL_PLAINTEXT",
                      "sasl.mechanism.inter.broker.protocol": mechanism})
    return overrides


class Properties:
    """A client's settings in a file."""

    def __init__(self, mechanism, user, password, **more):
        self.file = tempfile.NamedTemporaryFile("w", suffix=".properties")
        lines = ["security.protocol=SASL_PLAINTEXT", "sasl.mechanism=" + mechanism,
                 "sasl.jaas.config=" + saslwire.login_of(MODULES[mechanism], user, password)]
        lines += ["%s=%s" % (key.replace("_", "."), value) for key, value in more.items()]
        self.file.write("\n".join(lines) + "\n")
        self.file.flush()
        self.name = self.file.name


class BetweenBrokers(unittest.TestCase):
    def history(self, mechanism, **more):
        """Records are acknowledged by all while sessions are renewed and a leader dies; nothing is lost."""
        zk = zookeeper.ZooKeeper(tick_ms=250)
        make_user(zk.connect, "admin", "adminpw", "SCRAM-SHA-256")
        make_user(zk.connect, "admin", "adminpw", "SCRAM-SHA-512")
        c = cluster.Cluster.__new__(cluster.Cluster)
        c.zk, c.brokers = zk, {}
        base = {"zookeeper.session.timeout.ms": "2000", "replica.lag.time.max.ms": "3000",
                "default.replication.factor": "3", "min.insync.replicas": "2",
                "offsets.topic.replication.factor": "3", "group.initial.rebalance.delay.ms": "0",
                "controlled.shutdown.retry.backoff.ms": "200"}
        with c:
            for i in (1, 2, 3):
                c.brokers[i] = zk.broker(i, dict(base, **settings(mechanism, **more)))
            c.wait_brokers()
            c.create_topic("t", partitions=3, replication=3)
            with cluster.History(c, "t", 3) as h:
                h.grow(100)
                c.broker(c.leader("t", 0)).kill()
                h.grow(100)
            h.check()
            for b in c.brokers.values():
                self.assertFalse([line for line in b.lines if "authentication failed" in line])

    def test_plain_with_sessions_of_two_seconds(self):
        self.history("PLAIN", connections_max_reauth_ms="2000")

    def test_scram(self):
        self.history("SCRAM-SHA-512")

    def test_a_broker_with_a_wrong_password(self):
        """It serves, but no broker lets it in: it says so with host, mechanism and user, and not all the time."""
        with zookeeper.ZooKeeper(tick_ms=250) as zk:
            good = zk.broker(1, settings("PLAIN"))
            bad = zk.broker(2, settings("PLAIN", password="wrong"))
            with kwire.Conn(good.ports["PLAINTEXT"]) as k:
                until("the other one is known", lambda: len(k.call("Metadata", 9, topics=[])["brokers"]) == 2)
                k.call("CreateTopics", 4, timeout_ms=30000, topics=[
                    {"name": "t", "num_partitions": -1, "replication_factor": -1, "configs": [],
                     "assignments": [{"partition_index": 0, "broker_ids": [1, 2]}]}])  # 2 has to fetch from 1
            bad.wait_line(r"WARN \[peer\] 127\.0\.0\.1:%d: authentication failed: PLAIN, user admin: "
                          r"Authentication failed: Invalid username or password" % good.ports["SASL_PLAINTEXT"])
            good.wait_line(r"authentication failed: PLAIN: user admin: no such user or password")
            began = len(bad.lines)
            until("it has said more", lambda: len(bad.lines) >= began + 15)
            first, last = (datetime.datetime.fromisoformat(bad.lines[i].split()[0].rstrip("Z"))
                           for i in (began, began + 14))
            # by its own stamps, 60 lines a second at most; a slow machine only makes it fewer
            self.assertGreater((last - first).total_seconds(), 14 / 60, bad.lines[began:began + 15])
            bad.kill()


class Clients(unittest.TestCase):
    """The library by its tools."""

    @classmethod
    def setUpClass(cls):
        overrides = settings("PLAIN", connection_failed_authentication_delay_ms="20")
        overrides.update(saslwire.listener("PLAIN,SCRAM-SHA-256,SCRAM-SHA-512", plain_connections_max_reauth_ms="1500"))
        cls.b = harness.Broker(overrides=overrides)
        cls.at = "127.0.0.1:%d" % cls.b.ports["SASL_PLAINTEXT"]
        tool("kafka-configs", "--bootstrap-server", "127.0.0.1:%d" % cls.b.ports["PLAINTEXT"], "--alter", "--entity-type",
             "users", "--entity-name", "c,d", "--add-config", "SCRAM-SHA-256=[iterations=16384,password=p w]")
        tool("kafka-topics", "--bootstrap-server", "127.0.0.1:%d" % cls.b.ports["PLAINTEXT"], "--create", "--topic", "t")

    @classmethod
    def tearDownClass(cls):
        cls.b.close()

    def test_records_go_and_come(self):
        for i, (mechanism, user, password) in enumerate((("PLAIN", "alice", "alicepw"), ("SCRAM-SHA-256", "c,d", "p w"))):
            p = Properties(mechanism, user, password)
            topic = "go%d" % i
            tool("kafka-topics", "--bootstrap-server", self.at, "--command-config", p.name, "--create", "--topic", topic)
            tool("kafka-console-producer", "--bootstrap-server", self.at, "--producer.config", p.name, "--topic", topic,
                 input=b"a\nb\nc\n")
            out = tool("kafka-console-consumer", "--bootstrap-server", self.at, "--consumer.config", p.name, "--topic",
                       topic, "--from-beginning", "--max-messages", "3", "--group", "g%d" % i)
            self.assertTrue(out.startswith("a\nb\nc\n"), out)

    def test_sessions_are_renewed_under_load(self):
        """Three sessions' time, with many requests under way on each connection: none is lost, none comes late."""
        p = Properties("PLAIN", "alice", "alicepw")
        n = 40000
        out = tool("kafka-producer-perf-test", "--topic", "t", "--num-records", str(n), "--record-size", "100",
                   "--throughput", "8000", "--producer.config", p.name, "--producer-props",
                   "bootstrap.servers=" + self.at, "retries=0", "acks=1", deadline=100)
        self.assertIn("%d records sent" % n, out)
        self.assertFalse([line for line in self.b.lines if "session has ended" in line])

    def test_a_refused_login_is_told_at_once(self):
        for mechanism, user, password, words in (
                ("PLAIN", "alice", "wrong", "PLAIN, user alice: Authentication failed: Invalid username or password"),
                ("SCRAM-SHA-256", "nobody", "x", "SCRAM-SHA-256, user nobody: Authentication failed during authentication "
                                                 "due to invalid credentials with SASL mechanism SCRAM-SHA-256"),
                ("SCRAM-SHA-512", "c,d", "p w", "SCRAM-SHA-512, user c,d: Authentication failed")):
            p = Properties(mechanism, user, password)
            before = sum("authentication failed" in line for line in self.b.lines)
            began = time.monotonic()
            for name, args in (("kafka-topics", ["--command-config", p.name, "--list"]),
                               ("kafka-console-producer", ["--producer.config", p.name, "--topic", "t"]),
                               ("kafka-console-consumer", ["--consumer.config", p.name, "--topic", "t", "--max-messages", "1"])):
                done = subprocess.run([harness.program(name), "--bootstrap-server", self.at] + args, input=b"x\n",
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
                text = (done.stdout + done.stderr).decode()
                self.assertIn("broker %s: authentication failed: %s" % (self.at, words), text)
                self.assertNotIn(password + '"', text)
            self.assertLess(time.monotonic() - began, 20)  # max.block.ms is a minute
            after = sum("authentication failed" in line for line in self.b.lines)
            self.assertLess(after - before, 12)  # no storm

    def test_mechanisms_and_listeners_that_do_not_fit(self):
        with harness.Broker(overrides=settings("PLAIN", offered="PLAIN")) as b:
            p = Properties("SCRAM-SHA-512", "admin", "adminpw")
            out = tool("kafka-topics", "--bootstrap-server", "127.0.0.1:%d" % b.ports["SASL_PLAINTEXT"],
                       "--command-config", p.name, "--list", status=1)
            self.assertIn("SCRAM-SHA-512, user admin: the broker does not offer it, only PLAIN", out)
            out = tool("kafka-topics", "--bootstrap-server", "127.0.0.1:%d" % b.ports["PLAINTEXT"],
                       "--command-config", p.name, "--list", status=1)
            self.assertIn("is there SASL on this listener?", out)
            p = Properties("PLAIN", "admin", "adminpw", default_api_timeout_ms="2000", request_timeout_ms="1000")
            with open(p.name, "a") as f:
                f.write("security.protocol=PLAINTEXT\n")
            out = tool("kafka-topics", "--bootstrap-server", "127.0.0.1:%d" % b.ports["SASL_PLAINTEXT"],
                       "--command-config", p.name, "--list", status=1)
            self.assertIn("if its listener asks for SASL, security.protocol must say so", out)

    def test_a_token_of_a_file(self):
        """OAUTHBEARER with signed tokens: made by openssl, checked with the public key."""
        import base64
        import json
        with tempfile.TemporaryDirectory() as folder:
            key = os.path.join(folder, "key.pem")
            subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, stderr=subprocess.DEVNULL)
            n = subprocess.run(["openssl", "rsa", "-in", key, "-noout", "-modulus"], check=True, stdout=subprocess.PIPE).stdout

            def b64(data):
                return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
            with open(os.path.join(folder, "jwks"), "w") as f:
                json.dump({"keys": [{"kty": "RSA", "kid": "1", "n": b64(bytes.fromhex(n.split(b"=")[1].strip().decode())),
                                     "e": "AQAB"}]}, f)

            def write_token(**claims):
                text = b64(b'{"alg":"RS256","kid":"1"}') + "." + b64(json.dumps(claims).encode())
                signature = subprocess.run(["openssl", "dgst", "-sha256", "-sign", key], input=text.encode(), check=True,
                                           stdout=subprocess.PIPE).stdout
                with open(os.path.join(folder, "token"), "w") as f:
                    f.write(text + "." + b64(signature) + "\n")
            overrides = {"listeners": LISTENERS, "sasl.enabled.mechanisms": "OAUTHBEARER",
                         "sasl.jaas.config": saslwire.OAUTH_MODULE + " required;",
                         "sasl.oauthbearer.jwks.endpoint.url": "file://%s/jwks" % folder,
                         "sasl.oauthbearer.expected.audience": "kafka,other", "sasl.oauthbearer.expected.issuer": "me"}
            client = os.path.join(folder, "client")
            with open(client, "w") as f:
                f.write("security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\n"
                        "sasl.jaas.config=%s required;\nsasl.oauthbearer.token.endpoint.url=file://%s/token\n" %
                        (saslwire.OAUTH_MODULE, folder))
            good = {"sub": "erin", "iss": "me", "aud": "kafka", "iat": time.time(), "exp": time.time() + 100}
            with harness.Broker(overrides=overrides) as b:
                args = ["--bootstrap-server", "127.0.0.1:%d" % b.ports["SASL_PLAINTEXT"], "--command-config", client, "--list"]
                write_token(**good)
                tool("kafka-topics", *args)
                for change, why in (({"aud": "else"}, "audience"), ({"iss": "you"}, "issuer"),
                                    ({"exp": time.time() - 60}, "expired"), ({"sub": ""}, "principal")):
                    write_token(**dict(good, **change))
                    self.assertIn("invalid_token", tool("kafka-topics", *args, status=1))
                    b.wait_line("the token is refused: .*" + why)


class OverTls(unittest.TestCase):
    def test_brokers_and_tools(self):
        """SASL_SSL: TLS first, then the login; between two brokers, and for the tools."""
        with tempfile.TemporaryDirectory() as folder, zookeeper.ZooKeeper(tick_ms=250) as zk:
            pem = os.path.join(folder, "broker.pem")
            with open(pem, "wb") as f:
                made = subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
                                       "/CN=b", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "-"],
                                      check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
                f.write(made.stdout)
            make_user(zk.connect, "admin", "adminpw", "SCRAM-SHA-512")
            ssl = {"ssl.keystore.type": "PEM", "ssl.keystore.location": pem, "ssl.truststore.type": "PEM",
                   "ssl.truststore.location": pem}
            overrides = dict(ssl, **{
                "listeners": "SASL_SSL://127.0.0.1:0", "security.inter.broker.protocol": "SASL_SSL",
                "sasl.enabled.mechanisms": "SCRAM-SHA-512", "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
                "sasl.jaas.config": saslwire.login_of(saslwire.SCRAM_MODULE, "admin", "adminpw"),
                "connections.max.reauth.ms": "1500", "offsets.topic.replication.factor": "2"})
            a, b = zk.broker(1, overrides), zk.broker(2, overrides)
            at = "127.0.0.1:%d" % b.ports["SASL_SSL"]
            p = Properties("SCRAM-SHA-512", "admin", "adminpw", ssl_truststore_type="PEM", ssl_truststore_location=pem)
            with open(p.name) as f:
                text = f.read()
            with open(p.name, "w") as f:
                f.write(text.replace("SASL_PLAINTEXT", "SASL_SSL"))
            tool("kafka-topics", "--bootstrap-server", at, "--command-config", p.name, "--create", "--topic", "t",
                 "--replication-factor", "2", "--partitions", "2")
            n = 12000  # three sessions' time
            out = tool("kafka-producer-perf-test", "--topic", "t", "--num-records", str(n), "--record-size", "100",
                       "--throughput", "3000", "--producer.config", p.name, "--producer-props",
                       "bootstrap.servers=" + at, "retries=0", "acks=all", deadline=100)
            self.assertIn("%d records sent" % n, out)
            out = tool("kafka-console-consumer", "--bootstrap-server", at, "--consumer.config", p.name, "--topic", "t",
                       "--from-beginning", "--max-messages", str(n), deadline=60)
            self.assertEqual(len(out.splitlines()), n)
            for x in (a, b):
                self.assertFalse([line for line in x.lines if "session has ended" in line or "failed" in line])


if __name__ == "__main__":
    harness.main()
