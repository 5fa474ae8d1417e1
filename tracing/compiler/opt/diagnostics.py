"""Parse MLIR's diagnostics on stderr, and compare them with the expectations in a test's comments.

`expected-error @+1 {{message}}` and similar comments mean the same as for `triton-opt --verify-diagnostics`:
each must be met by a diagnostic of that kind on that line whose message contains the text, and every
diagnostic must meet one. `-re` makes the parts in inner braces regular expressions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_DIAGNOSTIC = re.compile(r"(?:(.*?):(\d+):(\d+): |<unknown>:0: )?(error|warning|remark|note): (.*)")
_EXPECTED = re.compile(
    r"expected-(error|warning|remark|note)(-re)? *(?:@([+-]\d+|above|below|unknown))? *\{\{(.*)\}\}$"
)
# MLIR adds these where passes run under crash recovery, and a reproducer is read without being run, as by
# Triton's bindings
_ADDED = re.compile(
    r"Failures have been detected while processing an MLIR pass pipeline|Pipeline failed while executing "
    r"|ignoring unknown external resources for 'mlir_reproducer'"
)


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One message of the compiler."""

    line: int | None  # in the file; None: it has no line there
    kind: str  # "error", "warning", "remark", "note"
    message: str


@dataclass(frozen=True, slots=True)
class _Expected:
    at: int  # the line of the comment
    line: int | None  # the line where the diagnostic must be; None: anywhere
    kind: str
    text: str
    pattern: str


def diagnostics(stderr: str, name: str) -> list[Diagnostic]:
    """The diagnostics in the compiler's output; `name` is the file name in them."""
    parsed = []
    for head, rest in _blocks(stderr):
        if head:
            file, line, _, kind, message = head.groups()
            position = int(line) if file == name else None
            parsed.append(Diagnostic(position, kind, "\n".join([message, *_around_quote(rest)[0]])))
    return parsed


def without_added(stderr: str) -> str:
    """The compiler's output without the lines that come from calling it through Python."""
    kept = []
    for head, rest in _blocks(stderr):
        if head and _ADDED.match(head[5]):
            kept += [line for part in _around_quote(rest) for line in part]
        else:
            kept += [head[0], *rest] if head else rest
    return "".join(f"{line}\n" for line in kept)


def _blocks(stderr: str) -> Iterator[tuple[re.Match[str] | None, list[str]]]:
    # the first line of each diagnostic with the lines up to the next one; before these, the lines before them
    head: re.Match[str] | None = None
    rest: list[str] = []
    for line in stderr.splitlines():
        if match := _DIAGNOSTIC.fullmatch(line):
            yield head, rest
            head, rest = match, []
        else:
            rest.append(line)
    yield head, rest


def _around_quote(rest: list[str]) -> tuple[list[str], list[str]]:
    # after its message a diagnostic quotes a line of the source, with a caret below it
    caret = next((at for at, line in enumerate(rest) if line.strip() == "^"), None)
    return (rest, []) if caret is None else (rest[: max(caret - 1, 0)], rest[caret + 1 :])


def unmet(text: str, printed: Sequence[Diagnostic], name: str, *, surplus: bool = True) -> list[str]:
    """The differences between diagnostics and the expectations in a file's comments; empty if there are none.

    text    -- the file
    printed -- the compiler's messages about it
    name    -- of the file, for the messages
    surplus -- whether an unexpected diagnostic is a difference
    """
    expected = list(_expected(text))
    missing = [one for one in expected if not any(_meets(got, one) for got in printed)]
    others = [got for got in printed if surplus and not any(_meets(got, one) for one in expected)]
    return [
        *(f'{name}:{one.at}: error: expected {one.kind} "{one.text}" was not produced' for one in missing),
        *(f"{name}:{got.line or 0}: error: unexpected {got.kind}: {got.message}" for got in others),
    ]


def _expected(text: str) -> Iterator[_Expected]:
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        if match := _EXPECTED.search(line.rstrip()):
            kind, regex, position, message = match.groups()
            pattern = _pattern(message) if regex else re.escape(message)
            yield _Expected(number, _line(number, position, lines), kind, message, pattern)


def _line(at: int, position: str | None, lines: Sequence[str]) -> int | None:
    # "above" and "below" skip lines that contain only expectations
    if position == "unknown":
        return None
    if position in ("above", "below"):
        step = 1 if position == "below" else -1
        at += step
        while 0 < at <= len(lines) and _EXPECTED.search(lines[at - 1].rstrip()):
            at += step
        return at
    return at + int(position or 0)


def _pattern(message: str) -> str:
    # outside of {{...}} literal, inside a regular expression
    parts = re.split(r"\{\{(.*?)\}\}", message)
    return "".join(part if at % 2 else re.escape(part) for at, part in enumerate(parts))


def _meets(one: Diagnostic, expected: _Expected) -> bool:
    same_line = expected.line in (None, one.line)
    return (
        same_line
        and one.kind == expected.kind
        and re.search(expected.pattern, one.message, re.DOTALL) is not None
    )
