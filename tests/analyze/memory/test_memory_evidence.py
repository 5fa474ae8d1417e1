"""Memory evidence is reported for programs that access memory wrongly, and never for correct programs."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from commands import DATA
from commands import recorded as recorded_by_command
from recorded.launches import added
from recorded.launches import recorded as added_by
from recorded.runs import recorded
from rich.text import Text

from tracing import store
from tracing.analyze.memory.evidence import memory_evidence
from tracing.analyze.memory.launch_memory import unseen_launch
from tracing.model import KernelLaunch, MemoryEvidence
from tracing.report.findings import memory_text
from tracing.report.run import run_text
from tracing.report.run_json import run_json
from tracing.virtual_gpu import virtual_gpu

EVIDENCE = DATA / "evidence"
reuses_memory = pytest.mark.skipif(
    torch.__version__.startswith("2.11."), reason="torch 2.11 reuses no memory in this program: it is correct"
)


def without_interpreter(run: store.Run) -> list[MemoryEvidence]:
    """What would be known of the launches of a run on a GPU."""
    return [
        one
        for process in run.processes()
        for launch in run.launches()
        for one in unseen_launch(run, launch, addresses(run, process))
    ]


def addresses(run: store.Run, process: str) -> dict[int, tuple[int, int]]:
    return {number: (one.address, one.nbytes) for number, one in run.storages(process).items()}


def launch_of(run: store.Run, kernel: str) -> KernelLaunch:
    return next(one for one in run.launches() if one.kernel_name == kernel)


@pytest.fixture(scope="module")
def race(tmp_path_factory: pytest.TempPathFactory) -> store.Run:
    return recorded(f"{EVIDENCE / 'faulty.py'}:name=race", tmp_path_factory.mktemp("runs"))


def test_a_program_that_reads_what_another_one_writes_is_a_race_at_its_launch(race: store.Run) -> None:
    launch = launch_of(race, "smooth")

    (seen,) = memory_evidence(race)

    assert (seen.launch, seen.kind, seen.arguments) == (launch.index, "race", ("x",))
    assert "writes x[256]" in seen.what


def test_the_ttir_of_a_kernel_proves_its_race_without_an_execution(race: store.Run) -> None:
    (proven,) = without_interpreter(race)

    assert (proven.kind, proven.arguments) == ("race", ("x",))
    assert "program (1, 0, 0) writes x[256], and program (0, 0, 0) reads it" in proven.what


def test_a_run_is_shown_with_its_memory_evidence(race: store.Run) -> None:
    shown = [Text(line).plain if isinstance(line, str) else line.plain for line in run_text(race)]

    assert sum(line.startswith("memory: #0 smooth: race: program") for line in shown) == 1
    assert [one["kind"] for one in run_json(race, [])["memory_evidence"]] == ["race"]


def test_a_load_without_a_mask_is_known_from_the_ttir_with_its_line(tmp_path: Path) -> None:
    run = recorded(f"{EVIDENCE / 'faulty.py'}:name=unmasked", tmp_path, allow_out_of_bounds=True)

    evidence, (proven,) = memory_evidence(run), without_interpreter(run)
    assert len(evidence) == 1, evidence
    (seen,) = evidence

    assert (seen.kind, seen.arguments) == ("out of bounds", ("x",))
    assert (proven.kind, proven.arguments) == ("unmasked", ("x",))
    assert "loads x[1023], outside of its storage, x[0] to [999]: the access has no mask" in proven.what
    assert proven.where == seen.where != ""


def test_a_block_size_of_the_first_shape_is_evidence_where_it_does_not_fit(tmp_path: Path) -> None:
    run = recorded(f"{EVIDENCE / 'faulty.py'}:name=shape", tmp_path)

    (seen,) = memory_evidence(run)

    assert (seen.launch, seen.kind) == (2, "first shape")
    assert seen.what.endswith("here that is 100, and 64:100 is not read")


@pytest.mark.parametrize(
    ("declared", "kinds"), [("true", []), pytest.param("false", ["overwritten"], marks=reuses_memory)]
)
def test_a_buffer_that_is_reused_and_still_read_is_evidence(
    declared: str, kinds: list[str], tmp_path: Path
) -> None:
    run = recorded(f"{EVIDENCE / 'reused.py'}:declared={declared}", tmp_path)

    assert [one.kind for one in memory_evidence(run)] == kinds
    assert sum("reuses its memory" in line.plain for line in memory_text(run)) == len(kinds)


@pytest.mark.soak
@reuses_memory
def test_a_buffer_that_is_reused_is_evidence_although_another_tool_wraps_launches(tmp_path: Path) -> None:
    run = store.Run(
        Path(recorded_by_command(f"{EVIDENCE / 'reused.py'}:wrapped=true", tmp_path, passed=False))
    )

    assert [one.kind for one in memory_evidence(run)] == ["overwritten"]


@pytest.mark.parametrize("name", ["gelus", "cache", "locks"])
def test_a_correct_program_has_no_evidence(name: str, tmp_path: Path) -> None:
    run = recorded(f"{EVIDENCE / 'correct.py'}:name={name}", tmp_path)

    assert [*run.launches()]
    assert memory_evidence(run) == without_interpreter(run) == []


@pytest.mark.parametrize(("shift", "kinds"), [(0, []), (4, ["specialised"])])
def test_an_alignment_that_the_kernel_was_compiled_for_and_lacks_is_evidence(
    shift: int, kinds: list[str], tmp_path: Path
) -> None:
    with virtual_gpu():
        [launch] = added_by(tmp_path, lambda: added(torch.rand(1024), torch.zeros(1024)))
    run = store.Run(next(tmp_path.iterdir()))
    [process] = run.processes()
    first = launch.args[0]
    moved = {
        number: (address + shift * (number == first.storage), nbytes)
        for number, (address, nbytes) in addresses(run, process).items()
    }

    evidence = [*unseen_launch(run, launch, moved)]

    assert [one.kind for one in evidence] == kinds
    assert [one.arguments for one in evidence] == [(first.name,) for _ in kinds]
