"""A tensor that a launch overwrites as a whole is not digested before it; a stand-in for a GPU digests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from handmade.records import INFO
from recorded.host_gpu import host_gpu
from torch._inductor.runtime.triton_heuristics import CachingAutotuner
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from tracing import store
from tracing.analyze.compare.divergence_kinds import argument_of
from tracing.analyze.compare.first_divergence import Comparison
from tracing.launch import compiled_launches, hooks
from tracing.launch.launch_site import KernelArtefacts
from tracing.launch.roles import declared
from tracing.model import KernelLaunch
from tracing.record.launches import host_launches, launch_recorder, launch_template
from tracing.record.launches.known_launches import KnownLaunches
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.record.launches.launch_template import DigestedArguments
from tracing.upstream.inductor.code import cache_dir

STEPS = 4
TYPES = {"x": "*fp32", "out": "*fp32", "n": "i32"}


@triton.jit
def double(x, out, n):
    i = tl.program_id(0) * 64 + tl.arange(0, 64)
    tl.store(out + i, 2 * tl.load(x + i, i < n), i < n)


class Site:
    kind, flat, settled, accesses = "triton", None, True, None

    def __init__(self, autotuner: Kernel) -> None:
        self.name, self.names, self.count, self.scalars = "double", ("x", "out", "n"), 3, (2,)
        self.binary, self._ttir = autotuner, autotuner.ttir

    def grid(self, values: Sequence[Any]) -> tuple[int, int, int]:
        return triton.cdiv(values[2], 64), 1, 1

    def compiled(self) -> KernelArtefacts:
        artefacts = {"ttir": self._ttir}
        roles = declared(self._ttir, TYPES)
        return KernelArtefacts("double", "cuda:90", {}, {}, artefacts, lambda: roles, types=TYPES)


class Kernel(CachingAutotuner):  # type: ignore[misc, unused-ignore]
    triton_interpret = False

    def __init__(self) -> None:
        compiled = triton.compile(ASTSource(double, TYPES, {}), target=GPUTarget("cuda", 90, 32))
        self.ttir = compiled.asm["ttir"]


Call = Callable[[torch.Tensor, torch.Tensor, int], None]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch) -> Call:
    """One launch, as a module of Inductor makes it, which the host computes."""

    def launched(kernel: Kernel, x: torch.Tensor, out: torch.Tensor, n: int, stream: int) -> None:
        out.view(-1)[:n] = 2 * x.view(-1)[:n]

    host_gpu(monkeypatch)
    monkeypatch.setattr(launch_template, "_gpu", lambda tensors: torch.device("cuda", 0))
    monkeypatch.setattr(CachingAutotuner, "run", launched)
    monkeypatch.setattr(hooks, "InductorSite", Site)
    monkeypatch.setattr(host_launches, "_interprets", lambda: False)
    monkeypatch.setattr(launch_recorder, "is_capturing", lambda: False)
    monkeypatch.setattr(KnownLaunches, "capturing", staticmethod(lambda: False))
    scope: dict[str, Any] = {"double": Kernel()}
    text = "def call(x, out, n):\n    double.run(x, out, n, stream=7)\n"
    exec(compile(text, f"{cache_dir()}/call.py", "exec"), scope)
    return scope["call"]  # type: ignore[no-any-return]


def recorded(runs: Path, program: Callable[[], None], digests: DigestedArguments = "all") -> store.Run:
    with LaunchRecorder(store.create(runs, INFO), digests, operators="none", graphs=False) as recorder:
        program()
    return store.Run(recorder.writer.path)


def repeated(call: Call, *args: Any) -> Callable[[], None]:
    return lambda: [call(*args) for _ in range(STEPS)] and None


def digested(launch: KernelLaunch) -> list[tuple[bool, bool]]:
    return [(arg.before is not None, arg.after is not None) for arg in launch.args if arg.tensor]


@pytest.mark.parametrize("native", [False, True], ids=["python", "native"])
def test_an_output_that_is_overwritten_has_no_digest_before(
    native: bool, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not native:
        monkeypatch.setattr(compiled_launches, "wrapper", lambda: None)
    run = recorded(tmp_path, repeated(call, torch.rand(10, 10), torch.rand(10, 10), 100))

    launches = list(run.launches())
    assert [digested(launch) for launch in launches] == [[(True, True), (False, True)]] * STEPS
    assert all(launch.args[1].modified for launch in launches)


def test_an_output_that_is_written_in_part_is_digested_before(call: Call, tmp_path: Path) -> None:
    run = recorded(tmp_path, repeated(call, torch.rand(10, 10), torch.rand(10, 10), 99))

    assert [digested(launch) for launch in run.launches()] == [[(True, True), (True, True)]] * STEPS


def test_tensors_of_one_storage_are_digested_before(call: Call, tmp_path: Path) -> None:
    both = torch.rand(20, 10)
    run = recorded(tmp_path, repeated(call, both[:10], both[10:], 100))

    assert [digested(launch) for launch in run.launches()] == [[(True, True), (True, True)]] * STEPS


@pytest.mark.parametrize("digests", ["declared", "none"])
def test_fewer_digests_stay_as_they_are(digests: Any, call: Call, tmp_path: Path) -> None:
    run = recorded(tmp_path, repeated(call, torch.rand(10, 10), torch.rand(10, 10), 99), digests)

    wanted = digests == "declared"
    assert [digested(launch) for launch in run.launches()] == [[(wanted, wanted), (False, wanted)]] * STEPS


def test_what_an_overwritten_output_held_before_is_no_difference(call: Call, tmp_path: Path) -> None:
    x = torch.rand(10, 10)
    a = recorded(tmp_path / "a", repeated(call, x, torch.zeros(10, 10), 100))
    b = recorded(tmp_path / "b", repeated(call, x, torch.ones(10, 10), 100))
    c = recorded(tmp_path / "c", repeated(call, x + 1, torch.zeros(10, 10), 100))

    assert list(Comparison(a, b)) == []
    assert [argument_of(one) for one in Comparison(a, c)] == ["x"]
