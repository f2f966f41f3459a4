"""view.py - a client's view of the cluster: connections, who leads what, the controller, znodes. Everything here may
fail at any time: None, or an exception of GONE, means 'not now'."""
import random
import threading

import kwire
import zookeeper
from nodes import KAFKA_PORT, ZOOKEEPER_PORT

GONE = (OSError, kwire.Closed, EOFError)


class View:
    def __init__(self, brokers, zookeepers, timeout=5):
        self.hosts = {b.number: b.address for b in brokers}
        self.zookeepers = [z.address for z in zookeepers]
        self.timeout = timeout
        self.local = threading.local()  # connections are a thread's own

    def conn(self, number):
        pool = self.local.__dict__.setdefault("pool", {})
        if number not in pool:
            pool[number] = kwire.Conn(KAFKA_PORT, host=self.hosts[number], timeout=self.timeout)
        return pool[number]

    def when_sent(self, act):
        """This thread's next call does that between request and answer."""
        self.local.when_sent = act

    def drop(self, number):
        conn = self.local.__dict__.setdefault("pool", {}).pop(number, None)
        if conn:
            conn.close()

    def call(self, number, api, version, **values):
        """The answer; on any failure the connection is dropped first."""
        try:
            conn = self.conn(number)
            sent = conn.send(api, version, **values)
            self.local.__dict__.pop("when_sent", lambda: None)()
            return conn.receive(api, version, sent)
        except GONE:
            self.drop(number)
            raise

    def any(self, api, version, **values):
        """The answer of some broker, or None."""
        for number in random.sample(sorted(self.hosts), len(self.hosts)):
            try:
                return self.call(number, api, version, **values)
            except GONE:
                continue
        return None

    def metadata(self, topics=None, number=None):
        values = {"topics": None if topics is None else [{"name": t} for t in topics],
                  "allow_auto_topic_creation": False}
        if number is None:
            return self.any("Metadata", 9, **values)
        return self.call(number, "Metadata", 9, **values)

    def partition(self, topic, index):
        """What some broker says of the partition, or None."""
        m = self.metadata([topic])
        for p in m["topics"][0]["partitions"] if m and m["topics"] else []:
            if p["partition_index"] == index:
                return p
        return None

    def leader(self, topic, index):
        p = self.partition(topic, index)
        return p["leader_id"] if p and p["leader_id"] in self.hosts else None

    def coordinator(self, group):
        """(broker, host) or None."""
        a = self.any("FindCoordinator", 2, key=group, key_type=0)
        return a["node_id"] if a and a["error_code"] == 0 and a["node_id"] in self.hosts else None

    def zookeeper(self):
        return zookeeper.Client([(host, ZOOKEEPER_PORT) for host in random.sample(self.zookeepers, len(self.zookeepers))],
                                deadline=4)

    def controller(self):
        """By ZooKeeper, or None."""
        try:
            with self.zookeeper() as z:
                return z.json("/controller")["brokerid"] if z.stat("/controller") else None
        except (OSError, zookeeper.ZkError):
            return None

    def moves(self):
        """Are partitions being moved? By ZooKeeper."""
        try:
            with self.zookeeper() as z:
                return any(z.json("/brokers/topics/" + t).get("adding_replicas") for t in z.children("/brokers/topics"))
        except (OSError, zookeeper.ZkError):
            return False

    def state(self, topic, index):
        """The partition's, by ZooKeeper, or None."""
        try:
            with self.zookeeper() as z:
                return z.json("/brokers/topics/%s/partitions/%d/state" % (topic, index))
        except (OSError, zookeeper.ZkError):
            return None
