"""Judges launches of the program's own kernels by the results of Triton's interpreter.

No graph describes such a kernel. Compiled kernel and interpreter execute the same source, so only faults of
the compiler, on a GPU, are detected.

Where the two differ by more than sums in another order do, the interpreter executes the launch anew: on
memory with another content, which shows the elements that the launch does not determine, and with other
roundings, which shows how far rounding moves each element.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import torch

from tracing.analyze.judge.findings import JudgedLaunch, WrongElements
from tracing.errors import Problem
from tracing.interpreter.roundings import TF32
from tracing.judge.contents import Contents
from tracing.model import KernelLaunch

_ROUNDINGS = 64.0  # of the largest value: sums of a compiled kernel have another order
_FAR = 1024.0  # so many times as large as any that differs: no sum of a right kernel mixes the two
_OTHER_MEMORY = 0xA5  # each byte of it
_EXECUTIONS = 16  # with other roundings, at most
_SPREADS = 4.0  # so many times as far as these move an element, a GPU may move it
_RARE = 8  # one in so many elements that rounding decides: none of the executions may show it
_GLUON = "gluon.jit"
_CAT = " tt.cat "
_HAND_WRITTEN = (
    "it is hand-written, so no graph says what it should compute; on the virtual GPU Triton's interpreter "
    "executes its source, and is no reference for itself"
)


class Interpreted(Protocol):
    """What the interpreter leaves in the arguments that a launch wrote, by name.

    fill -- each byte of memory whose contents before the launch were not kept
    seed -- of other roundings; None: the interpreter's own

    Raises Problem if it cannot execute the launch.
    """

    def __call__(
        self, launch: KernelLaunch, /, *, fill: int = 0, seed: int | None = None
    ) -> Mapping[str, torch.Tensor]: ...


def judged_own(
    launch: KernelLaunch, source: str, ttir: str, contents: Contents, interpreted: Interpreted | None
) -> JudgedLaunch:
    """The verdict on one launch of a kernel of the program.

    source      -- of the kernel and of what it calls; empty: not known
    ttir        -- the IR of the kernel; empty: it has none, or it is not known
    interpreted -- None: the run is of a virtual GPU, where the interpreter executed the launch itself
    """
    if interpreted is None:
        return _without(launch, _HAND_WRITTEN)
    if _GLUON in source:
        return _without(launch, "it is a Gluon kernel, which Triton's interpreter cannot execute")
    override = (launch.kernel.options or {}).get("ir_override", "None")
    if override != "None":
        return _without(launch, f"its IR is not that of its source, but of ir_override={override}")
    try:
        expected = interpreted(launch)
        left = _left(launch, contents, expected)
        if not left:
            return _without(launch, "what it wrote was not kept")
        tf32 = "dot(" in source or "tt.dot" in ttir  # of which Triton makes a sum of products, too
        apart = [_Apart(name, actual, expected[name], tf32) for name, actual in left.items()]
        if any(one.differs for one in apart):
            other = interpreted(launch, fill=_OTHER_MEMORY)
            for one in apart:
                one.leave_out_undetermined(other[one.name])
            if not all(one.is_determined for one in apart):
                return _without(launch, "what it leaves depends on memory whose contents were not kept")
            _allow_roundings(apart, launch, interpreted)
    except Problem as problem:
        return _without(launch, problem.problem)
    if _CAT in ttir and any(one.differs for one in apart):
        return _without(launch, "tl.cat with can_reorder leaves its elements in any order")
    for one in apart:
        if one.differs and one.is_rare:
            return _without(launch, f"rounding decides elements of {one.name}, such as {list(one.worst)}")
    wrong = tuple(one.wrong() for one in apart if one.differs)
    return JudgedLaunch(launch.index, launch.kernel_name, -1, "off" if wrong else "right", wrong=wrong)


def _left(
    launch: KernelLaunch, contents: Contents, expected: Mapping[str, torch.Tensor]
) -> dict[str, torch.Tensor]:
    # what the launch wrote, on the CPU, by argument
    left = {}
    for position, argument in enumerate(launch.args):
        content = contents.argument(launch, position, argument, "after") if argument.writes else None
        if content is not None and argument.name in expected:
            left[argument.name] = contents.tensor(content).cpu()
    return left


def _allow_roundings(apart: list[_Apart], launch: KernelLaunch, interpreted: Interpreted) -> None:
    for seed in range(_EXECUTIONS):
        if not any(one.differs for one in apart):
            return
        other = interpreted(launch, seed=seed)
        for one in apart:
            one.allow(other[one.name])


@dataclass
class _Apart:
    # one tensor: as the launch left it, and as the interpreter did

    name: str
    actual: torch.Tensor
    expected: torch.Tensor
    tf32: bool

    def __post_init__(self) -> None:
        self.distance = _distance(self.actual, self.expected)
        self.allowed = torch.full_like(self.distance, self._any_order())
        self._at_first = 0  # elements that differ before other roundings are allowed
        self.is_determined = True  # at least one element is

    def _any_order(self) -> float:
        # the distance that sums in another order explain
        if not self.actual.is_floating_point():
            return 0.0
        info = torch.finfo(self.actual.dtype)
        eps = max(info.eps, TF32 if self.tf32 else 0.0)
        return _ROUNDINGS * eps * max(_largest(self.expected.double(), self.distance > 0), info.tiny)

    @property
    def _off(self) -> torch.Tensor:
        return self.distance > self.allowed

    @property
    def differs(self) -> bool:
        return bool(self._off.any())

    @property
    def is_rare(self) -> bool:
        """True if other roundings explain nearly all that differs, and move an element as far as the rest."""
        off = self._off
        is_near = bool(self.distance[off].max() <= self.allowed.max())
        return is_near and int(off.sum()) * _RARE <= self._at_first

    @property
    def worst(self) -> tuple[int, ...]:
        far = torch.where(self._off, self.distance, -1.0)
        return tuple(int(one) for one in torch.unravel_index(far.argmax(), far.shape))

    def leave_out_undetermined(self, other: torch.Tensor) -> None:
        """Leave out the elements in which the interpreter leaves something else on other memory."""
        undetermined = _distance(other, self.expected) > 0
        self.is_determined = not undetermined.numel() or not bool(undetermined.all())
        self.distance = torch.where(undetermined, 0.0, self.distance)
        self._at_first = int(self._off.sum())

    def allow(self, other: torch.Tensor) -> None:
        """Allow the distance of what the interpreter leaves with other roundings."""
        moved = _SPREADS * _distance(other, self.expected)
        self.allowed = torch.maximum(self.allowed, moved)

    def wrong(self) -> WrongElements:
        worst = self.worst
        distance, allowed = float(self.distance[worst]), float(self.allowed[worst])
        limit = allowed or 1.0
        return WrongElements(
            self.name, self.name, "what the interpreter leaves", int(self._off.sum()), self.actual.numel(),
            worst, self.actual[worst].item(), self.expected[worst].item(), distance / limit, 1.0,
        )  # fmt: skip


def _distance(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    # of the elements, in float64; inf where one is not a number or infinite, and the other is not
    x, y = a.double(), b.double()
    if a.is_floating_point():
        equal = (x == y) | (x.isnan() & y.isnan())
    else:  # float64 does not have each integer
        equal = (_bytes(a) == _bytes(b)).all(1).view(a.shape)
    least = torch.finfo(torch.float64).tiny
    return torch.where(equal, 0.0, (x - y).abs().nan_to_num(nan=torch.inf).clamp(min=least))


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    # [elements, bytes of each]
    dense = tensor.clone(memory_format=torch.contiguous_format)  # a copy: stride 1 also of a single element
    return dense.view(-1, 1).view(torch.uint8)


def _largest(values: torch.Tensor, differing: torch.Tensor) -> float:
    # without elements far above those that differ, such as the fill of a mask
    finite, sizes = values.isfinite(), values.abs()
    some = sizes[finite & differing]
    kept = sizes[finite & (sizes <= _FAR * some.max())] if some.numel() else sizes[finite]
    return float(kept.max()) if kept.numel() else 0.0


def _without(launch: KernelLaunch, why: str) -> JudgedLaunch:
    return JudgedLaunch(launch.index, launch.kernel_name, -1, "no reference", why=why)
