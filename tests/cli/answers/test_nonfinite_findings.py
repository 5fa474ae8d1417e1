"""The line about NaN and inf at the end of a recording."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec
import pytest
from handmade.records import META, arg, launch
from handmade.runs import saved

from tracing.cli.answers.findings import findings_text
from tracing.model import (
    Digest,
    KernelLaunch,
    OperatorCall,
    OperatorSignature,
    Outcome,
    Record,
    Result,
    Segment,
    StepSelection,
    TensorValue,
)


class Call(NamedTuple):
    """An operator without digests, before the first launch."""

    name: str
    reads: tuple[int, ...]  # storages
    writes: int
    arguments: str = ""


def records(calls: Sequence[Call]) -> list[Record]:
    made: list[Record] = []
    for number, one in enumerate(calls):
        made.append(OperatorSignature(number, one.name, one.arguments, (META,) * len(one.reads), (META,)))
        made.append(OperatorCall(number, 0, number, (*one.reads, one.writes)))
    return made


def step(index: int, read: int, written: int, before: Digest, after: Digest) -> KernelLaunch:
    x = msgspec.structs.replace(arg("x", "in", "x", "x", storage=read), before=before, after=before)
    y = msgspec.structs.replace(arg("y", "out", "y", "z", storage=written), before=None, after=after)
    return launch(index, x, y, name=f"k{index}")


def line(folder: Path, launches: Sequence[KernelLaunch], *calls: Call) -> str:
    run = saved(folder, launches, records(calls))
    lines = [one.plain for one in findings_text(run) if one.plain.startswith("not finite")]
    return lines[0] if lines else ""


FINITE, INF, NAN = Digest("0" * 32), Digest("1" * 32, inf=3), Digest("2" * 32, nan=2)
READS_INF = [step(0, 1, 2, INF, INF)]
MASK = Call("aten::masked_fill.Scalar", (7, 8), 9, "self, mask, value=-inf")


@pytest.mark.parametrize(
    "calls",
    [
        [Call("aten::mm.out", (5, 6), 1)],
        [Call("aten::div.Tensor", (5,), 1)],
        [MASK, Call("aten::mm", (5, 9), 1)],
        [MASK, Call("aten::add.Tensor", (5, 6), 1)],
    ],
    ids=["product", "quotient", "product with a mask", "a mask that it does not read"],
)
def test_an_inf_of_an_operator_without_digests_is_of_unknown_origin(
    calls: list[Call], tmp_path: Path
) -> None:
    text = line(tmp_path, READS_INF, *calls)

    reads = f"k0 (#0) reads one in x, which {calls[-1].name} wrote: its inputs have no digests"
    assert text.startswith(f"not finite: NaN or inf of unknown origin: {reads}: `tracing nan ")


@pytest.mark.parametrize(
    "calls",
    [
        [],
        [Call("aten::full", (), 1, "[4], -inf")],
        [MASK, Call("aten::_to_copy", (9,), 4), Call("aten::add.Tensor", (4, 5), 1)],
        [Call("aten::lift_fresh", (3,), 3), Call("aten::where.self", (5, 6, 3), 1)],
    ],
    ids=["data", "full", "mask and bias", "a tensor of Python"],
)
def test_an_inf_of_the_programs_own_is_no_finding(calls: list[Call], tmp_path: Path) -> None:
    assert line(tmp_path, READS_INF, *calls) == ""


def test_a_nan_that_is_computed_after_a_mask_is_found(tmp_path: Path) -> None:
    mask = MASK._replace(writes=1)

    text = line(tmp_path, [step(0, 1, 2, INF, FINITE), step(1, 2, 3, FINITE, NAN)], mask)

    assert text.startswith("not finite: a NaN or inf is made of finite values by launch #1 k1: `tracing nan ")


def test_a_nan_from_a_step_that_was_deleted_is_a_finding(tmp_path: Path) -> None:
    launches = [step(7, 1, 2, NAN, NAN)]
    deleted = Segment(3, 0, 7, 0, True)
    run = saved(tmp_path, launches, [deleted], steps=StepSelection(last=2))

    (text,) = [one.plain for one in findings_text(run) if one.plain.startswith("not finite")]

    assert text.startswith("not finite: the first NaN or inf that was recorded is read by launch #7 k7: `")


@pytest.mark.parametrize(("status", "result", "said"), [
    ("passed", FINITE, False), ("passed", INF, True), ("differs", FINITE, True), ("ended", None, True)
])  # fmt: skip
def test_an_inf_inside_of_a_case_that_is_right_is_a_mask(
    status: Literal["passed", "differs", "ended"], result: Digest | None, said: bool, tmp_path: Path
) -> None:
    made: list[Record] = [Outcome(status, "")]
    made += [Result("output", TensorValue(META, result))] if result is not None else []
    for after, reported in ((INF, said), (NAN, True)):
        run = saved(tmp_path, [step(0, 1, 2, FINITE, after)], made)
        assert any(one.plain.startswith("not finite") for one in findings_text(run)) == reported
