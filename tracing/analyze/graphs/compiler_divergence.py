"""Find the first stage at which two compilers diverge on one case, from Dynamo's graph to the IR of a kernel.

The stages are compared in the order in which a compiler runs them: the graphs with each of their passes, then
which kernels are generated from them, then the source of each kernel, then its IR after each pass of Triton.
A stage is reported if its output differs and the texts stay different up to the last stage. Values are not
compared, so the program need not be deterministic.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tracing.analyze.graphs.graph_chains import Chain, ChainPair, chain_pair, chains
from tracing.analyze.graphs.graph_names import alike, kernel_body
from tracing.analyze.passes.compilation_pairs import paired
from tracing.analyze.passes.compilations import compilations
from tracing.analyze.passes.pass_pairs import PassPairs
from tracing.analyze.passes.pass_table import passes_of
from tracing.analyze.passes.renaming import renamed
from tracing.analyze.runs.outcomes import outcome_of
from tracing.model import Compilation, Kernel, Outcome
from tracing.store import Run

# a frame of a traceback that lies in Inductor's graph passes: file, line, function
_GRAPH_PASS = re.compile(r'fx_passes/(?:\w+/)*(\w+\.py)", line (\d+), in (\w+)')
CompilerDivergenceKind: TypeAlias = Literal["stopped", "graph", "graphs", "kernels", "source", "ir"]


@dataclass(frozen=True, slots=True)
class CompilerDivergence:
    """A stage whose output in b differs from that in a."""

    kind: CompilerDivergenceKind
    where: str  # "graph 0/0 forward", "kernel triton_poi_fused_add_0"
    stage: str  # "joint pass remove_noop_ops", "ttgir pass tritongpu-coalesce"
    # the IR of a and of b after it, with b's values renamed as in a; "stopped": the IR before it
    texts: tuple[str, str]
    only: Literal["a", "b"] | None = None  # the compiler that has this pass


@dataclass(frozen=True, slots=True)
class ComparedStage:
    """One graph or kernel of both runs."""

    where: str
    stages: int
    divergence: CompilerDivergence | None
    transient: str = ""  # the first stage after which the two differed for a while


@dataclass(frozen=True, slots=True)
class TwoCompilers:
    """The compared stages of two runs, in the order of the compilers, with the divergence of each."""

    outcomes: tuple[Outcome | None, Outcome | None]
    compared: Sequence[ComparedStage]

    def divergences(self) -> list[CompilerDivergence]:
        """Every divergence, the first one first."""
        return [one.divergence for one in self.compared if one.divergence is not None]


def two_compilers(a: Run, b: Run) -> TwoCompilers:
    """Compare two runs of one case that were recorded with `tracing run --graph-passes`.

    Cost: one comparison for each graph pass and each pass of Triton whose texts differ, some milliseconds.
    """
    return TwoCompilers((_outcome(a), _outcome(b)), [*_graphs(a, b), *_kernels(a, b)])


def _outcome(run: Run) -> Outcome | None:
    return outcome_of(run, 0)


def _graphs(a: Run, b: Run) -> Iterator[ComparedStage]:
    of_a, of_b = chains(a), chains(b)
    traced = tuple("\n".join(_traced(side)) + "\n" for side in (of_a, of_b))
    if traced[0] != traced[1]:
        yield ComparedStage(
            "the graphs", 1, CompilerDivergence("graphs", "the case", "Dynamo", (traced[0], traced[1]))
        )
    others = {one.label: one for one in of_b}
    for one in of_a:
        if one.label in others:
            yield _graph(a, b, one, others[one.label])


def _traced(side: Sequence[Chain]) -> dict[str, None]:
    return dict.fromkeys(f"graph {one.compile_id}" for one in side)


def _graph(a: Run, b: Run, one: Chain, other: Chain) -> ComparedStage:
    pair = chain_pair(one, other, a.text, b.text)
    transient = pair.transient()
    return ComparedStage(
        one.label, len(pair.pairs), _graph_divergence(a, b, pair), transient.label if transient else ""
    )


def _graph_divergence(a: Run, b: Run, pair: ChainPair) -> CompilerDivergence | None:
    step = pair.stopped()
    if step is not None:
        entered = a.text(step.texts[0])
        return CompilerDivergence(
            "stopped", pair.a.label, step.label + _raised_in(_outcome(a)), (entered, entered)
        )
    step = pair.divergence()
    if step is None:
        return None
    texts = alike(a.text(step.texts[0]), b.text(step.texts[1]))
    return CompilerDivergence(
        "graph", pair.a.label, step.label, texts, None if step.a and step.b else _side(step.a)
    )


def _raised_in(outcome: Outcome | None) -> str:
    frames = _GRAPH_PASS.findall(outcome.traceback) if outcome else []
    own = [frame for frame in frames if not frame[2].endswith("_passes")]  # the others run the passes
    return f", in {own[0][2]} ({own[0][0]}:{own[0][1]})" if own else ""


def _side(of_a: object) -> Literal["a", "b"]:
    return "a" if of_a else "b"


def _kernels(a: Run, b: Run) -> Iterator[ComparedStage]:
    of_a, of_b = ({one.name: one for one in run.records(Kernel)} for run in (a, b))
    if list(of_a) != list(of_b):
        texts = ("\n".join(of_a) + "\n", "\n".join(of_b) + "\n")
        yield ComparedStage(
            "the kernels", 1, CompilerDivergence("kernels", "the case", "lowering and fusion", texts)
        )
    compiled = {id(one): pair for pair in paired(compilations(a), compilations(b)).pairs for one in pair[:1]}
    by_name = {pair[0].kernel_name: pair for pair in compiled.values()}
    for name in of_a:
        if name in of_b:
            yield _kernel(a, b, of_a[name], of_b[name], by_name.get(name))


def _kernel(
    a: Run, b: Run, one: Kernel, other: Kernel, pair: tuple[Compilation, Compilation] | None
) -> ComparedStage:
    where = f"kernel {one.name}"
    bodies = (_body(a, one), _body(b, other))
    if bodies[0] != bodies[1]:
        return ComparedStage(where, 1, CompilerDivergence("source", where, "generated source", bodies))
    passes = [passes_of(run, one) for run, one in zip((a, b), pair, strict=True)] if pair else []
    if not all(passes) or not passes:
        return ComparedStage(where, 1, None)
    pairs = PassPairs(passes[0], passes[1], a.text, b.text)
    return ComparedStage(where, 1 + len(pairs.pairs), _ir_divergence(where, pairs), _transient(pairs))


def _body(run: Run, kernel: Kernel) -> str:
    return kernel_body(run.text(kernel.source)) if kernel.source else ""


def _ir_divergence(where: str, pairs: PassPairs) -> CompilerDivergence | None:
    divergence = pairs.last_divergence()
    if divergence is None:
        return None
    if divergence is pairs.pairs[0] and not pairs.entry_equal:
        a, b = pairs.plain_a(divergence.entered[0]).text, pairs.plain_b(divergence.entered[1]).text
        return CompilerDivergence("ir", where, "Triton's frontend", (a, renamed(a, b)))
    a, b = pairs.plain_a(divergence.texts[0]).text, pairs.plain_b(divergence.texts[1]).text
    only = None if divergence.a and divergence.b else _side(divergence.a)
    return CompilerDivergence(
        "ir", where, f"{divergence.stage} pass {divergence.name}", (a, renamed(a, b)), only
    )


def _transient(pairs: PassPairs) -> str:
    first, last = pairs.first_divergence(), pairs.last_divergence()
    return f"{first.stage} pass {first.name}" if first is not None and first is not last else ""
