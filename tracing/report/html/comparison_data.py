"""The comparison of two runs for a report: divergences with their producers and ranges, and kernels."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tracing.analyze.compare.divergence_kinds import Divergence, InputDiffers, OutputDiffers, digests_of
from tracing.analyze.compare.verdict import ComparisonVerdict
from tracing.analyze.passes.compared_compilations import ComparedCompilations, CompilationComparer
from tracing.analyze.passes.compilation_pairs import differing, paired
from tracing.analyze.passes.compilations import compilations
from tracing.analyze.passes.pass_pairs import PassPair, PassPairs
from tracing.analyze.passes.renaming import renamed
from tracing.analyze.runs.digest_ranges import differing_elements
from tracing.analyze.runs.producers import producers
from tracing.model import PassRecord
from tracing.report.compare.comparison import equality_text, summary_text, why_text
from tracing.report.compare.comparison_json import result_json
from tracing.report.compare.divergence import divergence_text
from tracing.report.html.chunks import Chunks
from tracing.report.html.launch_data import DIVERGES, LaunchKey
from tracing.report.html.pass_data import text_diff
from tracing.report.passes.pass_pairs import attributes_text, verdict_text
from tracing.store import Run

SHOWN = 200  # divergences that a report holds

PassesByHash = Mapping[str, Sequence[PassRecord]]


@dataclass(frozen=True, slots=True)
class ReportedDivergence:
    """One divergence, and its entry of `tracing compare --json`."""

    divergence: Divergence
    entry: Mapping[str, Any]


def comparison_data(
    runs: tuple[Run, Run], verdict: ComparisonVerdict, divergences: Sequence[ReportedDivergence]
) -> dict[str, Any]:
    """A comparison whose divergences have all been computed.

    divergences -- the first of them
    """
    graphs = _producers(runs, divergences)
    summary = [line.plain for line in summary_text(verdict.comparison)]
    if verdict.why is not None and not (verdict.start or verdict.outcomes):
        summary = [*(line.plain for line in why_text(verdict.why, None)), *summary]
    if verdict.status != 1:
        equal = equality_text(verdict.comparison, verdict.equal_results, verdict.results)
        summary += [line.plain for line in equal]
    return {
        "status": verdict.status,
        "divergences": [_divergence(one, graphs) for one in divergences],
        "found": verdict.found,
        "results": [result_json(one) for one in verdict.results],
        "start": [result_json(one) for one in verdict.start],
        "outcomes": [result_json(one) for one in verdict.outcomes],
        "summary": summary,
        "not_compared": [*verdict.comparison.notes.notes, *verdict.comparison.notes.left_out],
    }


def divergence_flags(divergences: Sequence[ReportedDivergence]) -> tuple[dict[LaunchKey, int], ...]:
    """The flag DIVERGES for the launches of both runs that diverge, by rank and index."""
    pairs = [one.divergence.pair for one in divergences]
    return (
        {(pair.rank, pair.a.index): DIVERGES for pair in pairs if pair.a is not None},
        {(pair.rank, pair.b.index): DIVERGES for pair in pairs if pair.b is not None},
    )


def _divergence(one: ReportedDivergence, graphs: Mapping[tuple[int, int, int], Any]) -> dict[str, Any]:
    pair, title = one.divergence.pair, next(iter(divergence_text(one.divergence)))
    side = 0 if pair.b is None else 1
    return {
        **one.entry,
        "title": title.plain.lstrip("✗ ").partition(": ")[2],
        "ranges": _ranges(one.divergence),
        "producers": graphs.get((side, pair.rank, pair.launch.index if side == 0 else pair.b.index)),  # type: ignore[union-attr]
    }


def _ranges(divergence: Divergence) -> dict[str, Any] | None:
    if not isinstance(divergence, (InputDiffers, OutputDiffers)):
        return None
    a, b = digests_of(divergence)
    tensor = divergence.pair.launch.args[divergence.position].tensor
    if a is None or b is None or tensor is None:
        return None
    ranges = differing_elements(tensor, a, b)
    return {"count": math.prod(tensor.shape), "ranges": [list(one) for one in ranges]} if ranges else None


def _producers(
    runs: tuple[Run, Run], divergences: Sequence[ReportedDivergence]
) -> dict[tuple[int, int, int], dict[str, Any]]:
    # keyed by the launch of run b, or of run a if only that has the launch
    wanted: dict[tuple[int, int], set[int]] = {}
    for pair in (one.divergence.pair for one in divergences):
        side, launch = (0, pair.a) if pair.b is None else (1, pair.b)
        if launch is not None:
            wanted.setdefault((side, pair.rank), set()).add(launch.index)
    graphs = {}
    for (side, rank), launches in wanted.items():
        for index, graph in producers(runs[side], rank, launches).items():
            graphs[side, rank, index] = {**asdict(graph), "run": side, "rank": rank}
    return graphs


# ---- the kernels of both runs


def kernel_pairs(
    runs: tuple[Run, Run],
    passes: tuple[PassesByHash, PassesByHash],
    chunks: Chunks,
    progress: Callable[[], None],
) -> list[dict[str, Any]]:
    """The kernels that both runs compiled, with the passes of those whose code differs.

    Cost: 1 to 50 ms for each distinct IR of a kernel whose code differs.
    """
    rows, comparer = [], CompilationComparer(*runs)
    for a, b in paired(compilations(runs[0]), compilations(runs[1])).pairs:
        sides = passes[0].get(a.hash, ()), passes[1].get(b.hash, ())
        equal = a.hash == b.hash and _blobs(sides[0]) == _blobs(sides[1]) and comparer.have_equal_text(a, b)
        known = all(sides) and all(one.before and one.after != "" for side in sides for one in side)
        data = _pass_pairs(comparer.compared(a, b)) if known and not equal else None
        rows.append({
            "a": a.hash, "b": b.hash, "name": a.kernel_name,
            "equal": equal or (data is not None and data["equal"]), "known": known or equal,
            "verdict": data["verdict"][0] if data else "",
            "chunk": None if data is None else chunks.add(data),
        })  # fmt: skip
        progress()
    return rows


def _blobs(passes: Sequence[PassRecord]) -> list[tuple[str, str | None]]:
    return [(one.before, one.after) for one in passes]


def _pass_pairs(compared: ComparedCompilations) -> dict[str, Any]:
    a, b, pairs = compared.a, compared.b, compared.passes
    shown = {id(one) for one in (pairs.first_divergence(), pairs.last_divergence())}
    return {
        "equal": not compared.differ,
        "entry_equal": pairs.entry_equal,
        "verdict": [str(line) for line in (*verdict_text(compared), *attributes_text(pairs))],
        "constants": [[name, *values] for name, values in differing(a.constants, b.constants).items()],
        "options": [[name, *values] for name, values in differing(a.options, b.options).items()],
        "pairs": [_pair(pairs, one, id(one) in shown) for one in pairs.pairs],
    }


def _pair(pairs: PassPairs, one: PassPair, shown: bool) -> dict[str, Any]:
    diff = ""
    if shown:
        a, b = pairs.plain_a(one.texts[0]).text, pairs.plain_b(one.texts[1]).text
        diff = text_diff(a, renamed(a, b), ("a", "b"))
    return {
        "a": one.a.index if one.a else None, "b": one.b.index if one.b else None, "stage": one.stage,
        "name": one.name, "state": one.state, "diff": diff,
    }  # fmt: skip
