"""Two brokers that log in to each other as a user with CLUSTER_ACTION, no more: replication, transactions over both, a
controlled shutdown. And nobody else gives them orders."""
import unittest

import cluster
import kwire
import saslwire
import txnwire
import zookeeper
from harness import until
from test_authorization import (CLUSTER, CLUSTER_ACTION, GROUP, IDEMPOTENT_WRITE, MEMBERS_ONLY, READ, TOPIC, TXN, WRITE,
                                codes, conn_of, grant, take_all)

LISTENERS = "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0"
SETTINGS = dict(saslwire.listener("PLAIN", plain_sasl_jaas_config=saslwire.users(
    broker="pw", admin="pw", alice="pw")), **{
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer", "super.users": "User:admin",
        "listeners": LISTENERS, "inter.broker.listener.name": "SASL_PLAINTEXT",
        "sasl.mechanism.inter.broker.protocol": "PLAIN", "zookeeper.session.timeout.ms": "4000",
        "default.replication.factor": "2", "offsets.topic.replication.factor": "2",
        "transaction.state.log.replication.factor": "2", "offsets.topic.num.partitions": "2",
        "transaction.state.log.num.partitions": "2", "group.initial.rebalance.delay.ms": "0",
        "controlled.shutdown.retry.backoff.ms": "200"})


class Brokers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.zk = zookeeper.ZooKeeper(tick_ms=250)
        cls.c = cluster.Cluster.__new__(cluster.Cluster)
        cls.c.zk, cls.c.brokers = cls.zk, {1: cls.zk.broker(1, SETTINGS)}
        cls.conns = {("admin", 1): conn_of(cls.c.brokers[1], "admin")}
        grant(cls.conn("admin", 1), "broker", (CLUSTER_ACTION, CLUSTER, ""))
        cls.c.brokers[2] = cls.zk.broker(2, SETTINGS)
        until("the brokers know each other", lambda: all(
            len(cls.conn("admin", i).call("Metadata", 9, topics=[])["brokers"]) == 2 for i in (1, 2)))

    @classmethod
    def tearDownClass(cls):
        for k in cls.conns.values():
            k.close()
        cls.zk.close()

    @classmethod
    def conn(cls, user, i):
        if (user, i) not in cls.conns:
            cls.conns[user, i] = conn_of(cls.c.brokers[i], user)
        return cls.conns[user, i]

    def make(self, name, *assignment):
        """Each of the partitions' leader comes first."""
        controller = self.conn("admin", self.c.controller)
        answer = controller.call("CreateTopics", 7, timeout_ms=30000, topics=[
            {"name": name, "num_partitions": -1, "replication_factor": -1, "assignments": [
                {"partition_index": i, "broker_ids": ids} for i, ids in enumerate(assignment)]}])["topics"][0]
        self.assertEqual(answer["error_code"], 0, answer)
        for i in (1, 2):
            until("broker %d knows the topic" % i, lambda i=i: [
                p["leader_id"] for p in self.conn("admin", i).call("Metadata", 9, topics=[{"name": name}])["topics"][0][
                    "partitions"]] == [ids[0] for ids in assignment])

    def test_1_replicas_follow(self):
        self.make("t", [1, 2], [2, 1])
        for i in (1, 2):
            grant(self.conn("admin", i), "alice", (WRITE, TOPIC, "t"), (READ, TOPIC, "t"))
        for partition, leader in ((0, 1), (1, 2)):
            alice = self.conn("alice", leader)

            def acknowledged():
                return kwire.produce(alice, 9, [("t", partition, kwire.simple_batch(b"v"))])[0]["error_code"] == 0
            until("alice may write at broker %d" % leader, acknowledged)
            self.c.wait_state("t", partition, lambda s: sorted(s["isr"]) == [1, 2])
            self.assertEqual(kwire.fetch(alice, 12, [("t", partition, 0)])[0][2]["error_code"], 0)

    def test_2_a_transaction_over_both(self):
        self.make("txn", [1, 2], [2, 1])
        rights = [(WRITE, TXN, "mine"), (WRITE, TOPIC, "txn"), (READ, TOPIC, "txn"), (READ, GROUP, "g"),
                  (IDEMPOTENT_WRITE, CLUSTER, "")]
        grant(self.conn("admin", 1), "alice", *rights)
        # Found by the one who may, whose rights do not matter to the coordinator.
        where = {}

        def found():
            error, where["node"] = txnwire.find(self.conn("admin", 1), "mine")
            return error == 0
        until("a coordinator", found)
        p = txnwire.Producer(self.conn("alice", where["node"]), "mine")

        def begun():
            return p.try_init() == 0
        until("alice's producer id", begun)
        p.add(("txn", 0), ("txn", 1))
        for partition, leader in ((0, 1), (1, 2)):  # verified with the coordinator by the other broker
            def written():
                return p.try_produce("txn", partition, b"v", conn=self.conn("alice", leader))["error_code"] == 0
            until("partition %d is written" % partition, written)
        p.end(True)
        for partition, leader in ((0, 1), (1, 2)):  # the marker came from the coordinator
            until("partition %d is committed" % partition, lambda: txnwire.committed(
                self.conn("alice", leader), "txn", partition) == [b"v"])

    def test_3_orders_of_strangers_are_refused(self):
        before = self.conn("admin", 1).call("Metadata", 9, topics=None)
        for api, fields in MEMBERS_ONLY.items():
            advertised = {a["api_key"]: a for a in self.conn("alice", 1).call("ApiVersions", 0)["api_keys"]}
            of = advertised[kwire.API_KEYS[api]]
            for version in range(of["min_version"], of["max_version"] + 1):
                with self.subTest(api=api, version=version):
                    self.assertEqual(codes(self.conn("alice", 1).call(api, version, **fields)), {31})
                    if api in ("AlterPartition", "StopReplica"):  # from the brokers' user: stale, but not refused
                        answer = self.conn("broker", 1).call(api, version, **fields)
                        self.assertNotIn(31, codes(answer))
        self.assertEqual(self.conn("admin", 1).call("Metadata", 9, topics=None), before)

    def test_4_a_broker_leaves_in_order(self):
        self.make("left", [2, 1])
        self.c.wait_state("left", 0, lambda s: sorted(s["isr"]) == [1, 2])
        for key in [k for k in self.conns if k[1] == 2]:
            self.conns.pop(key).close()
        b = self.c.brokers[2]
        first = len(b.lines)
        b.stop()
        self.assertTrue([line for line in b.lines[first:] if "relieved of all partitions" in line], b.lines[first:])
        self.assertEqual(self.c.state("left", 0)["leader"], 1)
        b.start()
        self.c.wait_state("left", 0, lambda s: sorted(s["isr"]) == [1, 2])

    def test_5_without_the_right_a_replica_falls_behind_and_says_so(self):
        """The brokers' right is asked for at each request: who takes it away stops replication, who gives it back
        starts it again."""
        self.make("cut", [1, 2])
        admin = self.conn("admin", 1)
        kwire.produce_one(admin, "cut", 0, kwire.simple_batch(b"1"))
        take_all(admin, "broker")
        until("the follower is refused", lambda: kwire.produce(
            admin, 9, [("cut", 0, kwire.simple_batch(b"2"))], timeout_ms=200)[0]["error_code"] == 7)
        grant(admin, "broker", (CLUSTER_ACTION, CLUSTER, ""))
        until("it follows again", lambda: kwire.produce(
            admin, 9, [("cut", 0, kwire.simple_batch(b"3"))], timeout_ms=5000)[0]["error_code"] == 0)


if __name__ == "__main__":
    unittest.main()
