"""tool_test.py - running the command line tools against the broker of a test."""
import os
import re
import subprocess

import harness


class Result:
    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err
        self.text = out.decode("utf-8", "replace")
        self.lines = self.text.splitlines()


def run_tool(name, *args, input=b"", deadline=60):
    """Runs a tool of the build to its end."""
    if isinstance(input, str):
        input = input.encode()
    p = subprocess.run([harness.program(name), *map(str, args)], input=input, stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, timeout=deadline)
    err = p.stderr.decode("utf-8", "replace")
    if harness.SANITIZER.search(err):
        raise AssertionError("sanitizer report of %s:\n%s" % (name, err))
    return Result(p.returncode, p.stdout, err)


class ToolTest(harness.BrokerTest):
    @classmethod
    def setUpClass(cls):
        """Groups of one member, as the console consumer's, have nobody to wait for."""
        cls.OVERRIDES = dict({"group.initial.rebalance.delay.ms": "0"}, **cls.OVERRIDES)
        super().setUpClass()

    def tool(self, name, *args, status=0, server=True, **kw):
        """The result of a tool that must end with this status."""
        if server:
            args = ("--bootstrap-server", self.broker.address, *args)
        r = run_tool(name, *args, **kw)
        self.assertEqual(r.status, status, "%s %s: %s%s" % (name, " ".join(map(str, args)), r.text, r.err))
        return r

    def shell(self, line, status=0, deadline=60):
        """A pipeline, as people type it: $S is the broker, the tools are on the path."""
        env = dict(os.environ, S=self.broker.address, PATH=harness.bin_dir() + ":" + os.environ["PATH"])
        p = subprocess.run(["bash", "-c", line], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, timeout=deadline, env=env)
        err = p.stderr.decode("utf-8", "replace")
        self.assertIsNone(harness.SANITIZER.search(err), err)
        self.assertEqual(p.returncode, status, "%s: %s" % (line, err))
        return Result(p.returncode, p.stdout, err)

    def create(self, name, partitions=1, *args):
        self.tool("kafka-topics", "--create", "--topic", name, "--partitions", partitions,
                  "--replication-factor", 1, *args)

    def assert_usage(self, result, message):
        """A line, then the table of options, on standard error."""
        self.assertEqual(result.status, 1)
        self.assertEqual(result.out, b"")
        self.assertRegex(result.err.splitlines()[0], message)
        self.assertTrue(re.search(r"^Option +Description$", result.err, re.M))
