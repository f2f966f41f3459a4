"""Three brokers on a real ZooKeeper: replication, and what is left when any of them dies."""
import signal
import unittest

import harness
import kwire
from cluster import Cluster, History
from harness import until


class Replication(unittest.TestCase):
    def test_records_are_on_all_replicas(self):
        with Cluster(3) as c:
            c.create_topic("t", partitions=3)
            with History(c, "t", 3) as h:
                h.grow(300)
            h.check()
            h.check_copies()
            for p in range(3):
                self.assertEqual(len(c.state("t", p)["isr"]), 3)

    def test_the_leader_dies(self):
        with Cluster(3) as c:
            c.create_topic("t", partitions=2)
            with History(c, "t", 2) as h:
                h.grow(200)
                dead = c.leader("t", 0)
                c.broker(dead).kill()
                c.wait_state("t", 0, lambda s: s["leader"] not in (dead, -1))
                h.grow(200)
                c.broker(dead).start()
                c.wait_isr("t", 2, 3)
                h.grow(100)
            h.check()
            h.check_copies()

    def test_a_follower_dies(self):
        with Cluster(3) as c:
            c.create_topic("t", partitions=1)
            with History(c, "t", 1) as h:
                h.grow(100)
                leader = c.leader("t", 0)
                dead = next(i for i in c.running() if i not in (leader, c.controller))
                c.broker(dead).kill()
                c.wait_state("t", 0, lambda s: dead not in s["isr"])
                h.grow(100)
                self.assertEqual(c.leader("t", 0), leader)
                c.broker(dead).start()
                c.wait_isr("t", 1, 3)
            h.check()
            h.check_copies()

    def test_the_controller_dies(self):
        with Cluster(3) as c:
            c.create_topic("t", partitions=3)
            with History(c, "t", 3) as h:
                h.grow(100)
                dead = c.controller
                c.broker(dead).kill()
                until("another controller", lambda: c.controller != dead)
                for p in range(3):
                    c.wait_state("t", p, lambda s: s["leader"] in c.running() and dead not in s["isr"])
                h.grow(200)
                c.broker(dead).start()
                c.wait_isr("t", 3, 3)
            h.check()
            h.check_copies()

    def test_a_paused_follower_leaves_the_isr_and_comes_back(self):
        with Cluster(3, overrides={"zookeeper.session.timeout.ms": "20000"}) as c:
            c.create_topic("t", partitions=1)
            leader = c.leader("t", 0)
            paused = next(i for i in c.running() if i not in (leader, c.controller))
            with History(c, "t", 1) as h:
                h.grow(50)
                c.broker(paused).process.send_signal(signal.SIGSTOP)
                c.wait_state("t", 0, lambda s: paused not in s["isr"])
                h.grow(100)
                c.broker(paused).process.send_signal(signal.SIGCONT)
                c.wait_isr("t", 1, 3)
            h.check()
            h.check_copies()

    def test_below_min_insync_nothing_is_acknowledged(self):
        with Cluster(3) as c:
            c.create_topic("t", partitions=1)
            leader = c.leader("t", 0)
            others = [i for i in c.running() if i != leader]
            for i in others:
                c.broker(i).kill()
            c.wait_state("t", 0, lambda s: s["isr"] == [leader])
            with c.conn(leader) as k:
                until("19", lambda: kwire.produce(k, 9, [("t", 0, kwire.simple_batch(b"x"))], acks=-1,
                                                  timeout_ms=1000)[0]["error_code"] == 19)
                self.assertEqual(kwire.produce(k, 9, [("t", 0, kwire.simple_batch(b"y"))], acks=1)[0]["error_code"],
                                 0)
            for i in others:
                c.broker(i).start()
            c.wait_isr("t", 1, 3)
            with c.conn(leader) as k:
                self.assertEqual(kwire.produce(k, 9, [("t", 0, kwire.simple_batch(b"z"))], acks=-1)[0]["error_code"],
                                 0)
            self.assertIn(b"y", [v for _, v in c.log_of("t", 0)])


if __name__ == "__main__":
    harness.main()
