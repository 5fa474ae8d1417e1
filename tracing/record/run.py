"""Run a case under the recording hooks, and say whether it agrees with eager.

The workload is built twice from one seed: once for eager, once for torch.compile, whose launches are
recorded. On a GPU the kernels run on it; without one they run on the virtual GPU.
"""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, TypeAlias

import torch
import torch._inductor.config as inductor
from torch.utils._pytree import tree_flatten

from tracing.case import build, describe
from tracing.environment import environment, fresh_caches, local_rank
from tracing.errors import Problem
from tracing.model import Case, Compilation, Environment, Kernel, NotCovered, Outcome, Result, Workload
from tracing.record.derive import derive
from tracing.record.digest import digest
from tracing.record.launches import LaunchRecorder
from tracing.record.passes import PassRecorder
from tracing.record.winners import Winners
from tracing.record.workers import recorded_in_workers
from tracing.store import Run, RunWriter
from tracing.virtual_gpu import parse_target, self_test, virtual_gpu

_COMPILING = "compiling and running"
_NOTHING = contextlib.nullcontext()
PassIRWhen: TypeAlias = Literal["after", "during"]


class Device:
    """Where a case runs: `type` is what tensors are made on, `environment` describes it."""

    def __init__(self, target: str) -> None:
        """Choose the GPU if there is one, else a virtual GPU that compiles for `target`."""
        self.target = target
        self.virtual = not torch.cuda.is_available()
        if not self.virtual:
            torch.cuda.set_device(local_rank() % torch.cuda.device_count())  # ranks may share a GPU
        self.type = "cpu" if self.virtual else "cuda"
        self.caches: Callable[[], contextlib.AbstractContextManager[object]] = (
            fresh_caches  # what surrounds the work: empty caches, and no trace of them later
        )
        wanted = parse_target(target)
        if self.virtual:
            self.name, self.compiled_for = "virtual GPU", f"{wanted.backend}:{wanted.arch}"
        else:
            self.name = torch.cuda.get_device_name()
            self.compiled_for = _gpu_target()

    def environment(self) -> Environment:
        """Versions, device and knobs of a run on this device."""
        return environment(self.name, self.compiled_for)

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        """While active, torch.compile makes Triton kernels that run on this device and can be recorded."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.caches())
            if self.virtual:
                stack.enter_context(virtual_gpu(self.target))
            # launches out of CUDA graphs and out of C++ pass no Python, and so no hook
            stack.enter_context(inductor.patch({"triton.cudagraphs": False, "cpp_wrapper": False}))
            torch._dynamo.reset()  # code compiled before, without the hooks, must not be reused
            yield


def _gpu_target() -> str:
    if torch.version.hip:
        return f"hip:{torch.cuda.get_device_properties(0).gcnArchName}"
    major, minor = torch.cuda.get_device_capability()
    return f"cuda:{10 * major + minor}"


def record(
    case: Case,
    device: Device,
    seed: int,
    recorder: LaunchRecorder,
    writer: RunWriter,
    progress: Callable[[str], None],
    passes: PassIRWhen | None = "after",
    winners: Winners | None = None,
    beside: contextlib.AbstractContextManager[object] = _NOTHING,
) -> Outcome:
    """Record one case into a run and return how it ended; the outcome is in the run as well.

    recorder -- entered while the compiled workload runs; it and this function write to `writer`
    passes   -- record the compiler passes of every kernel compiled for the case, in eager too, and their IR
                "during" each pass or "after" the case (`tracing.record.derive`); None: no passes
    winners  -- what autotuners are to take, entered while the case runs; None: what they find
    beside   -- entered around `recorder`

    A case that raises leaves a readable run with status "failed". An interruption is written down, then
    raised again.
    """
    stages: list[str] = []

    def reached(stage: str) -> None:
        stages.append(stage)
        progress(stage)

    try:
        with winners or Winners(writer), _passes(writer, passes) if passes else contextlib.nullcontext():
            outcome = _compared(case, device, seed, recorder, beside, writer, reached)
    except Problem as problem:
        writer.append(Outcome("failed", problem.problem))
        raise
    except Exception as error:
        outcome = Outcome("failed", describe(error, case.path), traceback.format_exc())
        if device.virtual and _COMPILING in stages:  # which rests on private parts of torch and Triton
            progress("failed; testing the virtual GPU itself")
            for line in self_test():
                what = f"this case: the virtual GPU is off ({line})"
                writer.append(NotCovered(what, "versions of torch and Triton in scripts/pins.toml"))
    except BaseException as error:
        writer.append(Outcome("failed", f"interrupted by {type(error).__name__}"))
        raise
    writer.append(outcome)
    if passes:
        derive(writer.path, writer.rank, lambda done, of: progress(f"IR of passes: {done} of {of} kernels"))
    return outcome


def _compared(
    case: Case,
    device: Device,
    seed: int,
    recorder: LaunchRecorder,
    beside: contextlib.AbstractContextManager[object],
    writer: RunWriter,
    progress: Callable[[str], None],
) -> Outcome:
    with device.active():
        progress("running in eager")
        expected = results_of(built(case, device, seed), seed, lambda fn: fn)
        progress(_COMPILING)
        workload = built(case, device, seed)
        with beside, recorder:
            actual = results_of(workload, seed, torch.compile)
        _write_results(actual, writer)
        progress(f"launches recorded: {recorder.recorded} of {recorder.count}")
        if recorder.count == 0:
            writer.append(NotCovered("this case: it launched no kernel", "a case that torch.compile lowers"))
    return judged(actual, expected)


def _write_results(results: Mapping[str, torch.Tensor], writer: RunWriter) -> None:
    for name, result in results.items():
        try:
            writer.append(Result(name, digest(result)))
        except (RuntimeError, NotImplementedError, TypeError) as error:  # sparse, or a subclass without bits
            writer.append(NotCovered(f"the bits of {name} ({str(error).splitlines()[0]})", "none"))


@contextlib.contextmanager
def _passes(writer: RunWriter, when: PassIRWhen) -> Iterator[None]:
    during = when == "during"
    with PassRecorder(writer, print_ir=during), recorded_in_workers(writer, print_ir=during):
        yield
    run = Run(writer.path)
    compiled = {compilation.hash for compilation in run.records(Compilation)}
    for kernel in run.records(Kernel):
        if kernel.kind == "triton" and kernel.hash not in compiled:
            what = f"the compiler passes of {kernel.name}: it was compiled before the run"
            writer.append(NotCovered(what, "a process that has not launched it yet"))


def built(case: Case, device: Device, seed: int) -> Workload:
    """A case's workload from one seed: equal each time it is built."""
    torch.manual_seed(seed)
    return build(case, device.type)


def results_of(workload: Workload, seed: int, compiler: Callable[[Any], Any]) -> dict[str, torch.Tensor]:
    """The outputs of a workload, and the gradients of every leaf that wants one, by name."""
    torch.manual_seed(seed)
    outputs = _tensors(compiler(workload.fn)(*workload.args, **workload.kwargs))
    results = {f"output {i}": output for i, output in enumerate(outputs)}
    if workload.backward:
        torch.autograd.backward([o.sum() for o in outputs if o.requires_grad])
        results |= {f"grad of {name}": leaf.grad for name, leaf in _leaves(workload) if leaf.grad is not None}
    return {name: tensor.detach() for name, tensor in results.items()}


def _leaves(workload: Workload) -> list[tuple[str, torch.Tensor]]:
    inputs = _tensors((workload.args, workload.kwargs))
    named = [(f"input {i}", tensor) for i, tensor in enumerate(inputs)]
    if isinstance(workload.fn, torch.nn.Module):
        named += list(workload.fn.named_parameters())
    return [(name, tensor) for name, tensor in named if tensor.requires_grad and tensor.is_leaf]


def _tensors(tree: object) -> list[torch.Tensor]:
    return [leaf for leaf in tree_flatten(tree)[0] if isinstance(leaf, torch.Tensor)]


def judged(actual: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> Outcome:
    """Whether results agree with those of eager, within torch.testing.assert_close's tolerances."""
    if actual.keys() != expected.keys():
        return Outcome("differs", f"compiled gives {sorted(actual)}, eager gives {sorted(expected)}")
    for name, tensor in actual.items():
        try:
            torch.testing.assert_close(tensor, expected[name], equal_nan=True)
        except AssertionError as error:
            return Outcome("differs", f"{name}: {' '.join(str(error).split())}")
    if not actual:
        return Outcome("passed", "it returns no tensor and has no gradient: nothing was compared with eager")
    return Outcome(
        "passed",
        "the result agrees with eager" if len(actual) == 1 else f"all {len(actual)} results agree with eager",
    )
