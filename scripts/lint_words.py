"""Find words that this project does not use: in docstrings, comments, messages, docs, and names in code.

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
# Folders in which every name is read; elsewhere only `found`, and the names of tests.
READ_NAMES = ("cases/", "scripts/", "tracing/", "vscode/")
NAMED = {  # in names of code and of files
    **BANNED,
    "found": "the name of the value that it holds",
    "said": "message, output, reason",
}
ALLOWED = {  # text that may hold a banned word -> why
    "in place": "torch's and MLIR's term for an operation that overwrites its operand",
    "in-place": "the same, as an adjective",
    "in the last place": "IEEE 754's unit, the ULP",
    "set-associative way": "a term of caches",
    "-way bank conflict": "a term of shared memory",
}
_WORD = re.compile(r"\b(" + "|".join(BANNED) + r")\b", re.IGNORECASE)
_ALLOWED = re.compile("|".join(re.escape(text) for text in ALLOWED), re.IGNORECASE)
_ALLOWED_NAMES = re.compile(r"in_?place", re.IGNORECASE)
_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
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
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield from _of_prose(path, node.lineno, node.value)
    yield from _of_names(path, ast.parse(text))


def _of_names(path: str, tree: ast.Module) -> Iterator[Use]:
    if path.startswith(READ_NAMES):
        yield from _of_name(path, 1, Path(path).stem)
    # a field may be called `found`: errors state what was found and what was needed
    fields = {line.target for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for line in node.body
              if isinstance(line, ast.AnnAssign)}  # fmt: skip
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) if name.startswith("test_"):  # a sentence
                yield from _of_prose(path, node.lineno, name.replace("_", " "))
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) if path.startswith(READ_NAMES):
                yield from _of_name(path, node.lineno, name)
            case ast.arg(arg=name) | ast.Attribute(attr=name, ctx=ast.Store()) | ast.alias(asname=str(name)):
                if not isinstance(node, ast.Attribute) or name != "found":
                    yield from _of_name(path, node.lineno, name)
            case ast.Name(id=name, ctx=ast.Store()):
                if node not in fields or name != "found":
                    yield from _of_name(path, node.lineno, name)


def _of_name(path: str, line: int, name: str) -> Iterator[Use]:
    if not path.startswith(READ_NAMES):
        if name == "found":
            yield Use(path, line, name, NAMED[name])
        return
    for part in _PARTS.findall(_ALLOWED_NAMES.sub("", name)):
        if part.lower() in NAMED:
            yield Use(path, line, name, NAMED[part.lower()])


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
