"""What recording adds to training steps on a GPU, against upstream's DebugMode.

Everything is measured in one process, interleaved with the bare step, and printed as ratios to it.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
import torch._inductor.config as inductor
import triton
from gpt2 import dynamic_step, host_bound_step, optimized_step, training_step

import tracing
from tracing import store
from tracing.environment import environment
from tracing.model import SCHEMA, RunInfo, StepSelection
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.record.launches.launch_template import DigestedArguments
from tracing.record.operator_calls import OperatorFacts
from tracing.record.outputs import Keep

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
STEPS = 10
ON_THE_GPU = Keep(memory=40 << 30, disk=0)  # all of a few steps stays there
ON_DISK = Keep(memory=4 << 30, disk=32 << 30)


class Milliseconds(NamedTuple):
    step: float  # of one step
    once: float  # of entering the context, of what is new in its first steps, and of leaving it


def milliseconds(
    step: Callable[[], None], context: AbstractContextManager[object], steps: int = STEPS, first: int = 1
) -> Milliseconds:
    torch.cuda.synchronize()
    entered = time.perf_counter()
    with context:
        for _ in range(first):  # kernels, signatures and addresses that are new to the recorder
            step()
        torch.cuda.synchronize()
        started = time.perf_counter()
        for _ in range(steps):
            step()
        torch.cuda.synchronize()
        one = (time.perf_counter() - started) / steps * 1e3
    torch.cuda.synchronize()
    return Milliseconds(one, (time.perf_counter() - entered) * 1e3 - (first + steps) * one)


def recording(
    runs: Path, digests: DigestedArguments, operators: OperatorFacts = "none", **options: Any
) -> LaunchRecorder:
    info = RunInfo(SCHEMA, "gpt2", "", (), 0, store.now(), environment("", ""))
    return LaunchRecorder(store.create(runs, info), digests, operators=operators, **options)


def upstream(hashes: bool, inputs: bool) -> ExitStack:
    from torch.utils._debug_mode import DebugMode

    stack = ExitStack()
    stack.enter_context(DebugMode())
    if hashes:
        stack.enter_context(DebugMode.log_tensor_hashes(hash_inputs=inputs))
    return stack


def outputs_of_upstream() -> ExitStack:
    from torch.utils._debug_mode import DebugMode

    stack = ExitStack()
    stack.enter_context(DebugMode())
    stack.enter_context(DebugMode.record_outputs())
    return stack


RECORDINGS: dict[str, Callable[[Path], LaunchRecorder]] = {
    "launches only": lambda runs: recording(runs, "none"),
    "launches and their times": lambda runs: recording(runs, "none", time=True),
    "digests, all": lambda runs: recording(runs, "all"),
    "as `tracing run`": lambda runs: recording(runs, "all", "writers"),
    "digests of operators": lambda runs: recording(runs, "all", "digests"),
}


@pytest.mark.parametrize("form", ["C++", "Python"])
@pytest.mark.parametrize("step", [training_step, host_bound_step, optimized_step])
def test_minima_of_seven_pairs_of_twenty_steps(
    step: Callable[[], Callable[[], None]], form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if form == "Python":
        monkeypatch.setenv("TRACING_NATIVE", "0")
    run = step()
    for _ in range(5):
        run()
    print(f"\n  {step.__name__}: known launches and operators recorded by {form}")
    for name, make in RECORDINGS.items():
        bare, recorded = [], []
        for _ in range(7):
            bare.append(milliseconds(run, nullcontext(), 20))
            recorded.append(milliseconds(run, make(tmp_path), 20, first=3))
        before, after = min(one.step for one in bare), min(one.step for one in recorded)
        once = min(one.once for one in recorded)
        ratio = f"{before:7.2f} -> {after:7.2f} ms a step  {after / before:5.2f}x"
        print(f"  {name:28} {ratio}, once {once:5.0f} ms", flush=True)


SELECTIONS = {
    "all": StepSelection(),
    "--last 50": StepSelection(last=50),
    "--last 50 --disk 2GB": StepSelection(last=50, disk=2 << 30),
    "--last 50 --until nan": StepSelection(last=50, until="nan"),
    "--every 10": StepSelection(every=10),
    "--steps 1000000:": StepSelection(start=1_000_000),
}


def test_selected_steps(tmp_path: Path) -> None:
    step = host_bound_step()

    def run() -> None:
        step()
        tracing.step()

    for _ in range(5):
        run()
    print()
    for name, steps in SELECTIONS.items():
        bare, recorded = [], []
        for _ in range(7):
            bare.append(milliseconds(run, nullcontext(), 20).step)
            recorder = recording(tmp_path, "all", "writers", steps=steps)
            recorded.append(milliseconds(run, recorder, 20, first=3).step)
        print(f"  {name:22} {min(bare):6.2f} -> {min(recorded):6.2f} ms  {min(recorded) / min(bare):5.2f}x")


def test_steps_of_lengths_that_are_new(tmp_path: Path) -> None:
    step = dynamic_step()
    lengths = iter(range(260, 1 << 20))

    def one_after_another(several: Iterable[int]) -> float:
        rest = iter(several)
        return milliseconds(lambda: step(next(rest)), nullcontext(), 9).step

    def new_and_known(context: AbstractContextManager[object]) -> tuple[float, float]:
        several = list(islice(lengths, 10))
        with context:
            step(next(lengths))
            return one_after_another(several), one_after_another(several)

    for name, make in RECORDINGS.items():
        pairs = [(new_and_known(nullcontext()), new_and_known(make(tmp_path))) for _ in range(3)]
        for i, kind in enumerate(("new lengths", "known lengths")):
            before, after = (min(pair[side][i] for pair in pairs) for side in (0, 1))
            print(
                f"  {name:28} {kind:13} {before:6.1f} -> {after:6.1f} ms  {after / before:5.2f}x", flush=True
            )


def test_a_graphed_step(tmp_path: Path) -> None:
    def minimum(context: AbstractContextManager[object]) -> float:
        torch._dynamo.reset()
        with context:  # it sees the capture
            step = host_bound_step("reduce-overhead")
            for _ in range(6):
                step()
            return min(milliseconds(step, nullcontext(), 20).step for _ in range(7))

    bare = minimum(nullcontext())
    print(f"\n  under CUDA graphs, bare {bare:.2f} ms a step")
    for name in ("launches only", "digests, all", "as `tracing run`", "digests of operators"):
        print(f"  {name:28} {minimum(RECORDINGS[name](tmp_path)) / bare:5.2f}x", flush=True)
    print(f"  {'bare, at the end':28} {minimum(nullcontext()) / bare:5.2f}x")


def test_a_training_step_recorded(tmp_path: Path) -> None:
    step = training_step()
    for _ in range(5):
        step()
    cases: dict[str, tuple[Callable[[], AbstractContextManager[object]], int]] = {
        "off (imported)": (nullcontext, STEPS),
        "metadata": (lambda: recording(tmp_path / "metadata", "none"), STEPS),
        "digests, declared": (lambda: recording(tmp_path / "declared", "declared"), STEPS),
        "digests, all": (lambda: recording(tmp_path / "all", "all"), STEPS),
        "digests, all, and operators": (lambda: recording(tmp_path / "operators", "all", "writers"), STEPS),
        "metadata and times": (lambda: recording(tmp_path / "times", "none", time=True), STEPS),
        "outputs kept, on the GPU": (lambda: recording(tmp_path / "kept", "none", keep=ON_THE_GPU), 3),
        "outputs kept, written to disk": (lambda: recording(tmp_path / "disk", "none", keep=ON_DISK), 1),
        "upstream, outputs kept": (outputs_of_upstream, 1),
        "upstream DebugMode": (lambda: upstream(False, False), 3),
        "upstream, output hashes": (lambda: upstream(True, False), 2),
        "upstream, input and output hashes": (lambda: upstream(True, True), 2),
    }
    print()
    for name, (context, steps) in cases.items():
        pairs = []
        for _ in range(3):
            bare = milliseconds(step, nullcontext(), steps).step
            pairs.append((bare, milliseconds(step, context(), steps).step))
        ratio = statistics.median(with_ / bare for bare, with_ in pairs)
        bare, with_ = pairs[-1]
        print(f"  {name:36} {bare:7.2f} -> {with_:8.2f} ms a step  {ratio:6.2f}x", flush=True)
    for kind in ("metadata", "declared", "all"):
        print(f"  {kind:10} {bytes_a_launch(tmp_path / kind)}")


def test_a_training_step_traced_by_tritonparse(tmp_path: Path) -> None:
    tritonparse = pytest.importorskip("tritonparse.structured_logging", reason="tritonparse is not installed")
    runtime = triton.knobs.runtime
    hooks = (runtime.launch_enter_hook, runtime.jit_post_compile_hook)
    bare = training_step()
    bare()
    tritonparse.init(str(tmp_path), enable_trace_launch=True)
    torch._dynamo.reset()
    try:
        # the static launcher, which is the default, calls no hook: nothing would be traced
        with inductor.patch(use_static_cuda_launcher=False, force_disable_caches=True, compile_threads=1):
            traced = training_step()
            traced()
            with_ = milliseconds(traced, nullcontext(), 3).step
    finally:
        tritonparse.clear_logging_config()
        runtime.launch_enter_hook, runtime.jit_post_compile_hook = hooks
    without = milliseconds(bare, nullcontext()).step
    lines = [line for path in tmp_path.glob("*.ndjson") for line in path.read_text().splitlines()]
    sizes = [len(line) for line in lines if '"event_type":"launch"' in line]
    print(f"\n  {'tritonparse':36} {without:7.2f} -> {with_:8.2f} ms a step  {with_ / without:6.2f}x")
    print(f"  {len(sizes)} launches, {sum(sizes) / max(1, len(sizes)):.0f} bytes a launch")


def bytes_a_launch(runs: Path) -> str:
    run = store.Run(store.recorded(runs)[-1])
    launches = sum(1 for _ in run.launches())
    size = sum(path.stat().st_size for path in run.path.glob("*.ndjson*"))
    return f"{launches} launches, {size / launches:.0f} bytes a launch"


def test_digest_bandwidth() -> None:
    from triton.testing import do_bench

    from tracing.digest.gpu import StreamDigests
    from tracing.digest.tables import TableRow, calls, tables

    digests = StreamDigests(torch.device("cuda", 0), torch.cuda.current_stream().cuda_stream, lambda *_: None)
    floats = torch.rand(1 << 28, device="cuda")
    copy = torch.empty_like(floats)
    best = do_bench(lambda: torch.hash_tensor(floats), return_mode="median")
    read = do_bench(lambda: copy.copy_(floats), return_mode="median") / 2
    print(
        f"\n  1 GiB: a copy reads {2**30 / read / 1e6:.0f} GB/s, torch.hash_tensor {2**30 / best / 1e6:.0f}"
    )
    for dtype in (torch.uint8, torch.float32, torch.bfloat16, torch.float64):
        size = (1 << 30) // dtype.itemsize
        tensor = (torch.rand(size, device="cuda") * 100).to(dtype)
        todo = calls(tables([TableRow.of(tensor)]), [tensor.data_ptr()])
        batch, slot = digests.reserve(1)
        time_ms = do_bench(lambda: digests.add(batch, slot, todo), return_mode="median")  # noqa: B023
        print(f"  {dtype}: {2**30 / time_ms / 1e6:.0f} GB/s, {best / time_ms:.2f} of torch.hash_tensor")
