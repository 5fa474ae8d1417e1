"""Digests after a launch are taken together with those before the next one; the host stands in for a GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from handmade.records import INFO
from recorded.host_gpu import HostGpu, host_gpu
from torch._inductor.runtime.triton_heuristics import CachingAutotuner

import tracing
from tracing import store
from tracing.digest.columns import rows
from tracing.launch import compiled_launches, hooks
from tracing.launch.launch_site import KernelArtefacts
from tracing.launch.roles import Declared
from tracing.model import DigestBatch, LaunchLine, NotCovered, Selection, StepSelection
from tracing.record.launches import host_launches, launch_recorder, launch_template
from tracing.record.launches.adjacent_launches import LOST
from tracing.record.launches.known_launches import KnownLaunches
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.record.launches.selection import EVERY_STEP, EVERYTHING

STEPS = 4
GPU = torch.device("cuda", 0)
Call = Callable[[Sequence[torch.Tensor]], None]
# The first launch is followed by the second; an operator is executed before the third.
CODE = """
def call(tensors):
    a, b, c, d = tensors
    first.run(a, b, stream=7)
    x = empty_strided_cuda((4, ), (1, ), float32)
    second.run(b, c, stream=7)
    torch.add(c, 1, out=d)
    first.run(d, a, stream=7)
"""


class Site:
    kind, flat, settled, accesses, scalars = "triton", None, True, None, ()

    def __init__(self, autotuner: Kernel) -> None:
        self.binary, self.name, self.names, self.count = autotuner, autotuner.name, ("a", "b"), 2

    def grid(self, values: Sequence[Any]) -> tuple[int, int, int]:
        return 1, 1, 1

    def compiled(self) -> KernelArtefacts:
        roles: Any = {"a": "in", "b": "out"}
        return KernelArtefacts(self.name, "cuda:90", {}, {}, {}, lambda: Declared(roles))


class Kernel(CachingAutotuner):  # type: ignore[misc, unused-ignore]
    triton_interpret = False

    def __init__(self, name: str) -> None:
        self.name = name


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> HostGpu:
    def launched(kernel: Kernel, a: torch.Tensor, b: torch.Tensor, stream: int) -> None:
        b.view(torch.uint8)[0] = (int(a.view(torch.uint8)[0]) * 3 + len(kernel.name)) % 256

    for target, name, value in (
        (CachingAutotuner, "run", launched),
        (hooks, "InductorSite", Site),
        (host_launches, "_interprets", lambda: False),
        (launch_recorder, "is_capturing", lambda: False),
        (KnownLaunches, "capturing", staticmethod(lambda: False)),
        (launch_template, "_gpu", lambda tensors: GPU),
    ):
        monkeypatch.setattr(target, name, value)
    return host_gpu(monkeypatch, slots=4096)


def generated(folder: Path, allocate: Callable[..., object]) -> Call:
    file = folder / "generated.py"
    file.write_text(CODE)
    scope: dict[str, Any] = {
        "first": Kernel("first"),
        "second": Kernel("second!"),
        "torch": torch,
        "empty_strided_cuda": allocate,
        "float32": torch.float32,
    }
    exec(compile(CODE, str(file), "exec"), scope)
    return scope["call"]  # type: ignore[no-any-return]


def recorded(
    program: Callable[[], None],
    runs: Path,
    selection: Selection = EVERYTHING,
    steps: StepSelection = EVERY_STEP,
) -> store.Run:
    writer = store.create(runs, INFO)
    with LaunchRecorder(writer, "all", operators="none", selection=selection, steps=steps) as recorder:
        program()
    return store.Run(recorder.writer.path)


def digests(run: store.Run) -> list[tuple[int, str, str]]:
    """Each launch that has any: its number, and the bits of its digests before and after it."""
    lines = rows(run.records(LaunchLine), run.records(DigestBatch))
    return [
        (
            row.line.index,
            row.bits(0, len(row.before)),
            row.bits(len(row.before), len(row.before) + len(row.after)),
        )
        for row in lines
        if row.batch is not None
    ]


def steps(call: Call) -> Callable[[], None]:
    def program() -> None:
        tensors = [torch.arange(8.0) + i for i in range(4)]
        for _ in range(STEPS):
            call(tensors)

    return program


def test_the_digests_are_those_of_separate_launches(
    gpu: HostGpu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = generated(tmp_path, lambda *layout: None)
    together = digests(recorded(steps(call), tmp_path / "together"))
    by_driver = gpu.by_driver
    with monkeypatch.context() as patch:
        patch.setattr(compiled_launches, "wrapper", lambda: None)
        separate = digests(recorded(steps(call), tmp_path / "separate"))

    assert together == separate
    assert [index for index, _, _ in together] == list(range(3 * STEPS))
    assert len({bits for _, before, after in together for bits in (before, after)}) > STEPS
    # of three launches, two sides each: those after the first and before the second are one
    assert by_driver == 5 * (STEPS - 1)


@pytest.mark.parametrize(
    ("selection", "by_python"),
    [
        (Selection(kernels=("first",)), 3),
        (Selection(kernels=("second*",)), 3),
        (Selection(launches=(10, 20)), 6),  # the first time, and the first that is recorded
        (Selection(launches=(4, 100), kernels=("first",)), 5),
        (Selection(phases=("backward",)), 3),
    ],
    ids=str,
)
def test_selected_launches_have_the_same_digests(
    selection: Selection, by_python: int, gpu: HostGpu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call, before = generated(tmp_path, lambda *layout: None), LaunchRecorder.before
    tensors = [torch.arange(8.0) + i for i in range(4)]
    count = 0

    def program() -> None:
        for tensor in tensors:
            tensor.zero_()
        for step in range(10):
            tensors[0].fill_(step)
            call(tensors)

    def counted(*args: Any) -> Any:
        nonlocal count
        count += 1
        return before(*args)

    with monkeypatch.context() as patch:
        patch.setattr(compiled_launches, "wrapper", lambda: None)
        python = recorded(program, tmp_path / "python", selection)
    monkeypatch.setattr(LaunchRecorder, "before", counted)
    native = recorded(program, tmp_path / "native", selection)

    assert digests(native) == digests(python)
    assert list(native.records(LaunchLine)) == list(python.records(LaunchLine))
    assert list(native.records(NotCovered)) == list(python.records(NotCovered)) == []
    assert count == by_python


def test_a_step_that_is_not_written_has_no_digests(gpu: HostGpu, tmp_path: Path) -> None:
    call = generated(tmp_path, lambda *layout: None)
    tensors = [torch.arange(8.0) + i for i in range(4)]

    def program() -> None:
        for _ in range(12):
            call(tensors)
            tracing.step()

    whole = {index: sides for index, *sides in digests(recorded(program, tmp_path / "whole"))}
    tensors[:] = [torch.arange(8.0) + i for i in range(4)]
    some = recorded(program, tmp_path / "some", steps=StepSelection(every=3))

    assert [index for index, *_ in digests(some)] == [
        3 * step + i for step in range(0, 12, 3) for i in range(3)
    ]
    assert all(whole[index] == sides for index, *sides in digests(some))


def test_a_launch_that_an_exception_follows_has_no_digests(gpu: HostGpu, tmp_path: Path) -> None:
    calls = 0

    def allocate(*layout: object) -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise MemoryError

    def program() -> None:
        tensors = [torch.arange(8.0) + i for i in range(4)]
        for _ in range(STEPS):
            try:
                call(tensors)
            except MemoryError:
                tensors[1].zero_()  # digests that are taken now would be wrong

    call = generated(tmp_path, allocate)
    run = recorded(program, tmp_path / "runs")
    launches = [index for index, _, _ in digests(run)]

    assert [one.what for one in run.records(NotCovered)] == [LOST]
    assert launches == [
        0,
        1,
        2,
        3,
        4,
        5,
        7,
        8,
        9,
    ]  # of the third step only the first launch was made, and is lost
