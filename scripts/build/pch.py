"""Run clang++ with a precompiled header of the headers that many files include.

`pch.py FOLDER clang++ …` compiles FOLDER/prefix.h for the command's own language options, once, and then the
command with it. A file that fails to compile with the header is compiled without it.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

OWN = {"-o", "-c", "-MT", "-MF"}  # options of one file, each with its value
PATHS = {"-I", "-isystem"}
INCLUDE = re.compile(r'^#include "((?:mlir|llvm)/[\w./-]+\.h)"', re.M)
PLAIN = re.compile(r"llvm/(?:ADT|Support)/")  # headers that need none of those that LLVM's build generates


def of_triton(triton: Path, include: Path) -> list[str]:
    """Headers of LLVM that many files of a Triton tree include."""
    return common([triton / part for part in ("lib", "third_party", "python")], include, 0.1)


def of_llvm(source: Path) -> list[str]:
    """Headers that many files of an LLVM tree include, except for generated ones."""
    folders = [source / "llvm/lib", source / "mlir/lib"]
    return [name for name in common(folders, source / "llvm/include", 0.04) if PLAIN.match(name)]


def common(folders: Iterable[Path], include: Path, share: float) -> list[str]:
    """Headers in a folder that at least `share` of the source files include."""
    files = [file for folder in folders for file in folder.rglob("*.c[cp]*")]
    counts = Counter(
        header for file in files for header in set(INCLUDE.findall(file.read_text(errors="replace")))
    )
    return sorted(h for h, n in counts.items() if n >= share * len(files) and (include / h).exists())


def launcher(folder: Path, headers: Iterable[str]) -> list[str]:
    """The launcher that compiles these headers once, into a folder."""
    text = "".join(f'#include "{header}"\n' for header in headers)
    folder.mkdir(parents=True, exist_ok=True)
    prefix = folder / "prefix.h"
    if not prefix.exists() or prefix.read_text() != text:  # clang compares the time of the file, too
        prefix.write_text(text)
    return [sys.executable, "-I", __file__, str(folder)]


def options(command: list[str]) -> tuple[list[str], list[str]]:
    """The options of a command that do not depend on its file: language and include directories."""
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
    """The compiled prefix.h for a command, compiled on first use; None if it does not compile."""
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
    own = "-include-pch" in command  # of the project itself: clang takes one
    if "-c" in command and not own and (compiled := header(folder, command)):
        done = subprocess.run([command[0], "-include-pch", str(compiled), *command[1:]], capture_output=True)
        if done.returncode == 0:
            os.write(2, done.stderr)
            return 0
    return subprocess.run(command).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
