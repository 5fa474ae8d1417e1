"""A launcher for clang++: MLIR's headers are compiled once, not again in each of Triton's files.

`pch.py FOLDER clang++ …` compiles FOLDER/prefix.h for the command's own language options, once, and then the
command with it. A file that does not compile so is compiled as it was asked for: only time is at stake.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

OWN = {"-o", "-c", "-MT", "-MF"}  # options of one file, each with its value
PATHS = {"-I", "-isystem"}
INCLUDE = re.compile(r'^#include "((?:mlir|llvm)/[\w./-]+\.h)"', re.M)
SHARE = 0.1  # of Triton's files that include a header, from which on it is worth it


def write_prefix(triton: Path, include: Path, folder: Path) -> None:
    """Write the prefix.h of a Triton tree: headers of LLVM that many of its files include."""
    files = [file for part in ("lib", "third_party", "python") for file in (triton / part).rglob("*.c[cp]*")]
    counts = Counter(
        header for file in files for header in set(INCLUDE.findall(file.read_text(errors="replace")))
    )
    common = sorted(h for h, n in counts.items() if n >= SHARE * len(files) and (include / h).exists())
    text = "".join(f'#include "{header}"\n' for header in common)
    folder.mkdir(parents=True, exist_ok=True)
    prefix = folder / "prefix.h"
    if not prefix.exists() or prefix.read_text() != text:  # clang compares the time of the file, too
        prefix.write_text(text)


def options(command: list[str]) -> tuple[list[str], list[str]]:
    """A command's options without those of its one file: of the language, and where headers are."""
    language, paths = [], []
    rest = iter(command[1:])
    for word in rest:
        if word in OWN:
            next(rest, "")
        elif word in PATHS:
            paths += [word, next(rest, "")]
        elif word.startswith("-I"):
            paths.append(word)
        elif word.startswith("-") and not word.startswith("-M"):
            language.append(word)
    return language, paths


def header(folder: Path, command: list[str]) -> Path | None:
    """The compiled prefix.h for a command, made if it is not there; None where it cannot be."""
    language, paths = options(command)
    key = hashlib.sha256("\0".join([command[0], *language]).encode()).hexdigest()[:12]
    compiled, failed = folder / f"{key}.pch", folder / f"{key}.failed"
    with (folder / f"{key}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the other jobs wait for the first
        if not compiled.exists() and not failed.exists():
            part = folder / f"{key}.part"
            make = [
                command[0],
                *language,
                *paths,
                "-x",
                "c++-header",
                str(folder / "prefix.h"),
                "-o",
                str(part),
            ]
            done = subprocess.run(make, capture_output=True, text=True)
            if done.returncode:
                failed.write_text(done.stderr)
            else:
                part.replace(compiled)
    return compiled if compiled.exists() else None


def main(arguments: list[str]) -> int:
    folder, command = Path(arguments[0]), arguments[1:]
    if "-c" in command and (compiled := header(folder, command)):
        done = subprocess.run([command[0], "-include-pch", str(compiled), *command[1:]], capture_output=True)
        if done.returncode == 0:
            os.write(2, done.stderr)
            return 0
    return subprocess.run(command).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
