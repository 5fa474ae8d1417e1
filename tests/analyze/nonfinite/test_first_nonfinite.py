"""The first NaN or inf: the event that makes it from finite values, its readers, undecidable runs."""

from __future__ import annotations

import dataclasses
import json
from math import prod
from pathlib import Path
from typing import Literal

import msgspec
import pytest
from commands import tracing
from documents.json_keys import require_documented
from handmade.records import META, arg, launch
from handmade.runs import saved, saved_job

from tracing.analyze.nonfinite.first_nonfinite import first_nonfinite
from tracing.analyze.nonfinite.nonfinite_elements import nonfinite_elements, ranges
from tracing.cli.answers.findings import nan_text
from tracing.cli.compare.nan import commands_of_nan
from tracing.model import (
    Access,
    CallSite,
    Digest,
    KernelArg,
    KernelLaunch,
    OperatorCall,
    OperatorDigests,
    OperatorSignature,
    Phase,
    ProgramStep,
    Record,
    Segment,
    Selection,
    StepSelection,
    Values,
)
from tracing.report.nonfinite import nonfinite_text, title
from tracing.report.text import line_text
from tracing.store import Run
from tracing.store.graph_file import PythonLine

BITS = "0" * 32


def value(
    name: str, role: Literal["in", "out", "in_out"], storage: int, before: int = 0, after: int = 0
) -> KernelArg:
    """An argument with this many NaN before and after its launch."""
    digests = {"before": Digest(BITS, nan=before), "after": Digest("1" * 32, nan=after)}
    return msgspec.structs.replace(arg(name, role, "x", "y", storage=storage), **digests)


def step(index: int, read: int, written: int, *, nan_in: int = 0, nan_out: int = 0) -> KernelLaunch:
    """A launch that reads one storage and writes another one."""
    return launch(
        index,
        value("x", "in", read, nan_in, nan_in),
        value("y", "out", written, 0, nan_out),
        name=f"k{index}",
    )


def operator(
    launches: int, reads: int, writes: int, nan: tuple[int, int] | None, name: str = "aten::mm"
) -> list[Record]:
    """An operator after so many launches, with the NaNs that it read and wrote; None: no digests."""
    records: list[Record] = [
        OperatorSignature(0, name, "", (META,), (META,)),
        OperatorCall(0, launches, 0, (reads, writes)),
    ]
    if nan is not None:
        records.append(OperatorDigests(0, (Digest(BITS, nan=nan[0]),), (Digest(BITS, nan=nan[1]),)))
    return records


@pytest.mark.parametrize(("every", "start", "partial"), [(1, 0, False), (2, 0, True), (1, 2, True)])
def test_a_run_that_lacks_earlier_steps_does_not_call_its_first_nan_the_first(
    every: int, start: int, partial: bool, tmp_path: Path
) -> None:
    selection = StepSelection(every=every, start=start)
    steps = [index for index in range(4) if selection.wants(index)]
    launches = [step(index, 1, 2, nan_out=5 * (index >= 2)) for index in steps]
    ends = [ProgramStep(index, index + 1) for index in range(4)]

    answer = first_nonfinite(saved(tmp_path, launches, ends, steps=selection))

    title, *_ = nonfinite_text(answer, {}, [])
    assert title.plain.startswith("✗ launch #2") and title.plain.endswith(" that was recorded") is partial


def test_launches_that_were_deleted_precede_the_first_nan_of_a_program_without_steps(tmp_path: Path) -> None:
    launches = [step(7, 1, 2, nan_out=5)]
    selection = StepSelection(last=2)

    answer = first_nonfinite(saved(tmp_path, launches, [Segment(3, 0, 7, 0, True)], steps=selection))

    assert answer.origin is not None and answer.origin.partial


def test_the_first_launch_that_makes_a_nan_of_finite_values_is_named_with_those_that_carry_it(
    tmp_path: Path,
) -> None:
    launches = [
        step(0, 1, 2),
        step(1, 2, 3, nan_out=5),
        step(2, 1, 9),
        step(3, 3, 4, nan_in=5, nan_out=1),
        step(4, 4, 5, nan_in=1, nan_out=1),
        step(5, 3, 8, nan_in=5),
        step(6, 3, 7, nan_in=5, nan_out=5),
        step(7, 4, 6, nan_in=1, nan_out=1),
    ]

    answer = first_nonfinite(saved(tmp_path, launches))

    assert answer.origin is not None
    assert (answer.status, answer.origin.made, answer.origin.event.name) == (1, True, "k1")
    assert [(one.name, one.digest and one.digest.nan) for one in answer.origin.tensors] == [("y", 5)]
    assert [event.name for event in answer.origin.chain] == ["k3", "k7"]
    assert answer.origin.carriers == 4
    lines = [line.plain.strip() for line in nonfinite_text(answer, {}, [])]
    assert "carried   on by 4 launches and operators; the path to the last one:" in lines


@pytest.mark.parametrize("nan", [(5, 5), None])
def test_a_step_that_grad_scaler_skips_is_explained(nan: tuple[int, int] | None, tmp_path: Path) -> None:
    check = operator(1, 2, 2, nan, "aten::_amp_foreach_non_finite_check_and_unscale_")

    answer = first_nonfinite(saved(tmp_path, [step(0, 1, 2, nan_out=5)], check, operators="digests"))

    text = "\n".join(line.plain for line in nonfinite_text(answer, {}, []))
    assert ("→ torch.amp.GradScaler skips that step of the optimizer, by operator #0" in text) == bool(nan)


CHECK, UPDATE = "aten::_amp_foreach_non_finite_check_and_unscale_", "aten::_amp_update_scale_"


def skipping(scaled: bool) -> list[Record]:
    """Operators of a step that GradScaler skips; what launch 0 reads may depend on its scale, storage 8."""
    calls = [
        ("aten::mul", 0, (8, 1 if scaled else 9), 0),
        (CHECK, 1, (2, 2), 5),
        (UPDATE, 1, (8, 8), 0),
    ]
    records: list[Record] = []
    for number, (name, launches, storages, nan) in enumerate(calls):
        digests = (Digest(BITS, nan=nan),)
        records += [
            OperatorSignature(number, name, "", (META,), (META,)),
            OperatorCall(number, launches, number, storages),
            OperatorDigests(number, digests, digests),
        ]
    return records


@pytest.mark.parametrize("scaled", [True, False])
def test_after_an_overflow_by_the_scale_of_grad_scaler_the_next_nan_is_named(
    scaled: bool, tmp_path: Path
) -> None:
    launches = [step(0, 1, 2, nan_out=5), step(1, 3, 4, nan_out=5)]
    run = saved(tmp_path, launches, skipping(scaled), operators="digests")

    answer = first_nonfinite(run)

    assert answer.origin is not None and answer.origin.event.name == "k0"
    assert answer.origin.skipped is scaled
    assert (answer.later is not None and answer.later.name == "k1") is scaled
    leads_there = [command.endswith(" --launch 1") for command in commands_of_nan(run, answer)]
    assert (leads_there == [True, True]) is scaled
    text = "\n".join(line.plain for line in nonfinite_text(answer, {}, []))
    assert ("an inf that its scale causes in a gradient is no fault" in text) is scaled
    assert ("its scale is not known to be the cause" in text) is not scaled
    (said,) = [line.plain for line in nan_text(run)]
    assert ("launch #1 k1" if scaled else "launch #0 k0") in said


def test_a_run_whose_only_overflow_grad_scaler_skips_has_no_finding(tmp_path: Path) -> None:
    run = saved(tmp_path, [step(0, 1, 2, nan_out=5)], skipping(True), operators="digests")

    assert not list(nan_text(run))


def called(*calls: tuple[str, int, tuple[int, ...], int, int]) -> list[Record]:
    """Operators: name, launches before it, storages (what it writes is the last), NaN read and written."""
    records: list[Record] = []
    for number, (name, launches, storages, before, after) in enumerate(calls):
        reads = len(storages) - 1
        records += [
            OperatorSignature(number, name, "", (META,) * reads, (META,)),
            OperatorCall(number, launches, number, storages),
            OperatorDigests(number, (Digest(BITS, nan=before),) * reads, (Digest(BITS, nan=after),)),
        ]
    return records


def test_memory_that_held_a_scaled_value_does_not_make_a_new_tensor_depend_on_the_scale(
    tmp_path: Path,
) -> None:
    # storage 1 holds a scaled gradient, then new data, of which launch 1 makes a NaN that is no overflow
    operators = called(
        ("aten::mul", 0, (8, 1), 0, 0),
        (CHECK, 1, (2, 2), 5, 5),
        ("aten::randn", 1, (1,), 0, 0),
        (CHECK, 2, (4, 4), 5, 5),
        (UPDATE, 2, (8, 8), 0, 0),
    )
    run = saved(
        tmp_path, [step(0, 1, 2, nan_out=5), step(1, 1, 4, nan_out=5)], operators, operators="digests"
    )

    answer = first_nonfinite(run)

    assert answer.origin is not None and answer.origin.skipped and answer.origin.event.name == "k0"
    assert answer.later is not None and answer.later.name == "k1"


def test_the_scale_of_a_step_is_forgotten_at_its_end(tmp_path: Path) -> None:
    operators = called(
        ("aten::mul", 0, (8, 1), 0, 0),
        (CHECK, 1, (2, 2), 5, 5),
        (UPDATE, 1, (8, 8), 0, 0),
        (CHECK, 2, (4, 4), 5, 5),
        (UPDATE, 2, (8, 8), 0, 0),
    )
    run = saved(
        tmp_path, [step(0, 1, 2, nan_out=5), step(1, 1, 4, nan_out=5)], operators, operators="digests"
    )

    answer = first_nonfinite(run)

    assert answer.later is not None and answer.later.name == "k1"


def test_a_nan_of_gradients_that_the_check_found_infinite_is_no_fault(tmp_path: Path) -> None:
    # as clip_grad_norm_ multiplies an inf by 0, in a step that is skipped
    inf = [msgspec.structs.replace(step(0, 1, 2).args[1], after=Digest("1" * 32, inf=5))]
    overflow = msgspec.structs.replace(step(0, 1, 2), args=(step(0, 1, 2).args[0], *inf))
    check = [
        *called(("aten::mul", 0, (8, 1), 0, 0)),
        OperatorSignature(1, CHECK, "", (META,), (META,)),
        OperatorCall(1, 1, 1, (2, 2)),
        OperatorDigests(1, (Digest(BITS, inf=5),), (Digest(BITS, inf=5),)),
        OperatorSignature(2, "aten::_foreach_mul_.Tensor", "", (META,), (META,)),
        OperatorCall(2, 1, 2, (2, 2)),
        OperatorDigests(2, (Digest(BITS, inf=5),), (Digest(BITS, nan=5),)),
        OperatorSignature(3, UPDATE, "", (META,), (META,)),
        OperatorCall(3, 1, 3, (8, 8)),
        OperatorDigests(3, (Digest(BITS),), (Digest(BITS),)),
    ]
    run = saved(tmp_path, [overflow, step(1, 3, 4, nan_out=5)], check, operators="digests")

    answers = [first_nonfinite(run), first_nonfinite(run, "nan")]

    assert [one.origin is not None and one.origin.skipped for one in answers] == [True, True]
    assert [one.later is not None and one.later.name for one in answers] == ["k1", "k1"]


def test_an_overflow_that_may_reach_the_check_by_launches_that_were_left_out_is_not_named(
    tmp_path: Path,
) -> None:
    operators = called(
        ("aten::mul", 0, (8, 1), 0, 0),
        (CHECK, 1, (2, 2), 5, 5),
        ("aten::mul", 1, (8, 1), 0, 0),
        ("aten::mm", 1, (1, 4), 0, 5),
        (CHECK, 1, (6, 6), 5, 5),
        (UPDATE, 1, (8, 8), 0, 0),
    )
    selection = Selection(launches=(0, 1))
    launches = [step(0, 1, 2, nan_out=5)]

    answer = first_nonfinite(saved(tmp_path, launches, operators, operators="digests", selection=selection))

    assert answer.later is None


def test_a_scaled_value_in_a_run_that_lacks_launches_may_reach_the_check_by_them(tmp_path: Path) -> None:
    operators = called(("aten::mul", 0, (8, 1), 0, 0), (UPDATE, 1, (8, 8), 0, 0))
    selection, launches = Selection(launches=(0, 1)), [step(0, 1, 2, nan_out=5)]

    answer = first_nonfinite(saved(tmp_path, launches, operators, operators="digests", selection=selection))

    assert answer.origin is not None and answer.origin.skipped
    text = "\n".join(line.plain for line in nonfinite_text(answer, {}, []))
    assert "the run lacks launches, which may take it to a check" in text


@pytest.mark.parametrize("read", [False, True])
def test_a_scaled_gradient_that_no_optimizer_takes_is_no_fault(read: bool, tmp_path: Path) -> None:
    # as of the discriminator in a step of the generator: no check reads it; set to zero before its own step
    operators = called(
        ("aten::mul", 0, (8, 1), 0, 0),
        (UPDATE, 1, (8, 8), 0, 0),
        ("aten::mul", 1, (8, 1), 0, 0),
        (UPDATE, 2, (8, 8), 0, 0),
        *([("aten::sub_", 2, (2, 7), 5, 5), ("aten::sub_", 2, (4, 7), 5, 5)] if read else []),
        (UPDATE, 2, (8, 8), 0, 0),
    )
    launches = [step(0, 1, 2, nan_out=5), step(1, 1, 4, nan_out=5)]
    run = saved(tmp_path, launches, operators, operators="digests")

    answer = first_nonfinite(run)

    assert answer.origin is not None and answer.origin.skipped is not read
    assert (answer.later is not None) is read
    assert bool(list(nan_text(run))) is read


def test_the_scale_of_each_of_two_scalers_is_followed(tmp_path: Path) -> None:
    operators = called(
        (UPDATE, 0, (9, 9), 0, 0),
        ("aten::mul", 0, (8, 1), 0, 0),
        (CHECK, 1, (2, 2), 5, 5),
        (UPDATE, 1, (8, 8), 0, 0),
    )

    answer = first_nonfinite(saved(tmp_path, [step(0, 1, 2, nan_out=5)], operators, operators="digests"))

    assert answer.origin is not None and answer.origin.skipped


@pytest.mark.parametrize("steps", [True, False])
def test_an_optimizer_that_steps_with_an_overflow_that_grad_scaler_found_is_no_skipped_step(
    steps: bool, tmp_path: Path
) -> None:
    operators = called(
        ("aten::mul", 0, (8, 1), 0, 0),
        (CHECK, 1, (2, 2), 5, 5),
        ("aten::sub_", 1, (2, 7), 5, 5),  # of a parameter, or what the program does with the gradient
        (UPDATE, 1, (8, 8), 0, 0),
    )
    ends = [ProgramStep(0, 1, 3)] if steps else [ProgramStep(0, 1, 4)]
    run = saved(tmp_path, [step(0, 1, 2, nan_out=5)], [*operators, *ends], operators="digests")

    answer = first_nonfinite(run)

    assert answer.origin is not None and answer.origin.skipped is not steps
    text = "\n".join(line.plain for line in nonfinite_text(answer, {}, []))
    assert ("`scaler.step(optimizer)` skips such a step" in text) is steps
    assert bool(list(nan_text(run))) is steps


def test_the_path_of_a_nan_ends_where_new_memory_takes_its_address(tmp_path: Path) -> None:
    operators = called(
        ("aten::mm", 1, (2, 3), 5, 5), ("aten::log", 1, (7, 2), 0, 5), ("aten::mm", 1, (2, 4), 5, 5)
    )

    answer = first_nonfinite(saved(tmp_path, [step(0, 1, 2, nan_out=5)], operators, operators="digests"))

    assert answer.origin is not None and [one.source.index for one in answer.origin.chain] == [0]


@pytest.mark.parametrize("phase", ["backward", "forward"])
def test_a_backward_launch_that_gets_its_gradient_as_a_number_may_depend_on_the_scale(
    phase: Phase, tmp_path: Path
) -> None:
    gradient = KernelArg("in_ptr0", "in", None, None, 2.0)
    first = step(0, 1, 2, nan_out=5)
    launches = [msgspec.structs.replace(first, args=(gradient, *first.args), phase=phase)]

    answer = first_nonfinite(saved(tmp_path, launches, skipping(False), operators="digests"))

    assert answer.origin is not None and answer.origin.skipped is (phase == "backward")


def test_a_second_overflow_by_the_scale_is_not_named_after_the_first(tmp_path: Path) -> None:
    launches = [step(0, 1, 2, nan_out=5), step(1, 1, 2, nan_out=5), step(2, 3, 4, nan_out=5)]
    again: list[Record] = [
        OperatorCall(3, 1, 0, (8, 1)),
        OperatorDigests(3, (Digest(BITS),), (Digest(BITS),)),
        OperatorCall(4, 2, 1, (2, 2)),
        OperatorDigests(4, (Digest(BITS, nan=5),), (Digest(BITS, nan=5),)),
        OperatorCall(5, 2, 2, (8, 8)),
        OperatorDigests(5, (Digest(BITS),), (Digest(BITS),)),
    ]
    run = saved(tmp_path, launches, [*skipping(True), *again], operators="digests")

    answer = first_nonfinite(run)

    assert answer.later is not None and answer.later.name == "k2"


def test_a_launch_that_makes_a_nan_is_named_after_one_whose_input_is_not_known(tmp_path: Path) -> None:
    launches = [
        step(0, 2, 3, nan_in=5, nan_out=5),
        step(1, 3, 4, nan_in=5, nan_out=5),
        step(2, 1, 6, nan_out=7),
    ]
    run = saved(tmp_path, launches, operator(0, 1, 2, None))

    answer = first_nonfinite(run)

    assert (answer.status, answer.origin) == (1, None)
    assert answer.later is not None and answer.later.name == "k2"
    first, *lines = (line.plain for line in nonfinite_text(answer, {}, []))
    assert first == "✗ launch #2 k2 makes a NaN or inf: every value that it reads is finite"
    assert any(one.startswith("not known before it: k0 (#0) reads one in x, which aten::mm") for one in lines)
    (said,) = [line.plain for line in nan_text(run)]
    assert "a NaN is made of finite values by launch #2 k2" in said


def test_an_operator_without_digests_may_carry_it_on(tmp_path: Path) -> None:
    launches = [step(0, 1, 2, nan_out=5), step(1, 2, 4, nan_in=5, nan_out=1), step(2, 3, 5)]

    answer = first_nonfinite(saved(tmp_path, launches, operator(1, 2, 3, None)))

    assert answer.origin is not None
    assert (answer.origin.carriers, answer.origin.carriers_known) == (2, False)
    lines = [line.plain.strip() for line in nonfinite_text(answer, {}, [])]
    assert "carried   on by at most 2 launches and operators; the path to the last one:" in lines


def test_an_operator_that_makes_it_is_named_if_its_digests_were_recorded(tmp_path: Path) -> None:
    launches = [step(0, 1, 2), step(1, 3, 4, nan_in=2, nan_out=2)]

    run = saved(tmp_path, launches, operator(1, 2, 3, (0, 2)), operators="digests")
    answer = first_nonfinite(run)

    assert answer.origin is not None
    assert (answer.status, answer.origin.event.name) == (1, "aten::mm")
    assert [event.name for event in answer.origin.chain] == ["k1"]


def test_a_value_that_an_operator_without_digests_wrote_leaves_the_question_open(tmp_path: Path) -> None:
    launches = [step(0, 1, 2), step(1, 3, 4, nan_in=2, nan_out=2)]

    answer = first_nonfinite(saved(tmp_path, launches, operator(1, 2, 3, None)))

    assert (answer.origin, answer.status, answer.record) == (None, 2, ["--operators digests"])
    assert "k1 (#1) reads one in x, which aten::mm wrote" in answer.unknown[0]


def test_the_line_of_an_operator_without_digests_is_named(tmp_path: Path) -> None:
    called: list[Record] = [
        CallSite(0, "m.py", 5, "f"),
        OperatorSignature(0, "aten::mm", "", (META,), (META,)),
        OperatorCall(0, 1, 0, (2, 3), site=0),
    ]

    answer = first_nonfinite(saved(tmp_path, [step(0, 1, 2), step(1, 3, 4, nan_in=2)], called))

    assert answer.unknown[0].startswith(
        "k1 (#1) reads one in x, which aten::mm, called at m.py:5 in f, wrote: its inputs have no digests"
    )


def test_a_value_that_nothing_wrote_is_the_programs_own(tmp_path: Path) -> None:
    run = saved(tmp_path, [step(0, 1, 2, nan_in=1, nan_out=1)], operators="digests")

    origin = first_nonfinite(run).origin

    assert origin is not None
    assert (origin.made, [one.name for one in origin.tensors]) == (False, ["x"])


@pytest.mark.parametrize(("count", "unwritten"), [(prod(META.shape), ("x",)), (prod(META.shape) - 1, ())])
def test_memory_that_nothing_wrote_is_not_called_the_programs_own_data(
    count: int, unwritten: tuple[str, ...], tmp_path: Path
) -> None:
    access = Access(0, {0: BITS}, uninitialised={0: (0, count)})

    answer = first_nonfinite(saved(tmp_path, [step(0, 1, 2, nan_in=1)], [access], operators="digests"))

    assert answer.origin is not None and answer.origin.unwritten == unwritten
    said = "".join(line.plain for line in nonfinite_text(answer, {}, []))
    assert ("nothing wrote x: this memory was allocated" in said) is bool(unwritten)


@pytest.mark.parametrize(
    ("number", "verb", "printed"),
    [
        (float("-inf"), "makes", "every value that it reads is finite; it is called with fill=-inf"),
        (float("nan"), "may make", "not certain: it is called with fill=nan, and may compute one, too"),
        (1e30, "makes", "every value that it reads is finite"),
    ],
)
def test_a_number_that_a_kernel_is_called_with_is_named(
    number: float, verb: str, printed: str, tmp_path: Path
) -> None:
    fill = KernelArg("fill", value=number)
    answer = first_nonfinite(
        saved(tmp_path, [launch(0, value("y", "out", 2, 0, 3), value("x", "in", 1), fill)])
    )

    lines = [line.plain.strip() for line in nonfinite_text(answer, {}, [])]

    assert answer.origin is not None
    assert (answer.origin.verb, f"→ {printed}" in lines) == (verb, True)


@pytest.mark.parametrize(
    ("records", "info", "status"),
    [
        ([], {"operators": "digests"}, 0),
        (operator(1, 2, 3, None), {}, 2),
        ([], {"operators": "digests", "digests": "none"}, 2),
        ([], {"operators": "none"}, 2),
        (operator(1, 2, 3, None), {"operators": "digests"}, 2),
    ],
)
def test_all_is_finite_only_if_everything_was_looked_at(
    records: list[Record], info: dict[str, str], status: int, tmp_path: Path
) -> None:
    assert first_nonfinite(saved(tmp_path, [step(0, 1, 2)], records, **info)).status == status


def test_that_no_value_is_wrong_in_what_was_seen_is_said_before_what_was_not(tmp_path: Path) -> None:
    def said(**info: str) -> list[str]:
        run = saved(tmp_path, [step(0, 1, 2)], operator(1, 2, 3, None), **info)
        return [line.plain for line in nonfinite_text(first_nonfinite(run), {}, [])]

    seen, unseen = said()
    assert seen == "no NaN and no inf in what has digests, 1 launch"
    assert unseen.startswith("not known: 1 call of an operator outside of Triton has no digests")
    assert not said(digests="none")[0].startswith("no NaN")


def test_what_a_launch_reads_completely_is_known_whatever_wrote_it(tmp_path: Path) -> None:
    launches = [step(0, 1, 2), step(1, 3, 4)]

    answer = first_nonfinite(saved(tmp_path, launches, operator(1, 2, 3, None), operators="digests"))

    assert (answer.status, answer.unknown) == (0, [])


def test_an_infinite_mask_is_passed_over_if_only_nan_is_asked_for(tmp_path: Path) -> None:
    mask = msgspec.structs.replace(value("y", "out", 2), after=Digest(BITS, inf=3))
    launches = [launch(0, value("x", "in", 1), mask, name="mask"), step(1, 2, 3, nan_out=1)]
    run = saved(tmp_path, launches, operators="digests")

    first = [first_nonfinite(run, kind).origin for kind in ("any", "nan")]

    assert [one and one.event.name for one in first] == ["mask", "k1"]


def test_a_launch_that_makes_more_than_is_passed_on_is_named_and_carries_nothing(tmp_path: Path) -> None:
    filled: list[Record] = [
        OperatorSignature(0, "aten::full", "size=[8], fill_value=nan", (), (META,)),
        OperatorCall(0, 0, 0, (1,)),
        OperatorDigests(0, (), (Digest(BITS, nan=8),)),
    ]
    launches = [step(0, 1, 2, nan_in=8, nan_out=8), step(1, 5, 6, nan_out=3)]

    answer = first_nonfinite(saved(tmp_path, launches, filled))

    assert answer.origin is not None and answer.origin.verb == "passes"
    assert [event.name for event in answer.origin.chain] == ["k0"]
    assert answer.later is not None and answer.later.name == "k1"
    lines = [line.plain for line in nonfinite_text(answer, {}, [])]
    assert "✗ launch #1 k1 makes more: every value that it reads is finite" in lines


def test_a_launch_that_makes_one_is_named_after_a_read_of_memory_that_nothing_wrote(tmp_path: Path) -> None:
    launches = [step(0, 1, 2, nan_in=8), step(1, 5, 6, nan_out=3)]
    run = saved(tmp_path, launches, operators="digests")

    answer = first_nonfinite(run)

    assert answer.origin is not None and answer.origin.verb == "reads"
    assert answer.later is not None and answer.later.name == "k1"
    (said,) = [line.plain for line in nan_text(run)]
    assert "a NaN is made of finite values by launch #1 k1" in said


@pytest.mark.parametrize(
    ("name", "arguments", "reads"),
    [
        ("aten::baddbmm", "beta=0.0, alpha=0.5", False),
        ("aten::addmm.out", "beta=0", False),
        ("aten::addmv_", "beta=0", False),
        ("aten::addmm", "beta=0.5", True),
        ("aten::addmm", "", True),
        ("aten::mm", "beta=0", True),
    ],
)
def test_an_input_that_counts_zero_times_is_not_read(
    name: str, arguments: str, reads: bool, tmp_path: Path
) -> None:
    called: list[Record] = [
        OperatorSignature(0, name, arguments, (META, META), (META,)),
        OperatorCall(0, 0, 0, (1, 2, 3)),
        OperatorDigests(0, (Digest(BITS, nan=8), Digest(BITS)), (Digest(BITS),)),
    ]

    answer = first_nonfinite(saved(tmp_path, [step(0, 3, 4)], called, operators="digests"))

    assert (answer.origin is not None) is reads


def test_elements_are_named_where_the_values_were_kept_and_json_is_as_documented(tmp_path: Path) -> None:
    values = Values(0, 1, "after", (1.0, "nan", "-inf", 2.0))
    run = saved(tmp_path, [step(0, 1, 2, nan_out=2), step(1, 2, 3, nan_in=2, nan_out=2)], [values])

    said = tracing("nan", str(run.path), "--json", runs=tmp_path)

    assert ranges(nonfinite_elements(run, 0, 0, 1) or []) == [(1, 3)]
    assert said.returncode == 1
    assert json.loads(said.stdout)["tensors"][0]["elements"] == [[1, 3]]
    keys = ("makes", "name", "line", "index", "operands", "backward", "stored")
    of_graphs = [f"made_by[].{key}" for key in keys]
    require_documented(said.stdout, "## `tracing nan`", *of_graphs)


@pytest.mark.parametrize(
    ("reads", "writes", "unseen"),
    [((2,), 3, True), ((2,), 1, False), ((), 3, False)],
    ids=["nothing reads its output", "the launch reads its output", "it fills memory"],
)
def test_what_an_operator_without_digests_may_have_made_before_is_said(
    tmp_path: Path, reads: tuple[int, ...], writes: int, unseen: bool
) -> None:
    called: list[Record] = [
        OperatorSignature(0, "aten::mm", "", (META,) * len(reads), (META,)),
        OperatorCall(0, 0, 0, (*reads, writes)),
    ]

    answer = first_nonfinite(saved(tmp_path, [step(0, 1, 9, nan_out=5)], called))

    assert answer.origin is not None and (answer.origin.made, answer.origin.unseen) == (True, unseen)
    said = next(nonfinite_text(answer, {}, [])).plain
    assert said.endswith("the first NaN or inf that digests show" if unseen else "makes the first NaN or inf")
    assert any(one.endswith("may have made a NaN or an inf earlier") for one in answer.unknown) is unseen


@pytest.mark.parametrize(("count", "printed"), [(5, 5), (8, 8), (10, 9)])
def test_lines_that_a_launch_computes_are_printed_or_counted(
    count: int, printed: int, tmp_path: Path
) -> None:
    answer = first_nonfinite(saved(tmp_path, [step(0, 1, 2, nan_out=1)]))
    assert answer.origin is not None
    lines = tuple(PythonLine("m.py", number, "f", "x = y") for number in range(count))
    answer.origin = dataclasses.replace(answer.origin, computes=lines)

    text = [line.plain for line in nonfinite_text(answer, {}, []) if "computes" in line.plain]

    assert len(text) == printed
    assert text[-1].split(maxsplit=1)[1] == (line_text(lines[-1]) if count == printed else "and 2 more lines")


def collective(reads: tuple[int, int], nan: int = 3) -> list[Record]:
    """`c10d::allreduce_` after one launch, with the numbers of NaN that it read and wrote."""
    return [
        OperatorSignature(0, "c10d::allreduce_", "", (META,), (META,)),
        OperatorCall(0, 1, 0, (2, 2)),
        OperatorDigests(0, (Digest(BITS, nan=reads[1]),), (Digest("2" * 32, nan=nan),)),
    ]


def job(tmp_path: Path, *made: int, **info: object) -> Run:
    """The run of ranks that exchange what their launches wrote; made -- NaN that the launch of each makes."""
    ranks = [([step(0, 1, 2, nan_out=count)], collective((0, count))) for count in made]
    return saved_job(tmp_path, *ranks, **info)


def test_a_nan_that_a_collective_receives_is_the_other_ranks(tmp_path: Path) -> None:
    answer = first_nonfinite(job(tmp_path, 0, 3))

    assert answer.origin is not None
    assert (answer.origin.event.name, answer.origin.event.rank, answer.origin.verb) == ("k0", 1, "makes")
    assert "k0 on rank 1" in title(answer.origin.event)


def test_a_collective_of_finite_values_makes_its_nan(tmp_path: Path) -> None:
    answer = first_nonfinite(job(tmp_path, 0, 0))

    assert answer.origin is not None
    assert (answer.origin.event.name, answer.origin.event.rank) == ("c10d::allreduce_", 0)
    assert not answer.unknown


@pytest.mark.parametrize("size", [1, 2])
def test_a_collective_does_not_certainly_make_a_nan_where_a_rank_is_not_in_the_run(
    tmp_path: Path, size: int
) -> None:
    answer = first_nonfinite(job(tmp_path, 0, world_size=size))

    assert answer.origin is not None and answer.origin.event.name == "c10d::allreduce_"
    assert answer.unknown == ["what other ranks gave c10d::allreduce_: the run lacks some"]
