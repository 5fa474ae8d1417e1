"""Compare graphs and generated kernels, ignoring the names of nodes, symbols and functions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count

from tracing.analyze.passes.renaming import renamed

# torch 2.8 and newer number the symbol of a size by a hash of its source; older ones by its order
_SYMBOL = re.compile(r"\b([su])(\d+)\b")
_VALUE = re.compile(r"%[\w.]+")


def same_graph(a: str, b: str) -> bool:
    """True if two texts of `tracing.record.graphs.graph_passes` hold one graph under other names."""
    a, b = numbered_symbols(a), numbered_symbols(b)
    return a == b or numbered_nodes(a) == numbered_nodes(b)


def alike(a: str, b: str) -> tuple[str, str]:
    """Both texts for a diff: the nodes of b get the names of their counterparts in a."""
    a, b = numbered_symbols(a), numbered_symbols(b)
    return a, renamed(a, b)


def numbered_nodes(text: str) -> str:
    """A text with its nodes numbered in their order."""
    return _numbered(_VALUE, text, "%")


def numbered_symbols(text: str) -> str:
    """A text with the symbols of sizes numbered in their order: s0, s1."""
    return _numbered(_SYMBOL, text, "s")


def _numbered(pattern: re.Pattern[str], text: str, prefix: str) -> str:
    names: dict[str, str] = {}
    numbers = count()

    def name(match: re.Match[str]) -> str:
        if match[0] not in names:
            names[match[0]] = f"{prefix}{next(numbers)}"
        return names[match[0]]

    return pattern.sub(name, text)


def kernel_body(source: str) -> str:
    """A generated kernel from its first `def` on: decorators hold settings and hashes of the version.

    The function is called `kernel`: Inductor's names number the kernels of a graph.
    """
    lines = list(_from_def(source))
    if lines and (match := re.match(r"(?:def|extern \"C\" void|extern \"C\"  void) (\w+)", lines[0])):
        lines[0] = lines[0].replace(match[1], "kernel", 1)
    return "\n".join(line.rstrip() for line in lines).strip() + "\n"


def _from_def(source: str) -> Iterator[str]:
    begun = False
    for line in source.splitlines():
        begun = begun or line.startswith(("def ", 'extern "C"'))
        if begun:
            yield line
