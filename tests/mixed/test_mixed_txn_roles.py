"""Transactions in a cluster of both kinds: coordinators, leaders and the groups' coordinators are Apache's and kafkad's,
and hand over to each other while producers go on (test_cluster_transactions.py has them, and judges)."""
import unittest

import apache
import test_cluster_transactions as txns


class Roles(unittest.TestCase):
    def play(self, kinds, events):
        overrides = dict(txns.OVERRIDES, **{"group.coordinator.rebalance.protocols": "classic"})
        with apache.Mixed(kinds, overrides=overrides) as c:
            c.create_topic("t", partitions=txns.PARTITIONS, replication=3)
            workers = [txns.Worker(c, "tx-%d" % i, "t") for i in range(4)]
            for w in workers:
                w.start()
            for w in workers:
                w.grow(5)
            for event in events:
                event(c, workers)
                for w in workers:
                    w.grow(5)
            for w in workers:
                w.finish()
            txns.check(self, c, "t", workers)

    @staticmethod
    def away(i, how):
        """The broker goes, and comes back when the others have gone on without it."""
        def event(c, workers):
            getattr(c.broker(i), how)()
            for w in workers:
                w.grow(5)
            c.broker(i).start()
            c.wait_isr("t", txns.PARTITIONS, 3)
        return event

    def test_each_goes_and_comes_back(self):
        self.play({1: "apache", 2: "kafkad", 3: "kafkad"}, [self.away(1, "stop"), self.away(2, "stop"), self.away(3, "stop")])

    def test_each_is_killed(self):
        self.play({1: "apache", 2: "apache", 3: "kafkad"}, [self.away(3, "kill"), self.away(1, "kill")])


if __name__ == "__main__":
    apache.main()
