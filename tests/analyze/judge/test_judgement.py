"""What a judgement concludes from its launches and the run's outcome."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import pytest

from tracing.analyze.judge.findings import (
    JudgedLaunch,
    LaunchVerdict,
    LibraryOff,
    Overwritten,
    PassesOff,
    WrongElements,
)
from tracing.analyze.judge.judgement import RunJudgement
from tracing.analyze.judge.reached_results import ReachedResults
from tracing.model import Outcome
from tracing.report.judge.judgement import judgement_text
from tracing.report.judge.judgement_json import judgement_json
from tracing.store.graph_file import PythonLine


@pytest.mark.parametrize(
    ("verdicts", "outcome", "status"),
    [
        (["right"], "passed", 0),
        (["right"], "differs", 2),
        (["right", "off"], "differs", 1),
        (["no reference"], "passed", 2),
        (["no reference"], "differs", 2),
    ],
)
def test_right_launches_are_no_answer_if_the_results_differ(
    verdicts: list[LaunchVerdict], outcome: Literal["passed", "differs"], status: int
) -> None:
    launches = tuple(JudgedLaunch(number, "add", 0, verdict) for number, verdict in enumerate(verdicts))
    judgement = RunJudgement(launches, (), (), Outcome(outcome, ""), in_eager=("add",))
    unexplained = "the results differ from eager, and no launch that was judged explains it"

    assert judgement.status == status
    assert (unexplained in [*judgement_text(judgement, [])]) == (outcome == "differs" and status == 2)


@pytest.mark.parametrize(
    ("verdict", "detail", "status"),
    [
        ("right", "exit status 3; no launch", 2),
        ("right", "exit status 0; no launch", 0),
        ("right", "the code ended; it is not compared", 0),
        ("off", "exit status 3;", 1),
    ],
)
def test_a_program_that_failed_has_no_answer_unless_a_launch_is_off(
    verdict: LaunchVerdict, detail: str, status: int
) -> None:
    launch = JudgedLaunch(0, "add", 0, verdict)
    judgement = RunJudgement((launch,), (), (), Outcome("ended", detail), of_case=False)
    lines = [*judgement_text(judgement, [])]

    assert judgement.status == status
    assert (f"the program failed: {detail}" in lines) == (status != 0)
    assert ("no launch that was judged explains why it failed" in lines) == (status == 2)


def judged(status: Literal["passed", "differs"], in_eager: tuple[str, ...]) -> RunJudgement:
    """A right launch of Inductor's, and a hand-written one that has no reference."""
    launches = JudgedLaunch(0, "triton_0", 0, "right"), JudgedLaunch(1, "rowmean", -1, "no reference")
    return RunJudgement(launches, (), (), Outcome(status, ""), in_eager)


def test_a_kernel_that_only_the_compiled_case_launches_is_the_suspect_if_the_results_differ() -> None:
    judgement = judged("differs", ())
    lines = [*judgement_text(judgement, [])]

    assert (judgement.status, judgement_json(judgement)["suspects"]) == (1, [1])
    assert lines[0] == "✗ the results differ from eager's; the suspect is launch 1 rowmean"
    assert not any("nothing checks" in line for line in lines)


@pytest.mark.parametrize("status", ["passed", "differs"])
def test_a_launch_that_is_right_in_part_is_the_suspect_if_the_results_differ(
    status: Literal["passed", "differs"],
) -> None:
    why = "it depends on values that were not kept"
    partly = JudgedLaunch(0, "triton_0", 0, "right", why=why, unjudged=("out_ptr1",))
    judgement = RunJudgement((partly,), (), (), Outcome(status, ""))
    lines = [*judgement_text(judgement, [])]

    suspected = "✗ the results differ from eager's; the suspect is launch 0 triton_0"
    assert (suspected in lines, judgement.status) == (status == "differs", int(status == "differs"))
    assert "1 of 1 launch judged: 1 right in part" in lines
    assert f"not covered: out_ptr1 of launch 0 triton_0: no reference, because {why}" in lines
    assert not any("every other launch" in line for line in lines)


def test_the_backward_formula_is_suspect_if_only_gradients_differ() -> None:
    outcome = Outcome("differs", "", differing=("grad of input 0",))
    one = JudgedLaunch(1, "softmax", -1, "no reference")
    reached = ReachedResults(agreeing=("output",), differing=("grad of input 0",))
    judgement = RunJudgement((one,), (), (), outcome, reached={1: reached})
    lines = [*judgement_text(judgement, [])]

    assert "the suspect is the backward formula of the code that makes launch 1 softmax" in lines[0]
    assert "a step before Inductor's post-grad passes" in lines[1]
    assert "launch 1 softmax: output depends on it, and agrees" in lines[2]


def test_a_launch_that_only_gradients_depend_on_stays_the_suspect() -> None:
    outcome = Outcome("differs", "", differing=("grad of input 0",))
    one = JudgedLaunch(1, "softmax_backward", -1, "no reference")
    reached = ReachedResults(agreeing=("grad of input 1",), differing=("grad of input 0",))
    judgement = RunJudgement((one,), (), (), outcome, reached={1: reached})

    assert next(iter(judgement_text(judgement, []))).endswith("the suspect is launch 1 softmax_backward")


@pytest.mark.parametrize("values_too", [False, True])
def test_no_kernel_is_suspected_of_strides(values_too: bool) -> None:
    differing = ("output 0", "output 1")
    outcome = Outcome("differs", "", differing=differing, laid_out=differing[values_too:])
    one = JudgedLaunch(1, "rowmean", -1, "no reference")
    judgement = RunJudgement((one,), (), (), outcome)
    lines = [*judgement_text(judgement, [])]

    assert judgement.status == 1
    assert judgement.suspects == ([one] if values_too else [])
    assert ("no kernel chooses these" in lines[0]) == (not values_too)


def test_a_write_that_a_schema_does_not_declare_is_the_cause() -> None:
    write = "my::ema writes buf, and its schema does not say so"
    finding = Overwritten(0, "launch 0 sin", "arg0_1", "arg0_1", None, "", "Inductor's generated code")
    right = JudgedLaunch(0, "triton_0", 0, "right")
    judgement = RunJudgement((right,), (finding,), (), Outcome("differs", "", undeclared=(write,)))

    lines = [*judgement_text(judgement, [])]

    assert (lines[0], judgement.status) == (f"✗ {write}", 1)
    assert f"    cause     {write}" in lines
    assert not any("Inductor" in line for line in lines)
    assert judgement_json(judgement)["undeclared"] == [write]
    alone = RunJudgement((right,), (), (), Outcome("differs", "", undeclared=(write,)))
    passed = RunJudgement((right,), (), (), Outcome("passed", "", undeclared=(write,)))
    assert (alone.status, passed.status) == (1, 0)


def test_an_operator_is_off_or_one_that_reads_its_result_wrote_to_it() -> None:
    wrong = WrongElements("buf0", "buf0", "mm", 8, 8, (0,), 1.0, 2.0, 1e6, 64.0)
    finding = LibraryOff(0, "aten::mm", wrong, readers=("my::normalize_",))
    write = "my::normalize_ writes x, and its schema does not say so"
    judgement = RunJudgement((), (finding,), (), Outcome("passed", "", undeclared=(write,)))

    lines = [*judgement_text(judgement, [])]

    assert (lines[0], judgement.status) == (f"✗ {write}", 1)
    assert "✗ aten::mm is off, or its result was written by my::normalize_, undeclared" in lines
    assert judgement_json(judgement)["findings"][0]["readers"] == ("my::normalize_",)


def test_a_kernel_that_eager_launches_too_is_unchecked_and_no_suspect() -> None:
    cases: list[tuple[Literal["passed", "differs"], int]] = [("passed", 0), ("differs", 2)]
    for status, ended in cases:
        judgement = judged(status, ("rowmean",))
        lines = [*judgement_text(judgement, [])]

        assert (judgement.status, judgement.suspects) == (ended, [])
        assert judgement_json(judgement)["unchecked"] == ["rowmean"]
        assert lines[ended > 0].startswith("nothing checks the hand-written rowmean; ")


@pytest.mark.parametrize(("in_eager", "status"), [(("rowmean",), 2), ((), 0)])
def test_eagers_results_check_nothing_if_eager_launches_the_only_kernel_too(
    in_eager: tuple[str, ...], status: int
) -> None:
    launches = (JudgedLaunch(0, "rowmean", -1, "no reference"),)
    outcome = Outcome("passed", "")
    judgement = RunJudgement(launches, (), (), outcome, in_eager, has_results=True)

    assert judgement.status == status


def test_a_kernel_whose_results_agree_with_eagers_operators_is_checked() -> None:
    judgement = judged("passed", ())
    lines = [*judgement_text(judgement, [])]

    assert (judgement.status, judgement.unchecked) == (0, [])
    assert lines[0].endswith("eager's results agree, and check the hand-written rowmean")


def test_a_launch_that_raised_and_left_its_storage_explains_the_failure() -> None:
    failed = RunJudgement((JudgedLaunch(0, "fill", -1, "no reference"),), (), (), Outcome("failed", "raised"))
    explained = replace(failed, wrong_accesses={"0 fill": "leaves an argument's storage"})

    lines, others = ([*judgement_text(one, [])] for one in (failed, explained))
    assert "no launch that was judged explains why it failed" in lines
    assert "no launch that was judged explains why it failed" not in others


def test_a_kernel_that_races_is_not_checked_by_results_that_agree() -> None:
    racing = replace(judged("passed", ()), wrong_accesses={"0 rowmean": "races"})

    assert racing.checked == []


def test_several_hand_written_suspects_are_to_be_checked_one_by_one() -> None:
    launches = tuple(JudgedLaunch(n, f"own{n}", -1, "no reference") for n in range(2))
    several, single = (
        [*judgement_text(RunJudgement(some, (), (), Outcome("differs", "")), [])]
        for some in (launches, launches[:1])
    )
    advice = "one by one, each in a case of its own: docs/case.md#check-a-hand-written-kernel"

    assert any(advice in line for line in several) and not any(advice in line for line in single)


def test_hand_written_kernels_that_eagers_results_check_need_no_other_judged_launch() -> None:
    launches = (JudgedLaunch(0, "rowmean", -1, "no reference"),)
    judgement = RunJudgement(launches, (), (), Outcome("passed", ""))

    assert judgement.status == 0
    first = next(judgement_text(judgement, []))
    assert first == "eager's results agree, and check the hand-written rowmean"
    assert RunJudgement(launches, (), (), Outcome("ended", "")).status == 2  # nothing was compared


def test_the_first_line_says_that_steps_before_inductor_may_be_wrong() -> None:
    launches = (JudgedLaunch(0, "add", 0, "right"),)
    text = "output 0 of graph 0 by Dynamo's graph: no reference, because it depends on random numbers"
    known, unknown = RunJudgement(launches, (), ()), RunJudgement(launches, (), (text,))

    assert next(judgement_text(known, [])) == "every launch that was judged is right"
    assert next(judgement_text(unknown, [])) == (
        "every launch that was judged is right; "
        "whether a decomposition, pre-grad or joint pass is wrong is not known for some results"
    )
    assert unknown.status == 0


@pytest.mark.parametrize(
    ("kernel", "graph", "code"),
    [("rowmean", -1, "the hand-written rowmean"), ("triton_0", 0, "the program's code")],
)
def test_results_that_are_less_precise_than_eagers_agree_within_rounding_only(
    kernel: str, graph: int, code: str
) -> None:
    less = "output is 8.7 roundings from exact, eager's 0.53"
    launches = JudgedLaunch(0, "add", 0, "right"), JudgedLaunch(1, kernel, graph, "no reference")
    judgement = RunJudgement(launches, (), (), Outcome("passed", "", less_precise=(less,)))
    first, second, *_ = judgement_text(judgement, [])

    assert (
        first == f"every launch that was judged is right; eager's results agree within rounding only: {less}"
    )
    assert second.startswith(f"    look at   {code}: an accumulator or intermediate of fewer bits")
    assert (judgement.status, judgement_json(judgement)["less_precise"]) == (0, [less])


def test_a_comparison_that_does_not_decide_checks_no_kernel() -> None:
    launches = (JudgedLaunch(0, "rowmean", -1, "no reference"),)
    judgement = RunJudgement(launches, (), (), Outcome("not decided", "output: ..."))

    assert judgement.status == 2
    assert "the comparison with eager does not decide whether the results are right" in [
        *judgement_text(judgement, [])
    ]


def wrong(name: str) -> WrongElements:
    return WrongElements(name, "buf0", "cos", 2, 4, (1,), 0.5, 0.25, 64.0, 1.0)


def test_later_launches_that_are_off_are_numbered() -> None:
    verdicts: list[LaunchVerdict] = ["off", "right", "off", "off", "off"]
    launches = tuple(JudgedLaunch(n, f"k{n % 4}", 0, verdict) for n, verdict in enumerate(verdicts, 2))
    lines = [*judgement_text(RunJudgement(launches, (), ()), [])]

    assert lines[0] == "✗ launch 2 k2 is off"
    assert "    likewise  k0 (launch 4), k1 (launch 5), k2 (launch 6)" in lines
    alone = judgement_text(RunJudgement(launches[:2], (), ()), [])
    assert not any("likewise" in line for line in alone)


def test_later_launches_of_one_kernel_that_are_off_name_it_once() -> None:
    launches = tuple(JudgedLaunch(n, "k", 0, "off") for n in range(12))
    lines = [*judgement_text(RunJudgement(launches, (), ()), [])]

    assert "    likewise  k (launches 1, 2, 3, 4, 5, 6, 7, 8 and 3 more)" in lines


def test_rounding_is_of_a_launch_only_where_a_launch_is_off() -> None:
    off = JudgedLaunch(0, "k0", 0, "off", wrong=(wrong("out_ptr0"),))
    passes = PassesOff(0, wrong("output 0"), "cos")
    launch = "\n".join(judgement_text(RunJudgement((off,), (), ()), []))
    graph = "\n".join(judgement_text(RunJudgement((), (passes,), ()), []))

    assert "distance  0.25; rounding in this launch explains 0.0039" in launch
    assert "distance  0.25; rounding explains 0.0039" in graph
    assert "    passes    Inductor's post-grad passes, or the program's own; the run did not" in graph


def test_lines_that_are_left_out_are_counted() -> None:
    lines = tuple(PythonLine("m.py", number, "f", "x = y") for number in range(11))
    off = JudgedLaunch(0, "k0", 0, "off", lines=lines)
    printed = [
        line for line in judgement_text(RunJudgement((off,), (), ()), []) if line.startswith("    at  ")
    ]

    assert [line.split()[1] for line in printed] == [*(f"m.py:{n}" for n in range(8)), "and"]
    assert printed[-1] == "    at        and 3 more lines"


def test_a_finding_of_several_calls_is_printed_once_with_the_other_results() -> None:
    off = PassesOff(1, wrong("output 0"), "cos", also=("output 1", "output 3"))
    other = PassesOff(2, wrong("output 0"), "cos")
    text = "\n".join(judgement_text(RunJudgement((), (off, off, other, off), ()), []))

    assert text.count("graph passes change output 0") == 2
    assert text.count("likewise  in 2 later calls of the graph") == 1
    assert text.count("also off  output 1, output 3") == 1


def test_a_buffer_that_is_overwritten_too_early_should_keep_its_value() -> None:
    overwritten = Overwritten(0, "launch 1 k", "arg0_1", "arg0_1", None, "", "a cause")

    launches = [JudgedLaunch(index, "k", 0, "right") for index in (1, 2)]
    one, both = (
        "\n".join(judgement_text(RunJudgement(tuple(launches[:count]), (overwritten,), ()), []))
        for count in (1, 2)
    )

    assert "graph     0: arg0_1 should keep its value" in one
    assert "1 of 1 launch judged: 1 right for what it reads" in one
    assert "2 of 2 launches judged: 2 right for what they read" in both


def test_each_buffer_that_a_launch_reads_in_place_of_another_is_named() -> None:
    swapped = [
        Overwritten(0, f"launch {launch} k", right, right, None, "", "a cause", instead=wrong)
        for launch in (1, 5)
        for right, wrong in (("arg0_1", "arg1_1"), ("arg1_1", "arg0_1"))
    ]
    text = "\n".join(judgement_text(RunJudgement((), tuple(swapped), ()), []))

    assert "✗ launch 1 k reads arg1_1, and should read arg0_1" in text
    assert "✗ launch 1 k reads arg0_1, and should read arg1_1" in text
    assert text.count("likewise  in 1 later call of the graph") == 2


def test_launches_without_a_reference_are_checked_by_eagers_results_if_these_agree() -> None:
    launch = JudgedLaunch(0, "triton_0", 0, "no reference")
    judgement = RunJudgement((launch,), (), (), Outcome("passed", ""), has_results=True)

    assert judgement.status == 0
    assert "eager's results agree, and check all launches together" in "\n".join(
        judgement_text(judgement, [])
    )


def test_kernels_that_draw_random_numbers_are_not_checked_by_another_compile_that_draws_eagers() -> None:
    launch = JudgedLaunch(0, "triton_0", 0, "no reference")
    outcome = Outcome("passed", "", other_numbers=("output",))
    judgement = RunJudgement((launch,), (), (), outcome, has_results=True)

    assert judgement.status == 2
    assert "nothing checks those that computed output" in [*judgement_text(judgement, [])]


def test_no_kernel_is_suspected_if_eager_gives_another_result_each_time() -> None:
    launch = JudgedLaunch(0, "fill", 0, "no reference")
    outcome = Outcome("differs", "", eager_repeats=False)
    judgement = RunJudgement((launch,), (), (), outcome, has_results=True)
    lines = [*judgement_text(judgement, [])]

    assert (judgement.status, judgement.suspects) == (2, [])
    assert "the results differ from eager, which gives another result each time itself" in lines
    races = replace(judgement, wrong_accesses={"0 fill": "races"})
    assert (races.status, races.suspects) == (1, [launch])
