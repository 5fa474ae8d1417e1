"""What speaks for one cause of a divergence or another: evidence, read in the kernel's IR and in the run.

It names what *can* make a difference of this kind, and that it is there. That it did is for a replay to show.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from tracing.analyze.divergence import Divergence
from tracing.analyze.operations import Operation, operations
from tracing.model import KernelLaunch, Winner
from tracing.store import Run

_FLOAT_ADD = re.compile(r"atomic_rmw fadd\b")
_UNMASKED_LOAD = re.compile(r"tt\.load %[\w#]+(?: \{| :|$)")  # the pointer alone: no mask behind it
_RANDOM = re.compile(
    r"::(rand|randn|randint|randperm|normal|uniform|bernoulli|dropout|native_dropout|inductor_random)"
)
_ACROSS = ("tt.dot", "tt.dot_scaled", "tt.reduce", "tt.scan", "tt.atomic_rmw")
_NAME = re.compile(r"(?:^|, )(\w+)=")  # of what differs between two launches
_TUNABLE = re.compile(r"num_warps|num_stages|num_ctas|grid|\w*BLOCK\w*|[A-Z_0-9]+")


def evidence(run: Run, found: Divergence) -> Iterator[str]:
    """What speaks for a cause, a line each; nothing if nothing does.

    run -- the one that `found.launch` is of
    """
    if found.operator is not None and _RANDOM.search(found.operator):
        yield f"{found.operator} is a random generator: is it seeded alike in both runs?"
    if found.kind == "launch":
        yield from _of_configuration(run, found)
    if found.kind == "output" and not found.may_be_unwritten:
        yield from _of_atomics(_ttir(run, found.launch))
    if found.kind == "input" and found.producer and found.producer.unwritten:
        yield from _of_loads(_ttir(run, found.launch))


def _of_configuration(run: Run, found: Divergence) -> Iterator[str]:
    different = dict.fromkeys(name for text in (found.a, found.b) for name in _NAME.findall(text))
    if given := [arg.name for arg in found.launch.args if arg.name in different]:
        yield f"the program gives it something else: {', '.join(given)}"
    elif list(different) == ["grid"]:
        yield "the grid alone differs: the same kernel, over another number of programs"
    elif not all(_TUNABLE.fullmatch(name) for name in different):
        yield "another kernel, or one that was compiled otherwise"
    else:
        tuned = any(one.kernel == found.kernel_name for one in run.records(Winner))
        freeze = f"; `tracing winners {run.path} --output FILE` freezes it for `tracing run`" if tuned else ""
        yield f"only what autotuning chooses differs: another winner{freeze}"
        if found.outputs:
            yield from _of_sums(_ttir(run, found.launch))


def float_atomics(run: Run, launch: KernelLaunch) -> int:
    """How many operations in a kernel's TTIR add floats atomically."""
    return sum(_adds_floats(one) for one in _ttir(run, launch))


def _adds_floats(operation: Operation) -> bool:
    return operation.name == "tt.atomic_rmw" and _FLOAT_ADD.search(operation.text) is not None


def _ttir(run: Run, launch: KernelLaunch) -> list[Operation]:
    blob = launch.kernel.stages.get("ttir")
    return operations(run.text(blob)) if blob else []


def _of_atomics(ir: list[Operation]) -> Iterator[str]:
    atomics = [one for one in ir if one.name in ("tt.atomic_rmw", "tt.atomic_cas")]
    adds = [one for one in atomics if _adds_floats(one)]
    if adds:
        yield f"its TTIR adds floats atomically ({len(adds)} tt.atomic_rmw fadd), in no fixed order"
    elif atomics:
        yield f"its TTIR has {len(atomics)} atomic operations: programs come in no fixed order"
    elif ir:
        yield "its TTIR has no atomic operation: do programs, or threads, race for what plain stores write?"


def _of_sums(ir: list[Operation]) -> Iterator[str]:
    counts = Counter(one.name for one in ir if one.name in _ACROSS)
    told = ", ".join(f"{count} {name}" for name, count in counts.items())
    if told:
        yield f"its TTIR combines elements ({told}): another split is another order of additions"
    elif ir:
        yield "its TTIR combines no elements: another order of additions is not the reason"


def _of_loads(ir: list[Operation]) -> Iterator[str]:
    loads = [one for one in ir if one.name == "tt.load"]
    unmasked = [one for one in loads if _UNMASKED_LOAD.search(one.text)]
    if unmasked:
        yield f"its TTIR loads without a mask in {len(unmasked)} of {len(loads)} places"
