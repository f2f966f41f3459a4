"""driver.py - the clients of other registries against a real broker: one client a run.

    driver.py NAME [CHECK...]        the client of that name (clients.py), all its checks or those named
    driver.py --matrix               the table of what the last runs found

Every client is a small program with two ways to run:

    PROGRAM checks BROKER TOPIC_PREFIX TEXT_FILE NAME...      checks that need no group, a line for each:
        "ok NAME", "not ok NAME: why" or "skip NAME: why"
    PROGRAM member BROKER KEY=VALUE...                        a member of a group (member.py tells its lines)

so that each check of groups is written once, here in Python (group_checks.py), for all clients. Exit status: 0 all is
well, 1 a check failed, 77 skipped with one line: the registry is out of reach or the tool is not there.

What is fetched and built lies in $KAFKAD_CLIENTS_DIR (ctest: build/clients) and is used again; the results lie there
too, in results/NAME.json.
"""
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile
import threading
import time

import harness
import kwire
import clients
import group_checks
import real_input
import saslwire
from prepare import Skip, work_dir

SKIPPED = 77
UNSUPPORTED_VERSION = 35
CHECKS_DEADLINE = 150


def served(client, broker, names, results):
    """Those of the checks whose requests the broker serves; the others are noted as left out."""
    with kwire.Conn(broker.port) as c:
        newest = {k["api_key"]: k["max_version"] for k in c.call("ApiVersions", 0)["api_keys"]}
        keys = set(newest)
        if 68 in keys:  # advertised, but is it more than a refusal?
            a = c.call("ConsumerGroupHeartbeat", 0, group_id="probe", member_id="nobody", member_epoch=5)
            if a["error_code"] == UNSUPPORTED_VERSION or newest[68] < client.heartbeat:
                keys.remove(68)
    served_as_needed = "the broker does not serve API %s, or not as this client needs it"
    left_out = [n for n in names if not keys.issuperset(clients.NEEDS.get(n, ()))]
    for name in left_out:
        results.add(name, "skip", served_as_needed % sorted(set(clients.NEEDS[name]) - keys))
    return [n for n in names if n not in left_out]


def run_checks(client, command, names, results):
    """The checks without groups: the program says what it found."""
    overrides = dict(group_checks.OVERRIDES, **{"message.max.bytes": "4194304", "group.initial.rebalance.delay.ms": "0",
                                                   # some records are of 2020: not to be deleted in a run that takes long
                                                   "log.initial.task.delay.ms": "3600000"})
    if "admin-acls" in names:  # all may do all, but where there is an ACL
        overrides.update({"authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
                          "allow.everyone.if.no.acl.found": "true"})
    listeners = "PLAINTEXT://127.0.0.1:0"
    if "admin-tokens" in names:  # they are for who has logged in
        listeners += ",SASL_PLAINTEXT://127.0.0.1:0"
        overrides.update(saslwire.listener("PLAIN,SCRAM-SHA-256,SCRAM-SHA-512", plain_sasl_jaas_config=saslwire.users(
            alice="alice-pw", bob="bob-pw")), **{"delegation.token.secret.key": "the clients' secret"})
    with tempfile.TemporaryDirectory(prefix="kafkad-clients-") as folder, \
            harness.Broker(overrides=overrides, listeners=listeners) as broker:
        text = os.path.join(folder, "text")
        with open(text, "wb") as f:
            f.write(real_input.text_log())
        names = served(client, broker, names, results)
        args = command + ["checks", broker.address, client.name, text] + names
        env = dict(os.environ, KAFKAD_SASL="127.0.0.1:%d" % broker.ports.get("SASL_PLAINTEXT", 0))
        with tempfile.TemporaryFile() as errors:
            p = subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, env=env)
            too_late = threading.Timer(CHECKS_DEADLINE, p.kill)
            too_late.start()
            last = time.monotonic()
            for raw in p.stdout:
                line = raw.decode("utf-8", "replace").rstrip("\n")
                for word in ("not ok ", "ok ", "skip "):
                    if line.startswith(word):
                        name, _, why = line[len(word):].partition(": ")
                        results.add(name, word.strip(), why, time.monotonic() - last)
                        last = time.monotonic()
            p.wait()
            too_late.cancel()
            errors.seek(0)
            err = errors.read().decode("utf-8", "replace")
        missing = [n for n in names if n not in results.found]
        for name in missing:
            results.add(name, "not ok", "the program ended with status %s and did not say" % p.returncode)
        if missing or p.returncode:
            sys.stderr.write("---- %s\n%s\n----\n" % (" ".join(args), err[-6000:]))


def run_group_checks(client, command, names, results):
    with group_checks.Bench(client, command) as bench:
        for name in served(client, bench.broker, names, results):
            started = time.monotonic()
            try:
                getattr(bench, "check_" + name.replace("-", "_"))()
                results.add(name, "ok", "", time.monotonic() - started)
            except Exception as e:  # whatever it is, the next check has its turn
                results.add(name, "not ok", "%s: %s" % (type(e).__name__, e), time.monotonic() - started)
                bench.tell()
            finally:
                bench.end_members()


class Results:
    def __init__(self, client):
        self.client = client
        self.found = {}  # name -> (word, why)
        self.lock = threading.Lock()

    def add(self, name, word, why="", seconds=0.0):
        with self.lock:
            self.found[name] = (word, why)
            print("%s %s%s%s" % (word, name, ": " + why if why else "", "  (%.1f s)" % seconds if seconds else ""), flush=True)

    def count(self, word):
        return sum(1 for w, _ in self.found.values() if w == word)

    def save(self, version):
        folder = os.path.join(work_dir(), "results")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, self.client.name + ".json"), "w") as f:
            json.dump({"client": self.client.title, "version": version, "passed": self.count("ok"),
                       "failed": sorted(n for n, (w, _) in self.found.items() if w == "not ok"),
                       "left out": sorted(n for n, (w, _) in self.found.items() if w == "skip"),
                       "lacks": sorted(self.client.lacks)}, f, indent=1)


def matrix():
    folder = os.path.join(work_dir(), "results")
    rows = []
    for name in clients.NAMES:
        path = os.path.join(folder, name + ".json")
        if os.path.exists(path):
            with open(path) as f:
                r = json.load(f)
            rows.append((r["client"], r["version"], "%d of %d" % (r["passed"], r["passed"] + len(r["failed"])),
                         ", ".join(r["failed"] + ["(%s)" % n for n in r["left out"]])))
    if not rows:
        print("no client has run yet")
        return 0
    head = ("client", "version", "passed", "failed (left out)")
    widths = [max(len(r[i]) for r in rows + [head]) for i in range(len(head))]
    for row in [head] + rows:
        print("  ".join(x.ljust(w) for x, w in zip(row, widths)).rstrip())
    return 0


def main(args):
    if args == ["--matrix"]:
        return matrix()
    if not args or args[0] not in clients.NAMES:
        print("driver.py NAME [CHECK...], with a name of: %s" % ", ".join(clients.NAMES), file=sys.stderr)
        return 2
    client = clients.NAMES[args[0]]
    try:
        command, version = client.prepare()
    except Skip as e:
        print("SKIPPED %s: %s" % (client.name, e))
        return SKIPPED
    print("%s %s" % (client.title, version), flush=True)
    results = Results(client)
    wanted = [n for n in args[1:] or client.checks() if n in client.checks()]
    single = [n for n in wanted if n in clients.SINGLE_CHECKS]
    groups = [n for n in wanted if n in clients.GROUP_CHECKS + clients.MIXED_CHECKS]
    # Most of it is waiting: the groups in two halves beside the rest, each part with a broker of its own.
    with concurrent.futures.ThreadPoolExecutor() as pool:
        parts = [pool.submit(run_group_checks, client, command, half, results) for half in (groups[::2], groups[1::2]) if half]
        if single:
            parts.append(pool.submit(run_checks, client, command, single, results))
    for part in parts:
        part.result()
    if not args[1:]:
        results.save(version)
    print("%s %s: %d passed, %d failed" % (client.title, version, results.count("ok"), results.count("not ok")))
    return 1 if results.count("not ok") or not results.found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
