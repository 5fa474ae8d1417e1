"""The commands printed after a divergence run as printed, even if the run lacks passes or inputs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from commands import DATA, ROOT, tracing
from handmade.jobs import INFO
from handmade.records import arg, compiled, launch
from handmade.runs import Operators, add, saved
from recorded.runs import recorded, words
from typer.testing import CliRunner

from tracing import store
from tracing.analyze.compare.cause_kinds import (
    Cause,
    Host,
    OperatorCause,
    OtherResults,
    OtherTensor,
    Overrun,
    StreamCause,
    Uninitialised,
    UnknownCause,
    Writer,
    WrittenElsewhere,
)
from tracing.analyze.compare.divergence_kinds import (
    Divergence,
    InputDiffers,
    LaunchDiffers,
    LaunchPair,
    OneSided,
    OrderDiffers,
    OutputDiffers,
)
from tracing.analyze.compare.kernel_code import CodeDifference
from tracing.analyze.compare.signature_pair import SettingChange
from tracing.analyze.compare.verdict import ComparisonVerdict
from tracing.analyze.passes.compilations import compilation, compilations
from tracing.cli.answers import divergence_hints, hints, recording_hints
from tracing.cli.app import app
from tracing.model import FrameCompile, KeptOperatorTensor, KernelLaunch, Outcome, Record
from tracing.store.runs import NEW_RECORDINGS

HASH = "0123456789ab"


def readable(index: int) -> KernelLaunch:
    """A launch with a recorded kernel module and without recorded inputs."""
    one = launch(index, arg("in_ptr0", "in", "x"))
    return msgspec.structs.replace(
        one, kernel=msgspec.structs.replace(one.kernel, module="m", hash=HASH + "cdef")
    )


def of(folder: Path, one: KernelLaunch, **info: object) -> list[str]:
    writer = store.create(folder, msgspec.structs.replace(INFO, **info))
    add(writer, [one])
    return hints.of_launch(store.Run(writer.path), one)


def test_missing_passes_and_inputs_are_recorded_first(tmp_path: Path) -> None:
    repro, passes = of(tmp_path, readable(3), case="case+mask=window", seed=7)

    below = f"--runs {tmp_path}"
    recording = "tracing run /case.py:mask=window --keep-inputs --launches 3:4 --no-passes"
    assert repro == f"{recording} {below} --seed 7; tracing repro latest {below} --launch 3 --kernel {HASH}"
    assert passes.startswith(f"tracing run /case.py:mask=window {below} --seed 7; tracing passes latest")


def test_commands_for_a_run_of_several_ranks_name_the_rank(tmp_path: Path) -> None:
    repro, _ = of(tmp_path, readable(3), world_size=2)

    assert repro.startswith("torchrun --nproc-per-node=2 -m tracing run /case.py --keep-inputs")
    assert repro.endswith(f"--launch 3 --kernel {HASH} --rank 0")


def test_no_command_repeats_or_bisects_one_rank_of_a_job(tmp_path: Path) -> None:
    program = msgspec.structs.replace(INFO, kind="program", program=("ddp.py",), seed=None, job_size=2)
    run = store.Run(store.create(tmp_path, program, 1).path)

    assert not hints.can_bisect(run)
    assert hints.of_unwritten(run) == "" and hints.with_one_seed(run) == []


@pytest.mark.parametrize("ranks", [1, 4])
def test_the_ranks_of_a_job_that_have_own_runs_are_recorded_into_one(ranks: int, tmp_path: Path) -> None:
    program = msgspec.structs.replace(
        INFO, kind="program", folder=str(Path.cwd()), program=("ddp.py",), seed=None, job_size=ranks
    )
    run = store.Run(store.create(tmp_path, program).path)

    done = CliRunner().invoke(app, ["ranks", str(run.path)])

    below = f"--runs {tmp_path}"
    recorded = f"torchrun --nproc-per-node={max(2, ranks)} -m tracing run {below} --rank-aware ddp.py"
    assert done.exit_code == 2
    assert f"`{recorded}; tracing ranks latest {below}`" in " ".join(done.stderr.split())


def test_two_programs_in_two_folders_are_recorded_anew_into_one_and_compared_with_each_other(
    tmp_path: Path,
) -> None:
    def recorded(name: str) -> store.Run:
        info = msgspec.structs.replace(
            INFO, kind="program", folder=str(Path.cwd()), program=(f"{name}.py",), seed=None
        )
        return store.Run(store.create(tmp_path / name, info).path)

    first, second, compare = hints.of_one_seed(recorded("a"), recorded("b")).split("; ")

    below = f"--runs {tmp_path / 'b'}"
    assert (first.partition(below)[2], second.partition(below)[2]) == (" a.py", " b.py")
    assert compare.startswith(f"tracing compare latest~1 latest {below}")


@pytest.fixture(scope="module")
def racing(tmp_path_factory: pytest.TempPathFactory) -> tuple[store.Run, list[str]]:
    """The first run of data/racing.py, with its passes, and the commands below the race that another has."""
    runs = tmp_path_factory.mktemp("runs")
    done = tracing("repeat", str(DATA / "racing.py"), "--times", "2", "--perturb", runs=runs)
    assert done.returncode == 1, done.stderr
    printed = [line.split("next")[1].strip() for line in done.stdout.splitlines() if "    next" in line]
    return store.Run(store.recorded(runs)[0]), printed


def typed(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs a command in a folder, as typed in a shell."""
    root = str(ROOT)
    environment = {**os.environ, "PYTHONPATH": root}
    line = command.replace("tracing ", f"{sys.executable} -m tracing ")
    done = subprocess.run(
        line, shell=True, cwd=folder, capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode in (0, 1), done.stderr
    assert "tracing: " not in done.stderr
    return done


@pytest.mark.soak
@pytest.mark.parametrize("command", ["replay", "repro"])
def test_commands_for_a_race_run_as_they_are_printed(
    command: str, racing: tuple[store.Run, list[str]], tmp_path: Path
) -> None:
    (text,) = (one for one in racing[1] if f"tracing {command} " in one)

    said = typed(text, tmp_path).stdout

    assert "racing_sum" in said or "racing_sum" in next(tmp_path.glob("repro-*/repro.py")).read_text()


@pytest.mark.soak
@pytest.mark.parametrize("command", ["passes", "lit"])
def test_commands_for_a_kernel_run_as_they_are_printed(
    command: str, racing: tuple[store.Run, list[str]], tmp_path: Path
) -> None:
    run, _ = racing
    one = next(one for one in run.launches() if one.kernel_name == "racing_sum")
    (compilation,) = (compiled for compiled in compilations(run) if compiled.hash == one.kernel.hash)
    (text,) = (
        command_line
        for command_line in hints.of_kernel(run, one.kernel.hash[:12], compilation)
        if f"tracing {command} " in command_line
    )

    typed(text, tmp_path)


def commands(a: store.Run, b: store.Run) -> tuple[list[str], str | None]:
    """The commands printed for the first divergence, and the command that decides an undecided cause."""
    divergence = next(iter(ComparisonVerdict.of(a, b, 64)))
    return divergence_hints.of_divergence(divergence, (a, b)), divergence_hints.deciding(divergence, (a, b))


@pytest.mark.soak
def test_the_commands_for_a_different_winner_make_the_runs_equal(tmp_path: Path) -> None:
    a, b = (recorded(f"{DATA / 'faults.py'}:fault={fault}", tmp_path) for fault in ("none", "winner"))
    (write, run), _ = commands(a, b)

    typed(write, tmp_path)
    rerun = typed(run, tmp_path).stdout.splitlines()[-1]

    assert typed(f"tracing compare {a.path} {rerun} --anyway", tmp_path).returncode == 0


@pytest.mark.soak
def test_the_command_for_a_different_grid_finds_the_kernel(tmp_path: Path) -> None:
    a, b = (recorded(f"{DATA / 'faults.py'}:fault={fault}", tmp_path) for fault in ("none", "grid"))
    (swap,), decides = commands(a, b)

    assert decides is None
    assert "scale #0 output differs grid (3, 1, 1) → (4, 1, 1)" in words(typed(swap, tmp_path).stdout)


def test_a_different_configuration_with_equal_results_gets_no_commands(
    tmp_path: Path,
) -> None:
    a, b = (
        saved(tmp_path / str(warps), [launch(0, arg("x", "in", "x"), num_warps=warps)]) for warps in (4, 8)
    )

    assert commands(a, b) == ([], None)


def test_the_command_for_an_operator_shows_the_launch_that_read_its_result(tmp_path: Path) -> None:
    a, b = (recorded(f"{DATA / 'faults.py'}:fault={fault}", tmp_path) for fault in ("none", "operator"))
    (show,), decides = commands(a, b)

    assert decides is None
    assert "#1 shift\n" in typed(show, tmp_path).stdout


@pytest.mark.soak
def test_the_deciding_command_records_both_runs_completely_and_compares_them(tmp_path: Path) -> None:
    a, b = (recorded(f"{DATA / 'relayed.py'}:poked={when}", tmp_path) for when in ("never", "before"))
    _, decides = commands(a, b)
    assert decides is not None

    done = typed(decides, tmp_path)

    assert done.returncode == 1
    assert decides not in done.stdout


def test_runs_of_different_cases_are_compared_with_anyway(tmp_path: Path) -> None:
    a, b, other = (saved(tmp_path / one, [], case=one[0]) for one in ("a", "a2", "b"))

    assert hints.comparison(a, b) == f"tracing compare {a.path} {b.path}"
    assert hints.comparison(a, other) == f"tracing compare {a.path} {other.path} --anyway"


def test_a_bisection_keeps_its_builds_in_the_folder_of_the_run(tmp_path: Path) -> None:
    run = store.Run(store.create(tmp_path, INFO).path)

    assert f" --runs {tmp_path}" in hints.bisection(run)


def test_on_a_gpu_a_launch_with_its_inputs_is_its_own_judge(tmp_path: Path) -> None:
    environment = msgspec.structs.replace(INFO.environment, device="H100")
    writer = store.create(tmp_path, msgspec.structs.replace(INFO, environment=environment))
    made = compiled(writer, "add", "ir", ("ttgir", "tritongpu-coalesce", "other"))
    run = store.Run(writer.path)

    _, bisect, *of_a_pass = hints.of_kernel(run, "add", made, launch=3)

    assert bisect == f"tracing bisect {run.path} --kernel add --launch 3"
    assert all(command.endswith("--pass tritongpu-coalesce") for command in of_a_pass) and of_a_pass


# ---- the commands for each kind of verdict, on a GPU, where no command is ruled out


def on_gpu(folder: Path, *records: Record, **info: object) -> store.Run:
    """A run of three launches with the passes of their kernel and the inputs of the last launch."""
    environment = msgspec.structs.replace(INFO.environment, device="NVIDIA H100")
    writer = store.create(folder, msgspec.structs.replace(INFO, environment=environment, **info))
    compiled(writer, "add", "ir", ("ttgir", "tritongpu-coalesce", "other"))
    add(writer, [readable(index) for index in range(3)])
    for record in records:
        writer.append(record)
    return store.Run(writer.path)


@pytest.fixture
def pair(tmp_path: Path) -> tuple[store.Run, store.Run]:
    return on_gpu(tmp_path / "a"), on_gpu(tmp_path / "b")


BOTH = LaunchPair(0, readable(2), readable(2))
WRITER = Writer(0, 1, "add", "out_ptr0")
COMPILER = ("passes", "bisect", "lit", "debug", "reduce", "resume", "opt")


def words_of(divergence: Divergence, runs: tuple[store.Run, store.Run]) -> list[str]:
    """The commands after a divergence, without the paths of the runs: `show b --launch 1`."""
    typed = divergence_hints.of_divergence(divergence, runs)
    for name, run in zip("ab", runs, strict=True):
        typed = [one.replace(str(run.path), name) for one in typed]
        typed = [one.replace(str(run.path.parent), f"of_{name}") for one in typed]
    return [one.replace("tracing ", "") for one in typed]


@pytest.mark.parametrize("known", [True, False], ids=["compiled twice", "from a warm cache"])
def test_a_kernel_whose_code_differs_leads_to_its_passes_in_both_runs(tmp_path: Path, known: bool) -> None:
    runs = []
    for name in "ab":
        writer = store.create(tmp_path / name, INFO)
        for number in range(2 * known):
            compiled(writer, "add", name, ("ttir", "cse", name), number=number, num_warps=str(number))
        runs.append(store.Run(writer.path))
    one = launch(0, name="add")
    one = msgspec.structs.replace(one, kernel=msgspec.structs.replace(one.kernel, hash="01hash of add"))
    pair = LaunchPair(0, one, one)
    difference = LaunchDiffers(pair, (), CodeDifference("ttir", ()), False, ())

    (typed,) = words_of(difference, (runs[0], runs[1]))

    assert typed == f"passes a b --kernel '{'add#2' if known else '01hash of ad'}'"
    if known:
        assert [compilation(run, "add#2").hash for run in runs] == ["01hash of add"] * 2


def test_a_program_whose_kernel_differs_is_replayed_with_the_other_kernel(
    pair: tuple[store.Run, store.Run],
) -> None:
    source = CodeDifference("source", ())

    left = LaunchDiffers(BOTH, (), source, False, ("y",))
    equal = LaunchDiffers(BOTH, (), source, False, ())

    assert words_of(left, pair) == [f"replay a --launch 2 --kernel {HASH} --against b"]
    assert words_of(equal, pair) == [f"passes a b --kernel {HASH}"]


def test_runs_with_other_seeds_are_compared_with_one_seed(tmp_path: Path) -> None:
    a, b = (saved(tmp_path / str(seed), [], seed=seed) for seed in (3, 4))

    command = hints.of_seeds(a, b)

    assert command is not None and command.endswith(
        f"; tracing compare {a.path} latest --runs {b.path.parent}"
    )
    assert command.startswith("tracing run ") and "--seed 3" in command and "--seed 4" not in command
    assert hints.of_seeds(a, a) is None


@pytest.mark.parametrize(
    ("cause", "commands"),
    [
        (OperatorCause(("aten::mm", ""), ("", ""), "a", proven=True), ["show a --launch 2"]),
        (OperatorCause(("", "aten::mm"), ("", ""), "b", proven=True), ["show b --launch 2"]),
        (Host("b", WRITER), ["show b --launch 1", "show b --launch 2"]),
        (Host("a", None), ["show a --launch 2"]),
        (OtherTensor("launch #0 add", "launch #1 add"), ["show a --launch 2", "show b --launch 2"]),
        (WrittenElsewhere(WRITER, "b"), ["show a --launch 0", "show b --launch 1"]),
        (
            StreamCause(WRITER),
            ["show b --launch 1", "show b --launch 2", "repeat /case.py --times 4 --perturb --runs of_b"],
        ),
        (Uninitialised(WRITER, (3, 5)), ["show b --launch 1", "show b --launch 2"]),
        (Uninitialised(None), ["show b --launch 2", "repeat /case.py --times 4 --perturb --runs of_b"]),
        (UnknownCause("nobody was seen to write it"), ["show b --launch 2"]),
    ],
    ids=lambda one: type(one).__name__,
)
def test_a_difference_in_an_input_leads_to_its_producer(
    cause: Cause, commands: list[str], pair: tuple[store.Run, store.Run]
) -> None:
    assert words_of(InputDiffers(BOTH, 0, cause), pair) == commands


@pytest.mark.parametrize(
    ("name", "kept", "command"),
    [
        ("aten::mm", True, "repro b --operator 0"),
        ("aten::mm", False, "repro latest --runs of_b --operator 0"),
        ("mine::mm", True, None),
    ],
)
def test_an_operator_of_torch_that_is_not_deterministic_leads_to_a_script_that_repeats_it(
    name: str, kept: bool, command: str | None, tmp_path: Path
) -> None:
    kept_inputs = [KeptOperatorTensor(0, position, "blob") for position in range(2 * kept)]
    runs = (
        on_gpu(tmp_path / "a"),
        on_gpu(tmp_path / "b", *Operators().call(2, name, [7, 7], [8]).records, *kept_inputs),
    )
    cause = OperatorCause((name,) * 2, ("", ""), "ab", True, OtherResults("not deterministic", (0, 0)))

    _, *script = words_of(InputDiffers(BOTH, 0, cause), runs)

    assert [one.split("; ")[-1] for one in script] == ([command] if command else [])
    if command and not kept:
        assert "--operators digests --keep-inputs --launches 2:3" in script[0]


def test_an_overrun_leads_to_the_launch_that_stored_out_of_bounds(pair: tuple[store.Run, store.Run]) -> None:
    show, repro = words_of(InputDiffers(BOTH, 0, Overrun(WRITER, "ab")), pair)

    assert show == "show b --launch 1"
    assert "repro latest" in repro and f"--launch 1 --kernel {HASH}" in repro


def test_the_deciding_command_for_an_operator_records_operators(pair: tuple[store.Run, store.Run]) -> None:
    cause = OperatorCause(("aten::mm", "aten::mm"), ("", ""), "ab", proven=False)

    decides = divergence_hints.deciding(InputDiffers(BOTH, 0, cause), pair)

    assert decides is not None and decides.startswith("tracing compare ")
    assert decides.count("--operators digests") == 2


@pytest.mark.parametrize(("name", "seeds"), [("aten::randn", 2), ("aten::mm", 0)])
def test_random_numbers_of_programs_without_a_seed_are_decided_with_one(
    name: str, seeds: int, pair: tuple[store.Run, store.Run]
) -> None:
    for run in pair:
        run.info = msgspec.structs.replace(run.info, kind="program", program=("train.py",), seed=None)
    cause = OperatorCause((name, name), ("", ""), "ab", proven=False)

    decides = divergence_hints.deciding(InputDiffers(BOTH, 0, cause), pair)

    assert decides is not None and decides.count("tracing run --seed 0 ") == seeds
    assert decides.count("train.py") == 2


@pytest.mark.parametrize(
    ("seed", "proven", "decides"),
    [
        (None, True, "--seed 0"),
        (None, False, "--seed 0"),
        (3, False, "--seed 3"),
        (3, True, ""),  # no recording explains where the program has its values from
    ],
)
def test_values_that_a_program_filled_in_are_decided_with_a_seed_once(
    seed: int | None, proven: bool, decides: str, pair: tuple[store.Run, store.Run]
) -> None:
    for run in pair:
        run.info = msgspec.structs.replace(run.info, kind="program", program=("train.py",), seed=seed)
    cause = Host("", None, made=True, proven=proven)

    command = divergence_hints.deciding(InputDiffers(BOTH, 0, cause), pair) or ""

    assert decides in command and bool(command) == bool(decides)


@pytest.mark.parametrize("doubt", ["out of bounds", "unwritten", "untouched", "addresses"])
def test_a_doubtful_output_does_not_lead_to_the_compiler(
    doubt: Any, pair: tuple[store.Run, store.Run]
) -> None:
    typed = words_of(OutputDiffers(BOTH, 0, doubt), pair)

    assert typed and not any(re.search(rf"(^|; ){name} ", one) for name in COMPILER for one in typed)


def test_a_different_output_of_equal_inputs_leads_to_a_replay_and_to_the_compiler(
    pair: tuple[store.Run, store.Run],
) -> None:
    replay, repro, *passes = words_of(OutputDiffers(BOTH, 0), pair)

    assert replay == f"replay a --launch 2 --kernel {HASH} --against b"
    assert "repro" in repro and any("passes" in one for one in passes)


def test_reordered_launches_lead_to_both_launches(pair: tuple[store.Run, store.Run]) -> None:
    first, second = (LaunchPair(0, readable(at), readable(1 - at)) for at in (0, 1))

    assert words_of(OrderDiffers(first, second, "in_ptr0", "out_ptr0"), pair) == [
        "show b --launch 0",
        "show b --launch 1",
    ]


@pytest.mark.parametrize("side", ["a", "b"])
def test_a_launch_that_only_one_run_has_leads_to_that_run(
    side: str, pair: tuple[store.Run, store.Run]
) -> None:
    only = LaunchPair(0, *(readable(1) if side == one else None for one in "ab"))

    assert words_of(OneSided(only, 1, last=False, changed=True), pair) == [f"show {side} --launch 1"]


def test_a_different_kernel_leads_to_the_call_site_in_both_runs(pair: tuple[store.Run, store.Run]) -> None:
    divergence = LaunchDiffers(BOTH, (SettingChange("kernel", "add", "mul"),), None, tuned=False, outputs=())

    assert words_of(divergence, pair) == ["show a --launch 2", "show b --launch 2"]


@pytest.mark.parametrize(("name", "command"), [("num_warps", "replay"), ("grid", "show")])
def test_a_launch_with_other_numbers_is_replayed_only_if_its_inputs_were_kept(
    name: str, command: str, pair: tuple[store.Run, store.Run]
) -> None:
    divergence = LaunchDiffers(BOTH, (SettingChange(name, "1", "2"),), None, tuned=False, outputs=("y",))

    assert words_of(divergence, pair)[0].startswith(command)


def test_a_different_winner_leads_to_the_winners(pair: tuple[store.Run, store.Run]) -> None:
    divergence = LaunchDiffers(BOTH, (SettingChange("BLOCK", "16", "32"),), None, tuned=True, outputs=())

    winners, run = words_of(divergence, pair)

    assert winners == "winners a --output winners.json"
    assert run.startswith("run /case.py --winners winners.json")


def test_on_a_virtual_gpu_no_verdict_leads_to_the_compiler(tmp_path: Path) -> None:
    environment = msgspec.structs.replace(INFO.environment, device="virtual GPU")
    runs = []
    for name in "ab":
        writer = store.create(tmp_path / name, msgspec.structs.replace(INFO, environment=environment))
        compiled(writer, "add", "ir", ("ttgir", "tritongpu-coalesce", "other"))
        add(writer, [readable(index) for index in range(3)])
        runs.append(store.Run(writer.path))

    typed = words_of(OutputDiffers(BOTH, 0), (runs[0], runs[1]))

    assert typed and not any(re.search(rf"(^|; ){name} ", one) for name in COMPILER for one in typed)


def test_a_case_whose_eager_result_is_not_repeatable_is_not_to_be_bisected(tmp_path: Path) -> None:
    for repeats, proposed in ((True, ["judge", "bisect"]), (False, ["judge"])):
        outcome = Outcome("differs", "output: compiled is off", eager_repeats=repeats)
        run = saved(tmp_path / str(repeats), [launch(0)], [outcome], ended=False)

        assert [command.split()[1] for command in hints.of_wrong_result(run)] == proposed


@pytest.mark.parametrize(("seed", "option"), [(None, "--seed 0 "), (0, "--seed 0 "), (7, "--seed 7 ")])
def test_repetitions_that_decide_on_unwritten_memory_have_the_same_inputs(
    seed: int | None, option: str, tmp_path: Path
) -> None:
    def run_of(folder: Path) -> store.Run:
        info = msgspec.structs.replace(INFO, kind="program", program=("train.py",), seed=seed)
        writer = store.create(folder, msgspec.structs.replace(info, folder=str(Path.cwd())))
        add(writer, [launch(0)])
        return store.Run(writer.path)

    run = run_of(tmp_path)
    command = f"tracing repeat --times 4 --perturb {option}--runs {tmp_path} train.py"

    assert hints.of_unwritten(run) == command
    assert hints.of_unwritten(run_of(run.path / NEW_RECORDINGS)) == command
    assert ("--seed" in recording_hints.record_command(run)) is (seed is not None)


def test_a_launch_whose_program_was_edited_is_replayed_on_the_inputs_of_the_other_run(tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.touch()
    began = ("2001-01-01T00:00:00Z", "2101-01-01T00:00:00Z")
    runs = [
        saved(tmp_path / name, [launch(2)], path=str(program), started=started)
        for name, started in zip("ab", began, strict=True)
    ]

    difference = LaunchDiffers(BOTH, (), CodeDifference("source", ()), False, ("y",))

    (typed,) = words_of(difference, (runs[0], runs[1]))
    assert typed.startswith("replay b --launch 2") and typed.endswith("--against a")


@pytest.mark.parametrize(("operators", "bisects"), [(0, False), (3, True)])
def test_a_program_that_compiled_nothing_is_not_bisected(
    operators: int, bisects: bool, tmp_path: Path
) -> None:
    frames = [FrameCompile("0/0", "f", "train.py:3", operators=operators)] if operators else []
    outcome = Outcome("failed", "AssertionError")
    run = saved(tmp_path, [launch(0)], [outcome, *frames], kind="program", program=("t.py",), ended=False)

    assert hints.can_bisect(run) == bisects


@pytest.mark.parametrize(
    ("kind", "seed", "proposed"), [("program", None, 1), ("program", 3, 0), ("case", 0, 0)]
)
def test_a_program_without_a_seed_is_to_be_repeated_with_one(
    kind: str, seed: int | None, proposed: int, tmp_path: Path
) -> None:
    run = saved(tmp_path, [launch(0)], kind=kind, program=("train.py", "--lr", "3"), seed=seed)

    commands = hints.with_one_seed(run)

    assert [one.endswith(f"--seed 0 --runs {tmp_path} train.py --lr 3") for one in commands] == [
        True
    ] * proposed
