"""Inductor's decisions between lowering and code generation: fusion, loops, reuse of buffers."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from torch._inductor.codegen import wrapper
from torch._inductor.scheduler import Scheduler, SchedulerNode

from tracing.upstream.contract import require, require_methods, require_parameters
from tracing.upstream.inductor.compile_steps import StepChoice, origins_of
from tracing.upstream.patch import Method, patched

FUSION, LOOP_ORDER, MERGED_LOOPS = "fusion", "loop reordering", "merged loops"
IN_PLACE, REUSE = "in-place updates", "reuse of buffers"
_PAIR = " + "


@contextmanager
def scheduling_asked(steps: StepChoice) -> Iterator[None]:
    """While active, each fusion, reordered or merged loop, and reuse of a buffer is a step."""
    deciding: list[Any] = []  # the node whose in-place update is being decided
    patches: tuple[tuple[Any, str, Any], ...] = (
        (Scheduler, "can_fuse", _can_fuse),
        (Scheduler, "fuse_two_nodes", _fuse),
        (SchedulerNode, "reorder_loops_by_dep_pair", _reorder),
        (SchedulerNode, "merge_loops", _merge),
        (wrapper.AllocateLine, "should_reuse_buffer", _reuse),
    )
    with ExitStack() as stack:
        for owner, name, around in patches:
            stack.enter_context(patched(owner, name, functools.partial(around, steps)))
        decide = functools.partial(_decide, deciding)
        decider = next(one for one in SchedulerNode.__mro__ if "decide_inplace_update" in vars(one))
        stack.enter_context(patched(decider, "decide_inplace_update", decide))
        match = functools.partial(_match, steps, deciding)
        stack.enter_context(patched(wrapper, "can_match_buffer_size", match))
        yield


def _can_fuse(steps: StepChoice, original: Method) -> Method:
    def can_fuse(scheduler: Any, a: Any, b: Any, *args: Any, **options: Any) -> Any:
        return _may_fuse(steps, _operations(a), _operations(b)) and original(
            scheduler, a, b, *args, **options
        )

    return can_fuse


def _fuse(steps: StepChoice, original: Method) -> Method:
    def fuse(scheduler: Any, a: Any, b: Any, *args: Any, **options: Any) -> Any:
        label = _PAIR.join(",".join(sorted(_operations(one))) for one in (a, b))
        names = [origins_of(one) for one in (a, b)]
        detail = " with ".join(", ".join(one) for one in names)
        steps.make(FUSION, label, detail=detail, nodes=[*names[0], *names[1]])
        return original(scheduler, a, b, *args, **options)

    return fuse


def _may_fuse(steps: StepChoice, a: set[str], b: set[str]) -> bool:
    if not steps.open(FUSION):
        return False
    only = steps.only(FUSION)
    if only is not None and not any(a | b <= set.union(*_sides(label)) for label in only):
        return False
    left_out = map(_sides, steps.left_out(FUSION))
    return not any((a & x and b & y) or (a & y and b & x) for x, y in left_out)


def _sides(label: str) -> tuple[set[str], set[str]]:
    x, y = label.split(_PAIR)
    return set(x.split(",")), set(y.split(","))


def _operations(node: Any) -> set[str]:
    return set(map(str, node.get_operation_names()))


def _reorder(steps: StepChoice, original: Method) -> Method:
    def reorder(node: Any, *args: Any, **options: Any) -> Any:
        make = steps.make(LOOP_ORDER, node.get_name(), nodes=origins_of(node))
        return original(node, *args, **options) if make else False

    return reorder


def _merge(steps: StepChoice, original: Method) -> Method:
    def merge(node: Any) -> None:
        if steps.make(MERGED_LOOPS, node.get_name(), nodes=origins_of(node)):
            original(node)

    return merge


def _decide(deciding: list[Any], original: Method) -> Method:
    def decide(node: Any) -> None:
        deciding.append(node)
        try:
            original(node)
        finally:
            deciding.pop()

    return decide


def _match(steps: StepChoice, deciding: list[Any], original: Method) -> Method:
    def match(a: Any, b: Any) -> Any:
        if not original(a, b):
            return False
        if not deciding:
            return True
        label = f"{b.get_name()} in the memory of {a.get_name()}"
        return steps.make(IN_PLACE, label, nodes=origins_of(deciding[-1]))

    return match


def _reuse(steps: StepChoice, original: Method) -> Method:
    def should_reuse(line: Any, free: Any, *args: Any, **options: Any) -> Any:
        label = f"{line.node.get_name()} in the memory of {free.node.get_name()}"
        nodes = sorted(one.name for one in getattr(line.node, "origins", ()))
        return original(line, free, *args, **options) and steps.make(REUSE, label, nodes=nodes)

    return should_reuse


def contract() -> None:
    """Raise Broken or another error if torch has changed what this file relies on."""
    require_methods(Scheduler, "can_fuse", "fuse_two_nodes")
    require_parameters(Scheduler.fuse_two_nodes, "node1", "node2")
    require_methods(SchedulerNode, "reorder_loops_by_dep_pair", "merge_loops")
    require_methods(wrapper.AllocateLine, "should_reuse_buffer")
    require(callable(wrapper.can_match_buffer_size), "wrapper.can_match_buffer_size")
    require(hasattr(SchedulerNode, "decide_inplace_update"), "SchedulerNode.decide_inplace_update")
