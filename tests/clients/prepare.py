"""prepare.py - gets a client from its registry by the registry's own tool, and builds its program. What was got and
built lies in the folder of the clients (a folder a client and version) with a stamp, and is used again while neither
the sources nor the version changed. A registry that is out of reach, or a tool that isn't there, is a Skip."""
import fcntl
import glob
import hashlib
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
FETCH_DEADLINE = 240


class Skip(Exception):
    """Not to be had here; the text is the one line that says why."""


def work_dir():
    given = os.environ.get("KAFKAD_CLIENTS_DIR")
    return given or os.path.join(os.path.dirname(os.path.dirname(HERE)), "build", "clients")


def need(*tools):
    for tool in tools:
        if not shutil.which(tool):
            raise Skip("%s is not installed" % tool)


def fetch(what, args, **more):
    """Runs a registry's tool. It fails: the registry is out of reach (its last words say how). One at a time: Maven's
    store of what it has got is not made for several writers."""
    try:
        with open(os.path.join(work_dir(), ".fetching"), "w") as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)
            p = subprocess.run(args, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               timeout=FETCH_DEADLINE, **more)
    except subprocess.TimeoutExpired:
        raise Skip("%s is not to be had within %d s" % (what, FETCH_DEADLINE))
    if p.returncode != 0:
        said = re.sub(r"\x1b\[[0-9;]*m", "", p.stdout.decode("utf-8", "replace"))
        lines = [line.strip() for line in said.splitlines() if line.strip()]
        telling = [line for line in lines if "error" in line.lower()] or lines or ["status %d" % p.returncode]
        raise Skip("%s is not to be had: %s" % (what, telling[0][:200]))


def build(args, **more):
    """Runs a compiler; that it fails is a failure of the test."""
    p = subprocess.run(args, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **more)
    if p.returncode != 0:
        raise RuntimeError("%s: status %d\n%s" % (" ".join(args[:3]), p.returncode, p.stdout.decode("utf-8", "replace")))


class Folder:
    """A client's folder, locked while it is made ready. with Folder(name, sources, version) as f: if f.stale: ..."""

    def __init__(self, name, patterns, *versions):
        self.path = os.path.join(work_dir(), name)
        os.makedirs(self.path, exist_ok=True)
        h = hashlib.sha256(repr(versions).encode())
        for pattern in patterns:
            for path in sorted(glob.glob(os.path.join(HERE, pattern))):
                with open(path, "rb") as f:
                    h.update(f.read())
        self.wanted = h.hexdigest()

    def __enter__(self):
        self.lock = open(os.path.join(self.path, ".lock"), "w")
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        try:
            with open(os.path.join(self.path, ".stamp")) as f:
                self.stale = f.read() != self.wanted
        except FileNotFoundError:
            self.stale = True
        return self

    def __exit__(self, kind, *_):
        if kind is None and self.stale:
            with open(os.path.join(self.path, ".stamp"), "w") as f:
                f.write(self.wanted)
        self.lock.close()

    def at(self, *parts):
        return os.path.join(self.path, *parts)


def java(version):
    """kafka-clients of a version: (command, version)"""
    need("java", "javac", "mvn")
    with Folder("java-%s" % version, ["java/*"], version) as f:
        if f.stale:
            fetch("kafka-clients %s" % version,
                  ["mvn", "-B", "-q", "-f", os.path.join(HERE, "java", "pom.xml"), "-Dkafka.version=%s" % version,
                   "-DoutputDirectory=%s" % f.at("lib"), "dependency:copy-dependencies"])
            build(["javac", "-nowarn", "-d", f.at("classes"), "-cp", f.at("lib", "*")] +
                  sorted(glob.glob(os.path.join(HERE, "java", "*.java"))))
        # one collector thread and no second compiler: a short life on few cores
        return ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Xmx512m", "-cp",
                f.at("classes") + os.pathsep + f.at("lib", "*"), "Main"], version


def python(package, version, program, *extras):
    """A package of PyPI in a virtual environment of its own."""
    name = package.split("[")[0]
    with Folder("python-%s-%s" % (name, version), [], package, version, extras) as f:
        if f.stale:
            shutil.rmtree(f.at("venv"), ignore_errors=True)
            fetch("a virtual environment", [sys.executable, "-m", "venv", f.at("venv")])
            fetch("%s %s" % (name, version), [f.at("venv", "bin", "pip"), "install", "-q", "%s==%s" % (package, version),
                                              *extras])
        return [f.at("venv", "bin", "python"), "-u", "-B", os.path.join(HERE, "python", program)], version


def node(package, version, program, at_least, *extras):
    """A package of the npm registry, with its program beside node_modules: there node finds what it imports."""
    need("node", "npm")
    found = subprocess.run(["node", "--version"], stdout=subprocess.PIPE).stdout.decode().strip().lstrip("v")
    if int(found.split(".")[0]) < at_least:
        raise Skip("%s %s needs node %d, here is %s" % (package, version, at_least, found))
    with Folder("node-%s-%s" % (package.replace("/", "-").replace("@", ""), version), ["node/*"], version, extras) as f:
        if f.stale:
            with open(f.at("package.json"), "w") as p:
                p.write('{"private": true}\n')
            fetch("%s %s" % (package, version),
                  ["npm", "install", "--fetch-retries=1", "--fetch-retry-maxtimeout=5000", "--no-audit", "--no-fund", "--no-save", "--no-package-lock",
                   "%s@%s" % (package, version), *extras], cwd=f.path)
            for path in glob.glob(os.path.join(HERE, "node", "*.mjs")):
                shutil.copy(path, f.path)
        return ["node", f.at(program)], version


def go(module, program):
    """A module of the Go proxy; the version is go.mod's."""
    need("go")
    with open(os.path.join(HERE, "go", "go.mod")) as p:
        words = [line.replace("require ", "").split() for line in p]
    version = next(w[1] for w in words if len(w) >= 2 and w[0] == module)
    with Folder("go-%s" % program, ["go/go.*", "go/common/*", "go/%s/*" % program]) as f:
        if f.stale:
            where = os.path.join(HERE, "go")
            fetch("%s %s" % (module, version), ["go", "mod", "download"], cwd=where)
            build(["go", "build", "-o", f.at("program"), "./" + program], cwd=where)
        return [f.at("program")], version
