"""One broker on a real ZooKeeper: its start, the tree it makes, sessions that end, ZooKeeper that goes and comes."""
import unittest

import harness
import zookeeper
from harness import create_topic, metadata, until
from zookeeper import ZooKeeper


class ZooKeeperTest(unittest.TestCase):
    """Tests that share one server; each has a chroot, and so a cluster, of its own."""

    @classmethod
    def setUpClass(cls):
        cls.zk = ZooKeeper()

    @classmethod
    def tearDownClass(cls):
        cls.zk.close()

    def setUp(self):
        self.chroot = "/" + self.id().rsplit(".", 1)[-1]
        self.brokers = []
        self.clean = False

    def tearDown(self):
        failed = any(e for _, e in self._outcome.errors) if hasattr(self._outcome, "errors") else False
        for b in self.brokers:
            b.__exit__(AssertionError if failed else None, None, None)

    def broker(self, number=None, overrides=None, connect=None, **args):
        o = {"zookeeper.connect": (connect or self.zk.connect) + self.chroot}
        o.update(overrides or {})
        b = self.zk.broker(number, o, **args)
        self.zk.brokers.remove(b)
        self.brokers.append(b)
        return b

    def client(self, **args):
        return self.zk.client(chroot=self.chroot, **args)


class Start(ZooKeeperTest):
    def test_the_tree_is_made(self):
        b = self.broker(3, {"broker.rack": "r1"})
        with self.client() as c:
            self.assertEqual(c.children("/"), ["admin", "brokers", "cluster", "config", "consumers", "controller",
                                               "controller_epoch", "feature", "isr_change_notification",
                                               "latest_producer_id_block", "log_dir_event_notification"])
            self.assertEqual(c.json("/feature"), {"version": 2, "status": 1, "features": {}})
            self.assertEqual(c.children("/config"), ["brokers", "changes", "clients", "ips", "topics", "users"])
            node = c.json("/brokers/ids/3")
            self.assertRegex(node.pop("timestamp"), r"^\d{13}$")
            self.assertEqual(node, {
                "version": 5, "features": {}, "host": "127.0.0.1", "port": b.port, "jmx_port": -1, "rack": "r1",
                "endpoints": ["PLAINTEXT://127.0.0.1:%d" % b.port],
                "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT"}})
            self.assertEqual(c.json("/controller")["brokerid"], 3)
            self.assertEqual(c.get("/controller_epoch"), b"1")
            cluster = c.json("/cluster/id")
            self.assertEqual(cluster["version"], "1")
            with b.client() as k:
                self.assertEqual(create_topic(k, "t", 2), 0)
                m = metadata(k, ["t"])
            self.assertEqual(m["cluster"], cluster["id"])
            self.assertEqual(m["controller"], 3)
            self.assertEqual(c.json("/brokers/topics/t")["partitions"], {"0": [3], "1": [3]})
            self.assertEqual(c.json("/brokers/topics/t/partitions/0/state"),
                             {"controller_epoch": 1, "leader": 3, "version": 1, "leader_epoch": 0, "isr": [3]})
            b.stop()
            self.assertEqual(c.children("/brokers/ids"), [])
            self.assertIsNone(c.stat("/controller"))
            self.assertIsNotNone(c.stat("/brokers/topics/t"))


class Sessions(ZooKeeperTest):
    def test_a_session_that_expires_is_followed_by_another_with_a_new_epoch(self):
        b = self.broker(1)
        with self.client() as c:
            before = c.stat("/brokers/ids/1")
            mark = b.mark()
            with b.client() as k:
                self.assertEqual(create_topic(k, "before"), 0)
            self.zk.expire(before["owner"])
            b.wait_line(r"session 0x%x has expired" % before["owner"], after=mark)
            b.wait_line(r"\[BrokerRegistration id=1\] registered with epoch", after=mark)
            b.wait_line(r"\[Controller id=1\] elected, epoch 2", after=mark)
            after = c.stat("/brokers/ids/1")
            self.assertNotEqual(after["owner"], before["owner"])
            self.assertGreater(after["czxid"], before["czxid"])
            with b.client() as k:
                self.assertEqual(create_topic(k, "after"), 0)
                self.assertEqual(sorted(metadata(k, None)["topics"]), ["after", "before"])

    def test_a_connection_that_breaks_goes_unnoticed(self):
        proxy = self.zk.proxy()
        b = self.broker(1, connect=proxy.address)
        with self.client() as c, b.client() as k:
            before = c.stat("/brokers/ids/1")
            for i in range(5):
                mark = b.mark()
                proxy.drop()
                b.wait_line("connection to ZooKeeper lost", after=mark)
                self.assertEqual(create_topic(k, "t%d" % i), 0)
            self.assertEqual(c.stat("/brokers/ids/1")["czxid"], before["czxid"])


if __name__ == "__main__":
    harness.main()
