"""Run torch.compile up to a stage, without some of its steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

from tracing.program.compile_steps import CompileSteps
from tracing.upstream.inductor.compiler_bisector import subsystems_asked
from tracing.upstream.inductor.compiler_switches import (
    OF_AUTOGRAD,
    OF_CODE,
    OF_DYNAMO,
    OF_GRAPHS,
    switches_asked,
)
from tracing.upstream.inductor.generated_kernels import KernelWritten, kernels_written
from tracing.upstream.inductor.graph_passes import PATTERN_LOWERINGS, graph_changes_asked
from tracing.upstream.inductor.graph_stages import (
    AOT,
    DECOMPOSED,
    EAGER,
    INDUCTOR,
    JOINED,
    POST_GRAD_GRAPH,
    graphs_compiled,
)
from tracing.upstream.inductor.scheduling import scheduling_asked
from tracing.upstream.torch.program_backends import backends_asked

_SWITCHES: Mapping[str, Sequence[str]] = {  # the settings that first matter at a stage
    EAGER: [OF_DYNAMO],
    AOT: [OF_AUTOGRAD],
    DECOMPOSED: [OF_AUTOGRAD],
    JOINED: [OF_AUTOGRAD, OF_GRAPHS],
    POST_GRAD_GRAPH: [OF_GRAPHS],
    INDUCTOR: [OF_CODE],
}


@contextmanager
def partly_compiled(stage: str, steps: CompileSteps, written: KernelWritten) -> Iterator[None]:
    """While active, torch.compile compiles up to a stage, and makes the steps that `steps` allows.

    stage   -- one of tracing.upstream.inductor.graph_stages
    written -- is called for each Triton kernel that Inductor writes
    """
    if stage == POST_GRAD_GRAPH:  # ATen cannot execute a lowering
        steps.first = {**steps.first, PATTERN_LOWERINGS: 0}
    with ExitStack() as stack:
        stack.enter_context(switches_asked(list(_SWITCHES[stage]), steps))
        stack.enter_context(graphs_compiled(stage, steps))
        stack.enter_context(backends_asked(steps))
        stack.enter_context(subsystems_asked(steps))
        stack.enter_context(graph_changes_asked(steps))
        stack.enter_context(scheduling_asked(steps))
        stack.enter_context(kernels_written(written))
        yield
