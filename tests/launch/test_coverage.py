"""Unusual compilations and launches are recorded, or reported as not covered."""

from __future__ import annotations

import inspect
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
import torch._inductor.config as inductor
from handmade.records import INFO
from recorded.launches import add_kernel, added, read
from torch._inductor.codegen.multi_kernel import MultiKernelCall
from torch._inductor.runtime.benchmarking import benchmarker
from torch._inductor.runtime.triton_heuristics import CachingAutotuner

from tracing import store
from tracing.launch.coverage import watched
from tracing.model import NotCovered
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.virtual_gpu import virtual_gpu

needs_a_cpp_compiler = pytest.mark.skipif(
    not any(map(shutil.which, ("c++", "g++", "clang++"))), reason="no C++ compiler"
)
PACKAGE = NotCovered(
    "launches by an AOTInductor package", "torch.compile of the model that the package was made of"
)
EARLIER_GRAPHS = NotCovered(
    "graphs of a compile from before the recording, or from Inductor's cache",
    "TORCHINDUCTOR_FORCE_DISABLE_CACHES=1",
)
CPP_WRAPPER = NotCovered("launches by Inductor's C++ wrapper", "torch._inductor.config.cpp_wrapper = False")


@pytest.fixture
def gpu() -> Iterator[None]:
    torch._dynamo.reset()
    with virtual_gpu():
        yield


def recorded(runs: Path, call: Callable[[], object]) -> tuple[list[str], list[NotCovered]]:
    """The names of the kernels that were launched, and what was not covered."""
    writer = store.create(runs, INFO)
    with LaunchRecorder(writer):
        call()
    names = [launch.kernel_name for launch in read(writer)]
    return names, list(store.Run(writer.path).records(NotCovered))


# ---- combo kernels and multi-kernels of Inductor ----


def test_a_combo_kernel_is_recorded_once(gpu: None, tmp_path: Path) -> None:
    tensors = [torch.ones(100), torch.ones(300)]
    with inductor.patch(combo_kernels=True):
        compiled = torch.compile(lambda tensors: torch._foreach_add(tensors, 1.0))
        first, second = (recorded(tmp_path, lambda: compiled(tensors)) for _ in range(2))

    assert first == second == (["triton_for_fused_0"], [])


def test_launches_that_a_multi_kernel_measures_are_not_recorded(
    gpu: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[object] = []
    time_one = lambda self, fn, *args, **options: (tried.append(fn()), float(len(tried)))[1]  # noqa: E731
    monkeypatch.setattr(type(benchmarker), "benchmark", time_one)  # torch's needs a GPU
    measure = inspect.unwrap(MultiKernelCall.benchmark_sub_kernels)  # a virtual GPU measures nothing
    monkeypatch.setattr(MultiKernelCall, "benchmark_sub_kernels", measure)
    with inductor.patch({"triton.multi_kernel": 1}):
        compiled = torch.compile(lambda x: torch.softmax(x, -1))
        first, second = (recorded(tmp_path, lambda: compiled(torch.randn(16, 600))) for _ in range(2))

    assert len(tried) == 2
    assert first == second == (["triton_red_fused__softmax_0"], [])


def test_launches_of_the_compiler_are_not_recorded(gpu: None, tmp_path: Path) -> None:
    tried: list[object] = []
    with inductor.patch(post_grad_custom_post_pass=lambda graph: tried.append(added(torch.ones(100)))):
        names, _ = recorded(tmp_path, lambda: torch.compile(torch.sin)(torch.ones(100)))

    assert len(tried) == 1
    assert names == ["triton_poi_fused_sin_0"]


# ---- kernels compiled before the recording ----


def test_a_kernel_compiled_and_bound_before_the_recording_is_recorded(gpu: None, tmp_path: Path) -> None:
    x, y = torch.ones(64), torch.empty(64)
    compiled = torch.compile(torch.sin)
    compiled(x)
    launch = add_kernel[(1,)]
    launch(x, 64, y, 64)

    names, not_covered = recorded(tmp_path, lambda: (compiled(x), launch(x, 64, y, 64)))

    assert (names, not_covered) == (["triton_poi_fused_sin_0", "add"], [EARLIER_GRAPHS])


def test_a_compiled_kernel_that_is_launched_directly_is_recorded(gpu: None, tmp_path: Path) -> None:
    x, y = torch.ones(64), torch.empty(64)
    launch = add_kernel[(1,)](x, 64, y, 64)[(1, 1, 1)]

    assert recorded(tmp_path, lambda: launch(x, 64, y, 64)) == (["add"], [])


def test_a_launcher_taken_out_of_inductor_is_recorded_if_it_launches_through_triton(
    gpu: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[Callable[..., Any]] = []
    run = CachingAutotuner.run
    with monkeypatch.context() as patch:
        keep = lambda tuner, *args, **more: (taken.append(run.__get__(tuner)), run(tuner, *args, **more))  # noqa: E731
        patch.setattr(CachingAutotuner, "run", keep)
        torch.compile(torch.sin)(torch.ones(64))

    names, _ = recorded(tmp_path, lambda: taken[0](torch.ones(64), torch.empty(64), 64, stream=0))

    assert names == ["triton_poi_fused_sin_0"]


# ---- launches from C++ ----


@pytest.mark.soak
@needs_a_cpp_compiler
@pytest.mark.parametrize("gpu", [nullcontext, virtual_gpu])
def test_an_aot_inductor_package_is_reported_as_not_covered(gpu: Any, tmp_path: Path) -> None:
    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.sin() * 2

    exported = torch.export.export(Model(), (torch.ones(8),))
    with gpu():
        path = torch._inductor.aoti_compile_and_package(exported, package_path=str(tmp_path / "model.pt2"))
        model = torch._inductor.aoti_load_package(path)  # before recording starts
        names_and_gaps = recorded(tmp_path, lambda: [model(torch.ones(8)) for _ in range(2)])

    assert names_and_gaps == ([], [PACKAGE])


@needs_a_cpp_compiler
def test_the_cpp_wrapper_is_reported_when_it_runs_even_if_compiled_before(tmp_path: Path) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(torch.sin, options={"cpp_wrapper": True})
    compiled(torch.ones(8))
    plain = torch.compile(torch.cos)

    assert recorded(tmp_path, lambda: plain(torch.ones(8)))[1] == []
    assert recorded(tmp_path, lambda: compiled(torch.ones(8)))[1] == [CPP_WRAPPER, EARLIER_GRAPHS]


def test_patched_functions_are_restored(tmp_path: Path) -> None:
    classes = (torch._C._aoti.AOTIModelPackageLoader, torch._C._aoti.AOTIModelContainerRunnerCpu)
    before = [dict(vars(owner)) for owner in classes]
    with LaunchRecorder(store.create(tmp_path, INFO)):
        assert [dict(vars(owner)) for owner in classes] != before

    assert [dict(vars(owner)) for owner in classes] == before


def test_a_fork_is_reported_and_the_start_of_another_program_is_not() -> None:
    reported: list[str] = []
    with watched(lambda what, setting: reported.append(what)):
        subprocess.run(["true"], check=True, preexec_fn=os.getpid)
        assert reported == []

        if (child := os.fork()) == 0:
            os._exit(0)
        os.waitpid(child, 0)

    assert reported == ["launches and operators of processes that the program forks"]
