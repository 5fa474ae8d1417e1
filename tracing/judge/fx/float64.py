"""Judges tensors that a run kept by values of its graph in float64."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import torch

from tracing.analyze.judge.findings import WrongElements
from tracing.judge.fx.fx_program import FxProgram
from tracing.judge.fx.fx_values import FxPlan, FxValue, Given
from tracing.judge.fx.no_reference import FAILURES, NoReference
from tracing.numerics.reference import MORE_SAMPLES, SAMPLES, Expected, Reference
from tracing.numerics.verdict import Distance, Judged, judge, needs_more_runs

K = TypeVar("K")
DOES_NOT_RUN = "the graph, which does not run by itself"
OTHER_ON_GPU = "an operator of ATen, by whose results on the CPU it is right"
# A kernel computes in float32 and rounds its result once; a whole program may round more often.
_NARROW = 6.0
_DECIDED = 1 / 64  # of the largest element: what random rounding moves is less
_ALIKE = 1 / 16  # of the largest element: what no rounding moves
_CONFIRMED = 1 << 24  # elements of which the CPU confirms an accusation in seconds


class OtherDtype(NoReference):
    """A tensor that should hold a value of the graph has another dtype."""

    def __init__(self, value: FxValue, own: torch.Tensor) -> None:
        super().__init__(f"{value.node}, whose dtype is {own.dtype}")
        self.value, self.own = value, own

    def elements(self, name: str, buffer: str, actual: torch.Tensor) -> WrongElements:
        """All elements of the tensor that was to be judged."""
        first = (0,) * actual.dim()
        numbers = (actual[first].item(), self.own[first].item()) if actual.numel() else (0.0, 0.0)
        names = (str(one.dtype).removeprefix("torch.") for one in (actual, self.own))
        return WrongElements(
            name, buffer, self.value.node, actual.numel(), actual.numel(), first, *numbers,
            0.0, 0.0, ", not ".join(names),
        )  # fmt: skip


def float64_verdicts(
    program: FxProgram, plan: FxPlan, given: Given, actual: Mapping[FxValue, torch.Tensor]
) -> dict[FxValue, Judged]:
    """The verdict on each tensor that should hold a value of the graph; "compiled is off": it is wrong.

    plan   -- computes the values of `actual` from those of `given`
    actual -- the judged tensors

    Random rounding is tried only if a tensor is farther from float64 than the last bit of its dtype explains,
    so the plan is usually executed once. Raises NoReference if the plan cannot be executed.
    """
    return until_clear(actual, _expected(program, plan, given), _verdicts)


def until_clear(
    actual: Mapping[K, torch.Tensor],
    expected_of: Callable[[int], Mapping[K, Expected]],
    verdicts_of: Callable[[Mapping[K, torch.Tensor], Mapping[K, Expected]], dict[K, Judged]],
) -> dict[K, Judged]:
    """The verdicts on some tensors, with as many runs with random rounding as they need.

    expected_of -- the exact values and their spread, by a number of such runs
    """
    verdicts = verdicts_of(actual, expected_of(0))
    unclear = [name for name, one in verdicts.items() if not _near(one)]
    for samples in (SAMPLES, MORE_SAMPLES):
        if unclear:
            expected = expected_of(samples)
            verdicts |= verdicts_of({name: actual[name] for name in unclear}, expected)
            unclear = [name for name in unclear if needs_more_runs(verdicts[name], expected[name])]
    return verdicts


def right_by(program: FxProgram, plan: FxPlan, given: Given, actual: torch.Tensor) -> bool:
    """True if a tensor holds the one value that a plan computes from given ones; False also if undecided."""
    try:
        verdict = float64_verdicts(program, plan, given, {plan.targets[0]: actual})[plan.targets[0]]
    except NoReference:
        return False
    return verdict.verdict not in ("compiled is off", "no reference", "not decided") and not verdict.undecided


def has_one_value(program: FxProgram, plan: FxPlan, given: Given) -> bool:
    """False if rounding decides the value of a plan, as a count of equal numbers: then many values match."""
    try:
        expected = _expected(program, plan, given)(SAMPLES)[plan.targets[0]]
    except NoReference:
        return False
    largest = expected.exact.abs().to(torch.float64).nan_to_num().amax() if expected.exact.numel() else 0
    return bool((expected.spread <= _DECIDED * largest).all())


def resembles(program: FxProgram, plan: FxPlan, given: Given, actual: torch.Tensor) -> bool:
    """False if a tensor is so far from the value of a plan that no rounding explains it.

    True also if their shapes or dtypes differ.
    """
    own = executed(program, plan, given).get(plan.targets[0])
    if own is None or own.dtype != actual.dtype or own.shape != actual.shape:
        return True
    wide = own.to(torch.complex128 if own.is_complex() else torch.float64).nan_to_num()
    apart = (actual.to(wide.dtype).nan_to_num() - wide).abs()
    return not apart.numel() or bool(apart.max() <= _ALIKE * wide.abs().max())


def right_on_cpu(program: FxProgram, plan: FxPlan, given: Given, actual: torch.Tensor) -> bool:
    """True if a GPU's tensor is right by what ATen computes on the CPU; its kernels for GPUs have faults.

    False also if the CPU decides nothing, and for inputs of many elements.
    """
    tensors = {value: one for value, one in given.items() if isinstance(one, torch.Tensor)}
    if not actual.is_cuda or sum(one.numel() for one in tensors.values()) > _CONFIRMED:
        return False
    moved = {**given, **{value: one.cpu() for value, one in tensors.items()}}
    return right_by(FxProgram(program.graph, torch.device("cpu"), program.tf32), plan, moved, actual.cpu())


def executed(program: FxProgram, plan: FxPlan, given: Given) -> dict[FxValue, torch.Tensor]:
    """The values of a plan as computed by ATen, each node in its own dtype.

    Raises NoReference if the plan cannot be executed.
    """
    exact = exact_values(program, plan, given)
    return {value: one.own for value, one in exact.items() if one.own is not None}


def exact_values(program: FxProgram, plan: FxPlan, given: Given) -> dict[FxValue, Expected]:
    """The values of a plan in float64, without their spread; raises NoReference if it cannot be executed."""
    return _expected(program, plan, given)(0)


def wrong_elements(name: str, buffer: str, value: FxValue, verdict: Judged, of: int) -> WrongElements:
    """The wrong elements of a judged tensor."""
    worst: Distance = verdict.compiled
    return WrongElements(
        name, buffer, value.node, worst.elements, of, worst.index, worst.value, verdict.exact,
        worst.farthest, worst.limit, mean=worst.mean, typical=worst.typical,
    )  # fmt: skip


def undecided(verdict: Judged) -> str:
    """What a judged tensor depends on that decides nothing, as the text of a NoReference; "": nothing."""
    if verdict.beyond:
        return "a choice that rounding decides, as the order of equal values"
    if verdict.verdict == "not decided":
        return "rounding, which moves ATen's own values as far from float64"
    hidden = "the rounding of its larger elements, which hides errors of smaller ones"
    return hidden if verdict.undecided else ""


def _expected(program: FxProgram, plan: FxPlan, given: Given) -> Callable[[int], dict[FxValue, Expected]]:
    # what the targets of a plan should be, by a number of runs with random rounding
    def run() -> dict[str, Any]:
        results = program.run(plan, given)
        return {str(i): results[value] for i, value in enumerate(plan.targets)}

    reference = Reference(run, tf32=program.tf32)

    def expected(samples: int) -> dict[FxValue, Expected]:
        try:
            with torch.no_grad():
                results = reference.expected(samples)
        except FAILURES as error:
            first = next(iter(str(error).splitlines()), type(error).__name__)
            raise NoReference(f"{DOES_NOT_RUN}: {first}") from None
        return {plan.targets[int(name)]: one for name, one in results.items()}

    return expected


def _verdicts(
    actual: Mapping[FxValue, torch.Tensor], expected: Mapping[FxValue, Expected]
) -> dict[FxValue, Judged]:
    verdicts = {}
    for value, tensor in actual.items():
        one = expected.get(value)
        if one is None or one.own is None:
            raise NoReference(f"{value.node}, which is no tensor")
        if one.exact.shape != tensor.shape and one.exact.numel() == tensor.numel() and tensor.is_contiguous():
            tensor = tensor.reshape(one.exact.shape)  # of dynamic shapes, which only the value tells
        if one.exact.shape != tensor.shape:
            raise NoReference(
                f"{value.node}, whose value has shape {tuple(one.exact.shape)} and which lies in memory "
                f"with shape {tuple(tensor.shape)}"
            )
        if one.own.dtype != tensor.dtype:
            raise OtherDtype(value, one.own)
        verdicts[value] = judge(tensor, one.own, one, narrow=_NARROW)
    return verdicts


def _near(one: Judged) -> bool:
    # without noise, every distance is maximal
    return not (one.compiled.off or one.undecided)
