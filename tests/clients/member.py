"""member.py - a client's program as a member of a group.

    PROGRAM member BROKER group=G topics=a,b | pattern=REGEX [KEY=VALUE...]

    keys   group, topics, pattern, session (ms), heartbeat (ms), autocommit (true, false), instance (static member),
           assignor (range, cooperative), protocol (classic, consumer); reads from the earliest record
    says   "ASSIGNED t:0,t:1" the whole assignment, whenever it has changed; "RECORD topic partition offset value";
           "COMMITTED"; "CLOSED"; whatever else it says is ignored
    reads  "commit": commits what was read, synchronously; "close" or the end of input: leaves the group and ends
"""
import subprocess
import tempfile
import threading

from harness import until

END_DEADLINE = 20


class Member:
    def __init__(self, command, broker, name="", **settings):
        self.name = name
        self.records = []      # (topic, partition, offset, value)
        self.assigned = None   # {(topic, partition)}
        self.history = []      # all assignments
        self.commits = 0
        self.closed = False
        self.ending = False
        self.errors = tempfile.TemporaryFile()
        args = command + ["member", broker] + ["%s=%s" % kv for kv in sorted(settings.items()) if kv[1] is not None]
        self.process = subprocess.Popen(args, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for raw in self.process.stdout:
            word, _, rest = raw.decode("utf-8", "replace").rstrip("\n").partition(" ")
            if word == "RECORD":
                topic, partition, offset, value = rest.split(" ", 3)
                self.records.append((topic, int(partition), int(offset), value))
            elif word == "ASSIGNED":
                parts = (p.rpartition(":") for p in rest.split(",") if p)
                self.assigned = {(topic, int(number)) for topic, _, number in parts}
                self.history.append(self.assigned)
            elif word == "COMMITTED":
                self.commits += 1
            elif word == "CLOSED":
                self.closed = True

    def values(self):
        return [r[3] for r in list(self.records)]

    def _command(self, text):
        self.process.stdin.write(text + b"\n")
        self.process.stdin.flush()

    def commit(self):
        before = self.commits
        self._command(b"commit")

        def done():
            self.check_alive()
            return self.commits > before
        until("%s has committed" % self.name, done)

    def check_alive(self):
        assert self.ending or self.process.poll() is None, \
            "%s ended by itself with status %d" % (self.name, self.process.returncode)

    def close(self):
        """Leaves the group; the program ends by itself."""
        self.ending = True
        try:
            self._command(b"close")
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        self.process.wait(END_DEADLINE)
        self.reader.join(END_DEADLINE)
        assert self.closed, "%s ended with status %d and did not say CLOSED" % (self.name, self.process.returncode)

    def kill(self):
        self.ending = True
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(END_DEADLINE)
        self.reader.join(END_DEADLINE)

    def let_go(self):
        self.kill()
        for pipe in (self.process.stdin, self.process.stdout):
            try:
                pipe.close()
            except BrokenPipeError:
                pass
        self.errors.close()

    def tell(self):
        """Its last words on standard error."""
        self.errors.seek(0)
        twice = sorted(r for r in set(self.records) if self.records.count(r) > 1) if len(self.records) < 5000 else []
        return "%s: assigned %s, %d records%s, status %s\n%s" % (
            self.name, sorted(self.assigned) if self.assigned is not None else None, len(self.records),
            ", twice: %s" % twice[:20] if twice else "", self.process.poll(),
            self.errors.read().decode("utf-8", "replace")[-3000:])
