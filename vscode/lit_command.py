"""Replace this process by the triton-opt of a lit test's RUN line, so that a debugger debugs it.

It uses the first RUN line with a triton-opt, without shell syntax: pipes, redirections, `not`. Exit status 2,
with the reason, if the command cannot run separately.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

TOOL = "triton-opt"
RUN = re.compile(r"RUN:\s*(.*?)(\\?)$", re.MULTILINE)
VARIABLE = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
REDIRECTION = re.compile(r"\d?>>?(&\d|.*)|<", re.DOTALL)  # what `<` reads stays, as an argument


def commands(text: str) -> Iterator[str]:
    """The RUN lines of a test, those that continue after a backslash as one."""
    line = ""
    for words, goes_on in RUN.findall(text):
        line += f" {words}"
        if not goes_on:
            yield line
            line = ""


def words(command: str, path: str) -> list[str]:
    """The arguments of the command before the first pipe, with %s filled in and without redirections."""
    lines: list[str] = []
    there = iter(shlex.split(command))
    for word in there:
        if word == "|":
            break
        match = REDIRECTION.fullmatch(word)
        if not match:
            lines.append(word.replace("%s", path))
        elif match[1] == "":
            next(there, "")  # the file is a word of its own
    return lines


def runnable(text: str, path: str) -> tuple[dict[str, str], list[str]]:
    """The variables and the arguments of the first triton-opt; raises ValueError if there is none."""
    for command_words in (words(command, path) for command in commands(text)):
        if TOOL in command_words:
            at = command_words.index(TOOL)
            if made := next((word for word in command_words if "%t" in word), ""):
                raise ValueError(f"{path} runs {TOOL} on {made}, which another of its RUN lines makes")
            set_before = filter(None, map(VARIABLE.fullmatch, command_words[:at]))
            return {match[1]: match[2] for match in set_before}, command_words[at + 1 :]
    raise ValueError(f"{path} has no RUN line with {TOOL}")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tool", required=True, help=f"the command that stands for {TOOL}")
    parser.add_argument("test", type=Path)
    options = parser.parse_args()
    try:
        variables, arguments = runnable(options.test.read_text(encoding="utf-8"), str(options.test))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    tool = shlex.split(options.tool)
    os.execvpe(tool[0], [*tool, *arguments], {**os.environ, **variables})


if __name__ == "__main__":
    sys.exit(main())
