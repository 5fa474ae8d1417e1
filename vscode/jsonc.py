"""Edit JSON as VSCode writes it, with comments and trailing commas, and keep both.

A user's file keeps every character that is not replaced: comments, order, indentation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

_SKIP = re.compile(r"(?:[\s\ufeff]|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_WORD = re.compile(r"[-+.\w]+")
INDENT = 4


class Malformed(Exception):
    """Text that is not JSON; the message names the line and the error."""


@dataclass
class Node:
    """A value and its position in the text."""

    start: int
    end: int = 0
    value: Any = None
    items: list[Node] = field(default_factory=list)  # of an array, and the values of an object
    keys: list[str] = field(default_factory=list)  # of an object


def read(text: str) -> Any:
    """The value of a text; raises Malformed."""
    return parse(text).value


def parse(text: str) -> Node:
    node = _value(text, _skip(text, 0))
    end = _skip(text, node.end)
    if end != len(text):
        raise _malformed(text, end, "the end of the file")
    return node


def with_items(text: str, key: str, mine: Callable[[Any], bool], new: list[Any]) -> str:
    """Replace those items of the array `key` of the text's object that are `mine` by `new`, at its end."""
    root = _object(text)
    if key not in root.keys:
        return with_member(text, key, new)
    array = root.items[root.keys.index(key)]
    if not isinstance(array.value, list):
        raise _malformed(text, array.start, f"an array as {key}")
    kept, tail = _kept(text, array, mine)
    pieces = [*kept, *(_indented(text, value, 2) for value in new)]
    end = tail if tail.strip() or "\n" in tail else _newline(text) + " " * INDENT
    body = ",".join(pieces) + (end if pieces else tail)
    return text[: array.start + 1] + body + text[array.end - 1 :]


def with_member(text: str, key: str, value: Any) -> str:
    """Add a member to the text's object, unless it has one of that name."""
    root = _object(text)
    if key in root.keys:
        return text
    member = _indented(text, value, 1, f"{json.dumps(key)}: ")
    if not root.items:
        return text[: root.start + 1] + member + _newline(text) + text[root.end - 1 :].lstrip()
    last = root.items[-1].end
    comma = "" if text[_skip(text, last)] == "," else ","
    at = _skip(text, last) + 1 if not comma else last
    return text[:at] + comma + member + text[at:]


def dumped(value: Any) -> str:
    """The text of a file that did not exist."""
    return json.dumps(value, indent=INDENT, ensure_ascii=False) + "\n"


def _kept(text: str, array: Node, mine: Callable[[Any], bool]) -> tuple[list[str], str]:
    # the other items with the text before each, and the text after the last
    kept, carried, at = [], "", array.start + 1
    for item in array.items:
        lead, comma = text[at : item.start], _skip(text, item.end)
        last = text[comma] != ","
        if mine(item.value):
            carried += lead if lead.strip() else ""
        else:
            kept.append(carried + lead + text[item.start : item.end if last else comma].rstrip())
            carried = ""
        at = item.end if last else comma + 1
    return kept, carried + text[at : array.end - 1]


def _indented(text: str, value: Any, depth: int, before: str = "") -> str:
    newline = _newline(text) + " " * INDENT * depth
    lines = json.dumps(value, indent=INDENT, ensure_ascii=False).split("\n")
    return newline + before + newline.join(lines)


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _object(text: str) -> Node:
    root = parse(text)
    if not isinstance(root.value, dict):
        raise _malformed(text, root.start, "an object")
    return root


def _value(text: str, at: int) -> Node:
    opened = text[at : at + 1]
    if opened and opened in "{[":
        return _container(text, at, "}" if opened == "{" else "]")
    match = _STRING.match(text, at) or _WORD.match(text, at)
    if match is None:
        raise _malformed(text, at, "a value")
    try:
        return Node(at, match.end(), json.loads(match[0]))
    except ValueError:
        raise _malformed(text, at, "a value") from None


def _container(text: str, start: int, close: str) -> Node:
    node, at = Node(start), _skip(text, start + 1)
    while text[at : at + 1] != close:
        if close == "}":
            key = _STRING.match(text, at)
            if key is None:
                raise _malformed(text, at, "a name in quotes")
            node.keys.append(json.loads(key[0]))
            at = _skip(text, key.end())
            if text[at : at + 1] != ":":
                raise _malformed(text, at, "a colon")
            at = _skip(text, at + 1)
        node.items.append(_value(text, at))
        at = _skip(text, node.items[-1].end)
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)
        elif text[at : at + 1] != close:
            raise _malformed(text, at, f"a comma or {close}")
    node.end = at + 1
    values = [item.value for item in node.items]
    node.value = dict(zip(node.keys, values, strict=True)) if close == "}" else values
    return node


def _skip(text: str, at: int) -> int:
    match = _SKIP.match(text, at)
    return match.end() if match else at


def _malformed(text: str, at: int, wanted: str) -> Malformed:
    return Malformed(
        f"line {text.count(chr(10), 0, at) + 1}: {wanted} was needed, found {text[at : at + 20]!r}"
    )
