"""churn.py - an administrator who does not stop: topics made and deleted, partitions added, reassigned, reassignments
taken back, preferred leaders elected, settings changed. Also what the cluster said of it, to be held against what
is there in the end."""
import json
import threading

import kwire
from view import GONE
from workload import Worker

EXISTS, UNKNOWN, NOT_CONTROLLER, ELECTION_NOT_NEEDED, NO_REASSIGNMENT = 36, 3, 41, 84, 85
PRESENT, ABSENT, OPEN = "present", "absent", "open"


class Request:
    """An act's, for who wants to do something while it is under way."""

    def __init__(self):
        self.sent, self.answered = threading.Event(), False


class Churn(Worker):
    KEEP = 12  # topics

    def __init__(self, view, topic, partitions, wrong, seed, pause=1.5):
        Worker.__init__(self, "administrator", view, wrong, seed)
        self.topic, self.partitions, self.pause = topic, partitions, pause
        self.topics = {}     # name -> what was told of it
        self.lock = threading.Lock()
        self.number = 0
        self.done = {}       # kind -> how often it succeeded
        self.KINDS = [self.create, self.create, self.create, self.delete, self.delete, self.grow, self.reassign,
                      self.reassign, self.cancel, self.elect, self.configure]

    def work(self):
        while not self.stopping.is_set():
            self.one(self.random)
            self.rest(self.pause * 2 * self.random.random())

    def one(self, random, kind=None, request=None):
        """One act, of a kind, at whoever is the controller. With a request it is a big one."""
        act = getattr(self, kind) if kind else random.choice(self.KINDS)
        controller = self.view.controller()
        if controller not in self.view.hosts:
            return
        try:
            if request:
                self.view.when_sent(request.sent.set)
            if act(random, controller, **{"big": True} if request and kind in ("create", "delete") else {}):
                self.done[act.__name__] = self.done.get(act.__name__, 0) + 1
            if request:
                request.answered = True
        except GONE:
            pass

    def create(self, random, controller, big=False):
        with self.lock:
            if len([t for t, s in self.topics.items() if s != ABSENT]) >= self.KEEP * (1 + big):
                return False
            self.number += 1
            name = "x%d" % self.number
            self.topics[name] = OPEN
        a = self.view.call(controller, "CreateTopics", 5, timeout_ms=4000, topics=[
            {"name": name, "num_partitions": 24 if big else random.randint(1, 6), "replication_factor": min(3, len(self.view.hosts))}])
        code = a["topics"][0]["error_code"]
        if code == 0:
            self.topics[name] = PRESENT
        return code == 0

    def delete(self, random, controller, big=False):
        with self.lock:
            names = [t for t, s in self.topics.items() if s != ABSENT]
            if len(names) < (1 if big else 3):
                return False
            name = random.choice(names)
            self.topics[name] = OPEN
        a = self.view.call(controller, "DeleteTopics", 3, timeout_ms=4000, topic_names=[name])
        code = a["responses"][0]["error_code"]
        if code == 0:
            self.topics[name] = ABSENT
        return code == 0

    def grow(self, random, controller):
        names = [t for t, s in self.topics.items() if s == PRESENT]
        if not names:
            return False
        a = self.view.call(controller, "CreatePartitions", 1, timeout_ms=4000, validate_only=False, topics=[
            {"name": random.choice(names), "count": random.randint(2, 9), "assignments": None}])
        return a["results"][0]["error_code"] == 0

    def _alter(self, controller, partitions):
        a = self.view.call(controller, "AlterPartitionReassignments", 0, timeout_ms=4000,
                           topics=[{"name": self.topic, "partitions": partitions}])
        return a["error_code"] == 0 and all(p["error_code"] == 0 for t in a["responses"] for p in t["partitions"])

    def reassign(self, random, controller):
        brokers = sorted(self.view.hosts)
        if random.random() < 0.3:
            names = [t for t, s in self.topics.items() if s == PRESENT]
            if names:
                a = self.view.call(controller, "AlterPartitionReassignments", 0, timeout_ms=4000, topics=[
                    {"name": random.choice(names), "partitions": [
                        {"partition_index": 0, "replicas": random.sample(brokers, min(2, len(brokers)))}]}])
                return a["error_code"] == 0
        return self._alter(controller, [
            {"partition_index": p, "replicas": random.sample(brokers, min(3, len(brokers)))}
            for p in random.sample(range(self.partitions), random.randint(1, 2))])

    def cancel(self, random, controller):
        return self._alter(controller, [{"partition_index": random.randrange(self.partitions), "replicas": None}])

    def elect(self, random, controller):
        a = self.view.call(controller, "ElectLeaders", 2, election_type=0, timeout_ms=4000, topic_partitions=None)
        return a["error_code"] == 0

    def configure(self, random, controller):
        a = self.view.call(controller, "IncrementalAlterConfigs", 1, validate_only=False, resources=[
            {"resource_type": 2, "resource_name": self.topic, "configs": [
                {"name": "segment.bytes", "config_operation": 0, "value": str(random.choice((300000, 1000000, 5000000)))}]}])
        return a["responses"][0]["error_code"] == 0

    # -- the verdict

    def judge(self, brokers):
        """Wanted: all is whole, and nobody has asked anything since."""
        with self.view.zookeeper() as z:
            there = set(z.children("/brokers/topics"))
        for name, state in sorted(self.topics.items()):
            if state == PRESENT and name not in there:
                self.wrong("topic %s was created and is not there" % name)
            if state == ABSENT and name in there:
                self.wrong("topic %s was deleted and is there" % name)
        for b in brokers:
            m = self.view.metadata(None, b.number)
            known = {t["name"] for t in m["topics"]}
            if known != there:
                self.wrong("broker %d knows topics %s that are not there, and does not know %s"
                           % (b.number, sorted(known - there), sorted(there - known)))
