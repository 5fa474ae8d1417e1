"""Find words that this project does not use in docstrings, comments, messages, docs and names of tests.

Readers misunderstood each of these words; BANNED names plainer ones. Code in docs and in
comments, between backticks or in a block, is not read. Exit status 0 if no word is found, 1 if one is.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BANNED = {  # word -> what to write instead
    "told": "reported, notified, received",
    "behind": "after, following",
    "beside": "next to, in addition to",
    "besides": "in addition, except",
    "way": "how, a manner named by its noun",
    "ways": "how, manners named by their noun",
    "place": "position, location, file, line",
    "places": "positions, locations, files, lines",
    "alone": "only, by itself",
    "again": "once more, repeatedly, anew",
    "aside": "away, except for",
}
NAMES = {"found": "name the value for what it holds"}
ALLOWED = {  # text that may hold a banned word -> why
    "in place": "torch's and MLIR's term for an operation that overwrites its operand",
    "in-place": "likewise",
    "in the last place": "IEEE 754's unit, the ULP",
    "set-associative way": "a term of caches",
    "-way bank conflict": "a term of shared memory",
}
_WORD = re.compile(r"\b(" + "|".join(BANNED) + r")\b", re.IGNORECASE)
_ALLOWED = re.compile("|".join(re.escape(text) for text in ALLOWED), re.IGNORECASE)
_CODE = re.compile(r"``?[^`\n]*``?")
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Use:
    """One use of a word that is banned."""

    path: str  # relative to the repository
    line: int
    word: str
    instead: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.word!r}: write {self.instead}"


def uses(path: str, text: str) -> list[Use]:
    """The banned words of one file, whose language is that of its suffix."""
    if path.endswith(".py"):
        return sorted({*_of_python(path, text)}, key=lambda use: (use.line, use.word))
    if path.endswith(".md"):
        return [*_of_prose(path, 1, _FENCED.sub(_blank, text))]
    return [*_of_comments(path, text)]


def files() -> list[str]:
    """The files that are read: tracked or new, of a language with prose."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return [name for name in listed if _is_read(name) and (ROOT / name).is_file()]


def _is_read(name: str) -> bool:
    return name.endswith((".py", ".md", ".toml", ".yml", ".gdb")) or name in ("Makefile", ".ci/run")


def _of_python(path: str, text: str) -> Iterator[Use]:
    yield from _of_comments(path, text)
    nodes = list(ast.walk(ast.parse(text)))
    # a record may hold what was found, as errors state what was found and what was needed
    fields = {
        line.target
        for node in nodes
        if isinstance(node, ast.ClassDef)
        for line in node.body
        if isinstance(line, ast.AnnAssign)
    }
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield from _of_prose(path, node.lineno, node.value)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in NAMES:
            if node not in fields:
                yield Use(path, node.lineno, node.id, NAMES[node.id])
        elif isinstance(node, ast.arg) and node.arg in NAMES:
            yield Use(path, node.lineno, node.arg, NAMES[node.arg])
        elif isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield from _of_prose(
                path, node.lineno, node.name.replace("_", " ")
            )  # a test's name is a sentence


def _of_comments(path: str, text: str) -> Iterator[Use]:
    if path.endswith(".py"):
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                yield from _of_prose(path, token.start[0], token.string)
        return
    for number, line in enumerate(text.splitlines(), 1):
        _, mark, comment = line.partition("#")
        yield from _of_prose(path, number, mark + comment)


def _of_prose(path: str, first: int, text: str) -> Iterator[Use]:
    prose = _ALLOWED.sub(_blank, _CODE.sub(_blank, text))
    for match in _WORD.finditer(prose):
        line = first + prose.count("\n", 0, match.start())
        yield Use(path, line, match[0], BANNED[match[0].lower()])


def _blank(match: re.Match[str]) -> str:
    return "\n" * match[0].count("\n")  # the numbers of later lines stay


def main() -> int:
    listed = [use for name in files() for use in uses(name, (ROOT / name).read_text())]
    for use in listed:
        print(use)
    return 1 if listed else 0


if __name__ == "__main__":
    sys.exit(main())
