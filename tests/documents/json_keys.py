"""Check what a command prints with --json against the keys that docs/json.md documents."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from commands import ROOT

PAGE = (ROOT / "docs/json.md").read_text()


def documented(title: str) -> set[str]:
    """The keys in the first table after a heading, such as `runs[].name`."""
    section = PAGE.split(f"\n{title}\n", 1)[1]
    table = re.search(r"\| key \| value \|\n\|---\|---\|\n((?:\|.*\n?)+)", section)
    assert table is not None
    return set(re.findall(r"^\| `([^`]+)` \|", table[1], re.MULTILINE))


def printed(value: object, keys: set[str], path: str = "") -> Iterator[str]:
    """The keys of a value, as docs/json.md writes them."""
    if f"{path}.*" in keys and path:
        yield f"{path}.*"
    elif isinstance(value, dict):
        for name, inner in value.items():
            key = f"{path}.{name}" if path else name
            yield f"{key}.*" if f"{key}.*" in keys else key
            yield from printed(inner, keys, key)
    elif isinstance(value, list):
        for inner in value:
            yield from printed(inner, keys, f"{path}[]" if f"{path}.*" not in keys else path)


def require_documented(text: str, title: str, *unset: str) -> None:
    """Asserts that docs/json.md documents every key, and that every documented key occurs.

    unset -- keys that this answer does not have
    """
    keys = documented(title)

    assert set(printed(json.loads(text), keys)) == keys - set(unset)
