"""Print one divergence of two runs: the difference, the evidence for its cause, and the next commands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.text import Text

from tracing.analyze.compare.divergence_kinds import Divergence, InputDiffers, OutputDiffers
from tracing.analyze.compare.evidence import evidence, may_have_other_seeds
from tracing.analyze.runs.call_sites import LaunchOrigin, launch_origin
from tracing.analyze.runs.element_values import differing_values
from tracing.analyze.runs.recording_commands import recording
from tracing.cli.answers import divergence_hints
from tracing.cli.app import out
from tracing.cli.options.run_pair import RunPair
from tracing.errors import Problem
from tracing.report.compare.comparison_json import divergence_json
from tracing.report.compare.divergence import divergence_text


def print_divergence(
    divergence: Divergence, runs: RunPair, names: tuple[str, str], *, first: bool, commands: bool = True
) -> list[str]:
    """Print one divergence and its evidence; after the first, print and return the commands to type next.

    commands -- False: the commands were already printed
    """
    site, values = _context(divergence, runs)
    for line in divergence_text(divergence, names, first=first, site=site, values=values):
        out.print(line)
    try:
        for line in _evidence(divergence, runs):
            out.print(line)
        typed = divergence_hints.of_divergence(divergence, runs) if first and commands else []
    except Problem as problem:  # a run without its blobs still has launches and digests
        out.print(Text(f"    no more is known: {problem.problem}"))
        return []
    for command in typed:
        out.print(Text(f"    next      {command}"))
    return typed


def as_json(divergence: Divergence, runs: RunPair) -> dict[str, Any]:
    """One divergence with its evidence and commands; keys as in docs/compare.md."""
    site, values = _context(divergence, runs)
    return divergence_json(
        divergence, site=site, values=values, evidence=list(evidence(runs, divergence)),
        commands=divergence_hints.of_divergence(divergence, runs),
        decides=divergence_hints.deciding(divergence, runs),
    )  # fmt: skip


def _context(divergence: Divergence, runs: RunPair) -> tuple[LaunchOrigin | None, list[tuple[int, Any, Any]]]:
    # the call site, and the elements that differ
    pair = divergence.pair
    site = launch_origin(runs[1 if pair.a is None else 0], pair.rank, pair.launch)
    if not isinstance(divergence, (InputDiffers, OutputDiffers)) or pair.a is None or pair.b is None:
        return site, []
    launches = pair.a.index, pair.b.index
    side: Any = "before" if isinstance(divergence, InputDiffers) else "after"
    return site, differing_values(runs, pair.rank, launches, divergence.position, side)


def _evidence(divergence: Divergence, runs: RunPair) -> Iterator[Text]:
    for line in evidence(runs, divergence):
        yield Text(f"    → {line}")
    if decides := divergence_hints.deciding(divergence, runs):
        yield Text(f"    decides   {decides}")
        yield from _how_to_decide(divergence, runs)


def _how_to_decide(divergence: Divergence, runs: RunPair) -> Iterator[Text]:
    # what the reader has to know to decide with the commands
    a, b = runs
    if may_have_other_seeds(runs, divergence):
        yield Text("    then      if these two runs are equal, numbers drawn without a seed were the cause;")
        yield Text("              if not, look at a seed that the program sets, and at files that it reads")
    elif a.info.kind == b.info.kind == "program" and recording(a) == recording(b):
        yield Text("    first     both commands run the same: before each, restore what differed, as a file,")
        yield Text("              the code, or an environment variable whose value was not recorded")
