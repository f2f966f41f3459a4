"""What every program has: --help with status 0, --version, a manual page that names each of its flags, bash completion."""
import os
import re
import shutil
import subprocess
import unittest

import harness

SHARE = os.path.join(os.path.dirname(harness.bin_dir()), "share")
COMPLETION = os.path.join(SHARE, "bash-completion", "completions", "kafkad")
SCRIPTS = ("kafka-server-start", "kafka-server-stop")


def programs():
    return sorted(n for n in os.listdir(harness.bin_dir()) if re.match(r"^kafka[a-z0-9-]*$", n))


def output(*args):
    return subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)


def page(name):
    section = 8 if name == "kafkad" else 1
    return os.path.join(SHARE, "man", "man%d" % section, "%s.%d" % (name, section))


def flags(name):
    """Those that --help shows: of a tool, in the first column of the table."""
    place = r"" if name in SCRIPTS + ("kafkad",) else r"(?m)^"
    return set(re.findall(place + r"(--[a-z][a-z0-9.-]*[a-z0-9])", output(harness.program(name), "--help").stdout))


class ManualsTest(unittest.TestCase):
    def test_help_and_version(self):
        self.assertGreater(len(programs()), 15)
        for name in programs():
            with self.subTest(name):
                r = output(harness.program(name), "--help")
                self.assertEqual((r.returncode, r.stderr), (0, ""))
                self.assertTrue(r.stdout)
                self.assertNotRegex(r.stdout, r"REQUIRED\W+REQUIRED")
                if name != "kafka-server-stop":
                    r = output(harness.program(name), "--version")
                    self.assertEqual((r.returncode, r.stderr), (0, ""))
                    self.assertRegex(r.stdout, r"\d+\.\d+\.\d+")

    def test_every_page_names_every_flag(self):
        for name in programs():
            with self.subTest(name):
                with open(page(name)) as f:
                    text = f.read().replace("\\-", "-").replace("\\fB", "").replace("\\fR", "")
                self.assertRegex(text, r"(?m)^\.SH NAME\n%s - \S" % name)
                own = flags(name)
                self.assertTrue(own or name in SCRIPTS)
                for flag in own - ({"--help"} if name in SCRIPTS else set()):
                    self.assertRegex(text, r"(?<![\w-])%s(?![\w-])" % re.escape(flag))
                self.assertNotRegex(text, r"--print-options")

    @unittest.skipIf(shutil.which("groff") is None, "no groff")
    def test_pages_are_well_formed(self):
        for name in programs():
            r = output("groff", "-man", "-Tutf8", "-ww", page(name))
            self.assertEqual((r.returncode, r.stderr), (0, ""), name)
            self.assertIn("SYNOPSIS", re.sub(".\b", "", r.stdout))

    def complete(self, name, word):
        script = ("source '%s'\nCOMP_WORDS=('%s' '%s')\nCOMP_CWORD=1\n_kafkad\nprintf '%%s\\n' \"${COMPREPLY[@]}\"\n"
                  % (COMPLETION, name, word))
        r = subprocess.run(["bash", "--norc", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
        self.assertEqual((r.returncode, r.stderr), (0, ""))
        return r.stdout.split()

    def test_completion(self):
        for name in programs():
            if name not in SCRIPTS:
                self.assertEqual(set(self.complete(name, "--")), flags(name) | {"--help", "--version"}, name)
        self.assertEqual(self.complete("kafka-topics.sh", "--del"), ["--delete", "--delete-config"])
        self.assertEqual(self.complete("/opt/kafka/bin/kafka-topics", "--cr"), ["--create"])
        self.assertEqual(self.complete("kafka-topics", "file"), [])  # names of files, by bash itself
        self.assertIn("-daemon", self.complete("kafka-server-start", "-"))


if __name__ == "__main__":
    unittest.main()
