"""Whether a pass over a joint graph may have changed how one result of it is computed.

The lines of a graph on which a result depends are those that compute it, and those that write to memory, with
what these depend on. If a pass leaves them, and their order, it has not changed the result.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

_NODE = re.compile(r"%[\w.]+")
_TYPE = re.compile(r" : [a-z]\w*\[.*\]$")
_TANGENT = re.compile(r"^%tangents_\d+ = placeholder")
_INPUT = re.compile(r"^%[\w.]+ = placeholder\b")
_OPERATOR = r"(?:aten|prims)\.\w*[a-zA-Z0-9]\.\w+\((?!.*\bout=)"  # none that writes, as aten.copy_.default
_OF_PYTHON = r"_operator\.(?:getitem|add|sub|mul|floordiv|mod|neg)\("  # of lists and sizes
_PURE = re.compile(rf"^%[\w.]+ = (?:{_OPERATOR}|{_OF_PYTHON}|(?:placeholder|get_attr)\b)")


def result_lines(text: str, position: int) -> tuple[str, ...] | None:
    """The lines of a graph on which a result depends, and its inputs; None if it has no such result."""
    lines = node_lines(text)
    results = result_names(lines)
    if position >= len(results):
        return None
    writing = [name for name, line in lines.items() if name and not _PURE.match(line)]
    needed, waiting = set[str](), [*_inputs(lines), *_NODE.findall(results[position]), *writing]
    while waiting:
        name = waiting.pop()
        if name not in needed and name in lines:
            needed.add(name)
            waiting += _NODE.findall(lines[name].partition(" = ")[2])
    return (*(line for name, line in lines.items() if name in needed), f"output({results[position]})")


def position_in_joint(traced: str, joint: str, result: str, *, other_type: bool) -> int | None:
    """The position in a joint graph of a result of the graph that Dynamo traced; None: it is not known.

    traced, joint -- texts of the graph as Dynamo and as AOTAutograd gave it
    result        -- of Dynamo's graph: "output 0", "gradient of input 2"
    other_type    -- it may have another dtype and shape in the joint graph

    The joint graph returns the results of Dynamo's graph first, then a gradient or None for each input.
    It returns more if inputs were overwritten, or if results share memory: then nothing is known.
    """
    ours, theirs = node_lines(traced), node_lines(joint)
    results, joined = result_names(ours), result_names(theirs)
    inputs, entered = _inputs(ours), _inputs(theirs)
    own = [name for name in entered if not _TANGENT.match(theirs[name])]
    gradients = len(own) if len(own) < len(entered) else 0
    kind, _, number = result.rpartition(" ")
    if len(joined) - gradients != len(results):
        return None
    pairs = zip(_types(results, ours), _types(joined[: len(results)], theirs), strict=True)
    unlike = {i for i, (one, other) in enumerate(pairs) if one != other}
    if unlike - ({int(number)} if other_type and kind == "output" else set()):
        return None
    if kind == "output":
        return int(number) if int(number) < len(results) else None
    same = gradients and len(inputs) == len(own) and _types(inputs, ours) == _types(own, theirs)
    return len(results) + int(number) if kind == "gradient of input" and same else None


def _inputs(lines: Mapping[str, str]) -> list[str]:
    return [name for name, line in lines.items() if _INPUT.match(line)]


def _types(results: Sequence[str], lines: Mapping[str, str]) -> list[str]:
    matches = (_TYPE.search(lines.get(one, "")) for one in results)
    return [one[0] if one else "" for one in matches]


def node_lines(text: str) -> dict[str, str]:
    """The lines of a graph by node, "" for the output; those of a graph inside of it are part of its line."""
    lines: dict[str, str] = {}
    name = ""
    for line in text.splitlines():
        if line.startswith(" "):
            lines[name] += f"\n{line}"
        else:
            name = line.partition(" = ")[0] if line.startswith("%") else ""
            lines[name] = line
    return lines


def result_names(lines: Mapping[str, str]) -> list[str]:
    """The leaves of "output((%a, [%b], None))": names of nodes, and other values."""
    inside = lines.get("", "output()").removeprefix("output(").removesuffix(")")
    return [one for one in re.split(r"[\s,()\[\]]+", inside) if one]
