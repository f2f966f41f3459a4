"""TLS between Apache's brokers and kafkad's, with certificates on both sides, from the same key stores under the same
settings; Apache's tools against kafkad's listener, ours against Apache's."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import apache
import cluster
import zookeeper

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
import test_tls # noqa: E402
import tool_test # noqa: E402


class MixedTls(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="kafkad-test-")
        self.addCleanup(shutil.rmtree, self.folder, True)

    def store(self, name):
        """Java's stores: a key store of PKCS12 under the default type JKS, a trust store of JKS."""
        self.ca.make(name)
        test_tls.openssl(self.folder, "pkcs12", "-export", "-in", name + ".crt", "-inkey", name + ".key", "-certfile", "ca.pem",
                         "-name", name, "-out", name + ".p12", "-passout", "pass:key-secret")
        return {"ssl.keystore.location": self.ca.path(name + ".p12"), "ssl.keystore.password": "key-secret",
                "ssl.truststore.location": self.ca.path("trust.jks"), "ssl.truststore.password": "trust-secret"}

    def test_one_cluster(self):
        apache.jars()
        self.ca = test_tls.Authority(self.folder)
        subprocess.run(["keytool", "-importcert", "-noprompt", "-alias", "ca", "-file", self.ca.ca, "-storetype", "JKS",
                        "-keystore", self.ca.path("trust.jks"), "-storepass", "trust-secret"], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        kinds = {1: "apache", 2: "kafkad", 3: "kafkad"}
        ports = dict(zip(kinds, zip(*[iter(zookeeper.free_ports(6))] * 2)))

        def each(i):
            return dict(self.store("b%d" % i), **{
                "listeners": "INTERNAL://127.0.0.1:%d,PLAINTEXT://127.0.0.1:%d" % ports[i],
                "listener.security.protocol.map": "INTERNAL:SSL,PLAINTEXT:PLAINTEXT", "inter.broker.listener.name": "INTERNAL",
                "ssl.client.auth": "required"})
        with apache.Mixed(kinds, each=each) as c:
            for controller in (1, 2):
                topic = "under-%d" % controller
                c.make_controller(controller)
                c.create_topic(topic, assignment=[[1, 2, 3], [2, 3, 1], [3, 1, 2]])
                with cluster.History(c, topic, 3, pause=0.01) as h:
                    h.grow(50)
                    for i in (1, 2):
                        c.brokers[i].stop()
                        h.grow(20)
                        c.brokers[i].start()
                        c.wait_isr(topic, 3, 3, deadline=60)
                    h.stop()
                h.check()
                h.check_copies([1, 2, 3])
            self.tools(ports)

    def tools(self, ports):
        self.store("alice")
        settings = self.ca.path("client.properties")
        with open(settings, "w") as f:
            f.writelines("%s=%s\n" % pair for pair in dict(self.store("alice"), **{"security.protocol": "SSL"}).items())
        at = lambda i: "127.0.0.1:%d" % ports[i][0]
        for name in ("made-by-apache", "made-by-kafkad"):
            if name == "made-by-apache":
                apache.run_tool("topics", "--bootstrap-server", at(2), "--command-config", settings, "--create", "--topic", name)
            else:
                r = tool_test.run_tool("kafka-topics", "--bootstrap-server", at(1), "--command-config", settings, "--create",
                                       "--topic", name)
                self.assertEqual(r.status, 0, r.err)
        lines = "".join("line %d\n" % i for i in range(200))
        apache.run_tool("console-producer", "--bootstrap-server", at(3), "--producer.config", settings, "--topic", "made-by-apache",
                        input=lines)
        r = tool_test.run_tool("kafka-console-consumer", "--bootstrap-server", at(1), "--consumer.config", settings, "--topic",
                               "made-by-apache", "--from-beginning", "--max-messages", 200)
        self.assertEqual((r.status, r.text), (0, lines), r.err)
        r = tool_test.run_tool("kafka-console-producer", "--bootstrap-server", at(1), "--producer.config", settings, "--topic",
                               "made-by-kafkad", input=lines.encode())
        self.assertEqual(r.status, 0, r.err)
        out = apache.run_tool("console-consumer", "--bootstrap-server", at(2), "--consumer.config", settings, "--topic",
                              "made-by-kafkad", "--from-beginning", "--max-messages", 200)
        self.assertEqual(out, lines)


if __name__ == "__main__":
    apache.main()
