"""Steps that are written, kept and deleted: `--last`, `--every`, `--steps`, `--until`, `--disk`."""

from __future__ import annotations

import itertools
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from handmade.records import INFO
from msgspec.structs import replace
from recorded.launches import add_kernel, added

import tracing
from tracing import store
from tracing.analyze.compare.verdict import ComparisonVerdict
from tracing.analyze.nonfinite.first_nonfinite import first_nonfinite
from tracing.analyze.ranks.ranks import RankComparison
from tracing.analyze.runs.call_sites import launch_origin
from tracing.analyze.runs.recorded_steps import RecordedSteps, not_covered, options_of, steps_on_disk
from tracing.model import UNMARKED, KeptTensor, OperatorCall, Outcome, RecordingStop, StepSelection
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.record.outputs import Keep, load
from tracing.report.run import run_text
from tracing.store.cut_files import cut_files
from tracing.virtual_gpu import virtual_gpu


def stepped(
    runs: Path, steps: int, selection: StepSelection, *, launches: int = 1, bad: int = -1, **options: Any
) -> store.Run:
    """A run of a loop: each step adds 1 to a tensor `launches` times; step `bad` reads a NaN."""
    writer = store.create(runs, replace(INFO, steps=selection))
    with virtual_gpu(), LaunchRecorder(writer, steps=selection, **options):
        x = torch.zeros(64)
        for step in range(steps):
            if step == bad:
                x[3] = float("nan")
            for _ in range(launches):
                x = added(x)
            tracing.step()
    writer.append(Outcome("ended", "exit status 0"))
    writer.close()
    return store.Run(writer.path)


def noise() -> None:
    """A launch with 80 kB to keep, which do not compress."""
    x = torch.rand(20_000)
    add_kernel[(1,)](x, 64, torch.empty(64), 64)


def steps_of(run: store.Run) -> list[int]:
    return list(dict.fromkeys(one.step[0] for one in run.launches() if one.step))


@pytest.mark.parametrize(
    ("selection", "steps", "text"),
    [
        (StepSelection(), 12, ""),
        (StepSelection(last=4), 4, ""),
        (StepSelection(last=4), 40, "; steps 36:40 are on disk"),
        (StepSelection(start=2, stop=5), 12, ", 3 recorded; steps 2:5 are on disk"),
        (StepSelection(start=3, stop=4), 12, ", 1 recorded; step 3 is on disk"),
        (StepSelection(start=20), 12, ", 0 recorded; no step is on disk"),
        (StepSelection(every=4), 12, ", 3 recorded; steps 0, 4 and 8 are on disk"),
        (StepSelection(every=4), 40, ", 10 recorded; steps 0, 4, ... and 36 are on disk"),
        (StepSelection(every=4, start=1, stop=99), 10, ", 3 recorded; steps 1, 5 and 9 are on disk"),
    ],
)
def test_the_last_line_names_the_steps_on_disk(
    tmp_path: Path, selection: StepSelection, steps: int, text: str
) -> None:
    writer = store.create(tmp_path, replace(INFO, steps=selection))
    with virtual_gpu(), LaunchRecorder(writer, steps=selection) as recorder:
        x = torch.zeros(64)
        for _ in range(steps):
            x = added(x)
            tracing.step()
    writer.close()

    assert recorder.kept == text


@pytest.mark.parametrize(("last", "steps"), [(1, 3), (1, 40), (5, 5), (5, 41), (40, 100)])
def test_the_last_steps_are_kept_whole_and_a_bounded_number_of_earlier_ones(
    tmp_path: Path, last: int, steps: int
) -> None:
    run = stepped(tmp_path, steps, StepSelection(last=last), launches=2)

    kept = steps_of(run)
    assert kept == list(range(kept[0], steps))
    assert min(last, steps) <= len(kept) <= last + max(4, -(-last // 8))
    assert [one.index for one in run.launches()] == list(range(2 * kept[0], 2 * steps))
    assert all(one.finished and one.args[0].after for one in run.launches())
    deleted = [one.what for one in not_covered(run)]
    assert deleted == (
        [f"steps 0:{kept[0]} (launches 0:{2 * kept[0]}): deleted, as --last {last} asks"] if kept[0] else []
    )


@pytest.mark.parametrize(
    ("selection", "steps", "bad", "typed"),
    [
        (StepSelection(last=4), 3, -1, ""),
        (StepSelection(last=4), 40, -1, "--steps 36:"),
        (StepSelection(every=3, start=2, stop=12), 20, -1, "--every 3 --steps 2:12"),
        (StepSelection(last=4, every=3, start=2), 60, -1, "--every 3 --steps 50:"),
        (StepSelection(until="nan"), 9, 5, "--steps 0:6"),
        (StepSelection(last=2, until="nan"), 30, 20, "--steps 16:21"),
    ],
)
def test_the_steps_on_disk_can_be_recorded_once_more(
    tmp_path: Path, selection: StepSelection, steps: int, bad: int, typed: str
) -> None:
    run = stepped(tmp_path, steps, selection, bad=bad)

    anew = steps_on_disk(run)
    assert " ".join(options_of(anew)) == typed
    assert steps_of(stepped(tmp_path, steps, anew, bad=bad)) == steps_of(run)


def test_show_names_a_launch_that_is_on_disk_and_counts_those_that_were_recorded(tmp_path: Path) -> None:
    run = stepped(tmp_path, 40, StepSelection(last=8), launches=5)

    first, *_ = launches = list(run.launches())
    assert first.index > 0
    [text] = [line for line in map(str, run_text(run, page=1)) if line.startswith("launches ")]
    assert text.endswith(f"--launch {first.index}`")
    origin = launch_origin(run, 0, launches[6])
    assert str(origin).endswith(f", call 7 of the {len(launches)} that were recorded there")


def test_the_writer_of_a_tensor_is_known_across_segments(tmp_path: Path) -> None:
    run = stepped(tmp_path, 30, StepSelection(last=8))

    storages = [{arg.name: arg.storage for arg in one.args} for one in run.launches()]
    assert [one["x_ptr"] for one in storages][1:] == [one["y_ptr"] for one in storages][:-1]
    assert {one["x_ptr"] for one in storages} <= run.storages(run.processes()[0]).keys()


def test_only_selected_steps_are_written_and_they_keep_their_numbers(tmp_path: Path) -> None:
    run = stepped(tmp_path, 20, StepSelection(every=3, start=2, stop=12), launches=2)

    assert [one.step for one in run.launches()] == [(s, n) for s in (2, 5, 8, 11) for n in (0, 1)]
    assert [one.index for one in run.launches()] == [2 * s + n for s in (2, 5, 8, 11) for n in (0, 1)]
    assert {one.launch // 2 for one in run.records(OperatorCall)} <= {2, 5, 8, 11}
    assert [one.what for one in not_covered(run)] == ["steps that --every 3 --steps 2:12 leaves out"]


@pytest.mark.parametrize(
    ("operators", "reason"),
    [
        ("writers", "launch #18 add read a NaN in x_ptr"),
        ("digests", r"aten::(lift_fresh|fill_\.Scalar) wrote a NaN"),  # until torch 2.14; since 2.15
    ],
)
def test_the_recording_stops_after_the_step_of_the_first_nan_and_the_program_goes_on(
    tmp_path: Path, operators: str, reason: str
) -> None:
    selection = StepSelection(last=4, until="nan")
    run = stepped(tmp_path, 20, selection, launches=2, bad=9, operators=operators)

    (stop,) = run.records(RecordingStop)
    assert (stop.step, stop.launches) == (9, 20)
    assert re.fullmatch(f"{reason}, in step 9", stop.reason)
    assert steps_of(run)[-1] == 9 and len(steps_of(run)) >= 4
    assert first_nonfinite(run).missing[-1].endswith(f"stopped by --until nan: {stop.reason}")


def test_an_inf_is_no_nan(tmp_path: Path) -> None:
    writer = store.create(tmp_path, INFO)
    with virtual_gpu(), LaunchRecorder(writer, steps=StepSelection(until="nan")):
        for _ in range(3):
            added(torch.full((64,), float("inf")))
            tracing.step()

    run = store.Run(writer.path)
    assert not list(run.records(RecordingStop)) and len(list(run.launches())) == 3


def test_a_program_without_steps_is_recorded_completely_and_the_run_says_so(tmp_path: Path) -> None:
    writer = store.create(tmp_path, replace(INFO, steps=StepSelection(last=1)))
    with virtual_gpu(), LaunchRecorder(writer, steps=StepSelection(last=1)):
        for _ in range(20):
            added(torch.ones(64))
        before_its_end = not_covered(store.Run(writer.path))

    run = store.Run(writer.path)
    assert len(list(run.launches())) == 20
    assert not_covered(run) == before_its_end == [UNMARKED]


def test_a_segment_that_begins_with_the_end_of_the_program_is_no_damage(tmp_path: Path) -> None:
    steps = StepSelection(last=6)
    writer = store.create(tmp_path, replace(INFO, steps=steps))
    with virtual_gpu(), LaunchRecorder(writer, steps=steps):
        for _ in range(8):  # segments of four steps
            added(torch.ones(64))
            tracing.step()
    writer.append(Outcome("ended", "exit status 0"))
    writer.close()

    assert len(list(store.Run(writer.path).launches())) == 8
    assert not cut_files(writer.path)


def test_a_bound_of_bytes_asks_for_no_steps(tmp_path: Path) -> None:
    steps = StepSelection(disk=1 << 30)
    writer = store.create(tmp_path, replace(INFO, steps=steps))
    with virtual_gpu(), LaunchRecorder(writer, steps=steps):
        added(torch.ones(64))

    assert not not_covered(store.Run(writer.path))


def test_the_run_occupies_no_more_disk_than_it_may(tmp_path: Path) -> None:
    disk, largest = 1 << 20, 0
    writer = store.create(tmp_path, replace(INFO, steps=StepSelection(disk=disk)))
    with virtual_gpu(), LaunchRecorder(writer, steps=StepSelection(disk=disk), keep=Keep(inputs=True)):
        for _ in range(60):
            noise()
            tracing.step()
            largest = max(
                largest, sum(path.stat().st_size for path in writer.path.rglob("*") if path.is_file())
            )
    writer.close()

    run = store.Run(writer.path)
    kept = steps_of(run)
    assert largest <= disk and largest > disk // 2
    assert kept[0] > 40 and kept == list(range(kept[0], 60))
    blobs = {path.name.removesuffix(".zst") for path in (run.path / "blobs").iterdir()}
    tensors = [one for one in run.records(KeptTensor) if one.side == "before"]
    assert tensors and all(one.blob in blobs for one in tensors)
    assert load(run.bytes(tensors[-1].blob)).shape == (20_000,)


def test_a_step_that_has_no_room_is_kept_in_part(tmp_path: Path) -> None:
    disk, random_text = 1 << 20, random.Random(0).randbytes
    selection = StepSelection(disk=disk)
    writer = store.create(tmp_path, replace(INFO, steps=selection))
    with virtual_gpu(), LaunchRecorder(writer, steps=selection, hash_fn=lambda x: random_text(16_000).hex()):
        added(torch.ones(64))
        tracing.step()
        for _ in range(60):
            added(torch.ones(64))
    writer.close()

    run = store.Run(writer.path)
    numbers = [one.index for one in run.launches()]
    assert 10 < numbers[0] < 60 and numbers == list(range(numbers[0], 61))
    (what,) = [one.what for one in not_covered(run)]
    assert what == (
        f"steps 0:1 and {numbers[0] - 1} launches of step 1 (launches 0:{numbers[0]}): "
        f"deleted, as --disk {disk} asks"
    )
    assert RecordedSteps.of(run, run.processes()[0]).start == 2


def test_tensors_of_one_step_that_have_no_room_are_left_out_and_its_launches_kept(tmp_path: Path) -> None:
    selection = StepSelection(disk=1 << 20)
    writer = store.create(tmp_path, replace(INFO, steps=selection))
    with virtual_gpu(), LaunchRecorder(writer, steps=selection, keep=Keep(inputs=True)):
        for _ in range(30):
            noise()
    writer.close()

    run = store.Run(writer.path)
    assert len(list(run.launches())) == 30
    assert 5 < len(list(run.records(KeptTensor))) < 60
    assert "the content of some tensors, which --disk has no room for" in [
        one.what for one in not_covered(run)
    ]


def test_two_runs_are_compared_by_the_number_of_the_step(tmp_path: Path) -> None:
    a = stepped(tmp_path / "a", 41, StepSelection(last=5))
    b = stepped(tmp_path / "b", 44, StepSelection(last=5))
    whole = stepped(tmp_path / "whole", 41, StepSelection())

    verdict = ComparisonVerdict.of(a, whole, 100)
    assert not list(verdict) and verdict.status == 2
    notes = verdict.comparison.notes
    assert notes.pairs == len(steps_of(a))
    assert notes.selected == f"steps {steps_of(a)[0]}:41: the rest is not compared"
    assert notes.notes == [f"steps 0:{steps_of(a)[0]}: only b has them"]
    same = ComparisonVerdict.of(a, a, 100)
    assert not list(same) and same.status == 0
    later = ComparisonVerdict.of(a, b, 100)
    first = next(iter(later))
    assert first.pair.b is not None and first.pair.b.step == (41, 0)


def test_runs_without_a_common_step_are_not_called_equal(tmp_path: Path) -> None:
    a = stepped(tmp_path / "a", 10, StepSelection(stop=3))
    b = stepped(tmp_path / "b", 10, StepSelection(start=5))

    verdict = ComparisonVerdict.of(a, b, 100)
    assert not list(verdict) and verdict.status == 2
    assert verdict.comparison.notes.pairs == 0 and verdict.comparison.notes.selected == "no step"


def test_a_run_that_ended_before_the_steps_of_the_other_one_shows_no_difference(tmp_path: Path) -> None:
    short = stepped(tmp_path / "short", 4, StepSelection())
    later = stepped(tmp_path / "later", 12, StepSelection(last=2))

    verdict = ComparisonVerdict.of(short, later, 100)
    assert not list(verdict) and verdict.status == 2
    assert verdict.comparison.notes.selected == "no step"


def test_what_no_program_reaches_keeps_its_bound(tmp_path: Path) -> None:
    """Random programs: steps of random sizes, in random segments."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chosen = random.Random(seed)
    for number in range(6):
        selection = StepSelection(last=chosen.randint(1, 30), every=chosen.randint(1, 3))
        writer = store.create(tmp_path / str(number), replace(INFO, steps=selection))
        made = list[tuple[int, int]]()
        with virtual_gpu(), LaunchRecorder(writer, steps=selection):
            for step in range(chosen.randint(1, 80)):
                for launch in range(chosen.choice([0, 1, 1, 3])):
                    added(torch.ones(64))
                    made.append((step, launch))
                tracing.step()
        writer.close()

        run = store.Run(writer.path)
        kept = RecordedSteps.of(run, f"-{writer.process}")
        expected = [one for one in made if kept.has(one[0])]
        assert [one.step for one in run.launches()] == expected
        written = [step for step in range(kept.ends[-1].index + 1) if selection.wants(step)]
        there = [step for step in written if kept.has(step)]
        assert len(there) >= min(selection.last, len(written))
        assert len(there) <= selection.last + max(4, -(-selection.last // 8))


PROGRAM = """
import sys, torch, tracing
from recorded.launches import added
x = torch.zeros(64)
for step in range(1000000):
    x = added(x)
    added(x)
    tracing.step()
    print(step, flush=True)
"""


def test_after_a_kill_the_last_steps_are_on_disk(tmp_path: Path) -> None:
    program = tmp_path / "loop.py"
    program.write_text(PROGRAM)
    words = [
        sys.executable,
        "-m",
        "tracing",
        "run",
        "--no-passes",
        "--last",
        "8",
        "--runs",
        str(tmp_path / "runs"),
    ]
    settings = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
    with subprocess.Popen([*words, str(program)], stdout=subprocess.PIPE, text=True, env=settings) as process:
        assert process.stdout is not None
        ended = [int(line) for line in itertools.islice(process.stdout, 60)][-1]
        (path,) = store.recorded(tmp_path / "runs")
        growing = [len(list(store.Run(path).launches())) for _ in range(5)]  # while it is recorded
        time.sleep(random.random() / 10)
        os.kill(process.pid, signal.SIGKILL)
        ended = max([ended, *map(int, process.stdout.read().split())])

    assert all(16 <= count <= 2 * (8 + 4 + 1) for count in growing)
    run = store.Run(path)
    kept = steps_of(run)
    counted = RecordedSteps.of(run, run.processes()[0]).ends[-1].index  # perhaps killed before it is printed
    assert kept[0] > 40 and max(ended, counted) - kept[0] >= 7
    whole = [one.index for one in run.launches() if one.finished and one.step and one.step[0] <= ended]
    assert whole == list(range(2 * kept[0], 2 * (ended + 1)))


def test_ranks_are_compared_in_the_steps_that_all_of_them_have(tmp_path: Path) -> None:
    info = replace(INFO, steps=StepSelection(last=5), world_size=2)
    for rank, last in enumerate((5, 20)):
        writer = store.create(tmp_path, info, rank, "job")
        with virtual_gpu(), LaunchRecorder(writer, steps=StepSelection(last=last)):
            for _ in range(41):
                added(torch.ones(64))
                tracing.step()
        writer.append(Outcome("ended", "exit status 0"))
        writer.close()

    comparison = RankComparison(store.Run(writer.path))
    assert not list(comparison)
    assert comparison.launches == 5
    assert any("deleted, as --last 5 asks" in note for note in comparison.notes)
