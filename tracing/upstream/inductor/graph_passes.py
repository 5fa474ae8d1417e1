"""Graph changes beyond torch's CompilerBisector: replaced patterns, reinplaced operators, passes."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from torch._inductor import pattern_matcher
from torch._inductor.fx_passes import joint_graph, pre_grad, reinplace

from tracing.upstream.contract import require, require_methods, require_parameters
from tracing.upstream.inductor.compile_steps import StepChoice, node_text, target_text
from tracing.upstream.inductor.compiler_bisector import JOINT, PRE_GRAD
from tracing.upstream.patch import Method, patched, replaced

PATTERNS, PATTERN_LOWERINGS, REINPLACING = "patterns", "lowerings of patterns", "reinplacing"

# Functions that graph passes call outside of torch's observer; each returns its argument,
# or a count of changes.
_PASSES: tuple[tuple[str, Any, str, Callable[..., Any]], ...] = (
    (PRE_GRAD, pre_grad, "fuse_fx", lambda graph, *args: graph),
    (JOINT, joint_graph, "canonicalize_aten_ir_passes", lambda *args: None),
    (JOINT, joint_graph, "replace_random_passes", lambda *args: 0),
)


@contextmanager
def graph_changes_asked(steps: StepChoice) -> Iterator[None]:
    """While active, each replaced pattern, reinplaced operator and unobserved pass is a step."""
    with ExitStack() as stack:
        for part, module, name, nothing in _PASSES:
            stack.enter_context(patched(module, name, functools.partial(_pass, steps, part, name, nothing)))
        for kind, part in _entries():
            stack.enter_context(patched(kind, "apply", functools.partial(_pattern, steps, part)))
        asked = {target: _reinplaced(steps, one) for target, one in reinplace.inplaceable_ops.items()}
        stack.enter_context(replaced(reinplace, "inplaceable_ops", asked))
        yield


def _entries() -> Iterator[tuple[type, str]]:
    yield pattern_matcher.GraphPatternEntry, PATTERNS
    yield pattern_matcher.ReplacementPatternEntry, PATTERNS
    yield pattern_matcher.LoweringPatternEntry, PATTERN_LOWERINGS


def _pass(steps: StepChoice, part: str, name: str, nothing: Method, original: Method) -> Method:
    def run(*args: Any, **options: Any) -> Any:
        return original(*args, **options) if steps.make(part, name) else nothing(*args)

    return run


def _pattern(steps: StepChoice, part: str, original: Method) -> Method:
    def apply(entry: Any, match: Any, graph: Any, node: Any) -> None:
        name = _pattern_name(entry)
        if steps.make(part, f"{name} at {node.name}", kind=name, detail=node_text(node), nodes=[node.name]):
            original(entry, match, graph, node)

    return apply


def _pattern_name(entry: Any) -> str:
    handler = getattr(entry, "handler", None)
    if handler is None:  # the pattern and its replacement are two functions in a closure
        check = entry.extra_check
        inside = inspect.getclosurevars(check).nonlocals if inspect.isfunction(check) else {}
        handler = inside.get("replace_fn", entry)
    while isinstance(handler, functools.partial):
        handler = handler.func
    return str(getattr(handler, "__name__", type(handler).__name__))


def _reinplaced(steps: StepChoice, operator: Any) -> Any:
    def check(node: Any) -> bool:
        return operator.extra_check(node) and steps.make(
            REINPLACING, node.name, kind=target_text(node), detail=node_text(node), nodes=[node.name]
        )

    return dataclasses.replace(operator, extra_check=check)


def contract() -> None:
    """Raise Broken or another error if torch has changed what this file relies on."""
    for kind, _ in _entries():
        require_methods(kind, "apply")
        require_parameters(vars(kind)["apply"], "match", "graph", "node")
    for _, module, name, _ in _PASSES:
        require(callable(vars(module).get(name)), f"{module.__name__}.{name}")
    operator = next(iter(reinplace.inplaceable_ops.values()))
    require(callable(operator.extra_check), "a check of each operator that is reinplaced")
