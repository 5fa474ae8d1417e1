"""`tracing swap` launches kernels as another run launched them, until the results equal that run's."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from commands import DATA, tracing
from data.pipeline import shift
from handmade.runs import saved
from recorded.runs import in_two_blocks, recorded, words

from tracing import store
from tracing.analyze.replay.swap_plan import results
from tracing.cli.narrow.swap import VersionOption, swapped
from tracing.errors import Problem
from tracing.launch.kernel_module import kernel_module
from tracing.model import KeptAnswer, Replacement, Selection
from tracing.replay.launch_swaps import Swaps
from tracing.virtual_gpu import virtual_gpu

PIPELINE = DATA / "pipeline.py"
STOPPING = '''
_build = build


def build(device: str) -> Workload:
    """Interrupts this process, as a person would, when so many workloads were built as a file says."""
    import pathlib

    left = pathlib.Path(__file__).with_name("left")
    if left.exists():
        left.write_text(str(int(left.read_text()) - 1))
        if left.read_text() == "0":
            raise KeyboardInterrupt  # SIGINT is ignored where the tests run in the background
    return _build(device, wrong="spread0+shrink1", warps=8)
'''


def edited(folder: Path, *edits: tuple[str, str], more: str = "") -> Path:
    """The case with an edited source, under the same name."""
    text = PIPELINE.read_text() + more
    for before, after in edits:
        assert before in text
        text = text.replace(before, after)
    folder.mkdir()
    (folder / PIPELINE.name).write_text(text)
    return folder / PIPELINE.name


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> store.Run:
    return recorded(PIPELINE, tmp_path_factory.mktemp("right"))


@pytest.fixture(scope="module")
def wrong(tmp_path_factory: pytest.TempPathFactory) -> store.Run:
    """Every kernel has another configuration; two kernels are wrong, one of them in each of its launches."""
    case = f"{PIPELINE}:wrong=shift0+shift1+square1,warps=8"
    return recorded(case, tmp_path_factory.mktemp("wrong"))


def runs_of(text: str) -> int:
    return int(re.search(r"(\d+) runs? of the case", text)[1])  # type: ignore[index]


@pytest.mark.soak
def test_two_kernels_of_five_are_to_blame_and_their_launches_are_named(
    right: store.Run, wrong: store.Run
) -> None:
    done = tracing("swap", str(right.path), str(wrong.path), "--anyway", "--each-launch", runs=right.path)

    assert done.returncode == 1, done.stderr
    printed = words(done.stdout)
    assert "nothing replaced: output differs" in printed
    assert "5 kernels replaced: every result has the bits of a" in printed
    assert "to blame: 2 of 5 kernels" in printed
    for launch in ("shift #1", "shift #6", "square #7"):
        assert f" {launch} output differs STEP 2 → 1, num_warps 8 → 4" in printed
    assert "with only these replaced, twice: every result has the bits of a" in printed
    assert f"next tracing run {wrong.info.path}:wrong=shift0+shift1+square1,warps=8" in printed
    assert "5 kernels: at most 40 runs of some" in done.stderr
    assert runs_of(printed) <= 40


@pytest.mark.soak
def test_a_repeated_search_runs_only_its_first_and_last_step_anew(
    right: store.Run, wrong: store.Run, capsys: pytest.CaptureFixture[str]
) -> None:
    swapped(right, wrong, None, each_launch=False)
    capsys.readouterr()

    assert swapped(right, wrong, None, each_launch=False) == 1

    printed = capsys.readouterr().out
    assert runs_of(printed) == 2  # without replacements, and a confirmation of the answer
    assert "more are known from earlier searches" in printed
    kept = list(store.Run(wrong.path).records(KeptAnswer))[-1]
    assert (kept.name, kept.status, kept.launch, kept.kernel) == ("swap", 1, 1, "shift")
    assert kept.lines[0] == "to blame: shift, square" and kept.next


@pytest.mark.soak
def test_an_interrupted_search_goes_on_where_it_stopped(
    right: store.Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = recorded(edited(tmp_path / "b", more=STOPPING), tmp_path)
    left = tmp_path / "b" / "left"
    left.write_text("6")
    with pytest.raises(Problem, match="interrupted"):
        swapped(right, run, None, each_launch=False)
    left.unlink()

    assert swapped(right, run, None, each_launch=False) == 1

    printed = words(capsys.readouterr().out)
    assert "; 4 more are known from earlier searches" in printed
    assert "to blame: 2 of 5 kernels" in printed
    assert "spread #0 output differs" in printed and "shrink #3 output differs" in printed


def test_a_function_that_a_kernel_calls_is_part_of_its_source(
    right: store.Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = recorded(edited(tmp_path / "b", ("return x * x", "return x * x * x")), tmp_path)

    assert swapped(right, run, None, each_launch=False) == 1

    printed = words(capsys.readouterr().out)
    assert "square #2, #7 output differs source" in printed
    assert "launched alike in both runs: spread, shift, shrink, lower" in printed
    with pytest.raises(Problem, match="no kernel can be replaced"):
        swapped(right, run, VersionOption.configuration, each_launch=False)


def test_a_kernel_that_cannot_be_replaced_is_named_with_the_reason(
    right: store.Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    renamed = (
        ("def shift(in_ptr", "def shift(x_ptr"),
        ("tl.load(in_ptr + at) + STEP", "tl.load(x_ptr + at) + STEP"),
    )
    new = ("def lower(", "def lowered("), ("shrink, lower)", "shrink, lowered)")
    run = recorded(edited(tmp_path / "b", *renamed, *new, ("return x * x", "return x * 5")), tmp_path)

    assert swapped(right, run, None, each_launch=False) == 1

    printed = words(capsys.readouterr().out)
    assert "not covered: shift: its parameters are x_ptr, out_ptr" in printed
    assert "not covered: lowered: run" in printed and "launches no kernel of this name" in printed
    assert "square #2, #7 output differs source" in printed


def test_unrecorded_launches_make_their_kernel_uncovered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = Selection(launches=(0, 6))  # both launches of spread, one of each other kernel
    a, b = (
        recorded(f"{PIPELINE}{options}", tmp_path, selection=first)
        for options in ("", ":wrong=spread1,warps=8")
    )

    assert swapped(a, b, None, each_launch=False) == 1

    printed = words(capsys.readouterr().out)
    assert "not covered: shift: b has 1 launch of it, and this execution made 2" in printed
    assert "to blame: 1 of 1 kernel" in printed and "spread #0 output differs" in printed


def test_compare_suggests_swap_if_results_differ(right: store.Run, wrong: store.Run) -> None:
    done = tracing("compare", str(right.path), str(wrong.path), "--anyway", runs=right.path)

    command = f"tracing swap {right.path} {wrong.path} --anyway"
    assert [line.strip() for line in done.stdout.splitlines()].count(f"next      {command}") == 1


def test_a_replacement_that_does_not_compile_is_left_out_with_the_reason(
    wrong: store.Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    strict = ("tl.store(out_ptr + at, tl.load(in_ptr + at) + STEP)", "tl.static_assert(STEP < 2, 'too far')")
    a = recorded(edited(tmp_path / "a", strict, ("return x * x", "return x * x * 1.5")), tmp_path)

    swapped(a, wrong, VersionOption.source, each_launch=False)

    printed = capsys.readouterr().out
    assert "not covered: shift: CompileTimeAssertionFailure" in printed
    assert "even with 1 kernel replaced: output differs" in printed


def test_a_cause_outside_of_the_kernels_is_reported_as_such(
    wrong: store.Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a = recorded(edited(tmp_path / "a", ("torch.arange(32", "torch.arange(1, 33")), tmp_path)

    assert swapped(a, wrong, None, each_launch=False) == 2

    printed = capsys.readouterr().out
    assert "even with 5 kernels replaced: output differs" in printed
    assert "the cause is outside of these kernels" in printed


def test_a_case_that_was_edited_since_is_not_searched(right: store.Run, tmp_path: Path) -> None:
    case = edited(tmp_path / "b", ("return x * x", "return x * 5"))
    run = recorded(case, tmp_path)
    case.write_text(PIPELINE.read_text())

    with pytest.raises(Problem, match="the case of b, executed here, gives other results: those of a"):
        swapped(right, run, None, each_launch=False)


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        (
            "tl.store(out_ptr + at, squared(",
            "pass\n    tl.store(out_ptr + at, squared(",
            "its source differs",
        ),
        (
            "(x.numel() // block,)",
            "(x.numel() // block, 2)",
            "it has the grid (2, 2, 1), and (2, 1, 1) was recorded",
        ),
    ],
)
def test_a_launch_that_is_not_the_recorded_one_is_not_replaced(
    before: str, after: str, why: str, right: store.Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = edited(tmp_path / "b", ("* STEP)", "* STEP * 5)"))
    run = recorded(case, tmp_path)
    case.write_text(case.read_text().replace(before, after))

    with pytest.raises(Problem, match="no kernel could be replaced"):
        swapped(right, run, None, each_launch=False)

    assert f"not covered: square: executed here, {why}" in capsys.readouterr().out


def test_runs_with_equal_results_have_no_kernel_to_blame(
    right: store.Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert swapped(right, right, None, each_launch=False) == 0
    assert "the results are equal: output" in capsys.readouterr().out


def test_runs_of_a_program_are_refused_with_the_command_for_one_launch(tmp_path: Path) -> None:
    run = saved(tmp_path, [], kind="program", program=("train.py",))

    with pytest.raises(Problem, match="is of a program") as raised:
        results(run)

    assert "tracing replay A --launch N --against B" in raised.value.remedy


def test_runs_of_two_programs_are_refused_before_anyway_is_proposed(tmp_path: Path) -> None:
    for case in ("one", "two"):
        saved(tmp_path / case, [], case=case, kind="program", program=(f"{case}.py",))

    names = [str(next((tmp_path / case).iterdir())) for case in ("one", "two")]
    done = tracing("swap", *names, runs=tmp_path)
    assert done.returncode == 2 and "is of a program" in done.stderr and "--anyway" not in done.stderr

    done = tracing("compare", *names, runs=tmp_path)
    assert done.returncode == 2 and "the runs are of different programs: one and two" in done.stderr


def test_eager_replacements_are_refused_if_the_interpreter_executes_every_kernel(
    right: store.Run, wrong: store.Run, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(Problem, match="Triton's interpreter executes every kernel"):
        swapped(right, wrong, VersionOption.eager, each_launch=False)

    assert "interpreted" not in capsys.readouterr().out  # nothing is planned before


def test_kernels_that_inductor_launches_are_replaced_in_its_launcher(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = DATA / "generated.py"
    a, b = (recorded(f"{case}{options}", tmp_path) for options in ("", ":added=2.0,factor=5,block=32"))

    assert swapped(a, b, None, each_launch=False) == 1

    printed = words(capsys.readouterr().out)
    assert "triton_poi_fused_add_relu_0 #0 output differs source" in printed
    assert "scale #1 output differs FACTOR 5 → 3, BLOCK 32 → 16, grid (2, 1, 1) → (3, 1, 1)" in printed


@pytest.mark.parametrize("options", ["", pytest.param(":direct=false", marks=pytest.mark.soak)])
def test_a_kernel_tuned_differently_uses_its_recorded_configuration_of_each_run(
    options: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = in_two_blocks(tmp_path, options)

    assert swapped(a, b, None, each_launch=False) == 1

    printed = words(capsys.readouterr().out)
    assert "total #0 output differs BLOCK 256 → 16" in printed
    assert "launched alike in both runs: double" in printed


def test_an_interpreted_launch_works_on_copies_that_preserve_aliasing() -> None:
    x = torch.arange(32.0)
    module = kernel_module(shift)
    assert module is not None
    text = f"{module.text}CONSTANTS = {{'STEP': 5, 'BLOCK': 16}}\nOPTIONS = {{'num_warps': 4}}\n"

    with virtual_gpu(), Swaps() as swaps:
        swaps.choose({"shift": {2: Replacement(text, (1, 1, 1), "", (1, 1, 1), eager=True)}})
        for _ in range(3):
            shift[(1,)](x, x[16:], STEP=1, BLOCK=16)

    assert swaps.launched == {"shift": 3}
    assert x.tolist() == [*range(16), *range(5, 21)]
