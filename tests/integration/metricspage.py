"""A broker's metrics, as Prometheus would read them. The broker needs metrics.http.listener=127.0.0.1:0.

    metricspage.read(broker).get("kafka_log_log_size", topic="t", partition=0)
"""
import http.client
import re

import harness

SAMPLE = re.compile(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{((?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*",?)+)\})? (\S+)$')


def port(broker):
    line = broker.wait_line(r"serving http://127\.0\.0\.1:\d+/metrics")
    return int(re.search(r"127\.0\.0\.1:(\d+)/metrics", line)[1])


def ask(port, method="GET", path="/metrics"):
    """(status, content type, text)"""
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=harness.DEADLINE)
    try:
        c.request(method, path)
        r = c.getresponse()
        return r.status, r.getheader("Content-Type"), r.read().decode()
    finally:
        c.close()


def read(broker):
    status, kind, text = ask(port(broker))
    assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8"), (status, kind)
    return Page(text)


class Page:
    """Parses the text strictly: each line must be one of the format's."""

    def __init__(self, text):
        self.samples, self.types, self.helps = {}, {}, set()
        family = None
        assert text.endswith("\n")
        for line in text[:-1].split("\n"):
            if line.startswith("# HELP "):
                family = line.split(" ", 3)[2]
                assert family not in self.helps, family
                self.helps.add(family)
            elif line.startswith("# TYPE "):
                name, kind = line.split(" ")[2:]
                assert name == family and kind in ("counter", "gauge", "summary"), line
                self.types[name] = kind
            else:
                m = SAMPLE.match(line)
                assert m, line
                assert m[1] == family or (self.types[family] == "summary" and
                                          m[1] in (family + "_sum", family + "_count")), line
                key = m[1], tuple(sorted(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', m[2] or "")))
                assert key not in self.samples, line
                self.samples[key] = float(m[3])
        assert self.helps == set(self.types)

    def get(self, name, default=None, **labels):
        return self.samples.get((name, tuple(sorted((k.rstrip("_"), str(v)) for k, v in labels.items()))), default)
