"""The message compiler: what it refuses, with file and line, and what it makes of a small schema."""
import os
import subprocess
import sys
import tempfile
import unittest

GEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "src", "protocol", "gen")
sys.dont_write_bytecode = True
sys.path.insert(0, GEN)
import msg_schema  # noqa: E402

# The line of the mistake is the last one, unless a number says which.
MISTAKES = [
    ("data X 0\n  a int8 0", "indentation"),
    ("data X 0\n        a int8 0", "indentation"),
    ("data X 0\n\ta int8 0", "indentation"),
    ("date X 0", "expected 'data'"),
    ("data x 0", "bad message name"),
    ("data X", "expected: NAME VERSIONS"),
    ("data X 0+", "highest version"),
    ("data X 0 flexible 1-2", "highest version"),
    ("data X 3-1", "bad version range"),
    ("data X 0-99999", "bad version range"),
    ("api Foo 0", "expected: api KEY"),
    ("api 1 Foo 0\nrequest", "one request and then one response", 1),
    ("api 1 Foo 0\nresponse\nrequest", "one request and then one response", 1),
    ("data X 0\n    a int8", "expected: NAME TYPE VERSIONS"),
    ("data X 0\n    a [int8] 0", "expected: NAME TYPE VERSIONS"),
    ("data X 0\n    A int8 0", "bad field name"),
    ("data X 0\n    switch int8 0", "bad field name"),
    ("data X 0\n    a int8 0\n    a int8 0", "is there already"),
    ("data X 0\n    a int9 0", "unknown type"),
    ("data X 0\n    a int8 0\n        b int8 0", "not a struct", 2),
    ("data X 0\n    a b 0\n        c int8 0\n    d b 0\n        c int8 0", "is there already", 4),
    ("data X 0\n    struct b\n        c int8 0", "is not used", 2),
    ("data X 0\n    struct b\n        c []b 0\n    d b 0", "contains itself", 2),
    ("data X 0\n    struct int8\n        c int8 0", "bad struct name", 2),
    ("data X 0\n    a b 0\n        struct c\n            d int8 0", "top of its message", 3),
    ("data X 0-3\n    a int8 4+", "none of these versions"),
    ("data X 0\n    a int8? 0", "cannot be null"),
    ("data X 0-3\n    a string?0-2 1+", "lack the field"),
    ("data X 0\n    a int8 0 tag 0", "not flexible"),
    ("data X 0-3 flexible 2+\n    a int8 1+ tag 0", "not flexible"),
    ("data X 0 flexible 0+\n    a int8 0+ tag 0\n    b int8 0+ tag 0", "tag is used twice", 1),
    ("data X 0\n    a int8 0 plain", "only a string"),
    ("data X 0\n    a int8 0 nice", "do not understand"),
    ("data X 0\n    a int8 0 tag", "do not understand"),
    ("data X 0\n    a int8 0 =", "do not understand"),
    ("data X 0\n    a int8 0 = 128", "is no default"),
    ("data X 0\n    a uint16 0 = -1", "is no default"),
    ("data X 0\n    a string 0 = null", "is no default"),
    ("data X 0\n    a bool 0 = 1", "is no default"),
    ("data X 0\n    a []int8 0 = 1", "is no default"),
    ("data X 0 flexible 0+\n    a b? 0\n        c int8 0", "'= null'", 2),
]


def save(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="ascii") as file:
        file.write(text + "\n")
    return path


class Msgc(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def run_msgc(self, *texts):
        paths = [save(self.folder.name, "f%d.msg" % i, text) for i, text in enumerate(texts)]
        out = os.path.join(self.folder.name, "out")
        done = subprocess.run([sys.executable, "-B", os.path.join(GEN, "msgc.py"), out] + paths,
                              capture_output=True, text=True, check=False)
        return done, os.path.join(out, "protocol", "msg")

    def test_mistakes_are_reported_with_file_and_line(self):
        for text, error, *line in MISTAKES:
            with self.subTest(text=text):
                path = save(self.folder.name, "x.msg", text)
                with self.assertRaises(msg_schema.SchemaError) as raised:
                    msg_schema.parse_file(path)
                where = "%s:%d: " % (path, line[0] if line else text.count("\n") + 1)
                self.assertTrue(str(raised.exception).startswith(where), str(raised.exception))
                self.assertIn(error, str(raised.exception))

    def test_a_mistake_stops_the_build(self):
        done, out = self.run_msgc("data X 0\n    a int9 0")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("f0.msg:2: unknown type", done.stderr)
        self.assertFalse(os.path.exists(out))

    def test_names_and_keys_are_unique_over_all_files(self):
        done, _ = self.run_msgc("data X 0", "data X 0")
        self.assertIn("f1.msg:1: x is also in", done.stderr)
        done, _ = self.run_msgc("api 1 A 0\nrequest\nresponse", "api 1 B 0\nrequest\nresponse")
        self.assertIn("1 is also in", done.stderr)

    def test_least_sizes(self):
        path = save(self.folder.name, "x.msg", """\
data X 0-2 flexible 2+
    a string 0+
    b []int64 1+
    c int32 0-1
    d uuid 2+ tag 0
    e f 0+
        g bool 0+
        h string? 0+ plain""")
        message = msg_schema.parse_file(path)[0]
        self.assertEqual([message.body.least(v, v >= 2) for v in range(3)], [2 + 4 + 3, 2 + 4 + 4 + 3, 1 + 1 + 4 + 1])

    def test_unchanged_files_are_not_written_again(self):
        done, out = self.run_msgc("data X 0\n    a int8 0", "data Y 0\n    a int8 0")
        self.assertEqual(done.returncode, 0, done.stderr)
        old = {name: os.stat(os.path.join(out, name)).st_mtime_ns for name in os.listdir(out)}
        done, _ = self.run_msgc("data X 0\n    a int8 0", "data Y 0\n    a int16 0")
        self.assertEqual(done.returncode, 0, done.stderr)
        changed = [n for n in old if os.stat(os.path.join(out, n)).st_mtime_ns != old[n]]
        self.assertEqual(sorted(changed), ["f1.c", "f1.h"])


if __name__ == "__main__":
    unittest.main()
