"""One broker on a real ZooKeeper: its start, the tree it makes, sessions that end, ZooKeeper that goes and comes."""
import os
import tempfile
import unittest

import harness
import kwire
import zookeeper
from harness import create_topic, metadata, until
from tool_test import run_tool
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


    def test_ids_are_generated_and_kept(self):
        a, b = self.broker(), self.broker()
        self.assertTrue(a.has_line(r"KafkaServer id=1001\] started"))
        self.assertTrue(b.has_line(r"KafkaServer id=1002\] started"))
        b.restart()
        self.assertTrue(b.has_line(r"KafkaServer id=1002\] started"))
        with self.client() as c:
            self.assertEqual(c.children("/brokers/ids"), ["1001", "1002"])
        with b.client() as k:  # every broker knows all of them
            until("both brokers are known",
                  lambda: [x[0] for x in metadata(k, [])["brokers"]] == [1001, 1002])

    def test_reserved_ids_end_where_they_are_told_to(self):
        b = self.broker(overrides={"reserved.broker.max.id": "7"})
        self.assertTrue(b.has_line(r"KafkaServer id=8\] started"))

    def refused(self, b, *words):
        b.start(wait=False)
        self.assertEqual(b.wait_exit(), 1)
        for word in words:
            self.assertTrue(b.has_line("FATAL.*" + word), "no %r in\n%s" % (word, "\n".join(b.lines[b.life:])))

    def test_a_broker_of_another_cluster_is_refused(self):
        b = self.broker(1)
        with self.client() as c:
            own = c.json("/cluster/id")["id"]
        b.stop()
        b.overrides["zookeeper.connect"] += "/other"
        self.refused(b, "cluster.id %s" % own)
        b.overrides["zookeeper.connect"] = b.overrides["zookeeper.connect"][:-len("/other")]
        b.start()

    def test_an_id_that_is_taken_is_waited_for_and_then_refused(self):
        first = self.broker(1)
        b = self.broker(1, {"zookeeper.session.timeout.ms": "1000"}, start=False)
        self.refused(b, "cannot register broker 1: another live broker has its id")
        holder = r"held by session 0x[0-9a-f]+ of a broker at 127\.0\.0\.1:%d" % first.port
        self.assertTrue(b.has_line(r"/brokers/ids/1 is %s, waiting up to 1500 ms" % holder))
        self.assertTrue(b.has_line(r"broker id 1 is taken: /brokers/ids/1 is still %s" % holder))

    def test_a_predecessor_that_was_killed_is_waited_for(self):
        b = self.broker(1, {"zookeeper.session.timeout.ms": "2000"})
        with self.client() as c:
            before = c.stat("/brokers/ids/1")
            b.kill()
            b.start()
            self.assertTrue(b.has_line(r"held by session 0x%x of a broker at .*, waiting" % before["owner"]))
            self.assertGreater(c.stat("/brokers/ids/1")["czxid"], before["czxid"])

    def test_two_brokers_with_one_address_are_refused(self):
        a = self.broker(1)
        b = self.broker(2, {"advertised.listeners": "PLAINTEXT://127.0.0.1:%d" % a.port}, start=False)
        self.refused(b, "cannot register broker 2: another live broker has its address")
        self.assertTrue(b.has_line("broker 1 already advertises one of our endpoints"))
        self.assertFalse(b.has_line("File exists|Address already in use"))

    def test_servers_that_do_not_answer_are_passed_over(self):
        dead = zookeeper.free_ports(1)[0]
        self.broker(1, connect="127.0.0.1:%d,%s" % (dead, self.zk.connect))

    def test_a_malformed_cluster_id_is_refused(self):
        with self.client() as c:
            c.create("", b"")
            c.create("/cluster", b"")
            c.create("/cluster/id", b"rubbish")
        self.refused(self.broker(1, start=False), "cluster id")


class Access(ZooKeeperTest):
    OWNER = "kafka:secret"

    def test_what_is_written_is_protected(self):
        b = self.broker(1, {"zookeeper.set.acl": "true", "zookeeper.digest.auth": self.OWNER})
        with b.client() as k:
            self.assertEqual(create_topic(k, "t"), 0)
        with self.client() as c:
            everybody = (1, "world", "anyone")
            for path in ("/brokers/ids/1", "/brokers/topics/t", "/brokers/topics/t/partitions/0/state", "/controller",
                         "/controller_epoch", "/cluster/id", "/config/topics/t", "/admin/delete_topics"):
                acl = c.acl(path)
                self.assertEqual(len(acl), 2, path)
                self.assertIn(everybody, acl, path)
                owner = next(a for a in acl if a != everybody)
                self.assertEqual(owner[:2], (31, "digest"), path)
                self.assertTrue(owner[2].startswith("kafka:"), path)
                with self.assertRaises(zookeeper.ZkError) as caught:
                    c.set(path, b"x")
                self.assertEqual(caught.exception.code, zookeeper.NO_AUTH, path)
            for path in ("/config/users", "/config/brokers"):
                with self.assertRaises(zookeeper.ZkError):
                    c.children(path)
            self.assertEqual(c.acl("/consumers"), [(31, "world", "anyone")])
        with self.client(auth=self.OWNER) as c:
            self.assertEqual([a[1] for a in c.acl("/config/users")], ["digest"])
            c.children("/config/users")
        self.zk.expire(self.zk.sessions_of(self.chroot + "/brokers/ids/1"))  # and the next session may write as well
        b.wait_line("elected, epoch 2")

    def test_tools_show_who_they_are(self):
        self.broker(1, {"zookeeper.set.acl": "true", "zookeeper.digest.auth": self.OWNER})
        with self.brokers[0].client() as k:
            self.assertEqual(create_topic(k, "t"), 0)
        with tempfile.TemporaryDirectory() as d:
            def file(name, text):
                with open(os.path.join(d, name), "w") as f:
                    f.write(text)
                return f.name
            plan = file("plan.json", '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1]}]}')
            owner = file("owner.properties", "zookeeper.digest.auth=%s\nzookeeper.set.acl=true\n" % self.OWNER)
            nobody = file("nobody.properties", "zookeeper.set.acl=true\n")
            reassign = ["kafka-reassign-partitions", "--zookeeper", self.zk.connect + self.chroot, "--execute",
                        "--reassignment-json-file", plan]
            elect = ["kafka-preferred-replica-election", "--zookeeper", self.zk.connect + self.chroot]
            for tool, config, done in [(reassign, "--command-config", "Successfully started reassignment of partitions."),
                                       (elect, "--admin.config", "Successfully started preferred replica election")]:
                r = run_tool(*tool)
                self.assertEqual(r.status, 1, r.text + r.err)
                self.assertRegex(r.text + r.err, "Permission denied|not authorized|ermission")
                r = run_tool(*tool, config, nobody)
                self.assertEqual(r.status, 1)
                self.assertIn("needs credentials", r.text + r.err)
                r = run_tool(*tool, config, owner)
                self.assertEqual(r.status, 0, r.text + r.err)
                self.assertIn(done, r.text)
                self.assertNotIn("has no effect", r.err)

    def test_protection_needs_credentials(self):
        b = self.broker(1, {"zookeeper.set.acl": "true"}, start=False)
        b.start(wait=False)
        self.assertEqual(b.wait_exit(), 1)
        self.assertTrue(b.has_line("FATAL.*zookeeper.set.acl=true: needs credentials"))

    def test_nothing_is_protected_by_default(self):
        self.broker(1)
        with self.client() as c:
            for path in ("/brokers/ids/1", "/config/users", "/controller"):
                self.assertEqual(c.acl(path), [(31, "world", "anyone")])


class Tree(ZooKeeperTest):
    """What tools and other brokers write."""

    def notify(self, c, body):
        c.create("/config/changes/config_change_", body, flags=2)

    def retention(self, k, topic):
        w = harness.Writer().array([topic], lambda w, t: w.i8(2).string(t).array(
            ["retention.ms"], lambda w2, n: w2.string(n)))
        r = k.request(harness.DESCRIBE_CONFIGS, 0, w)
        r.i32()
        r.i32()
        self.assertEqual((r.i16(), r.string(), r.i8(), r.string()), (0, None, 2, topic))
        return r.array(lambda x: (x.string(), x.string(), x.boolean(), x.boolean(), x.boolean()))[0][1]

    def test_topics_made_grown_and_removed_through_the_tree(self):
        b = self.broker(1)
        with self.client() as c, b.client() as k:
            c.create("/config/topics/old", b'{"version":1,"config":{"retention.ms":"123000"}}')
            c.create("/brokers/topics/old", b'{"version":1,"partitions":{"0":[1]}}')
            until("the topic has a leader", lambda: metadata(k, ["old"])["topics"]["old"][2].get(0, (5,))[0] == 0)
            self.assertEqual(self.retention(k, "old"), "123000")
            self.assertRegex(c.json("/brokers/topics/old")["topic_id"], r"^[\w-]{22}$")
            node = c.json("/brokers/topics/old")
            node["partitions"]["1"] = [1]
            c.set("/brokers/topics/old", zookeeper.json.dumps(node).encode())
            until("the new partition has a leader",
                  lambda: metadata(k, ["old"])["topics"]["old"][2].get(1, (5,))[0] == 0)
            c.create("/admin/delete_topics/old", None)
            until("the topic is gone", lambda: metadata(k, None)["topics"] == {})
            until("its nodes are gone", lambda: c.children("/admin/delete_topics") == [])
            self.assertEqual(c.children("/brokers/topics") + c.children("/config/topics"), [])

    def test_notices_of_both_forms_are_heard(self):
        b = self.broker(1)
        with self.client() as c, b.client() as k:
            self.assertEqual(create_topic(k, "t"), 0)
            for value, notice in (("1000000", b'{"version":2,"entity_path":"topics/t"}'),
                                  ("2000000", b'{"version":1,"entity_type":"topics","entity_name":"t"}')):
                c.set("/config/topics/t", b'{"version":1,"config":{"retention.ms":"%s"}}' % value.encode())
                self.notify(c, notice)
                until("the setting is in force", lambda: self.retention(k, "t") == value)

    def test_malformed_nodes_are_named_and_passed_over(self):
        b = self.broker(1)
        with self.client() as c, b.client() as k:
            mark = b.mark()
            for bad in (b"", b"{", b'{"version":7,"entity_path":"topics/t"}', b'{"version":2}', b"\xff\xfe"):
                self.notify(c, bad)
            c.create("/brokers/topics/bad", b"rubbish")
            c.create("/brokers/topics/badder", b'{"version":1,"partitions":{"0":["x"]}}')
            c.create("/config/topics/badder", b"[]")
            c.create("/brokers/ids/77", b"rubbish")
            self.assertEqual(create_topic(k, "good"), 0)
            self.notify(c, b'{"version":2,"entity_path":"topics/badder"}')
            for word in ("/config/changes/config_change_0000000000 is malformed",
                         "/config/changes/config_change_0000000004 is malformed",
                         "/brokers/topics/bad is malformed", "/brokers/topics/badder is malformed",
                         "/config/topics/badder is malformed", "/brokers/ids/77 is malformed"):
                b.wait_line(word, after=mark)
            self.assertEqual(sorted(metadata(k, None)["topics"]), ["good"])
            b.restart()  # they do not hinder a start either
            with b.client() as k2:
                self.assertEqual(sorted(metadata(k2, None)["topics"]), ["good"])
            c.delete("/brokers/ids/77")

    def test_the_controller_can_be_moved_by_hand(self):
        b = self.broker(1)
        with self.client() as c:
            for epoch in (2, 3):
                mark = b.mark()
                c.delete("/controller")
                b.wait_line("elected, epoch %d" % epoch, after=mark)
                self.assertEqual(c.get("/controller_epoch"), b"%d" % epoch)


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
            with kwire.Conn(b.port) as k:  # what was meant for the old session is refused from now on
                for epoch, error in ((before["czxid"], 77), (after["czxid"], 0)):
                    answer = k.call("LeaderAndIsr", 4, controller_id=1, controller_epoch=2, broker_epoch=epoch)
                    self.assertEqual(answer["error_code"], error)
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
