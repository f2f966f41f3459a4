"""SASL by clients of others: kcat (librdkafka) and python3-kafka, each mechanism that they have; what they say when the
password is wrong."""
import subprocess
import unittest

import kafka
from kafka.errors import KafkaError, NoBrokersAvailable

import harness
import kwire
import saslwire
from test_kcat import kcat

USERS = {"PLAIN": ("alice", "alice-pw"), "SCRAM-SHA-256": ("carol,=", "pw 256"), "SCRAM-SHA-512": ("carol,=", "pw 512")}


class SaslClients(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        overrides = saslwire.listener("PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER", **{
            "plain_sasl_jaas_config": saslwire.users(alice="alice-pw"),
            "oauthbearer_sasl_jaas_config": saslwire.OAUTH_MODULE + " required;",
            "connection_failed_authentication_delay_ms": "20"})
        cls.b = harness.Broker(overrides=overrides, listeners="PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0")
        cls.at = "127.0.0.1:%d" % cls.b.ports["SASL_PLAINTEXT"]
        with kwire.Conn(cls.b.port) as k:
            saslwire.alter(k, [saslwire.upsertion("carol,=", m, USERS[m][1]) for m in ("SCRAM-SHA-256", "SCRAM-SHA-512")])

    @classmethod
    def tearDownClass(cls):
        cls.b.close()

    def kcat_login(self, mechanism, password=None):
        user, right = USERS[mechanism]
        return ["-X", "security.protocol=SASL_PLAINTEXT", "-X", "sasl.mechanism=" + mechanism, "-X", "sasl.username=" + user,
                "-X", "sasl.password=" + (password or right)]

    def test_kcat(self):
        logins = {m: self.kcat_login(m) for m in USERS}
        logins["OAUTHBEARER"] = ["-X", "security.protocol=SASL_PLAINTEXT", "-X", "sasl.mechanism=OAUTHBEARER", "-X",
                                 "enable.sasl.oauthbearer.unsecure.jwt=1", "-X", "sasl.oauthbearer.config=principal=dave"]
        for mechanism, login in logins.items():
            topic = "kcat-" + mechanism
            kcat(self.at, *login, "-P", "-t", topic, "-p", "0", input=b"one\ntwo\n")
            self.assertEqual(kcat(self.at, *login, "-C", "-t", topic, "-p", "0", "-e", "-q", "-o", "beginning"), b"one\ntwo\n")

    def test_kcat_is_told_what_is_wrong(self):
        for mechanism, words in (("PLAIN", "Authentication failed: Invalid username or password"),
                                 ("SCRAM-SHA-256", "due to invalid credentials with SASL mechanism SCRAM-SHA-256")):
            p = subprocess.run(["kcat", "-b", self.at, *self.kcat_login(mechanism, "wrong"), "-L", "-m", "2"],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
            self.assertNotEqual(p.returncode, 0)
            self.assertIn(words, p.stderr.decode())

    def python_login(self, mechanism, password=None):
        user, right = USERS[mechanism]
        return {"bootstrap_servers": self.at, "security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": mechanism,
                "sasl_plain_username": user, "sasl_plain_password": password or right}

    def test_python_kafka(self):
        for mechanism in USERS:
            if mechanism != "PLAIN" and kafka.__version__ == "2.0.2":
                user = "carol"  # it does not write "," and "=" as the RFC has it
                with kwire.Conn(self.b.port) as k:
                    saslwire.alter(k, [saslwire.upsertion(user, mechanism, USERS[mechanism][1])])
            login = self.python_login(mechanism)
            if mechanism != "PLAIN" and kafka.__version__ == "2.0.2":
                login["sasl_plain_username"] = user
            producer = kafka.KafkaProducer(**login)
            sent = producer.send("python-" + mechanism, b"value", partition=0).get(timeout=30)
            producer.close()
            consumer = kafka.KafkaConsumer(auto_offset_reset="earliest", group_id="g-" + mechanism, **login)
            consumer.subscribe(["python-" + mechanism])
            got = []
            harness.until("the record", lambda: got.extend(r.value for rs in consumer.poll(500).values() for r in rs) or got)
            consumer.close()
            self.assertEqual((sent.offset, got), (0, [b"value"]))

    def test_python_kafka_is_told_what_is_wrong(self):
        with self.assertRaises((NoBrokersAvailable, KafkaError)):
            kafka.KafkaProducer(api_version_auto_timeout_ms=2000, **self.python_login("PLAIN", "wrong"))
        self.b.wait_line("PLAIN: user alice: no such user or password")


if __name__ == "__main__":
    harness.main()
