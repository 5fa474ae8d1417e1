"""Fetch the source from which the installed Triton wheel was built, so that gdb can show it.

The wheel has line tables: with the source tree of its exact tag, gdb shows lines in a pass without a build.
The script verifies by a line of the line tables that tree and wheel match.
Standard library only. Exit status: 0 the source is there and fits, 2 not, with the reason.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from scripts import pins, script
from scripts.build import checkout, proofs, sources
from scripts.build.toolchain import Toolchain
from scripts.machine import installed, output
from scripts.pins import Problem

say = script.speaker("source")
# Without "+8" after the name: it is the function's first line, not some other of its lines.
LINE = re.compile(r'Line \d+ of "(\S+)" starts at address \S+ <[^>+]*CoalescePass[^>+]*runOnOperation[^>+]*>')


def bring(venv: Path, root: Path, known: pins.Pins, given: str = "") -> None:
    """Fetch the tree of the installed wheel's tag. Raises Problem if it does not match the wheel.

    given -- a folder or an archive that is used instead, without a network
    """
    there, tools = installed(venv), Toolchain(root.resolve())
    if not there["triton"]:
        raise Problem(f"no Triton is installed in {venv}", "make venv")
    if there["triton_source"]:
        say(f"Triton was built here: its source is {there['triton_source']}")
        return
    with tools.locked():
        folder = _source(tools, known, there["triton"].partition("+")[0], given)
        built = built_in(Path(there["triton_path"], "_C/libtriton.so"), folder)
        if given:
            link(tools.triton, folder)
    say(f"in gdb: set substitute-path {built} {folder}")


def _source(tools: Toolchain, known: pins.Pins, version: str, given: str) -> Path:
    try:
        return sources.triton(tools, known, version, given, say).folder
    except checkout.Unreachable as problem:
        archive = f"{known.triton.removesuffix('.git')}/archive/refs/tags/v{version}.tar.gz"
        remedy = f"download {archive} elsewhere, then: make venv SOURCE=1 TRITON_SRC=FILE"
        raise Problem(str(problem), f"set HTTPS_PROXY; or {remedy}") from None


def link(path: Path, folder: Path) -> None:
    """Link the path at which debuggers look for Triton's source to a folder of the user's.

    Raises Problem if there is another tree at the path.
    """
    if path.is_symlink():
        path.unlink()
    elif path.exists() and any(path.iterdir()):
        raise Problem(f"{path} holds another tree", "move it away, or choose another TOOLCHAIN=…")
    elif path.exists():
        path.rmdir()
    path.symlink_to(folder)


def built_in(library: Path, triton: Path) -> str:
    """The folder in which a library was built, by its line tables; raises Problem if the tree differs."""
    line, _ = proofs.lines_of_pass(triton / proofs.COALESCE)
    if not output("gdb", "--version"):
        raise Problem(
            "gdb was not found, it was needed to compare line tables with the source", "make doctor"
        )
    ask = f"info line {Path(proofs.COALESCE).name}:{line}"
    settings = ("-iex", "set debuginfod enabled off", "-iex", "set index-cache enabled on")
    answer = output("gdb", "-nx", "-batch", *settings, "-ex", ask, str(library))
    match = LINE.search(answer)
    if not match or not match.group(1).endswith(proofs.COALESCE):
        problem = f"{library} has no code of CoalescePass at {proofs.COALESCE}:{line}; it is of another tree"
        raise Problem(problem, "is it a repackaged wheel? make clean venv, or make triton")
    return match.group(1).removesuffix(proofs.COALESCE).rstrip("/")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--venv", type=Path, default=Path(".venv"), help="the environment with the wheel")
    parser.add_argument("--toolchain", type=Path, default=Path("toolchain"), help="folder of sources")
    parser.add_argument("--triton-src", default="", help="a folder or an archive of that source")
    parser.add_argument("--pins", type=Path, default=pins.PINS, help="another list of versions")
    options = parser.parse_args()
    known = pins.read(options.pins)
    return script.run("source", lambda: bring(options.venv, options.toolchain, known, options.triton_src))


if __name__ == "__main__":
    sys.exit(main())
