"""A comparison as data: the keys that `tracing compare --json` documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tracing.analyze.compare.accused import Accused, accused
from tracing.analyze.compare.divergence_kinds import (
    Divergence,
    InputDiffers,
    LaunchDiffers,
    OutputDiffers,
    argument_of,
    digests_of,
    kind_of,
    settings_of,
)
from tracing.analyze.compare.unwritten_memory import UnwrittenMemory
from tracing.analyze.runs.call_sites import LaunchOrigin
from tracing.analyze.runs.results import ResultDiffers
from tracing.report.compare.divergence import divergence_text, elements_text


def divergence_json(
    divergence: Divergence,
    *,
    site: LaunchOrigin | None,
    values: list[tuple[int, object, object]],
    evidence: list[str],
    commands: list[str],
    decides: str | None,
) -> dict[str, Any]:
    """One divergence; keys as in docs/compare.md."""
    pair = divergence.pair
    return {
        "kind": kind_of(divergence),
        "rank": pair.rank,
        "launch": {"a": pair.a.index if pair.a else None, "b": pair.b.index if pair.b else None},
        "kernel": pair.launch.kernel_name,
        "argument": argument_of(divergence),
        "site": f"{site.site.file}:{site.site.line}" if site else None,
        "iteration": site.iteration if site else None,
        "computes": [f"{one.file}:{one.line}" for one in site.computes] if site else [],
        "step": list(pair.launch.step) if pair.launch.step else None,
        "accused": _accused(accused(divergence), decides),
        "evidence": [*explanation(divergence), *evidence],
        "next": commands,
        **_sides(divergence),
        "elements": elements_text(divergence)
        if isinstance(divergence, (InputDiffers, OutputDiffers))
        else "",
        "values": [list(one) for one in values],
    }


def explanation(divergence: Divergence) -> list[str]:
    """The sentences that a person reads below a divergence."""
    return [line.plain.strip()[2:] for line in divergence_text(divergence) if line.plain.startswith("    → ")]


def _sides(divergence: Divergence) -> dict[str, Any]:
    if isinstance(divergence, (InputDiffers, OutputDiffers)):
        a, b = digests_of(divergence)
        return {"a": a.bits if a else None, "b": b.bits if b else None}
    if isinstance(divergence, LaunchDiffers):
        of_a, of_b = settings_of(divergence)
        return {"a": of_a, "b": of_b, "diff": list(divergence.code.diff) if divergence.code else []}
    return {"a": None, "b": None}


def _accused(one: Accused, decides: str | None) -> dict[str, Any]:
    known = one.a is not None or one.b is not None
    return {
        "kind": one.kind,
        "name": one.name,
        "launch": {"a": one.a, "b": one.b} if known else None,
        "argument": one.argument,
        "runs": one.runs,
        "certain": one.certain,
        "through": list(one.through),
        "decides": decides,
    }


def result_json(result: ResultDiffers) -> Mapping[str, object]:
    """One result that differs."""
    return {"name": result.name, "rank": result.rank, "a": result.a, "b": result.b}


def unwritten_json(one: UnwrittenMemory) -> Mapping[str, object]:
    """Memory that differs and that the launch does not access."""
    return {
        "rank": one.rank, "launch": one.launch, "kernel": one.kernel, "argument": one.argument,
        "elements": one.elements, "unwritten": one.unwritten,
    }  # fmt: skip


def without_launch_json(
    kind: str,
    who: Accused,
    rank: int,
    evidence: list[str] | None = None,
    decides: str | None = None,
    commands: Sequence[str] = (),
) -> dict[str, Any]:
    """A difference that no launch shows: of the start, the outcome, or a result."""
    return {
        "kind": kind, "rank": rank, "launch": {"a": None, "b": None}, "kernel": None, "argument": None,
        "site": None, "iteration": None, "computes": [], "step": None, "accused": _accused(who, decides),
        "evidence": evidence or [], "next": [*commands], "a": None, "b": None, "elements": "", "values": [],
    }  # fmt: skip


def accused_text(one: Mapping[str, Any]) -> str:
    """The accused component of a divergence: `the compiled code of copy`, `kernel copy out_ptr`."""
    return " ".join(filter(None, (_KINDS.get(one["kind"], one["kind"]), one["name"], one["argument"])))


_KINDS: Mapping[str, str] = {
    "code": "the compiled code of",
    "configuration": "the configuration of",
    "winner": "the autotuned configuration of",
    "host": "the host program",
    "uninitialised": "uninitialised memory, read by",
    "out of bounds": "an access out of bounds by",
    "order": "the order of launches at",
    "missing": "a missing launch of",
    "start": "the initial state",
    "unknown": "an unknown cause, seen at",
}
