"""docs/client/*.md: their programs are those of docs/examples, and what their consoles show is what happens.

    ```c file=PATH      the file, word for word
    ```console          lines of "$ command", each with what it prints on a terminal; [...] stands for anything in a line

test_docs.py --update writes files and output into the pages: look at the difference before you commit it.
"""
import glob
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import harness
from test_library import BUILD, EXAMPLES, cache_has

PAGES = sorted(glob.glob(os.path.join(harness.ROOT, "docs", "client", "*.md")))
BLOCK = re.compile(r"^```(c file=(?P<file>\S+)|console)\n(?P<body>.*?)^```$", re.M | re.S)
SERVER = "127.0.0.1:9092" # of the pages


def on_terminal(command, folder, deadline=60):
    """What the command prints on a terminal."""
    master, slave = pty.openpty()
    env = dict(os.environ, PATH=harness.bin_dir() + ":" + os.environ["PATH"], TERM="dumb")
    p = subprocess.Popen(["bash", "-c", command], cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=slave, stderr=slave,
                         start_new_session=True)
    os.close(slave)
    out, end = b"", time.monotonic() + deadline
    while time.monotonic() < end:
        if not select.select([master], [], [], max(0, end - time.monotonic()))[0]:
            break
        try:
            got = os.read(master, 65536)
        except OSError: # nobody has the other side any more
            got = b""
        if not got:
            break
        out += got
    os.close(master)
    if p.poll() is None and time.monotonic() >= end:
        os.killpg(p.pid, 9)
        raise AssertionError("%s has not ended after %d s: %r" % (command, deadline, out[-500:]))
    p.wait(deadline)
    return out.decode("utf-8", "replace").replace("\r\n", "\n")


def commands(body):
    """[(command, output)] of a console."""
    found = []
    for line in body.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], ""))
        elif found:
            found[-1] = (found[-1][0], found[-1][1] + line + "\n")
    return found


def matches(expected, got):
    pattern = ".*".join(re.escape(part) for part in expected.split("[...]"))
    return re.fullmatch(pattern, got) is not None


@unittest.skipIf(cache_has("ASAN:BOOL=ON") or cache_has("TSAN:BOOL=ON"), "sanitizers cannot be linked to from outside")
class DocsTest(harness.BrokerTest):
    OVERRIDES = {"group.initial.rebalance.delay.ms": "0"}
    UPDATE = False

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = tempfile.mkdtemp(prefix="kafkad-test-")
        for name in EXAMPLES:
            subprocess.run(["cc", "-I" + os.path.join(harness.ROOT, "include"), "-o", os.path.join(cls.folder, name),
                            os.path.join(harness.ROOT, "docs", "examples", name + ".c"), "-L" + os.path.join(BUILD, "lib"),
                            "-Wl,-rpath," + os.path.join(BUILD, "lib"), "-lkafkad-client"], check=True, timeout=60)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder, ignore_errors=True)
        super().tearDownClass()

    def run_one(self, command):
        return on_terminal(command.replace(SERVER, self.broker.address), self.folder).replace(self.broker.address, SERVER)

    def console(self, page, body):
        """The body as it is, or as it should be."""
        text = ""
        for command, expected in commands(body):
            got = self.run_one(command)
            if not self.UPDATE:
                self.assertTrue(matches(expected, got), "%s: $ %s\n%s\nis not\n%s" % (page, command, got, expected))
            text += "$ %s\n%s" % (command, expected if matches(expected, got) else got)
        return text

    def block(self, page, m):
        if m["file"]:
            with open(os.path.join(harness.ROOT, m["file"])) as f:
                body = f.read()
            if not self.UPDATE:
                self.assertEqual(m["body"], body, "%s: %s has changed: test_docs.py --update" % (page, m["file"]))
        else:
            body = self.console(page, m["body"])
        return "```%s\n%s```" % (m[1], body)

    def test_pages_tell_what_is(self):
        for page in PAGES:
            with open(page) as f:
                text = f.read()
            made = BLOCK.sub(lambda m: self.block(os.path.basename(page), m), text)
            if self.UPDATE and made != text:
                with open(page, "w") as f:
                    f.write(made)

    def test_every_example_is_on_a_page(self):
        shown = set()
        for page in PAGES:
            with open(page) as f:
                shown |= {m["file"] for m in BLOCK.finditer(f.read()) if m["file"]}
        self.assertEqual(shown, {"docs/examples/%s.c" % name for name in EXAMPLES})

    def test_links_lead_somewhere(self):
        for page in PAGES + [os.path.join(harness.ROOT, "docs", "client-library.md")]:
            with open(page) as f:
                for link in re.findall(r"\]\(([^)#:]+)\)", f.read()):
                    self.assertTrue(os.path.exists(os.path.join(os.path.dirname(page), link)), "%s: %s" % (page, link))


class Guarantees(unittest.TestCase):
    """docs/guarantees.md: each promise names settings and what shows it, and that is there."""
    TESTS = os.path.join(harness.ROOT, "tests")

    def rows(self):
        with open(os.path.join(harness.ROOT, "docs", "guarantees.md")) as f:
            for line in f:
                cells = [c.strip() for c in line.strip().strip("|").split(" | ")]
                if line.startswith("| ") and cells[0] not in ("promise", "---"):
                    yield cells

    def text(self, *paths):
        out = ""
        for path in paths:
            found = glob.glob(os.path.join(self.TESTS, path))
            self.assertTrue(found, "%s is not there" % path)
            for name in found:
                with open(name) as f:
                    out += f.read()
        return out

    def defined(self, name, text):
        return re.search(r"(def|class|static void) %s\b" % re.escape(name), text)

    def path(self, name):
        """Below tests/."""
        if "/" in name:
            return name
        return next((d + name for d in ("integration/", "chaos/", "mixed/")
                     if os.path.exists(os.path.join(self.TESTS, d + name))), name)

    def shown(self, proof):
        """One of a cell's proofs. Names in brackets behind "chaos", "mixed", "sim" are of there, others of the file before."""
        kind, names = proof.split(" ")[0], re.findall(r"`([^`]+)`", proof)
        if kind == "sim":
            invariants = re.findall(r"\b[GLMT]\d+\b", proof)
            for i in invariants:
                self.assertIn('"%s: ' % i, self.text("sim/*.c"), proof)
            return
        files = [n for n in names if n.endswith((".py", ".c"))]
        if kind in ("chaos", "mixed"):
            text = self.text(kind + "/*.py")
        else:
            text = self.text(*[self.path(f) for f in files])
            self.assertTrue(len(names) > len(files) or "(" in proof, "%s: which one?" % proof)
        for name in names:
            if name in files:
                self.text(self.path(name))
            else:
                self.assertTrue(self.defined(name, text), "%s: there is no %s" % (proof, name))

    def test_each_names_what_shows_it(self):
        rows = list(self.rows())
        self.assertGreater(len(rows), 25)
        for cells in rows:
            self.assertEqual(len(cells), 3, cells)
            self.assertTrue(cells[1], cells)
            for proof in cells[2].split("; "):
                self.shown(proof)


if __name__ == "__main__":
    if "--update" in sys.argv:
        sys.argv.remove("--update")
        DocsTest.UPDATE = True
    unittest.main(verbosity=2)
