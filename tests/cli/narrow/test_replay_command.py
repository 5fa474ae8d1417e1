"""`tracing replay`, of a given launch or of the accused launch, in a process of its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import DATA, tracing
from handmade.records import arg, launch
from handmade.runs import saved
from recorded.runs import recorded

from tracing import store
from tracing.analyze.replay.replay_verdict import (
    CodeDiffers,
    InputsDiffer,
    NeedsOtherMemory,
    NothingRecorded,
    Reproduced,
)
from tracing.cli.answers.replay_answer import ReplayAnswer, Replaying, answered
from tracing.cli.processes.new_recording import record_anew
from tracing.errors import Problem
from tracing.model import Side
from tracing.record.outputs import Keep
from tracing.store.recorded_launch import RecordedLaunch, recorded_launch

GROW, REACH = 0, 1


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("case") / "shifted.py"
    path.write_text((DATA / path.name).read_text())
    return path


@pytest.fixture(scope="module")
def plain(case: Path) -> store.Run:
    return recorded(case, case.parent / "runs", keep=Keep(inputs=True))


def other(case: Path, options: str) -> store.Run:
    return recorded(f"{case}:{options}", case.parent / "runs", keep=Keep(inputs=True))


def asked(a: store.Run, b: store.Run, index: int, first: Side = "a") -> ReplayAnswer:
    launches: dict[Side, RecordedLaunch] = {"a": recorded_launch(a, index), "b": recorded_launch(b, index)}
    return answered(launches, first, Replaying(5, False, a.path.parent))


def test_different_code_is_the_verdict_whichever_run_provides_the_inputs(
    case: Path, plain: store.Run
) -> None:
    b = other(case, "by=3.0")

    for first in ("a", "b"):
        answer = asked(plain, b, GROW, first)
        assert isinstance(answer.verdict, CodeDiffers) and answer.verdict.inputs == first
        assert (answer.result.series[0].launched, answer.result.series[0].inputs) == (first, first)


def test_different_inputs_are_the_verdict_of_a_replay(case: Path, plain: store.Run) -> None:
    assert asked(plain, other(case, "first=4.0"), GROW).verdict == InputsDiffer(("x_ptr",))


def test_memory_outside_of_the_arguments_is_the_verdict_of_a_replay(case: Path, plain: store.Run) -> None:
    assert asked(plain, other(case, "outside=1.0"), REACH).verdict == NeedsOtherMemory()


def test_equal_runs_are_reproduced(case: Path, plain: store.Run) -> None:
    assert asked(plain, other(case, "outside=1.0"), GROW).verdict == Reproduced()


# ---- inputs that were not kept


@pytest.mark.soak
def test_a_launch_without_kept_inputs_is_recorded_anew(case: Path, tmp_path: Path) -> None:
    run = recorded(case, tmp_path)

    done = tracing("replay", str(run.path), "--launch", str(GROW), runs=tmp_path)

    assert "its inputs were not kept; launch 0 was recorded anew, into" in done.stdout
    assert "every replay reproduces the recorded bits of the run" in done.stdout
    assert store.open_run("latest", run.path.parent).path == run.path


@pytest.mark.soak
def test_inputs_without_digests_are_not_said_to_differ(case: Path, tmp_path: Path) -> None:
    run = recorded(case, tmp_path, digests="none")

    answer = answered({"a": recorded_launch(run, GROW)}, "a", Replaying(2, False, tmp_path))

    assert answer.verdict == NothingRecorded()
    assert any("whether x_ptr held these contents then is not known" in note for note in answer.notes)


def test_a_deleted_case_is_refused_with_the_command_that_records_its_inputs(
    case: Path, tmp_path: Path
) -> None:
    here = tmp_path / case.name
    here.write_text(case.read_text())
    run = recorded(here, tmp_path)
    here.unlink()

    with pytest.raises(Problem, match="and recording it anew failed") as raised:
        record_anew(recorded_launch(run, GROW), tmp_path)

    assert f"tracing run {here} --keep-inputs" in raised.value.remedy


# ---- the commands


def test_a_race_is_reported_with_its_evidence(tmp_path: Path) -> None:
    run = recorded(DATA / "racing.py", tmp_path, keep=Keep(inputs=True))
    index = next(one.index for one in run.launches() if one.kernel_name == "racing_sum")

    done = tracing("replay", str(run.path), "--launch", str(index), runs=tmp_path)

    assert done.returncode == 1, done.stderr
    assert "the kernel is not deterministic: replays on equal bytes differ from each other" in done.stdout
    assert "of 21 reproduce the recorded bits of the run" in done.stdout


@pytest.mark.soak
def test_json_holds_the_verdict_and_the_launches(case: Path, plain: store.Run) -> None:
    b = other(case, "by=3.0")
    options = ("--launch", "0", "--kernel", "grow", "--against", str(b.path), "--times", "2", "--json")

    done = tracing("replay", str(plain.path), *options, runs=plain.path.parent)

    printed = json.loads(done.stdout)
    assert (done.returncode, printed["verdict"], printed["launch"]) == (1, "code", {"a": 0, "b": 0})
    assert [one["as_recorded"] for one in printed["series"]] == [{"a": 3, "b": 0}, {"a": 0, "b": 3}]


@pytest.mark.parametrize("command", ["replay", "repro"])
def test_a_launch_of_another_kernel_is_refused_with_the_launches_of_this_kernel(
    command: str, plain: store.Run
) -> None:
    done = tracing(command, str(plain.path), "--launch", "0", "--kernel", "reach", runs=plain.path.parent)

    assert done.returncode == 2
    assert "is of grow (" in done.stderr and "), not of reach" in done.stderr
    assert "its launches: 1" in done.stderr


@pytest.mark.soak
def test_a_launch_of_two_runs_is_replayed_on_the_inputs_of_the_first_run(tmp_path: Path) -> None:
    a, b = (recorded(DATA / "racing.py", tmp_path, keep=Keep(inputs=True)) for _ in range(2))
    index = next(one.index for one in a.launches() if one.kernel_name == "racing_sum")
    options = ("--kernel", "racing_sum", "--against", str(a.path))

    done = tracing("replay", str(b.path), *options, runs=tmp_path)

    assert done.returncode == 1, done.stderr
    assert f"launch #{index} racing_sum" in done.stdout
    assert (
        "the kernel is not deterministic: replays of a on equal bytes differ from each other" in done.stdout
    )


def test_the_launch_that_the_first_divergence_accuses_is_replayed(case: Path, plain: store.Run) -> None:
    b = other(case, "by=3.0")

    done = tracing("replay", str(plain.path), "--against", str(b.path), runs=plain.path.parent)

    assert done.returncode == 1, done.stderr
    assert "first divergence" in done.stdout
    assert "its code differs: a and b produce different results on equal inputs" in done.stdout


def test_json_of_the_accused_launch_is_the_only_output(case: Path, plain: store.Run) -> None:
    b = other(case, "by=3.0")

    done = tracing("replay", str(plain.path), "--against", str(b.path), "--json", runs=plain.path.parent)

    assert json.loads(done.stdout)["verdict"] == "code"


def test_equal_runs_have_no_launch_to_replay(plain: store.Run) -> None:
    done = tracing("replay", str(plain.path), "--against", str(plain.path), runs=plain.path.parent)

    assert (done.returncode, "there is nothing to replay" in done.stdout) == (0, True)


def test_a_refused_replay_prints_the_reason(tmp_path: Path) -> None:
    one, other = (arg("out_ptr0", "out", "old", left) for left in "yz")
    a, b = saved(tmp_path / "a", [launch(0, one)]), saved(tmp_path / "b", [launch(0, other)])

    done = tracing("replay", str(a.path), "--against", str(b.path), runs=tmp_path)

    assert done.returncode == 2
    assert "not replayed: the run has no source of triton_poi_fused_mul_0" in done.stderr


def test_a_replay_of_one_run_needs_a_launch(plain: store.Run) -> None:
    done = tracing("replay", str(plain.path), runs=plain.path.parent)

    assert (done.returncode, "no launch is named" in done.stderr) == (2, True)
    first = next(one.index for one in plain.launches())
    assert f"`tracing replay {plain.path} --launch {first}`" in done.stderr


def test_fpsan_without_its_requirements_is_refused_with_them(plain: store.Run, tmp_path: Path) -> None:
    one = recorded_launch(plain, GROW)
    racing = recorded(DATA / "racing.py", tmp_path, keep=Keep(inputs=True))
    index = next(each.index for each in racing.launches() if each.kernel_name == "racing_sum")

    with pytest.raises(Problem, match="FpSan wants"):
        answered({"a": one}, "a", Replaying(1, True, tmp_path))
    with pytest.raises(Problem, match="FpSan leaves the 1 atomic additions of floats uninstrumented"):
        answered({"a": recorded_launch(racing, index)}, "a", Replaying(1, True, tmp_path))


def test_runs_of_different_cases_are_refused(tmp_path: Path) -> None:
    a = saved(tmp_path / "a", [launch(0, arg("x", "in", "x"))], case="silu")
    b = saved(tmp_path / "b", [launch(0, arg("x", "in", "x"))], case="softmax")

    done = tracing("replay", str(a.path), "--against", str(b.path), "--launch", "0", runs=tmp_path)

    assert (done.returncode, done.stdout) == (2, "")
    assert "the runs are of different cases: silu and softmax" in done.stderr
    assert f"list runs with `tracing list --runs {a.path.parent}`" in done.stderr
