"""run.py - chaos: clusters in network namespaces, one after the other, until the time is over.

    run.py MINUTES [--seed N] [--life SECONDS] [--only FAULT,FAULT...] [--set KEY=VALUE] [--totals FILE]

Each life is a cluster of its own with the seed N, N + 1, ...: the same seed makes the same plan of faults. One line sums
up; artifacts of a life with a violation are kept, and their place is printed. Exit status: 0, 1 for a violation, 77
where namespaces are not to be had."""
import argparse
import os
import random
import shutil
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
import faults  # noqa: E402
import harness  # noqa: E402
import topology  # noqa: E402
import txn_history  # noqa: E402

PREFIX = "kafkad-chaos-"
PROGRAMS = ("kafkad", "kafka-verifiable-producer", "kafka-verifiable-consumer", "tests/transactions", "tests/chaos_switch",
            "tests/libchaos_clock.so")
REST = 45  # seconds of a life that its start, peace and verdict take


def remove_stale():
    """Folders of runs that are no more (theirs is all that can be left)."""
    for name in os.listdir(tempfile.gettempdir()):
        pid = name[len(PREFIX):]
        if name.startswith(PREFIX) and pid.isdigit() and not os.path.exists("/proc/" + pid):
            if not os.path.exists(os.path.join(tempfile.gettempdir(), name, "KEPT")):
                shutil.rmtree(os.path.join(tempfile.gettempdir(), name), ignore_errors=True)


def kinds(text):
    asked = text.split(",")
    for kind in asked:
        if kind not in faults.Faults.WEIGHTS:
            raise argparse.ArgumentTypeError("no such kind of fault: %r" % kind)
    return asked


def positive(text):
    value = float(text)
    if not value > 0:
        raise argparse.ArgumentTypeError("%s is not above 0" % text)
    return value


def setting(text):
    if "=" not in text:
        raise argparse.ArgumentTypeError("%r is not KEY=VALUE" % text)
    return tuple(text.split("=", 1))


def arguments(argv=None):
    p = argparse.ArgumentParser(prog="chaos.sh", description=__doc__.split("\n")[0],
                                epilog="Kinds of faults: %s." % ", ".join(sorted(faults.Faults.WEIGHTS)))
    p.add_argument("minutes", type=positive, nargs="?", default=3, help="how long, in all (3); of each cluster 45 seconds are its start and the verdict")
    p.add_argument("--seed", type=int, default=random.randrange(1 << 24), help="makes the plan of faults; else one is picked, and printed")
    p.add_argument("--life", type=positive, default=240, help="seconds of one cluster (240); the next has the next seed")
    p.add_argument("--round", type=positive, default=60, help="seconds of faults before all must become whole (60)")
    p.add_argument("--only", type=kinds, metavar="KIND,KIND...", help="kinds of faults; else all")
    p.add_argument("--go-on", action="store_true", help="after a violation, too")
    p.add_argument("--set", type=setting, action="append", default=[], metavar="KEY=VALUE", help="a setting of the brokers")
    p.add_argument("--totals", metavar="FILE", help="a file that the last line is added to")
    p.add_argument("--check", action="store_true", help=argparse.SUPPRESS)  # the arguments, and no more
    return p.parse_args(argv)


class Total:
    def __init__(self):
        self.faults, self.outages, self.violations, self.lives = {}, [0, 0.0, 0.0], 0, 0
        self.frames, self.acts, self.group, self.transactions, self.effects = {}, {}, {}, {}, {}
        self.count = None

    def add(self, life, frames):
        self.lives += 1
        self.violations += len(life.violations)
        for mine, its in ((self.faults, life.faults.count), (self.frames, frames),
                          (self.acts, life.churn.done), (self.group, life.group.totals()),
                          (self.transactions, life.transaction_totals()), (self.effects, life.effects)):
            for k, n in its.items():
                mine[k] = mine.get(k, 0) + n
        n, seconds, longest = life.outages()
        self.outages = [self.outages[0] + n, self.outages[1] + seconds, max(self.outages[2], longest)]
        if self.count:
            self.count.add(life.count)
        else:
            self.count = life.count

    def line(self, seed, seconds):
        c = self.count
        listed = lambda d: ", ".join("%s %d" % x for x in sorted(d.items()))  # noqa: E731
        return ("chaos: %.1f minutes, %d clusters, seed %d; faults %d (%s); seen: %s; frames %s; administration: %s; acknowledged "
                "%d, lost %d, duplicated %d, reordered %d, vanished %d; group: %s; %s; unavailable: %d outages over 1 s, %.0f "
                "partition-seconds, longest %.1f s; violations %d"
                % (seconds / 60, self.lives, seed, sum(self.faults.values()), listed(self.faults), listed(self.effects), listed(self.frames),
                   listed(self.acts), c.acknowledged, c.lost, c.duplicated, c.reordered, c.vanished, listed(self.group), self.transaction_line(),
                   self.outages[0], self.outages[1], self.outages[2], self.violations))

    def transaction_line(self):
        n = lambda name: self.transactions.get(name, 0)  # noqa: E731
        broken = ", ".join("%s %d" % (kind.replace("_", " "), n(kind)) for kind in txn_history.KINDS)
        return ("transactions: committed %d (by the C library %d), in doubt %d, aborted %d, zombies %d, fenced %d, records of committed ones %d, %s"
                % (n("committed"), n("library"), n("doubtful"), n("aborted") + n("open"), n("zombies"), n("fenced"), n("records"), broken))


def live(args, seed, seconds, folder, total):
    from life import Life  # (needs to be inside)
    began = time.monotonic()
    life = Life(seed, folder, lambda text: print(text, flush=True), args.only,
                settings=dict(args.set))
    try:
        life.start()
        end = began + max(seconds - REST, 10)
        good = True
        while good and time.monotonic() < end:
            life.faults.run(min(args.round, max(5, end - time.monotonic())))
            if time.monotonic() >= end:
                life._end([life.churn], 30)
            good = life.become_whole()
        life._end([life.churn], 30)
        if good:
            life.finish()
    except Exception as e:
        life.wrong("the run itself: %r" % e)
        import traceback
        traceback.print_exc()
    finally:
        frames = life.net.stats() if hasattr(life, "net") else {}
        life.close()
        if hasattr(life, "faults"):
            total.add(life, frames)
    print("seed %d: %.0f s, %d acknowledged, %d faults, %d violations"
          % (seed, time.monotonic() - began, life.count.acknowledged, sum(life.faults.count.values())
             if hasattr(life, "faults") else 0, len(life.violations)), flush=True)
    return not life.violations


def missing_programs():
    """What is wrong with the folder of programs, or None: else a run of minutes ends in a verdict on what was never there."""
    try:
        for name in PROGRAMS:
            if not os.path.exists(harness.program(name)):
                return "there is no %s" % harness.program(name)
    except RuntimeError as e:
        return str(e)
    return None


def main():
    args = arguments()
    if args.check:
        return 0
    missing = missing_programs()
    if missing:
        print("chaos: %s: KAFKAD_BIN_DIR names the folder bin of a build with tests" % missing)
        return 2
    why = None if os.environ.get(topology.INSIDE) else topology.unavailable()
    if why:
        print("chaos: skipped: %s" % why)
        return 77
    if not os.environ.get(topology.INSIDE):
        remove_stale()
        if "--seed" not in sys.argv:
            sys.argv += ["--seed", str(args.seed)]
    topology.enter([sys.executable, "-B"] + sys.argv)
    print("chaos: seed %d" % args.seed, flush=True)
    folder = os.path.join(tempfile.gettempdir(), PREFIX + os.environ[topology.INSIDE])
    began, total, seed, good = time.monotonic(), Total(), args.seed, True
    while good or args.go_on:
        left = args.minutes * 60 - (time.monotonic() - began)
        if left < 60 and total.lives:
            break
        good = live(args, seed, min(args.life, left), os.path.join(folder, str(seed)), total) and good
        seed += 1
    line = total.line(args.seed, time.monotonic() - began)
    print(line)
    if args.totals:
        with open(args.totals, "a") as f:
            f.write(line + "\n")
    if good:
        shutil.rmtree(folder, ignore_errors=True)
        return 0
    open(os.path.join(folder, "KEPT"), "w").close()
    print("chaos: artifacts are in %s" % folder)
    return 1


if __name__ == "__main__":
    sys.exit(main())
