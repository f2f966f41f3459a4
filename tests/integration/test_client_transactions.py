"""The client library's transactions, and the tools', on a broker of the build: txn_checks.py."""
import time
import unittest

import harness
import saslwire
import txn_checks


class Transactions(txn_checks.TransactionChecks, harness.BrokerTest):
    OVERRIDES = {key: str(value) for key, value in txn_checks.SETTINGS.items()}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.broker.overrides["listeners"] = "PLAINTEXT://127.0.0.1:%d" % cls.broker.port # also after a restart
        cls.bootstrap = cls.broker.address

    def restart(self):
        self.broker.kill()
        self.broker.start()


class WithLogins(unittest.TestCase):
    """Over SASL: the connections to the coordinators log in, too; who is not let in is told so, and at once."""

    @classmethod
    def setUpClass(cls):
        settings = {key: str(value) for key, value in txn_checks.SETTINGS.items()}
        settings.update(saslwire.listener("PLAIN", plain_sasl_jaas_config=saslwire.users(alice="alicepw")))
        cls.broker = harness.Broker(overrides=settings, listeners="PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0")

    @classmethod
    def tearDownClass(cls):
        cls.broker.close()

    def producer(self, password):
        p = txn_checks.Producer("127.0.0.1:%d" % self.broker.ports["SASL_PLAINTEXT"], "x", "security.protocol=SASL_PLAINTEXT",
                                "sasl.mechanism=PLAIN",
                                'sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required '
                                'username="alice" password="%s";' % password)
        self.addCleanup(p.end, "quit")
        return p

    def test_a_transaction(self):
        p = self.producer("alicepw").all("init", "begin", "send t 0 one", "offset g t 0 5", "commit").end()
        self.assertEqual(p.delivered, {"one": "NONE"})

    def test_a_wrong_password(self):
        begun = time.monotonic()
        self.assertEqual(self.producer("wrong").do("init"), ("AUTHENTICATION", "fatal"))
        self.assertLess(time.monotonic() - begun, 50) # max.block.ms is a minute


if __name__ == "__main__":
    unittest.main(verbosity=2)
