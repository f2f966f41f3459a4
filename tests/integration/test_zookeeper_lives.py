"""Brokers that leave and return, on a real ZooKeeper: controlled shutdown, and requests meant for an earlier life."""
import select
import signal
import time
import unittest

import harness
import kwire
from harness import metadata, until
from zookeeper import ZooKeeper

STALE_CONTROLLER_EPOCH, STALE_BROKER_EPOCH = 11, 77


class Three(unittest.TestCase):
    def setUp(self):
        self.zk = ZooKeeper()
        self.brokers = {i: self.zk.broker(i, {"controlled.shutdown.retry.backoff.ms": "1000"}) for i in (1, 2, 3)}

    def tearDown(self):
        failed = any(e for _, e in self._outcome.errors) if hasattr(self._outcome, "errors") else False
        self.zk.close(not failed)

    def create(self, name, partitions, copies):
        with self.zk.client() as z:
            controller = z.json("/controller")["brokerid"]
        with kwire.Conn(self.brokers[controller].port) as c:
            until("the controller knows all brokers", lambda: len(
                c.call("Metadata", 5, topics=[], allow_auto_topic_creation=False)["brokers"]) == len(self.brokers))
            t = c.call("CreateTopics", 5, timeout_ms=30000, topics=[
                {"name": name, "num_partitions": partitions, "replication_factor": copies}])["topics"][0]
            self.assertEqual(t["error_code"], 0, t)
        for b in self.brokers.values():
            with b.client() as k:
                until("broker %d knows the leaders" % b.port, lambda: all(
                    p[1] >= 0 for p in metadata(k, [name])["topics"][name][2].values()) or None)
        return controller

    def states(self, name, n):
        with self.zk.client() as z:
            return [z.json("/brokers/topics/%s/partitions/%d/state" % (name, i)) for i in range(n)]

    def test_leaders_move_before_a_broker_stops(self):
        controller = self.create("t", 6, 3)
        for leaving in [i for i in (1, 2, 3) if i != controller] + [controller]:
            b = self.brokers[leaving]
            until("all are in sync", lambda: all(len(s["isr"]) == 3 for s in self.states("t", 6)))
            led = sum(1 for s in self.states("t", 6) if s["leader"] == leaving)
            b.stop()
            self.assertTrue(b.has_line(r"\[ControlledShutdown\] relieved of all partitions in \d+ ms"))
            after = self.states("t", 6)
            self.assertTrue(all(s["leader"] not in (leaving, -1) for s in after), after)
            self.assertTrue(all(leaving not in s["isr"] for s in after), after)
            with self.zk.client() as z:
                self.assertNotIn(str(leaving), z.children("/brokers/ids"))
            if led:  # a client was served by somebody all the time
                other = next(x for i, x in self.brokers.items() if i != leaving)
                with other.client() as k:
                    until("the others know", lambda: all(
                        p[1] not in (leaving, -1) for p in metadata(k, ["t"])["topics"]["t"][2].values()))
            b.start()

    def test_what_nobody_else_has_goes_with_the_broker(self):
        self.create("alone", 3, 1)
        for b in list(self.brokers.values())[:2]:
            b.stop()
            self.assertTrue(b.has_line("relieved of all partitions"))

    def test_a_stop_without_a_controller_ends_in_time(self):
        b = self.brokers[2]
        self.create("t", 3, 3)
        for i in (1, 3):
            self.brokers[i].kill()
        self.zk.kill()
        started = time.monotonic()
        b.stop(deadline=60)
        self.assertTrue(b.has_line("stopping without relief|relieved of all"))
        self.assertLess(time.monotonic() - started, 25)

    def test_a_broker_tells_nothing_of_the_cluster_before_it_is_told(self):
        """Its clients wait instead of seeing a cluster without topics."""
        controller = self.create("t", 3, 3)
        b = next(x for i, x in self.brokers.items() if i != controller)
        b.stop()
        self.brokers[controller].process.send_signal(signal.SIGSTOP)
        try:
            b.start()
            asked = (("Metadata", 9, {"topics": None}), ("DescribeCluster", 0, {}),
                     ("DescribeTopicPartitions", 0, {"topics": [{"name": "t"}], "response_partition_limit": 100}))
            waiting = [kwire.Conn(b.port) for _ in asked]
            ids = [k.send(api, version, **values) for k, (api, version, values) in zip(waiting, asked)]
            with kwire.Conn(b.port) as gone:
                gone.send("Metadata", 9, topics=None)
            with kwire.Conn(b.port) as k:  # who asks for something else does not wait
                self.assertEqual(k.call("ApiVersions", 2)["error_code"], 0)
            self.assertEqual(select.select([k.sock for k in waiting], [], [], 0.2)[0], [])
        finally:
            self.brokers[controller].process.send_signal(signal.SIGCONT)
        m, d, p = [k.receive(api, version, i) for k, i, (api, version, _) in zip(waiting, ids, asked)]
        self.assertEqual(len(m["brokers"]), 3)
        self.assertEqual(m["topics"][0]["name"], "t")
        self.assertEqual(len(d["brokers"]), 3)
        self.assertEqual(len(p["topics"][0]["partitions"]), 3)
        for k in waiting:
            k.close()

    def test_a_stop_ends_those_who_wait_for_the_first_news(self):
        controller = self.create("t", 1, 3)
        b = next(x for i, x in self.brokers.items() if i != controller)
        b.stop()
        self.brokers[controller].process.send_signal(signal.SIGSTOP)
        try:
            b.start()
            with kwire.Conn(b.port) as k:
                k.send("Metadata", 9, topics=None)
                self.assertEqual(select.select([k.sock], [], [], 0.1)[0], [])
                b.stop(deadline=60)
                self.assertTrue(k.is_closed())
        finally:
            self.brokers[controller].process.send_signal(signal.SIGCONT)

    def test_requests_for_an_earlier_life_are_refused(self):
        controller = self.create("t", 1, 3)
        other = next(i for i in (1, 2, 3) if i != controller)
        with self.zk.client() as z:
            old = z.stat("/brokers/ids/%d" % other)["czxid"]
            epoch = int(z.get("/controller_epoch"))
        self.brokers[other].restart()
        with self.zk.client() as z:
            new = z.stat("/brokers/ids/%d" % other)["czxid"]
        self.assertGreater(new, old)
        with kwire.Conn(self.brokers[other].port) as c:
            head = {"controller_id": controller, "controller_epoch": epoch}
            for api, version, body in (("LeaderAndIsr", 4, {}), ("UpdateMetadata", 6, {}), ("StopReplica", 3, {})):
                for broker_epoch, error in ((old, STALE_BROKER_EPOCH), (new, 0), (-1, 0), (new + 5, 0)):
                    answer = c.call(api, version, broker_epoch=broker_epoch, **head, **body)
                    self.assertEqual(answer["error_code"], error, (api, broker_epoch))
                answer = c.call(api, version, broker_epoch=new, controller_id=controller, controller_epoch=epoch - 1)
                self.assertEqual(answer["error_code"], STALE_CONTROLLER_EPOCH, api)
        with kwire.Conn(self.brokers[controller].port) as c:
            self.assertEqual(c.call("ControlledShutdown", 3, broker_id=other, broker_epoch=old)["error_code"],
                             STALE_BROKER_EPOCH)
        with kwire.Conn(self.brokers[other].port) as c:
            self.assertEqual(c.call("ControlledShutdown", 3, broker_id=other, broker_epoch=new)["error_code"],
                             STALE_CONTROLLER_EPOCH)


if __name__ == "__main__":
    harness.main()
