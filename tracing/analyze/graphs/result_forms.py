"""Which pass over a joint graph gives one of its results another dtype, or another shape.

A graph has the dtype and shape that each node had when the node was made. So a result that had the wrong ones
when AOTAutograd traced the graph was not changed by a pass. A pass that changes the dtype of an operand of an
operator, and not the operator, has changed the dtype of its value.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tracing.analyze.graphs.graph_results import node_lines, result_names

_NODE = re.compile(r"%[\w.]+")
_TYPE = re.compile(r" : ([a-z]\w*)\[(.*)\]$")
_SHORT = {"complex": "c", "bfloat": "bf", "float": "f", "uint": "u", "int": "i", "bool": "b8"}
_GIVEN = "torch."  # a dtype, which the operator gives its value whatever its operands are


class TensorForm(NamedTuple):
    """The dtype and the shape of a tensor."""

    dtype: str  # "f16"
    shape: tuple[str, ...]  # numbers and symbols

    def may_be(self, other: TensorForm) -> bool:
        """False if the two differ, whatever their symbols stand for."""
        numbers = (a == b or not (a + b).isdigit() for a, b in zip(self.shape, other.shape, strict=False))
        return self.dtype == other.dtype and len(self.shape) == len(other.shape) and all(numbers)


def forms_of(written: str) -> tuple[TensorForm, TensorForm] | None:
    """The two forms that are written as "float32 [6, 4], not float16 [6, 4]"; None: there are no two."""
    made, _, expected = written.partition(", not ")
    forms = _written(made), _written(expected)
    return (forms[0], forms[1]) if forms[0] is not None and forms[1] is not None else None


def _written(form: str) -> TensorForm | None:
    dtype, _, shape = form.partition(" ")
    name = re.match(r"[a-z]+", dtype)
    if name is None or name[0] not in _SHORT or not shape:
        return None
    return TensorForm(_SHORT[name[0]] + dtype[name.end() :], _sizes(shape.strip("[]")))


def changed_by(texts: Sequence[str], position: int, made: TensorForm, expected: TensorForm) -> int | None:
    """The index of the text in which a result has first the form that it should not have; None: not known.

    texts    -- of the joint graph, as AOTAutograd traced it, and after each pass
    position -- of the result
    made     -- the form that it has in the program; expected -- that it should have
    """
    traced = node_lines(texts[0])
    results = result_names(traced)
    form = _form(traced.get(results[position], "")) if position < len(results) else None
    if form is None or form.may_be(made) == form.may_be(expected):
        return None
    if form.may_be(made):
        return 0
    graphs = [node_lines(text) for text in texts]
    changes = (
        i
        for i, (before, after) in enumerate(itertools.pairwise(graphs), 1)
        if any(_loses(name, before, after, made.dtype, expected.dtype) for name in before)
    )
    return next(changes, None) if made.dtype != expected.dtype else None


def _loses(name: str, before: Mapping[str, str], after: Mapping[str, str], made: str, expected: str) -> bool:
    # whether an operand of an operator has another dtype, from which the operator's value takes its own
    ours, theirs = before[name], after.get(name, "")
    form = _form(ours)
    kept = _NODE.sub("", ours) == _NODE.sub("", theirs) and _GIVEN not in ours
    if not (kept and form is not None and form.dtype == expected):
        return False
    operands = zip(_operands(ours, before), _operands(theirs, after), strict=True)
    return (expected, made) in operands


def _operands(line: str, lines: Mapping[str, str]) -> list[str]:
    forms = [_form(lines.get(one, "")) for one in _NODE.findall(line.partition(" = ")[2])]
    return [one.dtype if one is not None else "" for one in forms]


def _form(line: str) -> TensorForm | None:
    match = _TYPE.search(line)
    return TensorForm(match[1], _sizes(match[2])) if match else None


def _sizes(text: str) -> tuple[str, ...]:
    return tuple(one.strip() for one in text.split(",") if one.strip())
