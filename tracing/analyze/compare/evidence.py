"""Finds evidence for the cause of a divergence in the kernel's IR and in the runs.

It names what *can* cause a difference of this kind and is present. Only a replay shows that it did.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from tracing.analyze.compare.cause_kinds import Cause, Host, OperatorCause, Uninitialised
from tracing.analyze.compare.divergence_kinds import (
    Divergence,
    InputDiffers,
    LaunchDiffers,
    LaunchPair,
    OneSided,
    OutputDiffers,
)
from tracing.analyze.memory.evidence import evidence_sentence, memory_evidence
from tracing.analyze.passes.operations import PrintedOperation, operations
from tracing.analyze.runs.call_sites import only_in
from tracing.analyze.runs.equal_launches import equal_launches
from tracing.model import KernelLaunch
from tracing.store import Run

_LINES = 3  # of the program that are named
_FLOAT_ADD = re.compile(r"atomic_rmw fadd\b")
_UNMASKED_LOAD = re.compile(r"tt\.load %[\w#]+(?=\s|$)")  # a load with only a pointer, without a mask
_LOAD_WITHOUT_OTHER = re.compile(r"tt\.load %[\w#]+, %[\w#]+(?=\s|$)")  # with a mask
_RANDOM = re.compile(
    r"::(rand|randn|randint|randperm|normal|uniform|bernoulli|dropout|native_dropout|inductor_random)"
)
_ACROSS = ("tt.dot", "tt.dot_scaled", "tt.reduce", "tt.scan", "tt.atomic_rmw")


def evidence(runs: tuple[Run, Run], divergence: Divergence) -> Iterator[str]:
    """The evidence for a cause, one line each; empty if there is none."""
    run = runs[1] if divergence.pair.a is None else runs[0]
    yield from _outside(runs, divergence.pair)
    if isinstance(divergence, LaunchDiffers):
        if divergence.tuned and divergence.outputs:
            yield from _of_sums(_ttir(run, divergence.pair.launch))
    elif isinstance(divergence, OutputDiffers):
        if not divergence.doubt:
            ir = _ttir(run, divergence.pair.launch)
            yield from _of_atomics(ir)
            yield from _of_undefined(ir)
    elif isinstance(divergence, OneSided):
        yield from _of_lines(runs, divergence.pair)
        yield from _of_equal_launches(runs, divergence)
        if not divergence.changed:
            yield "this launch changed no memory, so no later difference follows from it"
    elif isinstance(divergence, InputDiffers):
        yield from _of_writer(runs, divergence)
        yield from _of_input(runs, divergence)


def _of_lines(runs: tuple[Run, Run], pair: LaunchPair) -> Iterator[str]:
    # the bits of several launches of a kernel may match another launch than the missing one
    side = 0 if pair.b is None else 1
    launch = pair.launch
    lines = only_in(runs[side], runs[1 - side], pair.rank, launch.kernel_name)
    if lines and launch.site not in lines:
        where = ", ".join(map(str, lines[:_LINES]))
        here, lacks = "ab"[side], "ba"[side]
        yield f"only {here} launches this kernel at {where}: {lacks} may lack that launch instead"


def _of_equal_launches(runs: tuple[Run, Run], divergence: OneSided) -> Iterator[str]:
    # the bits do not show which of them the other run lacks
    pair, side = divergence.pair, 0 if divergence.pair.b is None else 1
    first = pair.launch.index
    equal = equal_launches(runs[side], pair.rank, first)
    if equal.start < first or equal.stop > first + divergence.count:
        here, lacks = "ab"[side], "ba"[side]
        yield f"launches #{equal[0]} to #{equal[-1]} of {here} read and wrote equal bits:"
        yield f"{lacks} may lack another one of them"


def _of_writer(runs: tuple[Run, Run], divergence: InputDiffers) -> Iterator[str]:
    # memory evidence of the launch that wrote the differing buffer
    writer = getattr(divergence.cause, "writer", None)
    for name, run in zip("ab", runs, strict=True):
        launch = getattr(writer, name, None)
        for one in memory_evidence(run, divergence.pair.rank, launch) if launch is not None else ():
            yield f"in {name}, launch #{launch}: {evidence_sentence(one)}"


def _of_input(runs: tuple[Run, Run], divergence: InputDiffers) -> Iterator[str]:
    cause = divergence.cause
    if isinstance(cause, OperatorCause) and _may_draw_others(cause):
        yield f"{cause.names[0] or cause.names[1]} draws random numbers: do both runs use one seed?"
    if may_have_other_seeds(runs, divergence) and _is_of_the_program(cause):
        yield "if numpy or random drew these values: does the program seed them?"
    if isinstance(cause, Host) and _is_of_the_program(cause) and (cause.made or not cause.proven):
        yield "if they come from a file, as a checkpoint: did both runs read the same file?"
    if isinstance(cause, Uninitialised) and cause.elements is None:
        yield from _of_loads(_ttir(runs[0], divergence.pair.launch))


def may_have_other_seeds(runs: tuple[Run, Run], divergence: Divergence) -> bool:
    """True if random numbers may be the cause, and neither run was recorded with `--seed`."""
    cause = divergence.cause if isinstance(divergence, InputDiffers) else None
    unseeded = all(run.info.seed is None for run in runs)
    drawn = isinstance(cause, OperatorCause) and _may_draw_others(cause)
    return unseeded and (drawn or _is_of_the_program(cause))


def _is_of_the_program(cause: Cause | None) -> bool:
    # the program filled the tensor, perhaps with numbers that numpy or Python drew
    return isinstance(cause, Host) and not cause.writer and not cause.operator


def _may_draw_others(cause: OperatorCause) -> bool:
    return cause.runs == "ab" and not cause.draws and any(map(_RANDOM.search, cause.names))


def _outside(runs: tuple[Run, Run], pair: LaunchPair) -> Iterator[str]:
    # accesses outside of an argument, that the interpreter saw this launch make
    for name, run, launch in zip("ab", runs, (pair.a, pair.b), strict=True):
        for one in memory_evidence(run, pair.rank, launch.index) if launch else ():
            yield f"in {name}: {evidence_sentence(one)}"


def float_atomics(run: Run, launch: KernelLaunch) -> int:
    """The number of operations in a kernel's TTIR that add floats atomically."""
    return sum(_adds_floats(one) for one in _ttir(run, launch))


def _adds_floats(operation: PrintedOperation) -> bool:
    return operation.name == "tt.atomic_rmw" and _FLOAT_ADD.search(operation.text) is not None


def _ttir(run: Run, launch: KernelLaunch) -> list[PrintedOperation]:
    blob = launch.kernel.stages.get("ttir")
    return operations(run.text(blob)) if blob else []


def _of_atomics(ir: list[PrintedOperation]) -> Iterator[str]:
    atomics = [one for one in ir if one.name in ("tt.atomic_rmw", "tt.atomic_cas")]
    adds = [one for one in atomics if _adds_floats(one)]
    if adds:
        yield f"the kernel's TTIR adds floats atomically ({len(adds)} tt.atomic_rmw fadd), in no fixed order"
    elif atomics:
        count = f"{len(atomics)} atomic operation{'s' if len(atomics) > 1 else ''}"
        yield f"the kernel's TTIR has {count}: programs execute in no fixed order"
    elif ir:
        yield "the kernel's TTIR has no atomic operation: do programs or threads race in plain stores?"


def _of_undefined(ir: list[PrintedOperation]) -> Iterator[str]:
    # where a mask is false, a load without `other` gives any value, which an operation across lanes may use
    loads = [one for one in ir if one.name == "tt.load"]
    without = [one for one in loads if _LOAD_WITHOUT_OTHER.search(one.text)]
    if without and any(one.name in _ACROSS for one in ir):
        yield (
            f"{len(without)} of {len(loads)} loads in the kernel's TTIR have a mask and no `other`: "
            "does the result depend on elements that are not loaded?"
        )


def _of_sums(ir: list[PrintedOperation]) -> Iterator[str]:
    counts = Counter(one.name for one in ir if one.name in _ACROSS)
    counted = ", ".join(f"{count} {name}" for name, count in counts.items())
    if counted:
        order = "a block size sets their order, which explains a difference by rounding, and no larger one"
        yield f"the kernel's TTIR combines elements ({counted}): {order}"
    elif ir:
        yield "the kernel's TTIR combines no elements: another order of additions is not the reason"


def _of_loads(ir: list[PrintedOperation]) -> Iterator[str]:
    loads = [one for one in ir if one.name == "tt.load"]
    unmasked = [one for one in loads if _UNMASKED_LOAD.search(one.text)]
    if unmasked:
        yield f"{len(unmasked)} of {len(loads)} loads in the kernel's TTIR have no mask"
