"""The client library's transactions, and the tools', on Apache Kafka's broker: txn_checks.py."""
import unittest

import apache
import txn_checks


class Transactions(txn_checks.TransactionChecks, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.c = apache.Mixed({1: "apache"}, overrides=txn_checks.SETTINGS)
        cls.bootstrap = cls.c.bootstrap

    @classmethod
    def tearDownClass(cls):
        cls.c.zk.close()

    def restart(self):
        self.c.brokers[1].kill()
        self.c.brokers[1].start()
        self.c.wait_brokers()


if __name__ == "__main__":
    apache.main()
