"""Launches that were recorded before are recorded by C++: the run is that of the Python form, line by line.

There is no GPU here. What stands in for one is upstream's: an autotuner that launches nothing, and generated
code that calls it with tensors in host memory, which the recorder takes for a GPU's. tests/gpu has the same
with real launches and digests.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from handmade.records import INFO
from recorded.host_gpu import driver
from torch._inductor.runtime.triton_heuristics import CachingAutotuner

import tracing
from tracing import store
from tracing.launch import compiled_launches, hooks
from tracing.launch.launch_site import KernelArtefacts
from tracing.launch.roles import Declared
from tracing.model import (
    CallSite,
    LaunchLine,
    LaunchTime,
    NotCovered,
    Record,
    Segment,
    Signature,
    StepSelection,
    Storage,
)
from tracing.record.launches import host_launches, launch_recorder, launch_template, timing
from tracing.record.launches.known_launches import KnownLaunches
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.record.launches.selection import EVERY_STEP
from tracing.store.lines import files, lines
from tracing.upstream.inductor.code import cache_dir

STEPS = 5
KINDS: tuple[type[Record], ...] = (LaunchLine, CallSite, Signature, NotCovered)


class Site:
    kind, flat, settled, accesses = "triton", None, True, None

    def __init__(self, autotuner: Kernel) -> None:
        self.name, self.names, self.count, self.scalars = autotuner.name, ("a", "b", "c", "n"), 4, (3,)
        self.binary = autotuner

    def grid(self, values: Sequence[Any]) -> tuple[int, int, int]:
        return 1, 1, 1

    def compiled(self) -> KernelArtefacts:
        roles: Any = {"a": "in", "b": "in_out", "c": "out"}
        return KernelArtefacts(self.name, "cuda:90", {}, {}, {}, lambda: Declared(roles))


class Kernel(CachingAutotuner):  # type: ignore[misc, unused-ignore]
    triton_interpret = False

    def __init__(self, name: str) -> None:
        self.name, self.launched = name, 0


Call = Callable[[Sequence[torch.Tensor], Any], None]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch) -> Call:
    """Three launches on tensors 0 to 3, as a module of Inductor makes them, and one operator between them."""

    def launched(kernel: Kernel, *args: Any, stream: int) -> None:
        kernel.launched += 1

    monkeypatch.setattr(CachingAutotuner, "run", launched)
    monkeypatch.setattr(hooks, "InductorSite", Site)
    monkeypatch.setattr(host_launches, "_interprets", lambda: False)
    monkeypatch.setattr(launch_recorder, "is_capturing", lambda: False)
    monkeypatch.setattr(KnownLaunches, "capturing", staticmethod(lambda: False))
    monkeypatch.setattr(launch_template, "_gpu", lambda tensors: torch.device("cuda", 0))
    text = """
def call(tensors, n):
    first.run(tensors[0], tensors[1], tensors[2], n, stream=7)
    torch.add(tensors[2], 1, out=tensors[3])
    second.run(tensors[3], tensors[1][:1], tensors[0], n, stream=7)
    first.run(tensors[1], tensors[3], tensors[2], n, stream=8)
"""
    scope: dict[str, Any] = {"first": Kernel("first"), "second": Kernel("second"), "torch": torch}
    exec(compile(text, f"{cache_dir()}/call.py", "exec"), scope)
    return scope["call"]  # type: ignore[no-any-return]


class Recorded:
    """The lines of a run, and how many launches Python recorded."""

    def __init__(
        self,
        program: Callable[[], None],
        runs: Path,
        monkeypatch: pytest.MonkeyPatch,
        native: bool,
        selection: StepSelection = EVERY_STEP,
    ):
        self.python = 0
        before = LaunchRecorder.before

        def counted(*args: Any) -> Any:
            self.python += 1
            return before(*args)

        with monkeypatch.context() as patch:
            patch.setattr(LaunchRecorder, "before", counted)
            if not native:
                patch.setattr(compiled_launches, "wrapper", lambda: None)
            recorder = LaunchRecorder(
                store.create(runs, INFO), "none", operators="writers", graphs=False, steps=selection
            )
            with recorder:
                program()
        run = store.Run(recorder.writer.path)
        self.lines = {kind.__name__: list(run.records(kind)) for kind in KINDS}
        self.launches = recorder.count


def steps(call: Call) -> None:
    tensors = [torch.rand(8, 8) for _ in range(4)]
    for _ in range(STEPS):
        call(tensors, 5)


def at_two_addresses(call: Call) -> None:
    sets = [[torch.rand(8, 8) for _ in range(4)] for _ in range(2)]
    for step in range(STEPS):
        call(sets[step % 2], 5)


def with_other_scalars(call: Call) -> None:
    tensors = [torch.rand(8, 8) for _ in range(4)]
    for n in (5, 5.0, True, None, 1 << 40, -0.0, 0.0, 1 << 80):
        for _ in range(2):
            call(tensors, n)


def from_two_lines(call: Call) -> None:
    tensors = [torch.rand(8, 8) for _ in range(4)]
    for _ in range(STEPS):
        call(tensors, 5)
        call(tensors, 5)


def below_autograd(call: Call) -> None:
    class Function(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            call(tensors, 5)
            return x * 2

        @staticmethod
        def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
            call(tensors, 5)
            return gradient * 2

    tensors = [torch.rand(8, 8) for _ in range(4)]
    x = torch.rand(3, requires_grad=True)
    for _ in range(STEPS):
        Function.apply(x).sum().backward()


def on_two_threads(call: Call) -> None:
    steps(call)
    other = threading.Thread(target=steps, args=(call,))
    other.start()
    other.join()


def with_an_overwritten_part(call: Call) -> None:
    tensors = [torch.rand(8, 8) for _ in range(4)]
    for step in range(STEPS):
        tensors[0][: step % 3].fill_(1)
        tensors[1].t().mul_(2)
        call(tensors, 5)


PROGRAMS = [
    steps,
    at_two_addresses,
    with_other_scalars,
    from_two_lines,
    below_autograd,
    on_two_threads,
    with_an_overwritten_part,
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_run_is_that_of_the_python_form(
    program: Callable[[Call], None], call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = Recorded(lambda: program(call), tmp_path / "python", monkeypatch, native=False)
    native = Recorded(lambda: program(call), tmp_path / "native", monkeypatch, native=True)

    assert native.lines == python.lines
    assert python.python == python.launches == native.launches
    assert native.python < native.launches


@pytest.mark.parametrize(
    ("selection", "by_python"),
    [
        (StepSelection(last=1), 18),
        (StepSelection(last=40), 18),
        (StepSelection(every=3), 18),
        (StepSelection(start=10, stop=20), 3),
        (StepSelection(last=2, every=2, start=1), 18),
    ],
    ids=str,
)
def test_the_run_is_that_of_the_python_form_if_some_steps_are_written(
    selection: StepSelection,
    by_python: int,
    call: Call,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sets = [[torch.rand(8, 8) for _ in range(4)] for _ in range(8)]

    def program() -> None:
        for step in range(60):
            tensors = sets[step // 10]  # in six turns, three launches each
            torch.add(tensors[0], 1, out=tensors[1])
            call(tensors, 5)
            tracing.step()

    python = Recorded(program, tmp_path / "python", monkeypatch, native=False, selection=selection)
    native = Recorded(program, tmp_path / "native", monkeypatch, native=True, selection=selection)

    assert native.lines == python.lines
    assert python.python == python.launches == native.launches == 180
    assert native.python == by_python


def test_every_launch_has_its_time(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU: tests/gpu has the same with it")
    driver()
    monkeypatch.setattr(timing, "is_capturing", lambda: False)
    tensors = [torch.rand(8, 8) for _ in range(4)]
    before, python = LaunchRecorder.before, 0

    def counted(*args: Any) -> Any:
        nonlocal python
        python += 1
        return before(*args)

    monkeypatch.setattr(LaunchRecorder, "before", counted)
    with LaunchRecorder(store.create(tmp_path, INFO), "none", operators="none", time=True) as recorder:
        for _ in range(200):
            call(tensors, 5)

    times = list(store.Run(recorder.writer.path).records(LaunchTime))
    assert [one.launch for one in times] == list(range(600))
    assert {one.device_us for one in times} == {1000.0}  # the next event on the stream is the launch's last
    assert all(one.wall_us > 0 for one in times)
    assert python == 3


def test_an_error_of_the_recorder_ends_the_recording_and_not_the_program(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(lines: KnownLaunches) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(KnownLaunches, "flush", full)
    tensors = [torch.rand(8, 8) for _ in range(4)]
    with LaunchRecorder(store.create(tmp_path, INFO), "none", operators="none", strict=False) as recorder:
        for _ in range(100):
            call(tensors, 5)

    assert recorder.count == 256  # as many lines are held back
    assert (
        "the recording ended after 256 launches: OSError: No space left on device" in capsys.readouterr().err
    )


def test_an_interrupt_in_the_recorder_reaches_the_program_and_the_recording_continues(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(lines: KnownLaunches) -> None:
        raise KeyboardInterrupt

    tensors = [torch.rand(8, 8) for _ in range(4)]
    with LaunchRecorder(store.create(tmp_path, INFO), "none", operators="none", strict=False) as recorder:
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(KnownLaunches, "flush", interrupted)
            for _ in range(100):
                call(tensors, 5)
        assert recorder.count == 256  # as many lines are held back
        call(tensors, 5)

    assert recorder.count == 259


def test_an_error_of_a_launch_is_raised_and_later_launches_are_recorded(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(kernel: Kernel, *args: Any, stream: int) -> None:
        if args[3] == 7:
            raise ValueError("no such launch")

    monkeypatch.setattr(CachingAutotuner, "run", failing)
    tensors = [torch.rand(8, 8) for _ in range(4)]
    with LaunchRecorder(store.create(tmp_path, INFO), "none", operators="none") as recorder:
        for n in (5, 5, 7, 5):
            try:
                call(tensors, n)
            except ValueError:
                continue

    assert recorder.count == 10  # the third call ends at its first launch


def test_the_method_looks_like_the_one_that_it_replaces(call: Call, tmp_path: Path) -> None:
    original = CachingAutotuner.run
    with LaunchRecorder(store.create(tmp_path, INFO), "none", operators="none"):
        recorded: Any = CachingAutotuner.run
        assert recorded.__wrapped__ is original
        assert recorded.__name__ == original.__name__
        assert Kernel("first").run(1, 2, 3, 4, stream=0) is None

    assert CachingAutotuner.run is original


@pytest.mark.parametrize("native", [True, False])
def test_each_segment_has_the_records_that_its_lines_refer_to(
    native: bool, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not native:
        monkeypatch.setattr(compiled_launches, "wrapper", lambda: None)
    sets = [[torch.rand(8, 8) for _ in range(4)] for _ in range(8)]
    writer, selection = store.create(tmp_path, INFO), StepSelection(disk=192 << 10)
    with LaunchRecorder(writer, "none", operators="none", graphs=False, steps=selection) as recorder:
        for step in range(10_000):  # without an end of a step
            call(sets[step % 7], 5)
    writer.close()

    run = writer.path
    segments = [path.name.split(".")[1] for path in files(run, Segment)]
    assert len(segments) > 2
    launches = []
    for segment in segments:
        part = {
            kind: [
                one for path in files(run, kind) if f".{segment}." in path.name for one in lines(path, kind)
            ]
            for kind in (LaunchLine, Signature, Storage)
        }
        assert {one.signature for one in part[LaunchLine]} <= {one.id for one in part[Signature]}
        assert {number for one in part[LaunchLine] for number in one.storages} <= {
            one.id for one in part[Storage]
        }
        launches += [one.index for one in part[LaunchLine]]
    assert launches == list(range(launches[0], recorder.count))
