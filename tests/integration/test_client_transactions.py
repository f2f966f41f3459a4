"""The client library's transactions, and the tools', on a broker of the build: txn_checks.py."""
import unittest

import harness
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


if __name__ == "__main__":
    unittest.main(verbosity=2)
