"""On a GPU: times, kept tensors, a user's hash_fn, CUDA graphs and Proton."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from commands import DATA
from data.hashes import total
from handmade.records import INFO
from test_launches import added

from tracing import store
from tracing.model import KeptTensor, KernelLaunch, NotCovered
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.record.outputs import Keep, load
from tracing.upstream.torch.streams import stream_of

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def recorder(runs: Path, **options: Any) -> LaunchRecorder:
    return LaunchRecorder(store.create(runs, INFO), **options)


def run_of(recorder: LaunchRecorder) -> store.Run:
    return store.Run(recorder.writer.path)


def launches(recorder: LaunchRecorder) -> list[KernelLaunch]:
    return list(run_of(recorder).launches())


@pytest.mark.parametrize("digests", ["all", "none"])
def test_the_device_time_is_not_less_than_its_memory_takes(digests: Any, tmp_path: Path) -> None:
    x = torch.rand(1 << 26, device="cuda")  # 256 MiB, read and written: 64 µs at 8 TB/s
    with recorder(tmp_path, digests=digests, time=True) as recording:
        for _ in range(600):
            added(x)

    times = [launch.time for launch in launches(recording)]
    assert len(times) == 600
    assert min(time.device_us or 0 for time in times if time is not None) > 64


def test_the_handle_of_the_default_stream_is_that_stream() -> None:
    device = torch.device("cuda", 0)
    other = torch.cuda.Stream()

    assert stream_of(0, device).cuda_stream == 0
    assert stream_of(other.cuda_stream, device).cuda_stream == other.cuda_stream


def test_times_are_of_the_stream_of_the_launch(tmp_path: Path) -> None:
    x = torch.rand(1 << 20, device="cuda")
    with recorder(tmp_path, time=True) as recording:
        for stream in [torch.cuda.Stream(), torch.cuda.Stream()] * 3:
            with torch.cuda.stream(stream):
                added(x)

    times = [launch.time for launch in launches(recording)]
    assert len(times) == 6
    assert all(time is not None and time.device_us is not None and time.device_us > 0 for time in times)


def test_inputs_and_outputs_of_a_launch_are_kept(tmp_path: Path) -> None:
    x = torch.rand(1000, device="cuda")
    with recorder(tmp_path, keep=Keep(inputs=True)) as recording:
        y = added(x)

    run = run_of(recording)
    kept = {line.side: load(run.bytes(line.blob)) for line in run.records(KeptTensor)}
    assert torch.equal(kept["before"], x.cpu())
    assert torch.equal(kept["after"], y.cpu())


def test_a_hash_fn_runs_after_the_launch_and_leaves_no_trace(tmp_path: Path) -> None:
    x = torch.ones(1000, device="cuda")
    torch.cuda.synchronize()
    with recorder(tmp_path, hash_fn=total) as recording, torch.cuda.stream(torch.cuda.Stream()):
        added(added(x))

    first, second = launches(recording)
    assert first.hashes is not None
    assert second.hashes is not None
    assert (first.hashes.before[0], first.hashes.after) == (1000.0, {1: 2000.0})
    assert (second.hashes.before[0], second.hashes.after) == (2000.0, {1: 3000.0})


def test_a_capture_goes_through_with_everything_asked_for(tmp_path: Path) -> None:
    x = torch.rand(1000, device="cuda")
    graph = torch.cuda.CUDAGraph()
    added(x)
    with recorder(tmp_path, time=True, hash_fn=total, keep=Keep(inputs=True)) as recording:
        with torch.cuda.graph(graph):
            y = added(x)
        graph.replay()
    torch.cuda.synchronize()

    (launch,) = launches(recording)
    assert torch.equal(y, x + 1)
    assert launch.time is launch.hashes is None
    assert {gap.what for gap in run_of(recording).records(NotCovered)} == {
        "times, kept tensors and values of hash_fn of launches inside of CUDA graphs"
    }


PROTON = """
import sys
from pathlib import Path

import torch
import triton.profiler as proton
from test_launches import added
from handmade.records import INFO
from tracing import store
from tracing.record.launches.launch_recorder import LaunchRecorder

x = torch.rand(1000, device="cuda")
writer = store.create(Path(sys.argv[1]), INFO)
order, path = sys.argv[2], sys.argv[1] + "/proton"
if order == "before":
    proton.start(path, hook="triton")
with LaunchRecorder(writer):
    if order == "after":
        proton.start(path, hook="triton")
    added(added(x))
proton.finalize()
assert [launch.kernel_name for launch in store.Run(writer.path).launches()] == ["add_kernel"] * 2
"""


@pytest.mark.parametrize("order", ["before", "after"])
def test_proton_and_we_see_every_launch(order: str, tmp_path: Path) -> None:
    pytest.importorskip("triton.profiler", reason="this Triton has no Proton")
    here = Path(__file__).parent
    paths = [*map(str, (here, here.parent, here.parent.parent)), os.environ.get("PYTHONPATH", "")]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    # a process of its own: it and torch.profiler both want the GPU's one profiling interface
    done = subprocess.run(
        [sys.executable, "-c", PROTON, str(tmp_path), order], capture_output=True, text=True, env=env
    )

    assert done.returncode == 0, done.stderr
    assert "add_kernel" in (tmp_path / "proton.hatchet").read_text()


def test_ranks_that_share_a_gpu_write_one_run(tmp_path: Path) -> None:
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m"]
    command = [*launcher, "tracing", "run", str(DATA / "ranks.py"), "--rank-aware", "--keep-outputs"]
    done = subprocess.run([*command, "--runs", str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

    (path,) = store.recorded(tmp_path)
    first, second = store.Run(path).launches()
    assert first.args[0].before == second.args[0].before is not None
    assert len(list(store.Run(path).records(KeptTensor))) == 2


def test_a_program_may_replace_what_makes_tensors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original, x = torch.empty, torch.rand(1 << 10, device="cuda")

    def poisoned(*sizes: Any, **options: Any) -> torch.Tensor:
        made = original(*sizes, **options)
        return made.fill_(float("nan")) if made.is_floating_point() else made

    monkeypatch.setattr(torch, "empty", poisoned)
    with recorder(tmp_path) as recording:
        added(x)

    assert [argument.after for argument in launches(recording)[0].args if argument.after]
