"""apache.py - Apache Kafka's own brokers and tools, from Maven, beside kafkad's in one cluster.

    with apache.Mixed({1: "apache", 2: "kafkad", 3: "apache"}) as c:     # a cluster.Cluster
        c.switch(1, "kafkad")                  # a clean stop; the other kind starts on the same folder and settings
        c.tool("topics", "--list")             # Apache's kafka-topics against the brokers of the cluster
        c.complaints()                         # what Apache's brokers warn of

A slot is a broker's id, folder, port and server.properties: the same file for both kinds. The first run fetches the
jars into $KAFKAD_CLIENTS_DIR; where there is no Java, or the registry is out of reach, a test file is skipped with one
line (main here sees to it, exit status 77).
"""
import glob
import os
import re
import signal
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
for part in ("integration", "clients"):
    sys.path.insert(0, os.path.join(os.path.dirname(HERE), part))
import cluster  # noqa: E402
import harness  # noqa: E402
import prepare  # noqa: E402
import zookeeper  # noqa: E402

VERSION, OLD_VERSION = "3.9.2", "2.8.2"
SKIPPED = 77
START_DEADLINE = 240  # a virtual machine on a busy machine

# one collector thread and no second compiler: a short life on few cores
SMALL_JVM = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Xmx384m"]

LOGGING = """log4j.rootLogger=%s, err
log4j.appender.err=org.apache.log4j.ConsoleAppender
log4j.appender.err.target=System.err
log4j.appender.err.layout=org.apache.log4j.PatternLayout
log4j.appender.err.layout.ConversionPattern=[%%d] %%p %%m (%%c)%%n
log4j.logger.org.apache.zookeeper=WARN
log4j.logger.state.change.logger=INFO
"""

# Apache's tools by the name of its scripts: (class in 3.9, class in 2.8)
_TOOLS = {
    "topics": ("org.apache.kafka.tools.TopicCommand", "kafka.admin.TopicCommand"),
    "configs": ("kafka.admin.ConfigCommand",) * 2,
    "consumer-groups": ("org.apache.kafka.tools.consumer.group.ConsumerGroupCommand", "kafka.admin.ConsumerGroupCommand"),
    "reassign-partitions": ("org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
                            "kafka.admin.ReassignPartitionsCommand"),
    "dump-log": ("kafka.tools.DumpLogSegments",) * 2,
    "replica-verification": ("org.apache.kafka.tools.ReplicaVerificationTool", "kafka.tools.ReplicaVerificationTool"),
    "log-dirs": ("org.apache.kafka.tools.LogDirsCommand", "kafka.admin.LogDirsCommand"),
    "leader-election": ("org.apache.kafka.tools.LeaderElectionCommand", "kafka.admin.LeaderElectionCommand"),
    "get-offsets": ("org.apache.kafka.tools.GetOffsetShell", "kafka.tools.GetOffsetShell"),
    "delete-records": ("org.apache.kafka.tools.DeleteRecordsCommand", "kafka.admin.DeleteRecordsCommand"),
    "console-producer": ("kafka.tools.ConsoleProducer",) * 2,
    "console-consumer": ("org.apache.kafka.tools.consumer.ConsoleConsumer", "kafka.tools.ConsoleConsumer"),
    "verifiable-producer": ("org.apache.kafka.tools.VerifiableProducer",) * 2,
    "producer-perf-test": ("org.apache.kafka.tools.ProducerPerformance",) * 2,
    "consumer-perf-test": ("org.apache.kafka.tools.ConsumerPerformance", "kafka.tools.ConsumerPerformance"),
    "broker-api-versions": ("kafka.admin.BrokerApiVersionsCommand",) * 2,
    "transactions": ("org.apache.kafka.tools.TransactionsCommand",) * 2,
    "cluster": ("org.apache.kafka.tools.ClusterTool", "kafka.tools.ClusterTool"),
}


def jars(version=VERSION):
    """The class path of a version; prepare.Skip when it is not to be had."""
    prepare.need("java", "javac", "mvn")
    with prepare.Folder("apache-%s" % version, ["../mixed/pom.xml", "../mixed/java/*"], version) as f:
        if f.stale:
            prepare.fetch("Apache Kafka %s" % version,
                          ["mvn", "-B", "-q", "-f", os.path.join(HERE, "pom.xml"), "-Dkafka.version=%s" % version,
                           "-DoutputDirectory=%s" % f.at("lib"), "dependency:copy-dependencies"])
            prepare.build(["javac", "-nowarn", "-d", f.at("classes"), "-cp", f.at("lib", "*")] +
                          sorted(glob.glob(os.path.join(HERE, "java", "*.java"))))
        for level in ("INFO", "ERROR"):
            _keep(f.at("log4j-%s.properties" % level), LOGGING % level)
        return f.path


def _keep(path, text):
    """A file with this text, whole at any moment: a virtual machine of another test may be reading it."""
    if not os.path.exists(path) or open(path).read() != text:
        with open(path + ".new", "w") as out:
            out.write(text)
        os.rename(path + ".new", path)


def java(version, main_class, flags, level):
    folder = jars(version)
    return ["java", *flags, "-Dlog4j.configuration=file:%s/log4j-%s.properties" % (folder, level),
            "-cp", os.path.join(folder, "classes") + os.pathsep + os.path.join(folder, "lib", "*"), main_class]


def run_tool(name, *args, version=VERSION, input=b"", deadline=90, status=0):
    """Runs one of Apache's tools, or a class of java/: its standard output. It must end with the status."""
    main_class = _TOOLS[name][0 if version == VERSION else 1] if name in _TOOLS else name
    command = java(version, main_class, SMALL_JVM, "ERROR") + [str(a) for a in args]
    p = subprocess.run(command, input=input.encode() if isinstance(input, str) else input, stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, timeout=deadline)
    out, err = p.stdout.decode("utf-8", "replace"), p.stderr.decode("utf-8", "replace")
    if p.returncode != status:
        raise AssertionError("%s %s: status %d\n%s\n%s" % (name, " ".join(map(str, args)), p.returncode, out, err))
    return out


class Slot(harness.Broker):
    """A broker's place in the cluster: what runs there is of one kind or the other. What an Apache broker logs is read
    like what kafkad logs, and says the same at its start and its end."""

    def __init__(self, kind, zk, settings, version=VERSION):
        self.kind, self.zk, self.version, self.jvm = kind, zk, version, SMALL_JVM
        super().__init__(overrides=settings, start=False)
        self.fixed_port = int(self.overrides["listeners"].rsplit(":", 1)[1])

    def command(self):
        path = os.path.join(self.folder, "server.properties")
        with open(path, "w") as f:
            f.writelines("%s=%s\n" % item for item in sorted(self.overrides.items()))
        if self.kind == "kafkad":
            return [harness.program("kafkad"), path]
        return java(self.version, "kafka.Kafka", self.jvm, "INFO") + [path]

    def start(self, wait=True):
        super().start(wait=False)
        self.ports = {"PLAINTEXT": self.fixed_port}
        if wait:
            self.wait_line(r"\[KafkaServer id=\d+\] started", deadline=START_DEADLINE)
        return self

    def stop(self, deadline=60, sig=signal.SIGTERM):
        if self.kind == "kafkad":
            return super().stop(deadline, sig)
        self.process.send_signal(sig)
        self._collect(deadline)
        assert self.has_line(r"\[KafkaServer id=\d+\] shut down completed"), "\n".join(self.lines[-20:])

    def kill(self):
        """Its session ends with it: the others need not wait, and Apache's broker would not start until then."""
        if self.process:
            super().kill()
            with self.zk.client() as z:
                found = z.stat("/brokers/ids/%s" % self.overrides["broker.id"])
            if found:
                self.zk.expire(found["owner"])

    def complaints(self):
        """What an Apache broker of this slot has logged at WARN and above, since the slot was made."""
        with self.cond:
            return [line for line in self.lines if re.match(r"\[[^]]*\] (WARN|ERROR|FATAL) ", line)]


class Mixed(cluster.Cluster):
    """A cluster of slots. kinds: {id: "apache" or "kafkad"}; levels: {id: inter.broker.protocol.version}"""

    def __init__(self, kinds, overrides=None, each=None, version=VERSION, start=True):
        jars(version)
        self.version = version
        self.zk = zookeeper.ZooKeeper(1, tick_ms=1000)
        self.brokers = {}
        n = min(len(kinds), 3)
        settings = {"zookeeper.connect": self.zk.connect, "zookeeper.session.timeout.ms": "18000",
                    "zookeeper.connection.timeout.ms": "60000", "replica.lag.time.max.ms": "20000",
                    "default.replication.factor": n, "min.insync.replicas": min(n, 2),
                    "offsets.topic.num.partitions": 3, "offsets.topic.replication.factor": n,
                    "transaction.state.log.num.partitions": 3, "transaction.state.log.replication.factor": n,
                    "transaction.state.log.min.isr": min(n, 2), "group.initial.rebalance.delay.ms": 0,
                    "controlled.shutdown.retry.backoff.ms": 500, "auto.leader.rebalance.enable": "false",
                    "log.cleaner.dedupe.buffer.size": 8 << 20, "log.cleaner.backoff.ms": 1000,
                    "num.network.threads": 2, "num.io.threads": 3, "background.threads": 2}
        settings.update(overrides or {})
        try:
            for (i, kind), port in zip(kinds.items(), zookeeper.free_ports(len(kinds))):
                own = dict(settings, **{"broker.id": i, "listeners": "PLAINTEXT://127.0.0.1:%d" % port})
                own.update(each(i) if each else {})
                self.brokers[i] = Slot(kind, self.zk, own, version)
                self.zk.brokers.append(self.brokers[i])
            if start:
                self.start_all()
        except BaseException:
            self.zk.close(False)
            raise

    def start_all(self):
        """All at once: most of a virtual machine's start is waiting, too."""
        for b in self.brokers.values():
            if not b.process:
                b.start(wait=False)
        for b in self.brokers.values():
            b.wait_line(r"\[KafkaServer id=\d+\] started", deadline=START_DEADLINE)
        self.wait_brokers()

    def switch(self, i, kind, kill=False):
        b = self.brokers[i]
        if b.process:
            b.kill() if kill else b.stop()
        b.kind = kind
        b.start()
        self.wait_brokers()
        self.wait_leaders()

    def wait_leaders(self):
        """All brokers know a leader of each partition that there is."""
        with self.zk.client() as z:
            names = z.children("/brokers/topics")

        def led(i):
            topics = self.metadata(i, names)["topics"]
            return all(t["partitions"] and all(p["leader_id"] >= 0 for p in t["partitions"]) for t in topics)
        for i in self.running():
            harness.until("broker %d knows leaders" % i, lambda i=i: led(i), 60)

    def ids(self, kind):
        return [i for i in self.running() if self.brokers[i].kind == kind]

    @property
    def bootstrap(self):
        return ",".join(self.brokers[i].address for i in self.running())

    def tool(self, name, *args, at=None, **more):
        """One of Apache's tools against the cluster, or one broker of it."""
        return run_tool(name, "--bootstrap-server", self.brokers[at].address if at else self.bootstrap, *args,
                        version=self.version, **more)

    def make_controller(self, i):
        """Elections until broker i has won one."""
        def won():
            if self.controller == i:
                return True
            with self.zk.client() as z:
                z.delete("/controller")
            return False
        harness.until("broker %d is controller" % i, won, 60)
        self.wait_brokers()

    def complaints(self):
        return {i: b.complaints() for i, b in self.brokers.items() if b.complaints()}


def main():
    """unittest.main, where Apache Kafka is to be had."""
    try:
        jars()
    except prepare.Skip as e:
        print("SKIPPED %s: %s" % (os.path.basename(sys.argv[0]), e))
        sys.exit(SKIPPED)
    unittest.main(verbosity=int(os.environ.get("KAFKAD_TEST_VERBOSE", "1")))
