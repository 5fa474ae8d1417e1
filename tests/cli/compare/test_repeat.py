"""`tracing repeat` names planted nondeterminism with its kernel, argument and producer."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from commands import DATA, tracing
from handmade.records import launch
from handmade.runs import saved
from recorded.runs import words

from tracing.analyze.compare.cause_kinds import Host, OperatorCause, OtherResults, Uninitialised
from tracing.analyze.compare.divergence_kinds import Divergence, InputDiffers, LaunchPair, OutputDiffers
from tracing.analyze.runs.determinism import Rate, Repeat, table
from tracing.cli.compare.repeat_series import RepeatSeries, RepeatSettings
from tracing.model import MemoryEvidence
from tracing.report.compare.repeat import hashes_text, table_text


@pytest.fixture(scope="module")
def racing(tmp_path_factory: pytest.TempPathFactory) -> str:
    runs = tmp_path_factory.mktemp("runs")
    done = tracing(
        "repeat", str(DATA / "racing.py"), "--times", "3", "--perturb", "--deterministic", runs=runs
    )
    assert done.returncode == 1, done.stderr
    return done.stdout


def test_two_runs_of_a_race_are_enough_to_name_its_kernel(tmp_path: Path) -> None:
    done = tracing("repeat", str(DATA / "racing.py"), "--times", "2", "--perturb", runs=tmp_path)

    assert done.returncode == 1, done.stderr
    assert "launch #1 racing_sum" in done.stdout
    assert "this kernel is not deterministic" in done.stdout
    assert "1 of 1 runs" in done.stdout


@pytest.mark.soak
def test_a_race_of_float_atomics_is_reported_as_a_nondeterministic_kernel(racing: str) -> None:
    assert "launch #1 racing_sum" in racing
    assert "output    out_ptr (argument 1)" in racing
    assert "code and inputs are equal, outputs differ: this kernel is not deterministic" in racing
    assert "the kernel's TTIR adds floats atomically" in racing


@pytest.mark.soak
def test_a_race_is_reported_with_a_table_of_runs_and_a_rate(racing: str) -> None:
    assert "racing_sum output output" in words(racing)
    assert "  diverges as run 1 does\n" in racing
    assert "output differs differs" in words(racing)
    assert "2 of 2 runs (between 34% and 100% at 95% confidence) differ from run 0" in racing


@pytest.mark.soak
def test_deterministic_settings_that_do_not_help_are_reported(racing: str) -> None:
    assert "under Inductor's deterministic settings:" in racing
    assert "runs differ under the deterministic settings, too" in racing


@pytest.mark.soak
def test_an_unmasked_load_of_uninitialised_memory_is_named_with_the_unwritten_elements(
    tmp_path: Path,
) -> None:
    done = tracing("repeat", str(DATA / "poisoned.py"), "--times", "2", "--perturb", runs=tmp_path)

    assert done.returncode == 1
    assert "launch #1 total" in done.stdout
    assert "input     in_ptr (argument 0)" in done.stdout
    assert "no launch and no operator wrote 24 elements of this tensor, from element 40 on" in done.stdout


@pytest.mark.soak
@pytest.mark.parametrize("caches", [(), ("--fresh-caches",)])
def test_a_deterministic_case_differs_in_no_run(caches: tuple[str, ...], tmp_path: Path) -> None:
    done = tracing("repeat", "silu", "--times", "2", *caches, "--deterministic", runs=tmp_path)

    assert done.returncode == 0, done.stderr
    assert "✓ 1 launch: all read and wrote the same bits" in done.stdout
    assert "the deterministic settings were not tried: no run differed" in done.stdout


def test_wrong_memory_accesses_of_the_runs_are_listed_once(tmp_path: Path) -> None:
    race = MemoryEvidence(0, "race", ("y",), "program (0, 0, 0) writes y[7]")
    settings = RepeatSettings(2, None, "sm_90", False, False, False, 10)
    runs = {number: saved(tmp_path / str(number), [launch(0)], [race]) for number in range(2)}

    series, clean = RepeatSeries(settings, runs=runs), RepeatSeries(settings)

    assert [one.plain for one in series.memory_findings] == [
        f"memory: #0 {launch(0).kernel_name}: race: program (0, 0, 0) writes y[7]"
    ]
    assert (series.status, clean.status) == (1, 0)


@pytest.mark.parametrize(
    ("differing", "runs", "interval"),
    [(0, 10, (0.0, 0.278)), (3, 20, (0.052, 0.360)), (10, 10, (0.722, 1.0))],
)
def test_the_confidence_interval_is_wide_for_few_runs_and_never_a_point(
    differing: int, runs: int, interval: tuple[float, float]
) -> None:
    assert Rate(differing, runs).interval() == pytest.approx(interval, abs=0.001)


@pytest.mark.soak
def test_a_requested_change_of_the_winner_is_a_difference_only_if_results_differ(tmp_path: Path) -> None:
    case = f"{DATA / 'faults.py'}"
    done = tracing("repeat", case, "--times", "3", "--perturb", runs=tmp_path)

    assert done.returncode == 0, done.stdout
    assert "1 kernel in another configuration, which --perturb chose" in done.stdout
    assert re.search(r"autotuned configuration +· +slowest, 1 kernel", done.stdout)


def test_a_table_names_what_differed_and_in_which_run() -> None:
    printed = table([Repeat(1, (), ("output",), 4), Repeat(2, (), (), 1, failure="IndexError")])

    assert (printed.kernels, printed.results) == ({}, {"output": {1: "differs"}, "the run": {2: "failed"}})


def test_a_table_of_many_runs_is_wrapped_to_the_terminal() -> None:
    repeats = [Repeat(n, (), ("output",), 4) for n in range(1, 40)]
    lines = [line.plain for line in table_text(table(repeats), width=80)]

    assert max(map(len, lines)) <= 80
    assert " ".join(lines).count("differs") == 39


@pytest.mark.parametrize(
    ("start", "status", "said"),
    [
        ("torch.ones(4)", 2, "✓ 1 launch: all read and wrote the same bits"),
        ("torch.rand(4)", 1, "✗ first divergence: launch #0"),
    ],
)
def test_launches_before_an_error_of_every_run_are_compared(
    start: str, status: int, said: str, tmp_path: Path
) -> None:
    source = f"import torch\ntorch.compile(lambda x: x * 2)({start})\nraise ValueError('wrong')\n"
    (program := tmp_path / "raises.py").write_text(source)

    done = tracing("repeat", "--times", "2", str(program), runs=tmp_path)

    assert (done.returncode, said in done.stdout) == (status, True), done.stdout + done.stderr
    assert "the program failed alike in both runs: ValueError: wrong (raises.py:3)" in done.stdout


PAIR = LaunchPair(0, launch(0), launch(0))
DRAWN = OtherResults("random", (0, 0))
OWN = ("size=[4], generator=generator of cpu",) * 2


@pytest.mark.parametrize(
    ("other", "seeded"),
    [
        (InputDiffers(PAIR, 0, Host((), None)), True),
        (
            InputDiffers(PAIR, 0, OperatorCause(("aten::rand",) * 2, ("size=[4]",) * 2, "ab", True, DRAWN)),
            True,
        ),
        (
            InputDiffers(PAIR, 0, OperatorCause(("aten::rand.generator",) * 2, OWN, "ab", True, DRAWN)),
            False,
        ),
        (OutputDiffers(PAIR, 0), False),
    ],
)
def test_one_seed_is_proposed_only_where_it_can_make_runs_equal(
    other: Divergence, seeded: bool, tmp_path: Path
) -> None:
    settings = RepeatSettings(2, None, "sm_90", False, False, False, 10)
    program = saved(tmp_path, [launch(0)], kind="program", program=("train.py",), seed=None)

    series = RepeatSeries(settings, first=(0, program), repeats=[Repeat(1, (other,), (), 1)])

    assert any("--seed 0" in command for command in series.next) == seeded


@pytest.mark.soak
def test_a_run_that_fails_where_the_first_did_not_differs(tmp_path: Path) -> None:
    case = f"{DATA / 'failing.py'}:file={tmp_path / 'calls'}"
    done = tracing("repeat", case, "--times", "3", runs=tmp_path)

    assert done.returncode == 1, done.stderr
    assert "⚠  failed: RuntimeError: the third time (failing.py:" in done.stdout
    assert "the run · failed" in words(done.stdout)
    assert "1 of 2 runs" in done.stdout


@pytest.mark.soak
def test_a_run_that_crashes_is_a_finding_and_the_series_continues(tmp_path: Path) -> None:
    case = f"{DATA / 'failing.py'}:how=crash,bad=1,file={tmp_path / 'calls'}"
    done = tracing("repeat", case, "--times", "3", runs=tmp_path)

    assert done.returncode == 1, done.stderr
    assert "run 0: ⚠  failed: it was ended by SIGKILL" in done.stdout
    assert "1 of 2 runs (between 9% and 91% at 95% confidence) differ from run 1" in done.stdout


@pytest.fixture(scope="module")
def leaking(tmp_path_factory: pytest.TempPathFactory) -> str:
    done = tracing("repeat", str(DATA / "leaking.py"), "--times", "3", runs=tmp_path_factory.mktemp("runs"))
    assert done.returncode == 1, done.stderr
    return done.stdout


@pytest.mark.soak
def test_module_state_of_a_case_does_not_leak_into_the_next_run(leaking: str) -> None:
    assert "0 of 2 runs" in leaking
    assert leaking.count("all read and wrote the same bits") == 2


@pytest.mark.soak
def test_runs_that_agree_with_each_other_but_not_with_eager_are_no_success(
    leaking: str,
) -> None:
    assert "the runs agree with one another, and every run differs from eager: output: Tensor" in leaking


@pytest.mark.soak
def test_inputs_that_differ_from_the_start_are_named(tmp_path: Path) -> None:
    done = tracing("repeat", f"{DATA / 'leaking.py'}:unseeded=true", "--times", "2", runs=tmp_path)

    assert done.returncode == 1, done.stderr
    assert "⚠  input 0 differs: float32[4] " in done.stdout


@pytest.mark.soak
def test_an_interrupted_series_concludes_with_the_runs_that_ended(tmp_path: Path) -> None:
    case = f"{DATA / 'failing.py'}:how=interrupt,file={tmp_path / 'calls'}"
    done = tracing("repeat", case, "--times", "9", runs=tmp_path)

    assert done.returncode == 2
    assert "0 of 1 runs" in done.stdout
    assert "interrupted; 2 runs of 9 had ended; run 2 up to this point: " in done.stderr


@pytest.mark.parametrize(
    "args", [("compare", "a"), ("repeat", "silu", "b"), ("ranks", "a", "b"), ("swap", "a")]
)
def test_a_wrong_number_of_names_is_refused(args: tuple[str, ...], tmp_path: Path) -> None:
    done = tracing(*args, runs=tmp_path)

    assert done.returncode == 2
    said = (" needs B", "unexpected extra argument", "takes no further words: b")
    assert any(one in done.stderr for one in said), done.stderr


@pytest.mark.soak
def test_a_program_that_refuses_its_arguments_is_no_run_to_compare(tmp_path: Path) -> None:
    (program := tmp_path / "train.py").write_text("import argparse\nargparse.ArgumentParser().parse_args()\n")

    done = tracing("repeat", "--times", "2", str(program), "--lr", "1", runs=tmp_path)

    assert done.returncode == 2
    assert "run 0: ⚠  failed: exit status 2" in done.stdout
    assert "the first 2 runs failed" in done.stderr


@pytest.mark.soak
@pytest.mark.parametrize(
    ("options", "differing", "equal"), [("--times 3", "1", "2"), ("--perturb --times 4", "3", "1, 2")]
)
def test_a_program_that_depends_on_the_seed_of_string_hashes_differs(
    options: str, differing: str, equal: str, tmp_path: Path
) -> None:
    (program := tmp_path / "hashes.py").write_text(
        "import torch\n"
        "start = torch.tensor([float(hash('a') % 100003)])\n"
        "torch.compile(lambda x: x * 2)(start)\n"
    )

    done = tracing("repeat", *options.split(), str(program), runs=tmp_path, PYTHONHASHSEED="random")

    assert done.returncode == 1, done.stdout + done.stderr
    assert f"each run that differs ({differing}) has another seed of Python's string hashes" in done.stdout
    assert f"each run with the seed of run 0 ({equal}) is equal to it" in done.stdout
    assert ("seed of string hashes · · 3" in words(done.stdout)) == ("--perturb" in options)


@pytest.mark.parametrize(
    ("differing", "said"),
    [({1, 3}, True), ({1}, False), ({1, 2, 3}, False), ({1, 2, 3, 4}, False), ({2}, False), (set(), False)],
)
def test_the_seed_of_string_hashes_is_named_only_if_it_divides_the_runs(
    differing: set[int], said: bool
) -> None:
    repeats = [Repeat(index, (), ("output[0]",) if index in differing else (), 1) for index in range(1, 5)]

    assert bool(hashes_text(repeats, {1, 3}, 0)) == said


def test_several_runs_that_differ_by_the_seed_of_string_hashes_are_named_next_to_equal_ones() -> None:
    repeats = [Repeat(index, (), ("output[0]",) if index in (1, 4) else (), 1) for index in range(1, 8)]

    said = hashes_text(repeats, {1, 4, 7}, 0)

    assert said.startswith("each run that differs (1, 4) has another seed")
    assert said.endswith("(2, 3, 5, 6) is equal to it; also equal, with another seed: 7")


@pytest.mark.parametrize(
    ("seeds", "said"), [([0, 0, 0, 3], True), ([None] * 4, False), ([4, 0, 0, 4], False)]
)
def test_with_perturb_the_seed_of_string_hashes_is_named_too(
    seeds: list[int | None], said: bool, tmp_path: Path
) -> None:
    settings = RepeatSettings(4, None, "sm_90", False, False, True, 10)
    repeats = [Repeat(index, (), ("output[0]",) if index == 3 else (), 1) for index in range(1, 4)]
    first = 0, saved(tmp_path, [launch(0)])

    series = RepeatSeries(settings, first, repeats, hash_seeds=dict(enumerate(seeds)))

    assert series.hashes.startswith("each run that differs (3) has another seed") == said


def test_no_seed_is_blamed_for_memory_that_nothing_wrote(tmp_path: Path) -> None:
    settings = RepeatSettings(4, None, "sm_90", False, False, False, 10)
    run = saved(tmp_path, [launch(0)])
    pair = LaunchPair(0, launch(0), launch(0))
    divergences = (InputDiffers(pair, 0, Uninitialised(None)),)
    repeats = [Repeat(index, divergences if index == 3 else (), (), 1) for index in range(1, 4)]

    series = RepeatSeries(settings, (0, run), repeats, hash_seeds=dict(enumerate([0, 0, 0, 3])))

    assert series.hashes == ""
    assert [" --perturb " in one for one in series.next] == [True]


def test_the_seed_of_string_hashes_is_not_named_if_every_run_has_another_one() -> None:
    assert hashes_text([Repeat(1, (), ("output[0]",), 1)], {1}, 0) == ""


@pytest.mark.soak
@pytest.mark.parametrize("drawn", ["torch.rand(3)", "torch.tensor([random.random()])"])
def test_a_program_that_seeds_no_generator_differs_in_each_run(drawn: str, tmp_path: Path) -> None:
    (program := tmp_path / "unseeded.py").write_text(
        f"import random, torch\nstart = {drawn}\ntorch.compile(lambda x: x * 2)(start)\n"
    )

    done = tracing("repeat", "--times", "3", str(program), runs=tmp_path)

    assert done.returncode == 1, done.stdout + done.stderr
    assert "2 of 2 runs" in done.stdout
    assert "string hashes" not in done.stdout


@pytest.mark.soak
def test_a_program_with_a_seed_draws_the_same_numbers_in_each_run(tmp_path: Path) -> None:
    (program := tmp_path / "unseeded.py").write_text(
        "import numpy, random, torch\n"
        "drawn = torch.tensor([numpy.random.default_rng().random(), numpy.random.rand(), random.random()])\n"
        "torch.compile(lambda x: x * 2)(torch.rand(3) + drawn)\n"
    )

    done = tracing("repeat", "--times", "3", "--seed", "1", str(program), runs=tmp_path)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 of 2 runs" in done.stdout
