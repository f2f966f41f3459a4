"""TLS: real clients (kcat, python3-kafka, openssl), our tools, a cluster whose brokers speak TLS among themselves, and the
section of docs/operations.md, done as it is written there."""
import os
import re
import shutil
import socket
import ssl
import subprocess
import tempfile
import unittest

import harness
import kwire
from cluster import Cluster, History
from harness import until
from tool_test import run_tool

STORES = os.path.join(harness.ROOT, "tests", "unit", "data", "stores")


def openssl(folder, *args):
    subprocess.run(["openssl", *args], cwd=folder, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                   stderr=subprocess.PIPE, timeout=60)


class Authority:
    """A folder with ca.pem, and certificates on demand: <name>.crt, <name>.key, both in <name>.pem."""

    def __init__(self, folder, name="ca"):
        self.folder, self.name = folder, name
        openssl(folder, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30",
                "-subj", "/CN=%s" % name, "-keyout", name + ".key", "-out", name + ".pem")
        self.ca = self.path(name + ".pem")

    def path(self, name):
        return os.path.join(self.folder, name)

    def make(self, name, subject=None, hosts="DNS:localhost,IP:127.0.0.1"):
        openssl(self.folder, "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj",
                subject or "/O=Org/CN=%s" % name, "-keyout", name + ".key", "-out", name + ".csr")
        with open(self.path(name + ".ext"), "w") as f:
            f.write("subjectAltName=%s\n" % hosts)
        openssl(self.folder, "x509", "-req", "-in", name + ".csr", "-CA", self.name + ".pem", "-CAkey", self.name + ".key",
                "-CAcreateserial", "-days", "30", "-extfile", name + ".ext", "-out", name + ".crt")
        self.join(name, name)
        return self.path(name + ".pem")

    def join(self, name, to):
        with open(self.path(to + ".pem.new"), "w") as out:
            for part in (".key", ".crt"):
                with open(self.path(name + part)) as f:
                    out.write(f.read())
        os.rename(self.path(to + ".pem.new"), self.path(to + ".pem"))

    def settings(self, name, prefix=""):
        """A broker's, or a client's with a certificate."""
        return {prefix + k: v for k, v in {
            "ssl.keystore.type": "PEM", "ssl.keystore.location": self.path(name + ".pem"), "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self.ca}.items()}

    def client_file(self, name=None, **more):
        """A client's settings, in a file."""
        values = {"security.protocol": "SSL", "ssl.truststore.type": "PEM", "ssl.truststore.location": self.ca}
        if name:
            values.update(self.settings(name))
        values.update({k.replace("_", "."): v for k, v in more.items()})
        fd, path = tempfile.mkstemp(suffix=".properties", dir=self.folder)
        with os.fdopen(fd, "w") as f:
            f.writelines("%s=%s\n" % pair for pair in values.items())
        return path

    def kcat(self, name=None):
        args = ["-X", "security.protocol=ssl", "-X", "ssl.ca.location=" + self.ca]
        if name:
            args += ["-X", "ssl.certificate.location=" + self.path(name + ".crt"),
                     "-X", "ssl.key.location=" + self.path(name + ".key")]
        return args


class Tls(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="kafkad-test-")
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.ca = Authority(self.folder)

    def broker(self, **more):
        self.ca.make("broker")
        overrides = dict(self.ca.settings("broker"), **{"broker.id": "1"})
        overrides.update({k.replace("_", "."): v for k, v in more.items()})
        return harness.Broker(overrides, listeners="SSL://127.0.0.1:0,PLAINTEXT://127.0.0.1:0")

    def at(self, b, host="localhost"):
        return "%s:%d" % (host, b.ports["SSL"])


@unittest.skipUnless(shutil.which("kcat"), "kcat is not installed")
class Clients(Tls):
    def kcat(self, b, *args, name=None, input=None, deadline=60):
        return harness.run(["kcat", "-b", self.at(b), *self.ca.kcat(name), *args], deadline=deadline, input=input)

    def test_kcat_writes_and_reads(self):
        with self.broker() as b:
            lines = b"".join(b"%d %s\n" % (i, b"x" * (i % 2000)) for i in range(3000))
            status, _, err = self.kcat(b, "-P", "-t", "t", "-z", "lz4", input=lines)
            self.assertEqual(status, 0, err)
            status, out, err = self.kcat(b, "-C", "-t", "t", "-e", "-o", "beginning")
            self.assertEqual((status, out), (0, lines.decode()), err)
            with kwire.Conn(b.port) as k: # the others see the same
                self.assertEqual(k.call("Metadata", 9, topics=[{"name": "t"}])["topics"][0]["error_code"], 0)

    def test_large_answers_leave_file_ranges(self):
        """Several MiB in one answer, read slowly: nothing is lost or doubled."""
        with self.broker() as b:
            value = os.urandom(900000).hex().encode()[:900000]
            for i in range(6):
                status, _, err = self.kcat(b, "-P", "-t", "big", input=b"%d" % i + value)
                self.assertEqual(status, 0, err)
            status, out, err = self.kcat(b, "-C", "-t", "big", "-e", "-o", "beginning", "-f", "%s\n")
            self.assertEqual(out.split(), [("%d" % i + value.decode()) for i in range(6)], err)

    def test_python_kafka(self):
        try:
            import kafka
        except ImportError:
            self.skipTest("python3-kafka is not installed")
        self.ca.make("alice")
        with self.broker(ssl_client_auth="required") as b:
            common = {"bootstrap_servers": self.at(b), "security_protocol": "SSL", "ssl_cafile": self.ca.ca,
                      "ssl_certfile": self.ca.path("alice.crt"), "ssl_keyfile": self.ca.path("alice.key")}
            p = kafka.KafkaProducer(**common)
            for i in range(100):
                p.send("t", b"%d" % i)
            p.flush(30)
            p.close()
            c = kafka.KafkaConsumer("t", auto_offset_reset="earliest", consumer_timeout_ms=30000, **common)
            got = [next(c).value for _ in range(100)]
            c.close()
            self.assertEqual(got, [b"%d" % i for i in range(100)])

    def test_versions_and_sessions(self):
        with self.broker() as b:
            for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
                context = ssl.create_default_context(cafile=self.ca.ca)
                context.minimum_version = context.maximum_version = version
                session = None
                for again in (False, True):
                    with socket.create_connection(("localhost", b.ports["SSL"]), 30) as raw, \
                            context.wrap_socket(raw, server_hostname="localhost", session=session) as s:
                        s.sendall(b"\0\0\0\x0a" + b"\0\x12\0\0\0\0\0\x07\xff\xff") # ApiVersions 0
                        self.assertEqual(s.recv(8)[4:], b"\0\0\0\x07")
                        self.assertEqual(s.session_reused, again)
                        session = s.session
            old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
            old.set_ciphers("DEFAULT@SECLEVEL=0")
            old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
            with socket.create_connection(("localhost", b.ports["SSL"]), 30) as raw:
                with self.assertRaises(OSError):
                    old.wrap_socket(raw)
            b.wait_line("no TLS version in common")

    def test_unfinished_handshakes_hold_nobody_up(self):
        with self.broker() as b:
            open_ones = [socket.create_connection(("localhost", b.ports["SSL"]), 30) for _ in range(200)]
            for s in open_ones[::2]:
                s.sendall(b"\x16\x03\x01\x02\x00\x01")
            status, out, err = self.kcat(b, "-L")
            self.assertEqual(status, 0, err)
            self.assertIn("broker 1 at 127.0.0.1", out)
            for s in open_ones:
                s.close()

    def test_a_certificate_names_the_user_of_quotas(self):
        self.ca.make("alice")
        with self.broker(ssl_client_auth="requested", ssl_principal_mapping_rules="RULE:^CN=(.*?),.*$/$1/,DEFAULT") as b:
            tool = run_tool("kafka-configs", "--bootstrap-server", b.address, "--alter", "--entity-type", "users", "--entity-name",
                            "alice", "--add-config", "producer_byte_rate=100")
            self.assertEqual(tool.status, 0, tool.err)
            for name, held in (("alice", True), (None, False)):
                r = run_tool("kafka-producer-perf-test", "--topic", "t", "--num-records", 20, "--record-size", 100, "--throughput",
                             -1, "--producer-props", "bootstrap.servers=" + self.at(b), "linger.ms=0", "batch.size=1",
                             "max.in.flight.requests.per.connection=1", "acks=1", "--producer.config", self.ca.client_file(name))
                self.assertEqual(r.status, 0, r.err)
                slowest = float(re.search(r"([\d.]+) ms max latency", r.text).group(1))
                self.assertEqual(slowest > 900, held, r.text)

    def test_who_is_not_let_in_is_told_why(self):
        with self.broker(ssl_client_auth="required") as b:
            def says(settings, line, at=None):
                r = run_tool("kafka-topics", "--bootstrap-server", at or self.at(b), "--command-config", settings, "--list")
                self.assertEqual(r.status, 1, r.text)
                self.assertRegex(r.text + r.err, line)
            says(self.ca.client_file(), "it wants a certificate of us: set ssl.keystore.location")
            b.wait_line("TLS handshake with .* failed: the client shows no certificate")
            other = Authority(self.folder, "other")
            other.make("mallory")
            says(self.ca.client_file(**{"ssl_keystore_type": "PEM", "ssl_keystore_location": other.path("mallory.pem")}),
                 "does not know the CA of our certificate")
            b.wait_line("the client's certificate is signed by an unknown CA")
            says(other.client_file("mallory"), "its certificate is signed by an unknown CA")
            b.wait_line("failed: it does not know the CA of our certificate")
            self.ca.make("alice")
            r = run_tool("kafka-console-consumer", "--bootstrap-server", self.at(b), "--consumer.config", other.client_file("mallory"),
                         "--topic", "t")
            self.assertEqual(r.status, 1)
            self.assertIn("unknown CA", r.text + r.err)
            r = run_tool("kafka-topics", "--bootstrap-server", self.at(b), "--command-config", self.ca.client_file("alice"), "--list")
            self.assertEqual(r.status, 0, r.err)

    def test_the_host_must_be_in_the_certificate(self):
        overrides = {"ssl.keystore.type": "PEM", "ssl.keystore.location": self.ca.make("b", hosts="DNS:localhost,DNS:other")}
        with harness.Broker(overrides, listeners="SSL://127.0.0.1:0,PLAINTEXT://127.0.0.1:0") as b:
            def listed(**more):
                return run_tool("kafka-topics", "--bootstrap-server", self.at(b, "127.0.0.1"), "--command-config",
                                self.ca.client_file(**more), "--list")
            r = listed()
            self.assertEqual(r.status, 1)
            self.assertIn("its certificate is not that of host 127.0.0.1, but of localhost, other", r.text + r.err)
            self.assertEqual(listed(ssl_endpoint_identification_algorithm="").status, 0)

    def test_the_wrong_protocol_is_told_on_both_sides(self):
        with self.broker() as b:
            status, _, err = harness.run(["kcat", "-b", self.at(b), "-L", "-m", "2"])
            self.assertNotEqual(status, 0)
            self.assertIn("connecting to a SSL listener?", err)
            b.wait_line(r"TLS handshake with 127\.0\.0\.1:\d+ failed: it does not speak TLS \(is its security.protocol PLAINTEXT\?\)")
            p = subprocess.Popen([harness.program("kafka-topics"), "--bootstrap-server", b.address, "--command-config",
                                  self.ca.client_file(), "--list"], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
            try:
                self.assertIn(b"is the listener's security protocol SSL?", p.stderr.readline())
            finally:
                p.kill()
                p.wait()
                p.stderr.close()
            b.wait_line("this looks like a TLS ClientHello")

    def test_stores_of_java(self):
        """Key and trust store as keytool made them, of either format, under the default type."""
        subprocess.run("openssl pkcs12 -in %s/key.p12 -passin pass:storepass -nokeys -out p12.pem" % STORES, shell=True,
                       check=True, cwd=self.folder, stderr=subprocess.DEVNULL)
        for kind in ("jks", "p12"):
            overrides = {"ssl.keystore.location": os.path.join(STORES, "key." + kind), "ssl.keystore.password": "storepass",
                         "ssl.truststore.location": os.path.join(STORES, "trust." + kind), "ssl.truststore.password": "trustpass"}
            if kind == "jks":
                overrides["ssl.key.password"] = "keypass1"
            with harness.Broker(overrides, listeners="SSL://127.0.0.1:0,PLAINTEXT://127.0.0.1:0") as b:
                settings = os.path.join(self.folder, kind + ".properties")
                with open(settings, "w") as f:
                    f.write("security.protocol=SSL\nssl.truststore.location=%s\nssl.truststore.password=trustpass\n"
                            % overrides["ssl.truststore.location"])
                r = run_tool("kafka-topics", "--bootstrap-server", self.at(b), "--command-config", settings, "--list")
                self.assertEqual(r.status, 0, r.err)
                if kind == "p12":
                    context = ssl.create_default_context(cafile=os.path.join(self.folder, "p12.pem"))
                    with socket.create_connection(("localhost", b.ports["SSL"]), 30) as raw:
                        context.wrap_socket(raw, server_hostname="localhost").close()

    def test_a_certificate_of_another_name_is_refused(self):
        with self.broker() as b:
            key = "listener.name.ssl.ssl.keystore.location="

            def alter(path, status=0):
                r = run_tool("kafka-configs", "--bootstrap-server", b.address, "--alter", "--entity-type", "brokers", "--entity-name",
                             "1", "--add-config", key + path)
                self.assertEqual(r.status, status, r.text + r.err)
                return r.text + r.err
            self.assertIn("ssl.allow.dn.changes is false", alter(self.ca.make("next"), 1))
            self.assertIn("ssl.allow.san.changes is false",
                          alter(self.ca.make("again", "/O=Org/CN=broker", "DNS:elsewhere"), 1))
            self.assertIn("cannot be read", alter("/no/such/file", 1))
            alter(self.ca.make("twin", "/O=Org/CN=broker"))
            b.wait_line("listener SSL: new connections use the changed TLS settings")
            status, _, err = self.kcat(b, "-L")
            self.assertEqual(status, 0, err)


class Changes(Tls):
    """Listeners with TLS that come and go while the broker runs."""

    def alter(self, b, values, error=0):
        with kwire.Conn(b.port) as k:
            r, = k.call("IncrementalAlterConfigs", 1, validate_only=False, resources=[{
                "resource_type": 4, "resource_name": "1", "configs": [
                    {"name": n, "config_operation": 1 if v is None else 0, "value": v} for n, v in values.items()]}])["responses"]
        self.assertEqual(r["error_code"], error, r["error_message"])
        return r["error_message"]

    def test_a_listener_with_tls_is_added_and_removed(self):
        with harness.Broker({"broker.id": "1"}) as b:
            plain = "PLAINTEXT://127.0.0.1:0"
            added = {"listeners": plain + ",EXT://127.0.0.1:0", "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,EXT:SSL"}
            self.assertIn("ssl.keystore.location: must be set", self.alter(b, added, 42))
            self.ca.make("broker")
            added.update(self.ca.settings("broker", "listener.name.ext."))
            mark = b.mark()
            self.alter(b, added)
            port = int(re.search(r":(\d+)$", b.wait_line(r" listening on EXT://", after=mark)).group(1))
            context = ssl.create_default_context(cafile=self.ca.ca)

            def asks():
                with socket.create_connection(("localhost", port), 30) as raw, \
                        context.wrap_socket(raw, server_hostname="localhost") as s:
                    s.sendall(b"\0\0\0\x0a" + b"\0\x12\0\0\0\0\0\x07\xff\xff")
                    return s.recv(8)[4:]
            self.assertEqual(asks(), b"\0\0\0\x07")
            b.restart() # it is there again
            port = int(re.search(r":(\d+)$", b.wait_line(r" listening on EXT://")).group(1))
            self.assertEqual(asks(), b"\0\0\0\x07")
            mark = b.mark()
            self.alter(b, {k: None for k in added})
            b.wait_line("no longer listening on EXT", after=mark)
            with self.assertRaises(OSError):
                asks()

    def test_a_file_that_is_gone_leaves_what_is_in_force(self):
        with self.broker() as b:
            with open(self.ca.path("broker.pem"), "w") as f:
                f.write("damaged")
            message = self.alter(b, {"listener.name.ssl.ssl.keystore.location": self.ca.path("broker.pem")}, 42)
            self.assertIn("has no private key", message)
            r = run_tool("kafka-topics", "--bootstrap-server", self.at(b), "--command-config", self.ca.client_file(), "--list")
            self.assertEqual(r.status, 0, r.err)


@unittest.skipUnless(os.path.exists("/usr/share/zookeeper/bin/zkServer.sh"), "no ZooKeeper")
class Brokers(Tls):
    def cluster(self, **more):
        """Brokers that know each other by TLS with certificates, tests by PLAINTEXT."""
        def each(i):
            self.ca.make("b%d" % i)
            own = self.ca.settings("b%d" % i, "listener.name.internal.")
            return dict(own, **{"listeners": "PLAINTEXT://127.0.0.1:0,INTERNAL://127.0.0.1:0",
                                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INTERNAL:SSL",
                                "inter.broker.listener.name": "INTERNAL", "listener.name.internal.ssl.client.auth": "required"})
        return Cluster(3, each=each, **more)

    def test_brokers_speak_tls_among_themselves(self):
        with self.cluster() as c:
            c.create_topic("t", partitions=4)
            with History(c, "t", 4, pause=0.002) as h:
                h.grow(200)
                victim = c.leader("t", 0)
                c.broker(victim).kill()
                h.grow(200)
                c.broker(victim).start()
                c.wait_brokers()
                c.wait_isr("t", 4, 3)
                h.grow(100)
            h.check()
            h.check_copies({p: c.state("t", p)["isr"] for p in range(4)})

    def test_a_broker_that_is_not_trusted_does_not_take_part(self):
        with self.cluster() as c:
            c.create_topic("t", partitions=1)
            c.broker(3).stop()
            other = Authority(self.folder, "other")
            other.make("stranger")
            c.broker(3).overrides["listener.name.internal.ssl.keystore.location"] = other.path("stranger.pem")
            c.broker(3).start()
            first = c.controller if c.controller != 3 else 1
            c.broker(first).wait_line("TLS failed: its certificate is signed by an unknown CA")
            self.assertNotIn(3, c.state("t", 0)["isr"])
            c.broker(3).stop()
            c.broker(3).overrides["listener.name.internal.ssl.keystore.location"] = self.ca.path("b3.pem")
            c.broker(3).start()
            c.wait_isr("t", 1, 3)


class Documented(Tls):
    """The section TLS of docs/operations.md: its files, its commands, in their order."""

    def test_as_it_is_written(self):
        with open(os.path.join(harness.ROOT, "docs", "operations.md")) as f:
            section = re.search(r"^## TLS\n(.*?)^## ", f.read(), re.M | re.S).group(1)
        blocks = re.findall(r"^```(sh|properties)\n(.*?)^```$", section, re.M | re.S)
        self.assertEqual([kind for kind, _ in blocks], ["sh", "properties", "sh", "properties", "sh", "sh"])
        here = lambda text: text.replace("/etc/kafka", self.folder)
        self.shell(blocks[0][1])
        text = here(blocks[1][1]).replace(":9093", ":0")  # nothing else is changed
        settings = dict(line.split("=", 1) for line in text.splitlines() if "=" in line and line[0] != "#")
        settings["broker.id"] = "1"
        with harness.Broker(settings) as b:
            at = lambda text: here(text).replace(":9093", ":%d" % b.ports["SSL"])
            self.shell(blocks[2][1])
            with open(os.path.join(self.folder, "client.properties"), "w") as f:
                f.write(at(blocks[3][1]))
            out = self.shell(at(blocks[4][1]))
            self.assertIn("Created topic secret.", out)
            self.assertIn("\nhello\n", out)
            self.assertIn("Verify return code: 0 (ok)", out)
            serial = lambda: self.shell(at("openssl s_client -connect localhost:9093 -CAfile ca.pem -cert alice.crt -key alice.key "
                                           "</dev/null 2>/dev/null | openssl x509 -noout -serial"))
            before = serial()
            self.assertIn("Completed updating config for broker 1.", self.shell(at(blocks[5][1])))
            until("the new certificate is shown", lambda: serial() != before)

            # renewed once more under the same settings
            before = serial()
            self.shell(at(blocks[5][1]))
            until("the new certificate is shown", lambda: serial() != before)

    def shell(self, text):
        env = dict(os.environ, PATH=harness.bin_dir() + ":" + os.environ["PATH"])
        p = subprocess.run(["bash", "-ec", text], cwd=self.folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, timeout=120)
        self.assertEqual(p.returncode, 0, "%s\n%s\n%s" % (text, p.stdout.decode(), p.stderr.decode()))
        return p.stdout.decode()


if __name__ == "__main__":
    unittest.main()
