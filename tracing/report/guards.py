"""Compiles of frames as text and JSON: graph breaks, guards, recompilations."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import msgspec
from rich.text import Text

from tracing.analyze.runs.frame_compiles import BreakSite, GuardReport
from tracing.analyze.runs.proposed_setting import proposed_setting
from tracing.model import CompiledFrame, FrameGuard
from tracing.report.text import Line, plural

_GUARDS = 12  # guards of a frame, without --frame
# On modules, functions, classes and their tables, which seldom change; the first is on every tensor.
_SELDOM_FAIL = {
    "DIMENSION_DYNAMIC_MARKING_GUARD", "ID_MATCH", "TYPE_MATCH", "FUNCTION_MATCH", "CLOSURE_MATCH",
    "MODULE_MATCH", "CLASS_MATCH", "BUILTIN_MATCH", "DICT_CONTAINS",
}  # fmt: skip
_OF_TORCH = ("G['__import_torch_", "G['__builtins_dict__")  # modules that Dynamo makes global
_NO_REASON = "no reason given"


def guards_text(report: GuardReport, every: str = "--frame {id}") -> Iterator[Line]:
    """The graph breaks; guards and reasons of each compile, of a recompilation the new guards; then sums.

    every -- what has all guards of a compile, by its {id} or its {number} in the report
    """
    for site in report.breaks:
        yield from _break_text(site)
    known: dict[str, set[FrameGuard]] = {}
    for number, frame in enumerate(report.compiles):
        earlier = known.setdefault(frame.facts.compile_id.split("/")[0], set())
        which = every.format(id=frame.facts.compile_id, number=number)
        yield from _frame_text(frame, _GUARDS, earlier, which)
        earlier.update(frame.facts.guards)
    yield summary_text(report)


def frame_text(frame: CompiledFrame) -> Iterator[Line]:
    """One compile with all of its guards, its graph and its bytecode."""
    yield from _frame_text(frame, None)
    for title, text in (("graph", frame.graph), ("bytecode", frame.bytecode)):
        if text:
            yield Text(title, style="bold")
            yield from (Text(f"    {line}") for line in text.strip("\n").splitlines())


def summary_text(report: GuardReport) -> str:
    """The sums in one line."""
    sites = [one for one in report.breaks if not one.raised]
    breaks = plural(sum(len(one.compile_ids) for one in sites), "graph break")
    failed = sum(one.facts.raised for one in report.compiles)
    cached = sum(one.cached for one in report.compiles)
    parts = [
        plural(len({one.facts.compile_id.split("/")[0] for one in report.compiles}), "frame"),
        plural(len(report.graphs), "graph") + (f" and {cached} not known" if cached else ""),
        f"{breaks} at {plural(len(sites), 'line')}",
        plural(len(report.recompilations), "recompilation"),
        f"{plural(len(report.limits), 'frame')} over a limit",
        *([plural(failed, "failed compile")] if failed else []),
    ]
    return ", ".join(parts)


def _frame_text(
    frame: CompiledFrame, most: int | None, earlier: Collection[FrameGuard] = (), every: str = ""
) -> Iterator[Line]:
    # most    -- guards; None: all
    # earlier -- guards of earlier compiles of the frame
    # every   -- what has all guards
    facts = frame.facts
    operators = "compiled before, graph not known" if frame.cached else plural(facts.operators, "operator")
    what = f"{operators}, {plural(len(facts.guards), 'guard')}"
    if not facts.bytecode and not frame.bytecode:
        what = "failed to compile" if facts.raised else "stays in eager"
    yield Text.assemble((f"{facts.compile_id} {facts.function}", "bold"), f" ({facts.python}): {what}")
    for failed in facts.failed[: most and 1]:
        guard = failed.guard
        yield Text.assemble("  ", ("↻", "yellow"), f" {failed.compile_id} failed: {guard.code}", _at(guard))
    if facts.limit:
        yield Text.assemble("  ", ("✗", "red"), f" {_first_lines(facts.limit)}")
    if facts.eager:
        yield Text.assemble("  ", (_first_lines(facts.eager), "dim"))
    shown = facts.guards if most is None else _telling(facts.guards, earlier)[:most]
    for guard in shown:
        yield Text.assemble(
            "    ", (guard.source or "no single object", "cyan"), f"  {guard.code}", _at(guard)
        )
    if len(shown) < len(facts.guards):
        left = len(facts.guards) - len(shown)
        yield Text(f"    {left} more: {every}", style="dim")


def _telling(guards: Sequence[FrameGuard], earlier: Collection[FrameGuard]) -> Sequence[FrameGuard]:
    # only guards with a line of the program: torch adds others to every frame
    needed = [one for one in guards if one.python and one.kind not in _SELDOM_FAIL and one not in earlier]
    return [one for one in needed if not one.source.startswith(_OF_TORCH)]


def _at(guard: FrameGuard) -> tuple[str, str]:
    return (f"  {guard.python}: {guard.line}" if guard.python else "", "dim")


def _break_text(site: BreakSite) -> Iterator[Line]:
    at = site.graph_break
    where = f"{at.python}: {at.line}" if at.python else "a line that torch does not name"
    what = "failed compile" if site.raised else "graph break"
    yield Text.assemble(("✗", "red"), (f" {what} at {where}", "bold"), f" ({', '.join(site.compile_ids)})")
    yield Text(f"    {_first_lines(at.reason) or _NO_REASON}")
    if setting := proposed_setting(at.reason):
        yield Text(f"    torch proposes: {setting}")


def _first_lines(reason: str) -> str:
    # torch's text: a title, "Explanation: ...", hints, and context for developers of torch
    lines = [line.strip() for line in reason.splitlines() if line.strip()]
    explained = next((line for line in lines if line.startswith("Explanation: ")), "")
    return ". ".join(
        one for one in (lines[0] if lines else "", explained.removeprefix("Explanation: ")) if one
    )


def guards_json(report: GuardReport, run: str = "") -> dict[str, Any]:
    """The object of `tracing guards --json`."""
    return {
        "run": run,
        "status": report.status,
        "graphs": len(report.graphs),
        "breaks": [
            msgspec.structs.asdict(site.graph_break)
            | {"raised": site.raised, "compile_ids": [*site.compile_ids]}
            for site in report.breaks
        ],
        "recompilations": [one.facts.compile_id for one in report.recompilations],
        "limits": [one.facts.compile_id for one in report.limits],
        "compiles": [_frame_json(one) for one in report.compiles],
    }


def _frame_json(frame: CompiledFrame) -> dict[str, Any]:
    facts = frame.facts
    return {
        "compile_id": facts.compile_id,
        "function": facts.function,
        "python": facts.python,
        "operators": None if frame.cached else facts.operators,
        "graph": frame.graph,
        "bytecode": frame.bytecode,
        "guards": [msgspec.structs.asdict(one) for one in facts.guards],
        "failed": [
            {"compile_id": one.compile_id, **msgspec.structs.asdict(one.guard)} for one in facts.failed
        ],
        "limit": facts.limit,
        "eager": facts.eager,
        "raised": facts.raised,
    }
