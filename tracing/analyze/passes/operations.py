"""Read operations from MLIR's text: names, counts, and the locations that they name.

This is a reader of text, not a parser of MLIR, because it must read the IR that a crashed pass left, of any
dialect, without that dialect. An operation is a line that begins with `[results =] dialect.name`, where the
name may be in quotes. So functions, operations with regions and terminators count once each; block headers,
aliases of attributes and locations, and the line that closes a region do not. The module does not count:
`module`, and `builtin.module` in generic form. A terminator that MLIR does not print is not counted either.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace

_OPERATION = re.compile(
    r"\s*(?:%[\w$.:#-]+(?:, %[\w$.:#-]+)* = )?"  # results
    r'"?(?P<name>(?!builtin\.module\b)[A-Za-z_]\w*(?:\.[\w$]+)+)"?(?=[\s(<{\[@#]|$)'
)
# an unterminated string extends to the end of the text: no other start is tried, so a search is linear
STRING = r'"(?:[^"\\]|\\(?s:.))*(?:"|\\?\Z)'
_LOCATION = re.compile(rf"{STRING}|(?P<begin>(?<!\s)\s*\bloc\()")
_REFERENCE = re.compile(r" loc\((#\w+)\)$")  # nearly all: an alias of the location at the end of a line
_PARENTHESIS = re.compile(rf"{STRING}|[()]")
_BRACE = re.compile(rf"{STRING}|[{{}}]")


@dataclass(frozen=True, slots=True)
class PrintedOperation:
    """One operation of an IR text."""

    line: int  # of the text, from 1, where the operation begins
    name: str  # "tt.load"
    text: str  # that line, without locations
    location: str = ""  # the text between the parentheses of its `loc(…)`


def counts(text: str) -> Counter[str]:
    """The number of occurrences of each operation in a module; costs one regular expression per line."""
    matches = map(_OPERATION.match, text.splitlines())
    return Counter(match["name"] for match in matches if match)


def operations(text: str) -> list[PrintedOperation]:
    """The operations of a module in order, each with its location.

    The location of an operation with regions follows the last region, lines below its name.
    """
    listed: list[PrintedOperation] = []
    owners: list[int] = []  # for each open region, the operation it belongs to; -1: the module
    latest = {0: -1}  # at each depth the last operation, for lines that go on with it: `default {`
    for number, line in enumerate(text.splitlines(), 1):
        body, location = split_location(line)
        closed, opened = _braces(body)
        owner = -1
        for _ in range(min(closed, len(owners))):
            owner = owners.pop()
        if match := _OPERATION.match(body):
            owner = latest[len(owners)] = len(listed)
            listed.append(PrintedOperation(number, match["name"], body.strip()))
        if location and owner >= 0:
            listed[owner] = replace(listed[owner], location=location)
        owners += [latest.get(len(owners), -1)] * opened
    return listed


def without_locations(text: str) -> str:
    """A module's text without `loc(…)` and without their table."""
    return "".join(
        f"{split_location(line)[0]}\n" for line in text.splitlines() if not line.startswith("#loc")
    )


def split_location(line: str) -> tuple[str, str]:
    """A line without any location, and the content of the `loc(…)` that ends it."""
    if "loc(" not in line:
        return line, ""
    if '"' not in line and line.count("loc(") == 1 and (reference := _REFERENCE.search(line)):
        return line[: reference.start()].rstrip(), reference[1]
    kept, content, at = [], "", 0
    for match in _LOCATION.finditer(line):
        if match["begin"] is None or match.start() < at:
            continue
        end = closing(line, match.end())
        kept.append(line[at : match.start()])
        content, at = line[match.end() : end], end + 1
    return "".join([*kept, line[at:]]), content if not line[at:].strip() else ""


def closing(text: str, start: int) -> int:
    """The position of the parenthesis that closes one opened before `start`; the end of a text without it."""
    depth = 1
    for match in _PARENTHESIS.finditer(text, start):
        depth += {"(": 1, ")": -1}.get(match[0], 0)
        if depth == 0:
            return match.start()
    return len(text)


def _braces(body: str) -> tuple[int, int]:
    # the number of earlier regions that a line closes, and of regions that it opens
    closed = opened = 0
    for match in _BRACE.finditer(body):
        if match[0] == "{":
            opened += 1
        elif match[0] == "}" and opened:
            opened -= 1
        elif match[0] == "}":
            closed += 1
    return closed, opened
