"""Threads that compile, tune and launch at once on the virtual GPU, with and without recording."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
import triton
from handmade.records import INFO

from tracing import store
from tracing.environment import fresh_caches
from tracing.model import Compilation, KernelLaunch
from tracing.program.case import import_file
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.record.outputs import Keep
from tracing.record.passes.recorder import PassRecorder
from tracing.virtual_gpu import virtual_gpu

THREADS, KERNELS = 4, 12
SOURCE = """
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def raised(x, by: tl.constexpr):
    return libdevice.exp(x) * by + tl.sum(x, axis=0)


@triton.jit
def kernel_{i}(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    for step in tl.range(0, 2):
        x += tl.maximum(x, 0.0) * step
    tl.store(y_ptr + at, raised(x, {i}), mask=at < n)


tuned = triton.autotune([triton.Config(dict(BLOCK=32)), triton.Config(dict(BLOCK=64))], key=["n"])(kernel_{i})
"""


@pytest.fixture
def modules(tmp_path: Path) -> list[Any]:
    """Kernels that are not compiled yet."""
    made = []
    for i in range(KERNELS):
        path = tmp_path / f"module_{i}.py"
        path.write_text(SOURCE.replace("{i}", str(i)))
        made.append(import_file(path))
    return made


def expected(x: torch.Tensor, i: int, block: int) -> torch.Tensor:
    parts = (part + part.clamp(min=0) for part in x.split(block))
    return torch.cat([part.exp() * i + part.sum() for part in parts])


def at_once(work: Callable[[int], None]) -> None:
    """Runs a function in several threads; raises an exception that one of them raised."""
    errors: list[BaseException] = []
    barrier = threading.Barrier(THREADS)

    def run(thread: int) -> None:
        barrier.wait()
        try:
            work(thread)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


@contextmanager
def gpu(writer: store.RunWriter | None) -> Iterator[None]:
    """A virtual GPU; what happens on it is recorded if there is a run."""
    with fresh_caches(), ExitStack() as stack:
        stack.enter_context(virtual_gpu())
        if writer is not None:
            stack.enter_context(PassRecorder(writer))
            stack.enter_context(LaunchRecorder(writer, keep=Keep(inputs=True)))
        yield


@pytest.mark.parametrize("recording", [pytest.param(False, marks=pytest.mark.soak), True])
def test_threads_compile_tune_and_launch_at_once(recording: bool, modules: list[Any], tmp_path: Path) -> None:
    writer, x = store.create(tmp_path, INFO) if recording else None, torch.rand(128)

    def work(thread: int) -> None:
        for i in range(thread, KERNELS, THREADS):
            plain, tuned, shared = torch.zeros(3, 128)
            getattr(modules[i], f"kernel_{i}")[(2,)](x, plain, 128, BLOCK=64)
            modules[i].tuned[lambda meta: (triton.cdiv(128, meta["BLOCK"]),)](x, tuned, 128)
            modules[0].kernel_0[(8,)](x, shared, 128, BLOCK=16)  # the same kernel from all of them

            torch.testing.assert_close(plain, expected(x, i, 64))
            torch.testing.assert_close(tuned, expected(x, i, 32))
            torch.testing.assert_close(shared, expected(x, 0, 16))

    with gpu(writer):
        at_once(work)

    if writer is not None:
        _check_recorded(store.Run(writer.path))


def _check_recorded(run: store.Run) -> None:
    launches = list(run.launches())
    assert [one.index for one in launches] == list(range(3 * KERNELS))
    for i in range(1, KERNELS):
        mine = [one for one in launches if one.kernel_name == f"kernel_{i}"]
        assert [(one.grid[0], one.finished, _left(one) != "") for one in mine] == [
            (2, True, True),
            (4, True, True),
        ]
    compiled = {one.hash for one in run.records(Compilation)}
    assert {one.kernel.hash for one in launches} <= compiled


def _left(launch: KernelLaunch) -> str:
    after = next(arg.after for arg in launch.args if arg.name == "y_ptr")
    return after.bits if after else ""


def test_a_thread_that_tunes_does_not_keep_others_from_executing(modules: list[Any]) -> None:
    x = torch.rand(128)

    def work(thread: int) -> None:
        for n in range(100, 110):  # each a tuning key of its own
            out = torch.zeros(128)
            if thread % 2:  # an Autotuner is not for two threads
                modules[thread].tuned[lambda meta: (triton.cdiv(128, meta["BLOCK"]),)](x, out, n)
            else:
                modules[1].kernel_1[(1,)](x, out, 32, BLOCK=32)
            assert out.any()

    with gpu(None):
        at_once(work)


def test_threads_compile_with_inductor_to_triton(tmp_path: Path) -> None:
    writer, x = store.create(tmp_path, INFO), torch.rand(8, 32)

    def work(thread: int) -> None:
        compiled = torch.compile(lambda x: (x * thread).exp().sum(0))

        torch.testing.assert_close(compiled(x), (x * thread).exp().sum(0))

    with gpu(writer):
        at_once(work)

    kinds = [one.kernel.kind for one in store.Run(writer.path).launches()]
    assert kinds == ["triton"] * THREADS
