"""kafka-consumer-groups: every action, on groups in use, at rest, and that do not exist."""
import contextlib
import datetime
import json
import os
import re
import signal
import subprocess
import time

import groupwire
import harness
import kwire
from kwire import batch
from tool_test import ToolTest, run_tool

T = 1700000000000


class GroupsTest(ToolTest):
    OVERRIDES = groupwire.OVERRIDES

    def groups(self, *args, **kw):
        return self.tool("kafka-consumer-groups", *args, **kw)

    def topic_of(self, per_partition, stem="t"):
        """A topic with so many records in each partition, 1000 ms apart from T on; its group's name."""
        t = self.topic(stem)
        self.create(t, len(per_partition))
        with kwire.Conn(self.broker.port) as c:
            for partition, n in enumerate(per_partition):
                for i in range(n):
                    kwire.produce_one(c, t, partition, batch([(T + 1000 * i, None, b"v")]))
        return t, "g-" + t

    def commit(self, group, topic, offsets):
        with kwire.Conn(self.broker.port) as c:
            groupwire.coordinator(c, group)
            self.assertEqual(set(groupwire.commit(c, group, topic, offsets).values()), {0})

    def committed(self, group, topic, partitions):
        """As --describe tells it."""
        found = {}
        for line in self.groups("--describe", "--group", group).lines:
            fields = line.split()
            if fields[:2] == [group, topic]:
                found[int(fields[2])] = fields[3]
        return [int(found[p]) if found.get(p, "-") != "-" else None for p in range(partitions)]

    @contextlib.contextmanager
    def member(self, group, topic, partitions, *args):
        """A process that is in the group, with so many partitions."""
        path = os.path.join(self.broker.folder, "member.properties")
        with open(path, "w") as f:
            f.write("client.id=c1\n")
        p = subprocess.Popen([harness.program("kafka-verifiable-consumer"), "--topic", topic, "--group-id", group,
                              "--bootstrap-server", self.broker.address, "--consumer.config", path, *args],
                             stdout=subprocess.PIPE)
        try:
            while True:
                e = json.loads(p.stdout.readline())
                if e["name"] == "partitions_assigned" and len(e["partitions"]) == partitions:
                    break
            yield p
            p.send_signal(signal.SIGTERM)
            p.communicate(timeout=60)
        finally:
            p.kill()
            p.communicate()

    # -- list

    def test_list(self):
        t, g = self.topic_of([1])
        with kwire.Conn(self.broker.port) as c:
            groupwire.coordinator(c, "connect-" + g)
            worker = groupwire.Member(c, "connect-" + g, protocol_type="connect", protocols=(("p", b""),))
            worker.join()
            worker.sync()
            self.commit(g, t, {0: 1})
            with self.member("used-" + g, t, 1):
                names = self.groups("--list").lines
                self.assertIn(g, names)
                self.assertIn("used-" + g, names)
                self.assertNotIn("connect-" + g, names)  # not of consumers
                self.assertEqual(names, sorted(names))
                r = self.groups("--list", "--state")
                width = max([15] + [len(n) for n in names]) + 10
                self.assertEqual(r.lines[0], "%-*s %-20s" % (width, "GROUP", "STATE"))
                self.assertIn("%-*s %-20s" % (width, g, "Empty"), r.lines)
                self.assertIn("%-*s %-20s" % (width, "used-" + g, "Stable"), r.lines)
                r = self.groups("--list", "--state", "stable")
                names = [line.split()[0] for line in r.lines[1:]]
                self.assertIn("used-" + g, names)
                self.assertNotIn(g, names)
                r = self.groups("--list", "--state", "Empty, Dead", "--type", "classic")
                self.assertEqual(r.lines[0].split(), ["GROUP", "TYPE", "STATE"])
                self.assertIn([g, "Classic", "Empty"], [line.split() for line in r.lines])
                self.assertEqual(self.groups("--list", "--type", "consumer").lines[1:], [])
            worker.leave()
        r = self.groups("--list", "--state", "asleep", status=1)
        self.assertIn("Invalid state list 'asleep'. Valid states are: ", r.err)
        self.assertIn("Invalid type list", self.groups("--list", "--type", "share", status=1).err)

    def test_names_cannot_steer_the_terminal(self):
        t, g = self.topic_of([1])
        odd, shown = g + "\x1b[2J\nforged", g + "\\x1b[2J\\x0aforged"
        self.commit(odd, t, {0: 1})
        self.assertIn(shown, self.groups("--list").lines)
        self.assertRegex(self.groups("--list", "--state").text, "(?m)^%s +Empty +$" % re.escape(shown))
        r = self.groups("--describe", "--group", odd)
        self.assertIn("Consumer group '%s' has no active members." % (g + "\\x1b[2J\nforged"), r.err)
        self.assertRegex(r.text, "(?m)^%s +%s +0 +1 " % (re.escape(shown), t))
        self.assertEqual(self.groups("--delete", "--group", odd).text,
                         "Deletion of requested consumer groups ('%s') was successful.\n" % shown)

    # -- describe

    def test_describe_offsets(self):
        t, g = self.topic_of([5, 3])
        self.commit(g, t, {0: 2})
        r = self.groups("--describe", "--group", g)
        self.assertEqual(r.err, "\nConsumer group '%s' has no active members.\n" % g)
        wide, topic = max(15, len(g)), max(15, len(t))
        head = "%-*s %-*s %%-10s %%-15s %%-15s %%-15s %%-15s %%-15s %%s" % (wide, "GROUP", topic, "TOPIC")
        row = "%-*s %-*s %%-10s %%-15s %%-15s %%-15s %%-15s %%-15s %%s" % (wide, g, topic, t)
        self.assertEqual(r.text.split("\n"), [
            "", head % ("PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID", "HOST", "CLIENT-ID"),
            row % (0, 2, 5, 3, "-", "-", "-"), ""])
        self.commit(g, t, {0: 5})
        with self.member(g, t, 2, "--reset-policy", "latest"):
            harness.until("a commit", lambda: self.committed(g, t, 2)[0] == 5)
            r = self.groups("--describe", "--group", g, "--offsets")
            self.assertEqual(r.err, "")
            rows = [line.split() for line in r.lines[2:]]
            self.assertEqual([f[:6] for f in rows], [[g, t, "0", "5", "5", "0"], [g, t, "1", "-", "3", "-"]])
            for f in rows:
                self.assertRegex(f[6], r"^c1-[0-9a-f-]{36}$")
                self.assertEqual(f[7:], ["/127.0.0.1", "c1"])
            r = self.groups("--reset-offsets", "--group", g, "--topic", t, "--to-earliest", "--dry-run", status=1)
            self.assertIn("Error: Assignments can only be reset if the group '%s' is inactive, but the current state is "
                          "Stable." % g, r.text)

    def test_describe_members_and_state(self):
        t, g = self.topic_of([0, 0, 0])
        with self.member(g, t, 3, "--group-instance-id", "i1"):
            r = self.groups("--describe", "--group", g, "--members")
            self.assertEqual(r.lines[1].split(), ["GROUP", "CONSUMER-ID", "GROUP-INSTANCE-ID", "HOST", "CLIENT-ID",
                                                  "#PARTITIONS"])
            fields = r.lines[2].split()
            self.assertEqual((fields[0], fields[2:]), (g, ["i1", "/127.0.0.1", "c1", "3"]))
            self.assertTrue(r.lines[2].endswith("%-15s %-15s " % ("c1", 3)))
            r = self.groups("--describe", "--group", g, "--members", "--verbose")
            self.assertTrue(r.lines[1].endswith(" ASSIGNMENT"))
            self.assertTrue(r.lines[2].endswith(" %s(0,1,2)" % t))
            r = self.groups("--describe", "--group", g, "--state")
            coordinator = "127.0.0.1:%d  (%d)" % (self.broker.port, 0)
            self.assertEqual(r.lines[1:], [
                "%-25s %-25s %-20s %-15s %s" % ("GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS"),
                "%-25s %-25s %-20s %-15s %s" % (g, coordinator, "range", "Stable", 1)])
        with self.member(g + "2", t, 3):
            r = self.groups("--describe", "--group", g + "2", "--members")
            self.assertNotIn("INSTANCE", r.lines[1])

    def test_describe_several(self):
        t, g = self.topic_of([2])
        for name in (g + "b", g + "a"):
            self.commit(name, t, {0: 1})
        r = self.groups("--describe", "--group", g + "b", "--group", g + "a", "--group", g + "b")
        self.assertEqual([line.split()[0] for line in r.lines if line], ["GROUP", g + "a", "GROUP", g + "b"])
        r = self.groups("--describe", "--all-groups")
        self.assertIn(g + "a", r.text)
        r = self.groups("--describe", "--group", "none", "--group", g + "a", status=1)
        self.assertIn("\nError: Consumer group 'none' does not exist.\n", r.text)
        self.assertIn(g + "a", r.text)
        for what in ("--members", "--state"):
            r = self.groups("--describe", "--group", "none", what, status=1)
            self.assertEqual(r.text, "\nError: Consumer group 'none' does not exist.\n")

    # -- reset

    def reset(self, group, *args, status=0):
        """{(topic, partition): offset} as the table says."""
        r = self.groups("--reset-offsets", "--group", group, "--execute", *args, status=status)
        self.assertEqual(r.text.split("\n")[1], "%-30s %-30s %-10s %-15s" % ("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"))
        rows = [line.split() for line in r.lines[2:]]
        self.assertTrue(all(f[0] == group for f in rows))
        return {(f[1], int(f[2])): int(f[3]) for f in rows}

    def test_scenarios(self):
        t, g = self.topic_of([5, 3])
        all_of = ["--topic", t]
        stamp = datetime.datetime.fromtimestamp((T + 1500) / 1000, datetime.timezone.utc)

        def since():  # until just behind the second record, with room for a slow machine
            return "PT%.3fS" % (time.time() - (T + 1001) / 1000)
        for scenario, expected in [(["--to-latest"], [5, 3]), (["--to-earliest"], [0, 0]), (["--to-offset", 2], [2, 2]),
                                   (["--shift-by", 1], [3, 3]), (["--shift-by", -2], [1, 1]), (["--to-current"], [1, 1]),
                                   (["--to-datetime", stamp.strftime("%Y-%m-%dT%H:%M:%S.500")], [2, 2]),
                                   (["--to-datetime", "2100-01-01T00:00:00.000"], [5, 3]),
                                   (["--by-duration", since], [2, 2]), (["--by-duration", "P99999D"], [0, 0]),
                                   (["--to-offset", 4], [4, 3]), (["--shift-by", 100], [5, 3]), (["--shift-by", -100], [0, 0])]:
            scenario = [x() if callable(x) else x for x in scenario]
            with self.subTest(scenario):
                got = self.reset(g, *all_of, *scenario) if "2100" not in str(scenario) else None
                if got is None:  # nothing at or after: told, and the end
                    r = self.groups("--reset-offsets", "--group", g, "--execute", *all_of, *scenario)
                    self.assertIn("Warn: Partition 1 from topic %s is empty. Falling back to latest known offset." % t, r.text)
                else:
                    self.assertEqual(got, {(t, p): o for p, o in enumerate(expected)})
                self.assertEqual(self.committed(g, t, 2), expected)
        r = self.groups("--reset-offsets", "--group", g, "--topic", t, "--to-offset", 99, "--dry-run")
        self.assertRegex(r.err, r"WARN New offset \(99\) is higher than latest offset for topic partition %s-0. Value will be "
                                r"set to 5" % t)

    def test_scopes_and_dry_runs(self):
        t, g = self.topic_of([4, 4, 4])
        u, _ = self.topic_of([4], "u")
        self.assertEqual(self.reset(g, "--topic", t + ":0,2", "--topic", u, "--to-offset", 3),
                         {(t, 0): 3, (t, 2): 3, (u, 0): 3})
        self.assertEqual(self.committed(g, t, 3), [3, None, 3])
        self.assertEqual(self.reset(g, "--all-topics", "--to-earliest"), {(t, 0): 0, (t, 2): 0, (u, 0): 0})
        r = self.groups("--reset-offsets", "--group", g, "--all-topics", "--to-latest")
        self.assertIn("WARN: No action will be performed", r.err)
        self.assertEqual(len(r.lines), 5)
        self.assertEqual(self.committed(g, t, 3), [0, None, 0])
        self.assertEqual(self.groups("--reset-offsets", "--group", g, "--all-topics", "--to-latest", "--dry-run").err, "")
        self.assertEqual(self.reset(g, "--topic", t, "--to-current"), {(t, 0): 0, (t, 1): 4, (t, 2): 0})
        # a group that is not there yet is made
        self.assertEqual(self.reset("new-" + g, "--topic", t + ":1", "--to-latest"), {(t, 1): 4})
        self.assertIn("new-" + g, self.groups("--list").lines)
        # several at once
        r = self.groups("--reset-offsets", "--group", g, "--group", "new-" + g, "--topic", t + ":1", "--to-offset", 2, "--execute")
        self.assertEqual([line.split() for line in r.lines[2:]], [[g, t, "1", "2"], ["new-" + g, t, "1", "2"]])
        r = run_tool("kafka-consumer-groups", "--bootstrap-server", self.broker.address, "--reset-offsets", "--all-groups",
                     "--topic", t + ":1", "--to-latest", "--dry-run")  # there may be groups in use
        self.assertIn([g, t, "1", "4"], [line.split() for line in r.lines])

    def test_files(self):
        t, g = self.topic_of([4, 4])
        path = os.path.join(self.broker.folder, "plan.csv")
        self.commit(g, t, {0: 1, 1: 2})
        self.commit(g + ",2", t, {0: 3})
        r = self.groups("--reset-offsets", "--group", g, "--all-topics", "--to-current", "--export", "--dry-run")
        self.assertEqual(r.text, "%s,0,1\n%s,1,2\n" % (t, t))
        self.reset(g, "--all-topics", "--to-latest")
        with open(path, "wb") as f:
            f.write(r.out)
        self.assertEqual(self.reset(g, "--from-file", path), {(t, 0): 1, (t, 1): 2})
        self.assertEqual(self.committed(g, t, 2), [1, 2])
        both = ["--reset-offsets", "--group", g, "--group", g + ",2"]
        r = self.groups(*both, "--all-topics", "--to-current", "--export", "--dry-run")
        self.assertEqual(r.text, '%s,%s,0,1\n%s,%s,1,2\n"%s,2",%s,0,3\n' % (g, t, g, t, g, t))
        with open(path, "wb") as f:
            f.write(r.out.replace(b",3\n", b",99\r\n") + b"\n")
        r = self.groups(*both, "--from-file", path, "--execute", "--export")
        self.assertIn("Value will be set to 4", r.err)
        self.assertEqual(self.groups("--describe", "--group", g + ",2").lines[2].split()[3], "4")
        with open(path, "w") as f:
            f.write("other,%s,0,1\n" % t)
        r = self.groups("--reset-offsets", "--group", g, "--from-file", path, "--execute", status=1)
        self.assertIn("Error: No reset plan for group %s found" % g, r.text)
        for text, why in [("a,b\n", "line 1: topic,partition,offset is wanted"), ("\na,0,x\n", "line 2: the offset"),
                          ("a,-1,0\n", "the partition"), ('"a,0,0\n', "not a row"), ("a,b,c,d,e\n", "not a row")]:
            with open(path, "w") as f:
                f.write(text)
            r = self.groups("--reset-offsets", "--group", g, "--from-file", path, "--execute", status=1)
            self.assertIn(why, r.err)
        r = self.groups("--reset-offsets", "--group", g, "--from-file", path + "x", "--execute", status=1)
        self.assertIn("No such file", r.err)

    def test_resets_that_cannot_be(self):
        t, g = self.topic_of([2])
        r = self.groups("--reset-offsets", "--group", g, "--topic", t, "--shift-by", 1, "--execute", status=1)
        self.assertIn("Cannot shift offset for partition %s-0 since there is no current committed offset" % t, r.err)
        r = self.groups("--reset-offsets", "--group", g, "--topic", "missing", "--to-latest", "--execute", status=1)
        self.assertIn("Error: Executing consumer group command failed due to org.apache.kafka.common.errors."
                      "UnknownTopicOrPartitionException: topic 'missing': ", r.text)
        self.assertNotIn("group", r.text.split("Exception: ")[1])
        r = self.groups("--reset-offsets", "--group", g, "--topic", t + ":7", "--to-latest", "--execute", status=1)
        self.assertIn("Error getting ending offset of topic partition: %s-7" % t, r.err)
        for args, why in [(["--topic", t, "--to-datetime", "yesterday"], "--to-datetime yesterday"),
                          (["--topic", t, "--by-duration", "1h"], "--by-duration 1h"), (["--topic", t + ":x", "--to-latest"], "'x'")]:
            self.assertIn(why, self.groups("--reset-offsets", "--group", g, *args, "--execute", status=1).err)

    # -- delete

    def test_delete(self):
        t, g = self.topic_of([1])
        for name in (g + "a", g + "b"):
            self.commit(name, t, {0: 1})
        r = self.groups("--delete", "--group", g + "b", "--group", g + "a")
        self.assertEqual(r.text, "Deletion of requested consumer groups ('%sa, %sb') was successful.\n" % (g, g))
        self.assertNotIn(g + "a", self.groups("--list").lines)
        self.commit(g + "a", t, {0: 1})
        r = self.groups("--delete", "--group", "none", "--group", g + "a", status=1)
        self.assertEqual(r.lines[1:3], ["Error: Deletion of some consumer groups failed:",
                                        "* Group 'none' could not be deleted due to: org.apache.kafka.common.errors."
                                        "GroupIdNotFoundException: " + r.lines[2].split("Exception: ")[1]])
        self.assertEqual(r.lines[-1], "These consumer groups were deleted successfully: '%sa'" % g)
        with self.member(g, t, 1):
            r = self.groups("--delete", "--group", g, status=1)
            self.assertIn("* Group '%s' could not be deleted due to: org.apache.kafka.common.errors."
                          "GroupNotEmptyException: " % g, r.text)

    def test_delete_offsets(self):
        t, g = self.topic_of([2, 2])
        u, _ = self.topic_of([2], "u")
        self.commit(g, t, {0: 1, 1: 1})
        self.commit(g, u, {0: 1})
        r = self.groups("--delete-offsets", "--group", g, "--topic", t + ":1", "--topic", u)
        self.assertEqual(r.lines, [
            "Request succeed for deleting offsets with topic %s:1, %s group %s" % (t, u, g), "",
            "%-30s %-15s %-15s" % ("TOPIC", "PARTITION", "STATUS"), "%-30s %-15s %-15s" % (t, 1, "Successful"),
            "%-30s %-15s %-15s" % (u, 0, "Successful")])
        self.assertEqual(self.committed(g, t, 2), [1, None])
        self.assertEqual(self.committed(g, u, 1), [None])
        r = self.groups("--delete-offsets", "--group", "none", "--topic", t, status=1)
        self.assertIn("Error: 'none' does not exist.", r.text)
        # One that is missing is told in its row; the others are deleted.
        w, _ = self.topic_of([1], "w")
        self.commit(g, t, {0: 1})
        self.commit(g, u, {0: 1})
        self.commit(g, w, {0: 1})
        r = self.groups("--delete-offsets", "--group", g, "--topic", u, "--topic", t + "missing", "--topic", t, status=1)
        self.assertIn("Error: Encounter some partition level error, see the follow-up details:", r.text)
        rows = [line.split(None, 2) for line in r.lines[-4:]]
        self.assertEqual([row[:2] for row in rows], [[t, "0"], [t, "1"], [t + "missing", "-"], [u, "0"]])
        self.assertEqual([row[2].startswith("Error: :") for row in rows], [False, False, True, False])
        self.assertEqual((self.committed(g, t, 1), self.committed(g, u, 1)), ([None], [None]))
        r = self.groups("--delete-offsets", "--group", g, "--topic", "missing", status=1)
        self.assertRegex(r.lines[-1], r"^missing +- +Error: :\S")
        with self.member(g, t, 2):
            r = self.groups("--delete-offsets", "--group", g, "--topic", t, status=1)
            self.assertIn("Error: Encounter some partition level error, see the follow-up details:", r.text)
            self.assertRegex(r.lines[-1], r"^%s +1 +Error: :\S" % t)

    # -- flags, failures

    def test_flags(self):
        for args, message in [([], "exactly one action"), (["--list", "--describe"], "exactly one action"),
                              (["--describe"], r"Option \[describe\] takes one of these options"),
                              (["--delete"], r"Option \[delete\] takes one of these options"),
                              (["--delete", "--group", "g", "--topic", "t"], "topic-specific"),
                              (["--delete-offsets", "--group", "g"], r"Option \[delete-offsets\] takes the following"),
                              (["--list", "--group", "g", "--all-groups"], "all-groups"), (["--list", "--group", "g"], "list"),
                              (["--describe", "--group", "g", "--members", "--state"], "at most one"),
                              (["--describe", "--group", "g", "--state", "Stable"], "does not take a value"),
                              (["--describe", "--group", "g", "--topic", "t"], "topic"),
                              (["--list", "--members"], r"Option\(s\) \[members\] are unavailable"),
                              (["--describe", "--group", "g", "--type"], r"\[type\] are unavailable"),
                              (["--reset-offsets", "--to-latest", "--topic", "t"], r"\[reset-offsets\] takes one of"),
                              (["--reset-offsets", "--group", "g", "--topic", "t"], "one of the following scenarios"),
                              (["--reset-offsets", "--group", "g", "--topic", "t", "--to-latest", "--to-earliest"],
                               "can't be used with"),
                              (["--reset-offsets", "--group", "g", "--to-latest"], "One of the reset scopes"),
                              (["--reset-offsets", "--group", "g", "--topic", "t", "--all-topics", "--to-latest"], "topic"),
                              (["--reset-offsets", "--group", "g", "--topic", "t", "--to-latest", "--execute", "--dry-run"],
                               "only accepts one of")]:
            with self.subTest(args):
                self.assert_usage(self.groups(*args, status=1), message)
        r = run_tool("kafka-consumer-groups", "--list")
        self.assert_usage(r, "bootstrap-server")

    def test_no_broker(self):
        r = run_tool("kafka-consumer-groups", "--bootstrap-server", "127.0.0.1:1", "--list", "--timeout", 300)
        self.assertEqual(r.status, 1)
        self.assertRegex(r.text, r"Error: Executing consumer group command failed due to "
                                 r"org.apache.kafka.common.errors.(Timeout|Disconnect)Exception: ")


if __name__ == "__main__":
    harness.main()
