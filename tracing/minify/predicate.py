"""The predicates of the minifier: in which respect a small graph fails.

Each predicate executes a graph in eager and compiled, from equal inputs, and returns the fields of a Trial.
"""

from __future__ import annotations

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from tracing.analyze.minify.trial import one_line
from tracing.backend.constraints.constraint import Constraint
from tracing.backend.graph_check import check_graph
from tracing.backend.node_values import nodes_of
from tracing.digest.host import digest
from tracing.errors import message
from tracing.minify.graph_results import graph_results
from tracing.minify.nonfinite import nonfinite_values
from tracing.minify.small_graph import SmallGraph
from tracing.model import Violation
from tracing.numerics.agreement import Disagreement, agreement
from tracing.numerics.referee import Referee
from tracing.program.structure import Fact, Facts
from tracing.upstream.inductor.backend_compile import aot_compiled
from tracing.upstream.inductor.config import settings_changed
from tracing.upstream.inductor.generated_kernels import kernels_written
from tracing.upstream.torch.dynamo import forget_compiled

# a fork has no workers; random numbers are eager's, so that results can be compared
SETTINGS: Mapping[str, object] = {"compile_threads": 1, "fallback_random": True}


class GraphPredicate(ABC):
    """A predicate on a graph; `key` identifies it in cache files."""

    key: str

    @abstractmethod
    def ask(self, small: SmallGraph) -> dict[str, Any]:
        """Execute a graph; returns the fields of a Trial that describe the failure: `kind`, `text`, ...

        Raises what eager raises.
        """


@dataclass(frozen=True)
class Fails(GraphPredicate):
    """Compiled, it gives other results than exact arithmetic and eager, or it raises, or the process dies."""

    key: str = "fails"

    def ask(self, small: SmallGraph) -> dict[str, Any]:
        """Let the referee judge each result."""

        def in_eager() -> Facts:
            return graph_results(small, small.module)

        def compiled() -> Facts:
            return compiled_results(small)

        expected = in_eager()
        try:
            actual = compiled()
        except (Exception, SystemExit) as error:
            return {"kind": "raises", "text": error_text(error), "error": type(error).__name__}
        one = agreement(actual, expected, Referee(in_eager, compiled, lambda stage: None))
        how = sorted({_how(each, actual, expected) for each in one.differing})
        names = [each.name for each in one.differing]
        if not names:
            return {"kind": "right", "text": one.outcome.detail}
        answer = {"kind": "differs", "text": one.outcome.detail, "how": how}
        return {**answer, **_where(small, names, actual, expected)}


@dataclass(frozen=True)
class Unstable(GraphPredicate):
    """Compiled once, repeated executions from equal inputs give different bits."""

    times: int
    key: str = field(init=False, default="unstable")

    def ask(self, small: SmallGraph) -> dict[str, Any]:
        """Compare the bits of each execution with the first."""
        expected = graph_results(small, small.module)
        forget_compiled()
        with settings_changed(dict(SETTINGS)):
            function = small.compiled()
            runs = [graph_results(small, function) for _ in range(self.times)]
        first, *others = map(_bits, runs)
        names = sorted({name for one in others for name in first if one.get(name) != first[name]})
        if not names:
            return {"kind": "right", "text": f"{self.times} executions give equal bits"}
        text = f"{', '.join(names)}: repeated executions give different bits"
        answer = {"kind": "unstable", "text": text, "how": ["bits"]}
        return {**answer, **_where(small, names, runs[0], expected)}


@dataclass(frozen=True)
class OtherKernels(GraphPredicate):
    """Inductor writes other kernels with other settings; without settings, when it compiles once more."""

    settings: Mapping[str, object]

    @property
    def key(self) -> str:  # type: ignore[override]
        """Names the settings."""
        return f"kernels {dict(sorted(self.settings.items()))}"

    def ask(self, small: SmallGraph) -> dict[str, Any]:
        """Compare the digests of the sources of all kernels, in order."""
        graph_results(small, small.module)
        a, b = _kernels(small, {}), _kernels(small, self.settings)
        if a == b:
            return {"kind": "right", "text": f"the same {len(a)} kernels"}
        names = [name for name, _ in {*a} ^ {*b}] or [name for name, _ in a]
        return {
            "kind": "other kernels",
            "text": f"other code: {', '.join(sorted(set(names)))}",
            "how": ["code"],
        }


@dataclass(frozen=True)
class Violates(GraphPredicate):
    """The ATen graphs violate a constraint."""

    constraints: Sequence[Constraint]

    @property
    def key(self) -> str:  # type: ignore[override]
        """Names the constraints."""
        return f"constraints {list(self.constraints)!r}"

    def ask(self, small: SmallGraph) -> dict[str, Any]:
        """Check forward and backward."""
        graph_results(small, small.module)
        violated = self.violations(small)
        if not violated:
            return {"kind": "right", "text": "no constraint is violated"}
        how = sorted({f"{one.constraint} {one.operator}" for one, _ in violated})
        first, _ = violated[0]
        text = f"{first.operator}: {first.found}, required: {first.required}"
        return {"kind": "violates", "text": text, "how": how, "results": [first.operator]}

    def violations(self, small: SmallGraph) -> list[tuple[Violation, torch.fx.Node]]:
        """The decided violations in forward and backward, with their nodes."""
        violated: list[tuple[Violation, torch.fx.Node]] = []

        def compiler(aten: torch.fx.GraphModule, part: str) -> Callable[..., Any]:
            nodes = dict(nodes_of(aten.graph))
            violations = check_graph(aten.graph, self.constraints).violations
            violated.extend((one, nodes[one.node]) for one in violations if one.decided)
            return lambda inputs: aten(*inputs)

        def backend(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Any:
            return aot_compiled(graph, inputs, compiler)

        forget_compiled()
        graph_results(small, torch.compile(small.module, backend=backend, dynamic=small.dynamic or None))
        return violated


def compiled_results(small: SmallGraph, settings: Mapping[str, object] = {}) -> Facts:
    """The results of the graph, compiled anew."""
    forget_compiled()
    with settings_changed({**SETTINGS, **settings}):
        return graph_results(small, small.compiled())


def error_text(error: BaseException) -> str:
    """An exception in one line: its type and the first words of its message."""
    words = one_line(message(error))
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


def _where(small: SmallGraph, names: Sequence[str], actual: Facts, expected: Facts) -> dict[str, Any]:
    # the results that fail, the nodes that they are, and the values that are not finite
    outputs = [name for name in expected if re.fullmatch(r"output \d+", name)]
    known = len(outputs) == len(small.returned)  # no node returns several tensors
    nodes = dict(zip(outputs, small.returned, strict=True)) if known else {}
    failing = [nodes[name] for name in names if name in nodes]
    return {"results": names, "failing": failing, "nonfinite": nonfinite_values(small, actual, expected)}


def _kernels(small: SmallGraph, settings: Mapping[str, object]) -> list[tuple[str, str]]:
    written: list[tuple[str, str]] = []

    def kernel(name: str, source: str, nodes: list[str]) -> None:
        written.append((name, hashlib.blake2b(source.encode()).hexdigest()))

    with kernels_written(kernel):  # a graph out of a cache has its kernels already
        compiled_results(small, {"force_disable_caches": True, **settings})
    return written


def _bits(facts: Facts) -> dict[str, object]:
    return {name: digest(one).bits if isinstance(one, torch.Tensor) else one for name, one in facts.items()}


def _how(one: Disagreement, actual: Facts, expected: Facts) -> str:
    a: Fact | None = actual.get(one.name)
    b: Fact | None = expected.get(one.name)
    if a is None or b is None:
        return "missing"
    if not (isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor)):
        return "storage"
    return "layout" if a.shape != b.shape or one.laid_out else "value"
