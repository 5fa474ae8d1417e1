"""Judges launches of the program's own kernels by the results of Triton's interpreter.

No graph describes such a kernel. Compiled kernel and interpreter execute the same source, so only faults of
the compiler, on a GPU, are detected.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import torch

from tracing.analyze.judge.findings import JudgedLaunch, WrongElements
from tracing.errors import Problem
from tracing.judge.contents import Contents
from tracing.model import KernelLaunch

# What the interpreter leaves in the arguments that a launch wrote, by name; raises Problem if it cannot.
Interpreted = Callable[[KernelLaunch], Mapping[str, torch.Tensor]]
_ROUNDINGS = 64.0  # of the largest value: sums of a compiled kernel have another order
_FAR = 1024.0  # so many times as large as any that differs: no sum of a right kernel mixes the two
_TF32 = 2.0**-10  # the distance of numbers with which tensor cores multiply float32
_HAND_WRITTEN = (
    "it is hand-written, so no graph says what it should compute; on the virtual GPU Triton's interpreter "
    "executes its source, and is no reference for itself"
)
_RANDOM = re.compile(r"\b(?:rand|randn|randint|philox)\w*\s*\(")


def judged_own(
    launch: KernelLaunch, source: str, contents: Contents, interpreted: Interpreted | None
) -> JudgedLaunch:
    """The verdict on one launch of a kernel of the program.

    source      -- of the kernel and of what it calls; empty: not known
    interpreted -- None: the run is of a virtual GPU, where the interpreter executed the launch itself
    """
    if _RANDOM.search(source):
        return _without(launch, "it draws random numbers")
    if interpreted is None:
        return _without(launch, _HAND_WRITTEN)
    try:
        expected = interpreted(launch)
    except Problem as problem:
        return _without(launch, problem.problem)
    wrong = []
    judged = False
    for position, argument in enumerate(launch.args):
        left = contents.argument(launch, position, argument, "after") if argument.writes else None
        if left is not None and argument.name in expected:
            judged = True
            actual = contents.tensor(left).cpu()
            wrong += _wrong(argument.name, actual, expected[argument.name], "dot(" in source)
    if not judged:
        return _without(launch, "what it wrote was not kept")
    name = launch.kernel_name
    return JudgedLaunch(launch.index, name, -1, "off" if wrong else "right", wrong=tuple(wrong))


def _wrong(name: str, actual: torch.Tensor, expected: torch.Tensor, tf32: bool) -> list[WrongElements]:
    if actual.is_floating_point():
        a, b = actual.double(), expected.double()
        eps = max(torch.finfo(actual.dtype).eps, _TF32 if tf32 else 0.0)
        equal = (a == b) | (a.isnan() & b.isnan())
        rounding = eps * max(_largest(b, ~equal), torch.finfo(actual.dtype).tiny)
        apart = torch.where(equal, 0.0, (a - b).abs() / rounding)
        apart = apart.nan_to_num(nan=torch.inf)
    else:
        apart = (actual != expected).double() * (2 * _ROUNDINGS)
    worst = float(apart.max()) if apart.numel() else 0.0
    if worst <= _ROUNDINGS:
        return []
    index = tuple(int(one) for one in torch.unravel_index(apart.argmax(), apart.shape))
    return [
        WrongElements(
            name, name, "what the interpreter leaves", int((apart > _ROUNDINGS).sum()), actual.numel(), index,
            actual[index].item(), expected[index].item(), worst, _ROUNDINGS,
        )
    ]  # fmt: skip


def _largest(values: torch.Tensor, differing: torch.Tensor) -> float:
    # without elements far above those that differ, such as the fill of a mask
    finite, sizes = values.isfinite(), values.abs()
    some = sizes[finite & differing]
    kept = sizes[finite & (sizes <= _FAR * some.max())] if some.numel() else sizes[finite]
    return float(kept.max()) if kept.numel() else 0.0


def _without(launch: KernelLaunch, why: str) -> JudgedLaunch:
    return JudgedLaunch(launch.index, launch.kernel_name, -1, "no reference", why=why)
