#!/usr/bin/env python3
"""manual.py - manual pages and bash completion, made at build time of what the programs say of themselves.

    manual.py man PROGRAM OUTPUT           a page: of a tool (--print-options), of kafkad (--help), or of a shell
                                           script (the comment at its top)
    manual.py completion OUTPUT PROGRAM..  one file for all of them
"""
import os
import re
import subprocess
import sys


class Option:
    def __init__(self, name, letter="", kind="flag", value="", text=""):
        self.name, self.letter, self.kind, self.value, self.text = name, letter, kind, value, text


class Program:
    """name, about (a sentence), synopsis (behind the name), description (paragraphs), options."""

    def __init__(self, path):
        self.name = os.path.basename(path)
        self.words, self.description, self.options = "", [], []
        with open(path, "rb") as f:
            script = f.read(2) == b"#!"
        if script:
            self.read_script(path)
        elif self.name == "kafkad":
            self.read_usage(say(path, "--help"))
        else:
            self.read_rows(say(path, "--print-options"))

    def read_rows(self, text):
        for line in text.splitlines():
            kind, *fields = line.split("\t")
            if kind == "about":
                self.about = fields[0]
            elif kind == "words":
                self.words = fields[0]
            else:
                self.options.append(Option(*fields))
        self.options += [Option("help", "h", text="Print usage information."), Option("version", text="Display the version.")]
        self.options.sort(key=lambda o: o.name)
        self.synopsis = (self.words + " " if self.words else "") + "[OPTION]..."

    def read_usage(self, text):
        """`Usage: name WORDS`, sentences, then lines of `  --option value   text`."""
        head, _, rows = text.partition("\n\n")
        first, *rest = head.splitlines()
        self.synopsis = first.split(self.name, 1)[1].strip()
        self.about = rest[0]
        for line in rows.splitlines():
            for name in re.findall(r"--([\w-]+)", line.split("   ")[0]):
                m = re.match(r" +--[\w-]+(?: (\S+))? {3,}(.*)", line)
                value, said = (m.group(1) or "", m.group(2)) if m else ("", "")
                self.options.append(Option(name, kind="value" if value else "flag", value=value,
                                           text=said.capitalize() + "." if said else ""))

    def read_script(self, path):
        """`# name - what it does`, then usage and paragraphs, up to the first line that is no comment."""
        with open(path) as f:
            lines = f.read().splitlines()[1:]
        comment = []
        for line in lines:
            if not line.startswith("#"):
                break
            comment.append(line[1:].strip())
        about = comment[0].split(" - ", 1)[1].rstrip(".") + "."
        self.about = about[:1].upper() + about[1:]
        paragraphs = re.split(r"\n\s*\n", "\n".join(comment[1:]).strip())
        self.synopsis = paragraphs[0].split(self.name, 1)[1].strip()
        self.description = [" ".join(p.split()) for p in paragraphs[1:]]
        names = list(dict.fromkeys(re.findall(r"(?<![\w-])(--?[a-z][\w-]+)", self.synopsis)))
        self.options = [Option(n.lstrip("-"), kind="single" if not n.startswith("--") else "flag") for n in names]
        self.options += [Option("help")]


def say(path, flag):
    return subprocess.run([path, flag], check=True, stdout=subprocess.PIPE, text=True).stdout


# ---- manual pages ----

def troff(text):
    """Text that troff takes as it is."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text[:1] in ".'" else text


def flag_line(o):
    dashes = "-" if o.kind == "single" else "--"
    names = ["\\fB%s\\fR" % troff(dashes + o.name)] + (["\\fB%s\\fR" % troff("-" + o.letter)] if o.letter else [])
    value = " \\fI%s\\fR" % troff(o.value) if o.value else ""
    if o.kind == "maybe":
        value = " [%s]" % value.strip()
    return ", ".join(names) + value


def page(p, section):
    out = ['.\\" Made by manual.py of what the program says of itself: do not edit.',
           '.TH "%s" "%d" "" "kafkad" "kafkad"' % (troff(p.name.upper()), section),
           ".SH NAME", "%s \\- %s" % (troff(p.name), troff(p.about[:1].lower() + p.about[1:].rstrip("."))),
           ".SH SYNOPSIS", ".B " + troff(p.name), troff(p.synopsis), ".SH DESCRIPTION", troff(p.about)]
    for paragraph in p.description:
        out += [".PP", troff(paragraph)]
    described = [o for o in p.options if o.text or section == 8 or not p.description]
    if described:
        out.append(".SH OPTIONS")
    for o in described:
        out += [".TP", flag_line(o), troff(o.text) if o.text else "See the synopsis."]
        if o.kind == "repeated":
            out[-1] += "" if "repeated" in o.text else "\nMay be repeated."
    out += [".SH EXIT STATUS", "0 on success; 1 when something went wrong, with a line on standard error that says what.",
            ".SH SEE ALSO", "\\fBkafkad\\fR(8)" if section == 1 else "\\fBkafka\\-topics\\fR(1), \\fBkafka\\-configs\\fR(1)"]
    return "\n".join(out) + "\n"


# ---- bash ----

COMPLETION = """# bash completion of kafkad and its tools. Made by manual.py: do not edit.
_kafkad_options()
{
    case "${1%%.sh}" in
%s
    esac
}

_kafkad()
{
    local word=${COMP_WORDS[COMP_CWORD]} name=${COMP_WORDS[0]##*/}
    COMPREPLY=()
    case $word in
        -*) mapfile -t COMPREPLY < <(compgen -W "$(_kafkad_options "$name")" -- "$word") ;;
    esac
}

complete -o default -F _kafkad %s
"""


def completion(programs):
    rows, names = [], []
    for p in programs:
        flags = " ".join(("-" if o.kind == "single" else "--") + o.name for o in p.options)
        rows.append("        %s) echo '%s' ;;" % (p.name, flags))
        names += [p.name] if p.name == "kafkad" else [p.name, p.name + ".sh"]
    return COMPLETION % ("\n".join(rows), " ".join(names))


def main():
    what, *args = sys.argv[1:]
    if what == "man":
        path, output = args
        text = page(Program(path), int(output.rsplit(".", 1)[1]))
    else:
        output, *paths = args
        text = completion([Program(path) for path in paths])
    os.makedirs(os.path.dirname(output), exist_ok=True)
    with open(output, "w") as f:
        f.write(text)


if __name__ == "__main__":
    main()
