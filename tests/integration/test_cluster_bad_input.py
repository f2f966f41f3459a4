"""What a cluster must not be disturbed by: nodes in ZooKeeper that say nothing, and requests of brokers that have no
right to them. Each is refused as Kafka refuses it, and producers beside it notice nothing."""
import re
import unittest

import kwire
from cluster import Cluster, History
from harness import until

NOT_LEADER, STALE_BROKER_EPOCH, NOT_CONTROLLER, BROKER_ID_NOT_REGISTERED = 6, 77, 41, 102
FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, INVALID_REQUEST = 74, 75, 42
NONSENSE = (b"", b"{", b"[]", b"7", b'{"version":99}', b'{"version":1}', b"\xff\xfe\x00", b'{"version":"x","partitions":7}')


class Nodes(unittest.TestCase):
    def marks(self, c):
        return {i: c.broker(i).mark() for i in c.running()}

    def wait_line(self, c, marks, pattern):
        until("a line %s" % pattern, lambda: any(
            re.search(pattern, line) for i in marks for line in c.broker(i).lines[marks[i]:]))

    def test_nodes_that_tools_and_brokers_write(self):
        with Cluster(3) as c:
            c.create_topic("t", partitions=2)
            with History(c, "t", 2) as h, c.zk.client() as z:
                h.grow(50)
                marks = self.marks(c)
                for bad in NONSENSE:
                    for path in ("/admin/reassign_partitions", "/admin/preferred_replica_election"):
                        z.create(path, bad)
                        until("%s with %s is done with" % (path, bad), lambda path=path: not z.stat(path))
                    for path in ("/isr_change_notification/isr_change_", "/log_dir_event_notification/log_dir_event_"):
                        z.create(path, bad, flags=2)
                    for path in ("/config/users/u", "/config/clients/k", "/config/brokers/1", "/config/ips/10.0.0.1"):
                        if z.stat(path):
                            z.set(path, bad)
                        else:
                            parent = path.rsplit("/", 1)[0]
                            if not z.stat(parent):
                                z.create(parent, None)
                            z.create(path, bad)
                        z.create("/config/changes/config_change_",
                                 b'{"version":2,"entity_path":"%s"}' % path[len("/config/"):].encode(), flags=2)
                    z.create("/config/changes/config_change_", bad, flags=2)
                    z.create("/admin/delete_topics/nobody%d" % len(bad), bad)
                for where in ("/isr_change_notification", "/log_dir_event_notification", "/admin/delete_topics"):
                    until("%s is empty" % where, lambda where=where: not z.children(where))
                for pattern in (r"/admin/reassign_partitions is malformed", r"config_change_\d+ is malformed",
                                r"the settings of (users/u|clients/k|ips/10.0.0.1) stay as they are"):
                    self.wait_line(c, marks, pattern)
                h.grow(100)
                self.assertEqual(sorted(c.running()), [1, 2, 3])
            h.check()

    def test_states_and_topics(self):
        """Nobody looks at them until a controller begins, or has to elect."""
        with Cluster(3) as c:
            c.create_topic("t", partitions=2)
            c.create_topic("bad", partitions=2)
            with History(c, "t", 2) as h, c.zk.client() as z:
                h.grow(50)
                for p, text in ((0, b"rubbish"), (1, b'{"leader":"x"}')):
                    z.set("/brokers/topics/bad/partitions/%d/state" % p, text)
                z.create("/brokers/topics/worse", b"rubbish")
                dead = c.controller
                marks = self.marks(c)
                c.broker(dead).kill()
                until("another controller", lambda: c.controller != dead)
                for p in range(2):
                    c.wait_state("t", p, lambda s: s["leader"] in c.running() and dead not in s["isr"])
                h.grow(100)
                self.wait_line(c, {i: m for i, m in marks.items() if i != dead},
                               r"/brokers/topics/bad/partitions/0/state is malformed")
                c.broker(dead).start()
                c.wait_isr("t", 2, 3)
                c.create_topic("good", partitions=1)
                h.grow(50)
            h.check()
            h.check_copies()

    def test_what_a_controller_stands_on(self):
        with Cluster(3) as c:
            c.create_topic("t", partitions=1)
            with History(c, "t", 1) as h, c.zk.client() as z:
                h.grow(50)
                z.set("/feature", b"rubbish")
                epoch = int(z.get("/controller_epoch"))
                z.set("/controller", b"rubbish")   # nobody can be told; who was elected still acts
                h.grow(50)
                z.set("/controller_epoch", b"x")
                z.delete("/controller")
                h.grow(50)                          # no controller can be elected: what is there goes on
                self.assertEqual(sorted(c.running()), [1, 2, 3])
                z.set("/controller_epoch", b"%d" % (epoch + 5))
                if not z.stat("/controller"):
                    z.create("/controller", b"rubbish")
                z.delete("/controller")
                until("a controller", lambda: z.stat("/controller"))
                self.assertEqual(int(z.get("/controller_epoch")), epoch + 6)
                c.create_topic("good", partitions=1)
                until("/feature is put right", lambda: z.json("/feature")["version"] == 2)
                h.grow(50)
            h.check()

    def test_producer_id_blocks(self):
        with Cluster(2) as c, c.zk.client() as z:
            def ask():
                with c.conn(c.controller) as k:
                    a = k.call("AllocateProducerIds", 0, broker_id=1, broker_epoch=z.stat("/brokers/ids/1")["czxid"])
                    return a["error_code"], a["producer_id_start"]
            self.assertEqual(ask()[0], 0)
            good = z.get("/latest_producer_id_block")
            for bad in NONSENSE:
                z.set("/latest_producer_id_block", bad)
                self.assertNotEqual(ask()[0], 0, bad)
            z.set("/latest_producer_id_block", good)
            error, start = ask()
            self.assertEqual(error, 0)
            self.assertGreaterEqual(start, 1000)


class Requests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.c = Cluster(3)
        cls.c.create_topic("t", partitions=1)
        cls.c.wait_isr("t", 1, 3)

    @classmethod
    def tearDownClass(cls):
        cls.c.zk.close()

    def epoch_of(self, i):
        with self.c.zk.client() as z:
            return z.stat("/brokers/ids/%d" % i)["czxid"]

    def test_replicas_that_are_none(self):
        """They get an error, and nothing that is known of the real ones moves."""
        leader = self.c.leader("t", 0)
        before = self.c.state("t", 0)
        with self.c.conn(leader) as k:
            self.assertEqual(kwire.produce(k, 9, [("t", 0, kwire.simple_batch(b"x"))], acks=-1)[0]["error_code"], 0)
            for replica in (99, 2147483647):
                for epoch, error in ((-1, NOT_LEADER), (before["leader_epoch"], UNKNOWN_LEADER_EPOCH)):
                    a = k.call("Fetch", 11, replica_id=replica, max_wait_ms=0, min_bytes=1, max_bytes=1 << 20,
                               isolation_level=0, session_id=0, session_epoch=-1, rack_id="", topics=[{
                                   "topic": "t", "partitions": [{"partition": 0, "current_leader_epoch": epoch,
                                                                 "fetch_offset": 10**9, "log_start_offset": 10**9,
                                                                 "partition_max_bytes": 1 << 20}]}])
                    part = a["responses"][0]["partitions"][0]
                    self.assertEqual(part["error_code"], error, (replica, epoch))
                    self.assertFalse(part["records"])
            self.assertEqual(kwire.produce(k, 9, [("t", 0, kwire.simple_batch(b"y"))], acks=-1)[0]["error_code"], 0)
        self.assertEqual(self.c.state("t", 0), before)

    def alter(self, to, broker, broker_epoch, leader_epoch=0, isr=(1, 2, 3), partition_epoch=0, version=1):
        with self.c.conn(to) as k:
            return k.call("AlterPartition", version, broker_id=broker, broker_epoch=broker_epoch, topics=[{
                "topic_name": "t", "partitions": [{"partition_index": 0, "leader_epoch": leader_epoch,
                                                   "new_isr": list(isr), "leader_recovery_state": 0,
                                                   "partition_epoch": partition_epoch}]}])

    def test_isr_changes_by_those_who_may_not(self):
        controller, leader = self.c.controller, self.c.leader("t", 0)
        other = next(i for i in (1, 2, 3) if i != leader)
        before = self.c.state("t", 0)
        for broker, epoch in ((leader, self.epoch_of(leader) - 1), (leader, -1), (99, 5), (other, self.epoch_of(leader))):
            if broker == other and self.epoch_of(other) == epoch:
                continue
            self.assertEqual(self.alter(controller, broker, epoch)["error_code"], STALE_BROKER_EPOCH, (broker, epoch))
        with self.c.conn(next(i for i in (1, 2, 3) if i != controller)) as k:
            a = k.call("AlterPartition", 1, broker_id=leader, broker_epoch=self.epoch_of(leader), topics=[])
            self.assertEqual(a["error_code"], NOT_CONTROLLER)
        with self.c.zk.client() as z:
            version = z.stat("/brokers/topics/t/partitions/0/state")["version"]
        a = self.alter(controller, other, self.epoch_of(other), before["leader_epoch"], [other], version)
        self.assertEqual(a["topics"][0]["partitions"][0]["error_code"], INVALID_REQUEST)
        if before["leader_epoch"] > 0:
            a = self.alter(controller, leader, self.epoch_of(leader), before["leader_epoch"] - 1, [leader], version)
            self.assertEqual(a["topics"][0]["partitions"][0]["error_code"], FENCED_LEADER_EPOCH)
        a = self.alter(controller, leader, self.epoch_of(leader), before["leader_epoch"] + 1, [leader], version)
        self.assertEqual(a["topics"][0]["partitions"][0]["error_code"], NOT_CONTROLLER)
        self.assertEqual(self.c.state("t", 0), before)

    def test_producer_ids_for_an_earlier_life(self):
        with self.c.conn(self.c.controller) as k:
            for broker, epoch, error in ((1, self.epoch_of(1) - 1, STALE_BROKER_EPOCH), (1, -1, STALE_BROKER_EPOCH),
                                         (99, 1, BROKER_ID_NOT_REGISTERED)):
                a = k.call("AllocateProducerIds", 0, broker_id=broker, broker_epoch=epoch)
                self.assertEqual(a["error_code"], error, (broker, epoch))

    def orders_are_refused(self, epochs):
        """Of a controller that is not: of each of these epochs. Nothing changes by them."""
        before = self.c.metadata(1)
        for i in (1, 2, 3):
            with self.c.conn(i) as k:
                for epoch in epochs:
                    head = {"controller_id": 99, "controller_epoch": epoch, "broker_epoch": self.epoch_of(i)}
                    state = {"partition_index": 0, "controller_epoch": epoch, "leader": 99, "leader_epoch": 10**6,
                             "isr": [99], "partition_epoch": 10**6, "replicas": [99], "is_new": False}
                    a = k.call("LeaderAndIsr", 4, topic_states=[{"topic_name": "t", "partition_states": [state]}],
                               live_leaders=[], **head)
                    self.assertEqual(a["error_code"], 11, epoch)
                    a = k.call("StopReplica", 3, topic_states=[{"topic_name": "t", "partition_states": [
                        {"partition_index": 0, "leader_epoch": 10**6, "delete_partition": True}]}], **head)
                    self.assertEqual(a["error_code"], 11, epoch)
                    a = k.call("UpdateMetadata", 6, topic_states=[], live_brokers=[], **head)
                    self.assertEqual(a["error_code"], 11, epoch)
        self.assertEqual(self.c.metadata(1), before)
        with self.c.conn(self.c.leader("t", 0)) as k:
            self.assertEqual(kwire.produce(k, 9, [("t", 0, kwire.simple_batch(b"z"))], acks=-1)[0]["error_code"], 0)

    def obeyed(self, name):
        """The controller, whoever it is by now, makes a topic, and all brokers have heard from it."""
        def made():
            try:
                self.c.create_topic(name)
                return True
            except AssertionError as e:
                if "'error_code': %d" % NOT_CONTROLLER not in str(e):
                    raise
                return False
        until("a controller makes %s" % name, made)
        self.c.wait_known(name, 1)

    def test_orders_of_a_deposed_controller(self):
        self.obeyed("of-its-successor")
        with self.c.zk.client() as z:
            self.orders_are_refused([int(z.get("/controller_epoch")) - 1])

    def test_orders_of_a_controller_that_never_was(self):
        with self.c.zk.client() as z:
            epoch = int(z.get("/controller_epoch"))
        self.orders_are_refused([epoch + 1, 2147483647])
        self.obeyed("after-strangers")  # the real one is obeyed as before
        with self.c.zk.client() as z:  # and so is its successor
            z.delete("/controller")
        self.obeyed("after-its-end")


if __name__ == "__main__":
    unittest.main()
