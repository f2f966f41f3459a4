"""kafka-acls: by the brokers, and straight in ZooKeeper; and what tools say to whom they are denied something."""
import unittest

import harness
import zookeeper
from tool_test import run_tool

ADD = ("--add", "--allow-principal", "User:a")


class Usage(unittest.TestCase):
    """All of it is told before anybody is asked."""

    def test_flags_that_make_no_sense(self):
        at, zk = ("--bootstrap-server", "127.0.0.1:1"), ("--authorizer-properties", "zookeeper.connect=127.0.0.1:1")
        for args, said in (
                ((), "This tool helps to manage acls"),
                (("--list",), "authorizer-properties"),
                (at, "exactly one action"),
                ((*at, "--list", "--add"), "exactly one action"),
                ((*at, *zk, "--list"), "--authorizer-properties option can only be used with --authorizer"),
                ((*at, "--authorizer", "x", "--list"), "Only one of --bootstrap-server or --authorizer"),
                ((*zk, "--command-config", "x", "--list"), "--command-config option can only be used with --bootstrap-server"),
                ((*at, "--bootstrap-controller", "x:1", "--list"), "no controllers apart from brokers"),
                ((*at, "--list", "--producer"), r"\[list\]"),
                ((*at, "--list", "--deny-host", "x"), r"\[list\]"),
                ((*at, *ADD), "at least one resource"),
                ((*at, *ADD, "--principal", "User:a", "--topic", "t"), "--principal option is only available if --list"),
                ((*at, "--add", "--topic", "t"), "--allow-principal, --deny-principal"),
                ((*at, *ADD, "--topic", "t", "--resource-pattern-type", "match"), "'MATCH' is not valid when adding"),
                ((*at, *ADD, "--topic", "t", "--resource-pattern-type", "some"), "Cannot parse argument 'some'"),
                ((*at, *ADD, "--topic", "t", "--operation", "Fly"), "Cannot parse argument 'Fly'"),
                ((*at, *ADD, "--group", "g", "--operation", "Write"), "ResourceType GROUP only supports operations"),
                ((*at, *ADD, "--producer"), "With --producer you must specify a --topic"),
                ((*at, *ADD, "--topic", "t", "--idempotent"), "only available if --producer is set"),
                ((*at, *ADD, "--producer", "--topic", "t", "--operation", "Read"), r"\[producer\]"),
                ((*at, *ADD, "--consumer", "--topic", "t"), "With --consumer you must specify"),
                ((*at, *ADD, "--consumer", "--topic", "t", "--group", "g", "--cluster"), "With --consumer you must specify")):
            with self.subTest(args):
                r = run_tool("kafka-acls", *args)
                self.assertEqual((r.status, r.text), (1, ""))
                self.assertRegex(r.err.splitlines()[0], said)
                self.assertRegex(r.err, "(?m)^Option +Description$")

    def test_what_is_wrong_in_the_values(self):
        for args, said in (
                (("--bootstrap-server", "127.0.0.1:1", "--add", "--allow-principal", "nobody", "--topic", "t"),
                 "expected a string in format principalType:principalName but got nobody"),
                (("--authorizer-properties", "zookeeper.set.acl=true", "--list"), "zookeeper.connect=host:port is needed")):
            with self.subTest(args):
                r = run_tool("kafka-acls", *args)
                self.assertEqual((r.status, r.text), (1, "Error while executing ACL command: " +
                                                      ("--authorizer-properties: " if "--list" in args else "") + said + "\n"))


def block(what, kind, name, entries, pattern="LITERAL"):
    return "%s ACLs for resource `ResourcePattern(resourceType=%s, name=%s, patternType=%s)`: \n %s \n\n" % (
        what, kind, name, pattern, "\n".join("\t(principal=%s, host=%s, operation=%s, permissionType=%s)" % e for e in entries))


class Acls(unittest.TestCase):
    """One broker on a ZooKeeper, where everybody may do everything that no ACL is about."""

    @classmethod
    def setUpClass(cls):
        cls.zk = zookeeper.ZooKeeper()
        cls.broker = cls.zk.broker(1, overrides={
            "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer", "allow.everyone.if.no.acl.found": "true",
            "offsets.topic.replication.factor": "1", "group.initial.rebalance.delay.ms": "0"})

    @classmethod
    def tearDownClass(cls):
        cls.zk.close()

    def tool(self, name, *args, status=0, **more):
        r = run_tool(name, "--bootstrap-server", self.broker.address, *args, **more)
        self.assertEqual(r.status, status, r.text + r.err)
        return r

    def acls(self, *args, **more):
        return self.tool("kafka-acls", *args, **more).text

    def by_zookeeper(self, *args, status=0, **more):
        r = run_tool("kafka-acls", "--authorizer-properties", "zookeeper.connect=" + self.zk.connect, *args, **more)
        self.assertEqual(r.status, status, r.text + r.err)
        self.assertIn("directly through the authorizer is deprecated", r.err)
        return r.text

    def check_round(self, ask, name):
        """Adds, lists and removes; `ask` is one of the two ways."""
        read, write = ("User:a", "*", "READ", "ALLOW"), ("User:a", "10.0.0.1", "WRITE", "DENY")
        prefixed = ("User:b", "*", "ALL", "ALLOW")
        self.assertEqual(ask(*ADD, "--topic", name, "--operation", "Read"), block("Adding", "TOPIC", name, [read]))
        self.assertEqual(ask("--add", "--deny-principal", "User:a", "--deny-host", "10.0.0.1", "--topic", name, "--operation", "write"),
                         block("Adding", "TOPIC", name, [write]))
        self.assertEqual(ask("--add", "--allow-principal", "User:b", "--topic", name[:3], "--resource-pattern-type", "prefixed"),
                         block("Adding", "TOPIC", name[:3], [prefixed], "PREFIXED"))
        both = block("Current", "TOPIC", name, [read, write])
        harness.until("the ACLs are listed", lambda: ask("--list", "--topic", name) == both)
        self.assertEqual(ask("--list", "--topic", name, "--resource-pattern-type", "match"),
                         block("Current", "TOPIC", name[:3], [prefixed], "PREFIXED") + both)
        self.assertEqual(ask("--list", "--topic", name, "--resource-pattern-type", "match", "--principal", "User:b"),
                         "ACLs for principal `User:b`\n" + block("Current", "TOPIC", name[:3], [prefixed], "PREFIXED"))
        # a question, and what is not "y" is no answer
        one = ("--remove", "--allow-principal", "User:a", "--topic", name, "--operation", "Read")
        asked = ("Are you sure you want to remove ACLs: \n \t(principal=User:a, host=*, operation=READ, permissionType=ALLOW) \n"
                 " from resource filter `ResourcePattern(resourceType=TOPIC, name=%s, patternType=LITERAL)`? (y/n)\n" % name)
        for answer in ("", "n\n", "yes\n"):
            self.assertEqual(ask(*one, input=answer), asked)
        self.assertEqual(ask("--list", "--topic", name), both)
        self.assertEqual(ask(*one, input="Y\n"), asked)
        harness.until("one is gone", lambda: ask("--list", "--topic", name) == block("Current", "TOPIC", name, [write]))
        self.assertEqual(ask("--remove", "--topic", name, "--resource-pattern-type", "match", input="y\n"),
                         "Are you sure you want to delete all ACLs for resource filter `ResourcePattern(resourceType=TOPIC, "
                         "name=%s, patternType=MATCH)`? (y/n)\n" % name)
        harness.until("none is left", lambda: not ask("--list", "--topic", name, "--resource-pattern-type", "match"))
        self.assertEqual(ask("--remove", "--topic", name, "--force"), "")

    def test_by_the_brokers(self):
        self.check_round(self.acls, "brokers-topic")

    def test_by_zookeeper(self):
        self.check_round(self.by_zookeeper, "zookeeper-topic")

    def test_both_ways_are_one(self):
        """What is written to ZooKeeper the broker hears of, in Kafka's own form."""
        self.by_zookeeper("--add", "--producer", "--consumer", "--topic", "both", "--group", "both", "--allow-principal", "User:c")
        want = (block("Current", "TOPIC", "both", [("User:c", "*", o, "ALLOW") for o in ("READ", "WRITE", "CREATE", "DESCRIBE")]) +
                block("Current", "GROUP", "both", [("User:c", "*", "READ", "ALLOW")]))
        harness.until("the broker has heard", lambda: self.acls("--list", "--topic", "both", "--group", "both") == want)
        with self.zk.client() as c:
            node = c.json("/kafka-acl/Group/both")
        self.assertEqual(node, {"version": 1, "acls": [{"principal": "User:c", "permissionType": "Allow", "operation": "Read",
                                                        "host": "*"}]})
        self.acls("--remove", "--topic", "both", "--group", "both", "--force")
        self.assertEqual(self.by_zookeeper("--list", "--topic", "both", "--group", "both"), "")

    def test_names_cannot_steer_the_terminal(self):
        shown = block("Current", "GROUP", "steered", [("User:a\\x1b[2J", "*", "READ", "ALLOW")])
        self.acls("--add", "--allow-principal", "User:a\x1b[2J", "--group", "steered", "--operation", "Read")
        self.assertEqual(self.acls("--list", "--group", "steered"), shown)
        self.assertEqual(self.by_zookeeper("--list", "--group", "steered"), shown)
        self.acls("--remove", "--force", "--group", "steered")

    def test_what_tools_say_when_they_are_denied(self):
        me = ("--add", "--force", "--deny-principal", "User:ANONYMOUS")
        self.tool("kafka-topics", "--create", "--topic", "denied", "--partitions", 1)
        self.acls(*me, "--topic", "denied")
        self.acls(*me, "--group", "denied", "--transactional-id", "denied")
        topic = r"Not authorized to access topics: \[denied\]"
        r = self.tool("kafka-console-producer", "--topic", "denied", input="v\n")
        self.assertRegex(r.err, topic)
        r = self.tool("kafka-console-consumer", "--topic", "denied", "--from-beginning", status=1)
        self.assertRegex(r.err, topic)
        r = self.tool("kafka-console-consumer", "--topic", "other", "--group", "denied", status=1)
        self.assertRegex(r.err, "Not authorized to access group: denied")
        r = self.tool("kafka-consumer-groups", "--describe", "--group", "denied", status=1)
        self.assertRegex(r.text, "GroupAuthorizationException.*denied")
        r = self.tool("kafka-consumer-groups", "--delete", "--group", "denied", status=1)
        self.assertRegex(r.text, "'denied'.*GroupAuthorizationException")
        r = self.tool("kafka-configs", "--describe", "--topic", "denied", status=1)
        self.assertRegex(r.err, "TopicAuthorizationException")
        r = self.tool("kafka-configs", "--alter", "--topic", "denied", "--add-config", "retention.ms=1", status=1)
        self.assertRegex(r.err, "TopicAuthorizationException")
        r = self.tool("kafka-topics", "--describe", "--topic", "denied", status=1)
        self.assertRegex(r.text, "Topic 'denied' does not exist as expected")
        self.assertNotIn("denied", self.tool("kafka-topics", "--list").text)
        r = self.tool("kafka-transactions", "describe", "--transactional-id", "denied", status=1)
        self.assertRegex(r.text + r.err, "denied")
        self.acls("--remove", "--force", "--topic", "denied", "--group", "denied", "--transactional-id", "denied")


class WithoutAuthorizer(harness.BrokerTest):
    def test_that_is_said(self):
        for args in (("--list",), (*ADD, "--topic", "t")):
            r = run_tool("kafka-acls", "--bootstrap-server", self.broker.address, *args)
            self.assertEqual(r.status, 1)
            self.assertRegex(r.text.splitlines()[-1], "^Error while executing ACL command: "
                             r"org.apache.kafka.common.errors.SecurityDisabledException: \S")


if __name__ == "__main__":
    harness.main()
