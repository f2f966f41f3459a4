"""Compiles each header alone, with gcc and with clang, on the include path of its room; the public headers
also as C++. Usage: lint_headers.py compile_commands.json"""
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parent.parent
WARNINGS = ["-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"]


def include_paths(commands_file):
    """Target -> its -I, -isystem and -D flags, as the build has them."""
    paths = {}
    for entry in json.loads(pathlib.Path(commands_file).read_text()):
        words = shlex.split(entry["command"])
        target = re.search(r"CMakeFiles/([^/]+)\.dir/", entry["command"]).group(1)
        flags = [w for w in words if w.startswith(("-I", "-D"))]
        for at, word in enumerate(words[:-1]):
            if word == "-isystem":
                flags += [word, words[at + 1]]
        paths.setdefault(target, flags)
    return paths


def jobs(paths):
    """Yields (header, compiler command). A header of a room is named as others include it: "room/header.h"."""
    tests = next((flags for target, flags in paths.items() if target.startswith("server_test_")), None)
    tests = tests or next((flags for target, flags in paths.items() if "_test_" in target), [])
    for header in sorted(root.glob("src/*/*.h")):
        flags = paths.get(f"room_{header.parent.name}")
        if flags is None:
            sys.exit(f"{header}: there is no room {header.parent.name}")
        yield header, f"{header.parent.name}/{header.name}", "c", flags
    for header in sorted(root.glob("tests/unit/*.h")):
        yield header, str(header), "c", tests
    for header in sorted(root.glob("include/*/*.h")):
        for language in "c", "c++":
            yield header, f"{header.parent.name}/{header.name}", language, [f"-I{root}/include"]


def compile_alone(job):
    header, name, language, flags = job
    standard = "gnu11" if language == "c" else "c++11"
    errors = ""
    for compiler in "gcc", "clang":
        compiler = {"c": compiler, "c++": {"gcc": "g++", "clang": "clang++"}[compiler]}[language]
        if not shutil.which(compiler):
            sys.exit(f"{compiler} is not installed")
        # Twice: the guard must hold.
        source = f'#include "{name}"\n#include "{name}"\n'
        run = subprocess.run([compiler, "-fsyntax-only", f"-std={standard}", *WARNINGS, *flags, "-x", language, "-"],
                             input=source, capture_output=True, text=True)
        if run.returncode:
            errors += f"{header.relative_to(root)} alone, {compiler}:\n{run.stderr}"
    return errors


def guard_error(header):
    """Include guards are ROOM_FILE_H (public headers: KAFKA_FILE_H)."""
    want = re.sub(r"\W", "_", f"{header.parent.name}_{header.name}").upper()
    if header.parent.name == "unit":
        want = re.sub(r"\W", "_", f"tests_{header.name}").upper()
    if f"#ifndef {want}\n#define {want}\n" in header.read_text():
        return ""
    return f"{header.relative_to(root)}: the include guard is not {want}\n"


def main():
    work = list(jobs(include_paths(sys.argv[1])))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        errors = "".join(pool.map(compile_alone, work))
    errors += "".join(guard_error(header) for header in sorted({job[0] for job in work}))
    sys.stdout.write(errors)
    sys.exit(1 if errors else 0)


main()
