"""Run the first command of a lit test's RUN line, in place of this process, so that a debugger is in it."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
from pathlib import Path

RUN = re.compile(r"RUN:\s*(.*?)(\\?)$", re.MULTILINE)


def first_command(text: str, path: str) -> list[str]:
    """Its words, with %s filled in, up to the first pipe; [] for a file without a RUN line."""
    line = ""
    for words, goes_on in RUN.findall(text):
        line += f" {words}"
        if not goes_on:
            break
    return shlex.split(line.split("|")[0].replace("%s", shlex.quote(path)))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tool", required=True, help="what stands for triton-opt")
    parser.add_argument("test", type=Path)
    options = parser.parse_args()
    words = first_command(options.test.read_text(encoding="utf-8"), str(options.test))
    if "triton-opt" not in words:
        print(f"{options.test} has no RUN line with triton-opt", file=sys.stderr)
        return 2
    tool = shlex.split(options.tool)
    os.execvp(tool[0], [*tool, *words[words.index("triton-opt") + 1 :]])


if __name__ == "__main__":
    sys.exit(main())
