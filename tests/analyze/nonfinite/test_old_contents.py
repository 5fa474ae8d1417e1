"""A NaN or inf that a launch leaves in elements which it does not write is not made by the launch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
import torch
import triton
import triton.language as tl
from handmade.records import INFO, arg, launch
from handmade.runs import Operators, saved

from tracing import store
from tracing.analyze.nonfinite.first_nonfinite import first_nonfinite
from tracing.analyze.nonfinite.nonfinite_answer import NonFiniteAnswer
from tracing.cli.compare.nan import commands_of_nan
from tracing.model import Access, Digest, Environment, KernelArg, Outcome, RecordingStop, StepSelection
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.report.nonfinite import nonfinite_text
from tracing.virtual_gpu import virtual_gpu

GPU = Environment("3", "2", "3", "cuda 12", "cuda:90", "host", "platform", {})


@triton.jit
def even_rows(x, y, width, BLOCK: tl.constexpr):
    """Doubles the even rows."""
    i = 2 * tl.program_id(0) * width + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i) * 2)


@triton.jit
def logarithm(x, y, n, BLOCK: tl.constexpr):
    """The logarithms of the first n elements."""
    i = tl.arange(0, BLOCK)
    tl.store(y + i, tl.log(tl.load(x + i, mask=i < n)), mask=i < n)


@triton.jit
def row_sums(y, out, width, BLOCK: tl.constexpr):
    """Sums each row."""
    row = tl.program_id(0)
    tl.store(out + row, tl.sum(tl.load(y + row * width + tl.arange(0, BLOCK))))


@pytest.fixture
def filled() -> Iterator[None]:
    """`torch.empty` holds NaN, as it may anyway."""
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


def recorded(folder: Path, program: Callable[[], object], **options: object) -> store.Run:
    writer = store.create(folder, INFO)
    with virtual_gpu(), LaunchRecorder(writer, **options):  # type: ignore[arg-type]
        program()
    writer.append(Outcome("ended", "exit status 0"))
    writer.close()
    return store.Run(writer.path)


def text_of(answer: NonFiniteAnswer) -> str:
    return "\n".join(line.plain for line in nonfinite_text(answer, {}, []))


def every_second_row() -> torch.Tensor:
    y = torch.empty(6, 16)
    even_rows[(3,)](torch.ones(6, 16), y, 16, BLOCK=16)
    return y


def sums_of_all_rows() -> None:
    row_sums[(6,)](every_second_row(), torch.empty(6), 16, BLOCK=16)


def logarithms(n: int, value: float) -> torch.Tensor:
    x, y = torch.full((32,), float("nan")), torch.empty(32)
    x[:n] = value
    logarithm[(1,)](x, y, n, BLOCK=32)
    return y


@pytest.mark.usefixtures("filled")
def test_a_launch_that_stores_finite_values_next_to_old_nan_makes_none(tmp_path: Path) -> None:
    answer = first_nonfinite(recorded(tmp_path, every_second_row))

    assert answer.origin is not None
    assert (answer.status, answer.origin.verb, answer.origin.made) == (1, "keeps", False)
    text = text_of(answer)
    assert "✗ launch #0 even_rows does not overwrite the first NaN or inf" in text
    assert "it stores only finite values, and leaves 48 elements of y unwritten, first [16]" in text
    assert "carried" not in text


@pytest.mark.usefixtures("filled")
def test_a_launch_that_reads_old_nan_is_named_with_the_launch_that_left_them(tmp_path: Path) -> None:
    answer = first_nonfinite(recorded(tmp_path, sums_of_all_rows))

    assert answer.origin is not None
    assert (answer.origin.verb, answer.origin.event.name) == ("reads", "row_sums")
    assert "launch #0 even_rows stores only finite values, and leaves 48 elements" in text_of(answer)


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize("digests", ["all", "declared"])
def test_a_launch_that_stores_nan_next_to_old_ones_makes_them(digests: str, tmp_path: Path) -> None:
    run = recorded(tmp_path, lambda: logarithms(5, -1.0), digests=digests)

    answer = first_nonfinite(run)

    assert answer.origin is not None
    assert (answer.origin.verb, answer.origin.event.name) == ("makes", "logarithm")


def test_nan_in_elements_that_a_launch_does_not_read_are_not_read(tmp_path: Path) -> None:
    answer = first_nonfinite(recorded(tmp_path, lambda: logarithms(5, 2.0)))

    assert answer.origin is None or answer.origin.verb == "keeps"


@pytest.mark.usefixtures("filled")
def test_a_recording_does_not_stop_at_old_nan(tmp_path: Path) -> None:
    run = recorded(tmp_path, every_second_row, steps=StepSelection(until="nan"))

    assert not list(run.records(RecordingStop))


def step(before: int | None, after: int, *, read: int = 0) -> KernelArg:
    """An output that held this many NaN before and after its launch; None: no digest before it."""
    digests = {
        "before": None if before is None else Digest("1", nan=before),
        "after": Digest("2", nan=after),
    }
    return msgspec.structs.replace(arg("y", "out", "x", "y", storage=2), **digests)


@pytest.mark.parametrize(
    ("before", "after", "digests", "verb"),
    [
        (0, 3, "all", "makes"),
        (3, 5, "all", "makes"),
        (None, 3, "all", "makes"),  # overwritten as a whole
        (992, 120, "all", None),
        (3, 3, "all", None),
        (None, 3, "declared", None),
    ],
)
def test_where_only_whole_tensors_are_known_an_increase_is_needed(
    before: int | None, after: int, digests: str, verb: str | None, tmp_path: Path
) -> None:
    run = saved(tmp_path, [launch(0, step(before, after), name="part")], digests=digests, environment=GPU)

    answer = first_nonfinite(run)

    assert (answer.origin.verb if answer.origin else None) == verb
    assert answer.status == (1 if verb else 2)
    if verb is None:
        held = f"y held {before} NaN before it" if before else "y has no digest before it"
        asked = f"not known: whether launch #0 part stored the {after} NaN in y, or left them there: {held}"
        assert asked in text_of(answer)
        assert commands_of_nan(run, answer)


def test_on_a_gpu_the_next_command_records_without_it_where_accesses_are_exact(tmp_path: Path) -> None:
    run = saved(tmp_path, [launch(0, step(992, 120))], environment=GPU)

    first, *_ = commands_of_nan(run, first_nonfinite(run))

    assert first.startswith("env CUDA_VISIBLE_DEVICES= HIP_VISIBLE_DEVICES= tracing run")


def test_a_reader_of_what_may_be_old_contents_is_not_blamed(tmp_path: Path) -> None:
    read = msgspec.structs.replace(
        arg("x", "in", "x", storage=2), before=Digest("2", nan=120), after=Digest("2", nan=120)
    )
    launches = [launch(0, step(992, 120), name="part"), launch(1, read, step(0, 120), name="user")]

    answer = first_nonfinite(saved(tmp_path, launches, environment=GPU))

    assert (answer.origin, answer.status) == (None, 2)
    assert "whether launch #0 part stored the 120 NaN" in text_of(answer)


def test_an_operator_without_digests_may_have_made_what_a_launch_leaves(tmp_path: Path) -> None:
    operators = Operators().call(0, "aten::log", [1], [2]).records
    access = Access(0, written={0: "w"}, partly=(0,), written_nonfinite={0: (0, 0)})

    answer = first_nonfinite(saved(tmp_path, [launch(0, step(9, 4), name="part")], [*operators, access]))

    assert (answer.origin, answer.status) == (None, 2)
    assert "who made the 4 NaN that launch #0 part does not overwrite in y, which aten::log wrote" in text_of(
        answer
    )
    assert "--operators digests" in answer.record


def test_a_later_certain_launch_is_not_called_the_first(tmp_path: Path) -> None:
    other = msgspec.structs.replace(
        arg("z", "out", "x", "y", storage=7), before=Digest("3"), after=Digest("4", nan=2)
    )
    launches = [launch(0, step(992, 120), name="part"), launch(1, other, name="maker")]

    answer = first_nonfinite(saved(tmp_path, launches, environment=GPU))

    text = text_of(answer)
    assert "✗ launch #1 maker makes the first certain NaN or inf" in text
    assert "not known: whether launch #0 part stored the 120 NaN" in text
