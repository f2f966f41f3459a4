"""topology.py - machines of a cluster as network namespaces on one machine.

    topology.enter(sys.argv)                        # re-runs the program in namespaces of its own
    with topology.Network(seed, ["b1", "b2", "zk1", "client"]) as net:
        net.popen("b1", ["kafkad", ...])
        net.rule("b1", "b2", delay_ms=50, loss=0.1)     # one direction; net.clear() takes all back
        net.move_in("client")                           # this thread and those it starts

Each node is a namespace with one device, 10.77.0.N, whose frames go through chaos_switch: it delays, loses, doubles,
reorders and cuts by pair and direction. (tc netem would be another way: it works on devices, not on pairs, and kernels
come without it.)

Nothing is left behind, whatever ends the program: it runs as the first process of a process namespace, so that all it
has started ends with it; its mounts and the names of its network namespaces live in a mount namespace of its own and
end likewise.
"""
import ctypes
import os
import subprocess
import threading

import harness

INSIDE = "KAFKAD_CHAOS_INSIDE"
CLONE_NEWNET = 0x40000000
MTU = 9000


class Unavailable(Exception):
    """Namespaces are not to be had here."""


def unavailable():
    """Why it cannot work here, in one line; None: it can."""
    if os.geteuid() != 0:
        return "network namespaces want root"
    if not os.path.exists("/dev/net/tun"):
        return "there is no /dev/net/tun"
    for tool in ("ip", "unshare", "nsenter", "mount"):
        if subprocess.run(["sh", "-c", "command -v " + tool], stdout=subprocess.DEVNULL).returncode:
            return "there is no %s" % tool
    tried = subprocess.run(["unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc", "ip", "link"],
                           stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    if tried.returncode:
        return "no namespaces: %s" % tried.stderr.decode("utf-8", "replace").strip()
    return None


def enter(command):
    """Runs the command again inside new namespaces and ends with its status; returns when that has been done."""
    if os.environ.get(INSIDE):
        subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], check=True)
        os.makedirs("/run/netns")
        return
    os.environ[INSIDE] = str(os.getpid())
    os.execvp("unshare", ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"] + command)


def move_in(name):
    """This thread, and those and the processes it starts, are in the namespace from now on."""
    fd = os.open("/run/netns/" + name, os.O_RDONLY)
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.setns(fd, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns " + name)
    finally:
        os.close(fd)


class Network:
    def __init__(self, seed, names):
        self.names = list(names)
        self.number = {name: i + 1 for i, name in enumerate(self.names)}
        self.lock = threading.Lock()
        self.rules = {}   # (source, target) -> the rules that hold there, the newest last: it is the switch's
        for name in self.names:
            ip("netns", "add", name)
        self.switch = subprocess.Popen([harness.program("tests/chaos_switch"), str(seed)] + self.names,
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.switch.stdout.readline() != "ready\n":
            raise Unavailable("chaos_switch does not start")
        for name in self.names:
            self._configure(name)

    def __enter__(self):
        return self

    def __exit__(self, *ignored):
        self.close()

    def close(self):
        self.switch.kill()
        self.switch.communicate()
        for name in self.names:
            ip("netns", "del", name)

    def _configure(self, name):
        """Neighbours are written down: nobody has to ask who has which address."""
        lines = ["link set lo up", "link set eth0 address %s mtu %d txqueuelen 5000" % (mac(self.number[name]), MTU),
                 "addr add %s/24 dev eth0" % self.address(name), "link set eth0 up"]
        lines += ["neigh add %s lladdr %s dev eth0 nud permanent" % (self.address(other), mac(n))
                  for other, n in self.number.items() if other != name]
        subprocess.run(["ip", "-n", name, "-batch", "-"], input="\n".join(lines), text=True, check=True)

    def address(self, name):
        return "10.77.0.%d" % self.number[name]

    def popen(self, name, command, **args):
        """A process on the node."""
        return subprocess.Popen(["nsenter", "--net=/run/netns/" + name] + command, **args)

    # -- faults

    def rule(self, source, target, delay_ms=0, jitter_ms=0, loss=0.0, duplicate=0.0, reorder=0.0):
        """What happens to frames from source to target until mend() is given what this returns; shares are 0 to 1, loss 1
        is a cut. A newer rule of the pair hides it meanwhile."""
        rule = [int(x) for x in (delay_ms * 1000, jitter_ms * 1000, loss * 1e6, duplicate * 1e6, reorder * 1e6)]
        with self.lock:
            self.rules.setdefault((source, target), []).append(rule)
            self._obey(source, target)
        return source, target, rule

    def mend(self, made):
        source, target, rule = made
        with self.lock:
            held = self.rules[source, target]
            held[:] = [r for r in held if r is not rule]
            self._obey(source, target)

    def clear(self):
        with self.lock:
            for pair, held in self.rules.items():
                if held:
                    held.clear()
                    self._obey(*pair)

    def _obey(self, source, target):
        rule = (self.rules[source, target] or [[0] * 5])[-1]
        self.switch.stdin.write("%d %d %d %d %d %d %d\n" % (self.number[source], self.number[target], *rule))
        self.switch.stdin.flush()

    def stats(self):
        """{what happened to frames: how often}"""
        with self.lock:
            self.switch.stdin.write("stats\n")
            self.switch.stdin.flush()
            words = self.switch.stdout.readline().split()
        return {words[i]: int(words[i + 1]) for i in range(0, len(words), 2)}


def mac(number):
    return "02:00:00:00:00:%02x" % number


def ip(*args):
    subprocess.run(["ip"] + list(args), check=True)
