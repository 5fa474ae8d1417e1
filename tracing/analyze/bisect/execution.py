"""Find the first pass that changes what a kernel computes, by executing the IR after each pass.

Two IRs are equal if they store equal values at equal addresses, on generated memory, with generated
scalars and those of recorded launches, within the rounding error of reordered additions if there are any.
This needs no judge, and covers passes that every build needs. It does not cover races, the effects of hints,
and unknown operations.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from tracing.analyze.bisect.search import Step
from tracing.mlir.generic import parsed
from tracing.mlir.machine import STEPS, Machine, MachineLaunch
from tracing.mlir.names import make_unique
from tracing.mlir.shared import OPERATIONS
from tracing.mlir.types import Unknown

LARGE = 16.0  # numbers in memory: some faults show only above 1, as a wrong bound of a clamp
LAUNCHES = (MachineLaunch(48, (0, 0, 0)), MachineLaunch(304, (1, 2, 0), magnitude=LARGE))
RELATIVE = 2e-2  # of a stored value, and of the largest one: sums in another order, in half precision
EXACT = 1e-6  # the same where no operation adds several elements: no pass changes how a value is rounded
_ADDING = re.compile(r'"\w+\.\w*(?:dot|mma|reduce|scan|atomic|histogram)')
Stored: TypeAlias = Mapping[tuple[int, int, int], Any]  # by launch, argument and index


@dataclass(frozen=True, slots=True)
class Change:
    """The step in a sequence of IRs at which their meaning changes."""

    before: int  # position of the last IR that computes the values of the first IR
    after: int  # position of the first IR that computes other values; IR between the two cannot be executed
    what: str  # text about one value that differs


@dataclass(frozen=True, slots=True)
class Meaning:
    """The result of executing the IR between passes."""

    steps: tuple[
        Step, ...
    ] = ()  # one of these passes changes the results; empty: no pass is known to change them
    what: str = ""  # text about one value that differs
    last: Step | None = None  # the last pass whose IR could be executed; None: none could
    why: str = ""  # the reason why no IR could be executed
    tolerance: float = RELATIVE  # relative difference that counts as equal

    @property
    def certain(self) -> Step | None:
        """The pass that changes the computed values, if it is known."""
        return self.steps[0] if len(self.steps) == 1 else None

    @property
    def equal(self) -> str:
        """Text: how far values are known to be equal where no difference was seen."""
        most = f"{100 * self.tolerance:g} % of the largest"
        return f"executed on generated inputs, no value differs by more than {most}"


def meaning(text: str, launches: Sequence[MachineLaunch] = LAUNCHES) -> Stored:
    """The stores of a module in generic form.

    Cost: some 10 ms a launch, a second for many turns of large loops. Raises Unknown.
    """
    module = parsed(text)
    make_unique(module)
    stored: dict[tuple[int, int, int], Any] = {}
    for number, launch in enumerate(launches):
        for (argument, index), value in Machine(module, launch, OPERATIONS).run().items():
            stored[number, argument, index] = value
    return stored


def argument_names(text: str) -> list[str]:
    """The names of a kernel's arguments, by position: `x_ptr`, or `argument 0` where the IR lost its name."""
    signature = re.search(r"tt\.func public @.*", text)
    names = re.findall(r"%(\w+): ", signature[0]) if signature else []
    return [re.sub(r"^arg(?=\d+$)", "argument ", name) for name in names]


def tolerance(text: str) -> float:
    """The relative difference that counts as equal, by the operations of a module in generic form."""
    return RELATIVE if _ADDING.search(text) else EXACT


def difference(a: Stored, b: Stored, names: Sequence[str] = (), relative: float = RELATIVE) -> str:
    """The first value in which two meanings differ: `out_ptr[17] is 0.25, and was 0.75`; "" if none.

    names    -- of the arguments, by position
    relative -- difference that counts as equal
    """
    for element in sorted(a.keys() ^ b.keys()):
        now, earlier = ("", "not") if element in b else ("not ", "")
        return f"{_element_text(element, names)} is {now}stored, and was {earlier}"
    largest = {key[:2]: 0.0 for key in a}
    for (launch, argument, _), value in a.items():
        if isinstance(value, float) and np.isfinite(value):
            largest[launch, argument] = max(largest[launch, argument], abs(value))
    for element, was in a.items():
        if not _close(was, b[element], largest[element[:2]], relative):
            return f"{_element_text(element, names)} is {b[element]:.6g}, and was {was:.6g}"
    return ""


def first_change(
    count: int,
    text: Callable[[int], str],
    names: Sequence[str] = (),
    recorded: Sequence[MachineLaunch] = (),
) -> Change | int:
    """The first step of a sequence of IRs that changes their meaning.

    If none does, the position of the last IR that can be executed.

    text     -- the IR at a position, in generic form
    names    -- of the kernel's arguments, by position
    recorded -- launches that are executed, too, if they take few steps

    If several steps do, one of them is returned. Raises Unknown if the first IR, or none of the later ones,
    can be executed.
    """
    known: dict[int, Stored | None] = {}
    reasons: list[str] = []

    def at(position: int) -> Stored | None:
        if position not in known:
            try:
                known[position] = meaning(text(position), launches)
            except Unknown as error:
                known[position] = None
                reasons.append(str(error))
        return known[position]

    relative = tolerance(text(0))
    launches = (*LAUNCHES, *(one for one in recorded if _is_short(text(0), one)))
    first = meaning(text(0), launches)
    last = next((one for one in reversed(range(1, count)) if at(one) is not None), None)
    if last is None:
        raise Unknown(f"no later IR can be executed: {reasons[-1]}")
    if not difference(first, known[last] or {}, relative=relative):
        return last
    same, other = _border(0, last, lambda position: _differs(first, at(position), relative))
    return Change(same, other, difference(known.get(same) or first, known[other] or {}, names, relative))


def _is_short(text: str, launch: MachineLaunch) -> bool:
    # later IR may take more steps than the first
    try:
        meaning(text, [replace(launch, steps=STEPS // 10)])
    except Unknown:
        return False
    return True


def _differs(first: Stored, other: Stored | None, relative: float) -> bool | None:
    return None if other is None else bool(difference(first, other, relative=relative))


def _border(same: int, other: int, differs: Callable[[int], bool | None]) -> tuple[int, int]:
    unknown: set[int] = set()
    while between := [one for one in range(same + 1, other) if one not in unknown]:
        middle = min(between, key=lambda one: abs(2 * one - same - other))
        differing = differs(middle)
        if differing is None:
            unknown.add(middle)
        elif differing:
            other = middle
        else:
            same = middle
    return same, other


def _close(a: Any, b: Any, largest: float, relative: float) -> bool:
    if isinstance(a, float) or isinstance(b, float):
        a, b = float(a), float(b)
        if np.isnan(a) or np.isnan(b) or np.isinf(a) or np.isinf(b):
            return bool(np.isnan(a) and np.isnan(b)) or bool(a == b)
        return bool(abs(a - b) <= relative * max(abs(a), 0.1 * largest))
    return bool(a == b)


def _element_text(element: Sequence[int], names: Sequence[str]) -> str:
    _, argument, index = element
    name = names[argument] if argument < len(names) else f"argument {argument}"
    return f"{name}[{index}]"
