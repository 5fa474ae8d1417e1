"""Findings of runs as SARIF 2.1.0, which editors and code hosts show at the lines of the program.

Violated constraints, graph breaks, failures of compilers, wrong accesses to memory, and, of two runs,
divergences. A finding whose line is not known is in the file without a location.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

from tracing.analyze.graphs.launch_lines import launch_lines
from tracing.analyze.memory.uninitialised_reads import uninitialised_reads
from tracing.model import Failure, FrameCompile, KernelLaunch, Outcome, RunInfo, Violation
from tracing.report.compare.comparison_json import accused_text
from tracing.report.findings import (
    access_outside_sentence,
    accesses_outside,
    evidence_of_launches,
    launch_evidence_sentence,
    uninitialised_sentence,
)
from tracing.store import Run

RULES = {
    "constraint": "A graph violates a constraint of an accelerator",
    "graph-break": "Dynamo ended a graph at this line, or left the function in eager, or failed",
    "failure": "A kernel or generated code failed to compile or to run",
    "memory": "A kernel races, or accesses memory outside of an argument",
    "uninitialised": "A kernel reads elements that nothing wrote; it may drop their values",
    "difference": "The results of the compiled program differ from eager",
    "divergence": "Two runs of a program differ at this launch",
}
SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_POSITION = re.compile(r"(?P<file>.+):(?P<line>\d+)")


def sarif(runs: Sequence[Run], divergences: Iterable[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """A SARIF log with one entry in `runs` for each run.

    divergences -- of the two runs, as `tracing compare --json` prints them; they belong to the second
    """
    logs = [_log(run, list(_results(run))) for run in runs]
    logs[-1]["results"] += [_divergence(one, runs[-1].info) for one in divergences]
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": logs}


def _log(run: Run, results: list[dict[str, Any]]) -> dict[str, Any]:
    rules = [{"id": name, "shortDescription": {"text": text}} for name, text in RULES.items()]
    failed = any(one.status in ("failed", "interrupted") for one in run.records(Outcome))
    return {
        "tool": {"driver": {"name": "debug-triton", "rules": rules}},
        "automationDetails": {"id": f"{run.name}/"},
        "invocations": [{"executionSuccessful": not failed, "startTimeUtc": run.info.started}],
        "columnKind": "unicodeCodePoints",
        "results": results,
    }


def _results(run: Run) -> Iterator[dict[str, Any]]:
    info = run.info
    for violation in run.records(Violation):
        level = "error" if violation.decided else "note"
        yield _result("constraint", level, violation.text, violation.python, info)
    for frame in run.records(FrameCompile):
        for one in frame.breaks:
            what = "failed compile of" if frame.raised else "graph break in"
            title = f"{what} {frame.function}: {one.reason or 'no reason is given'}"
            yield _result("graph-break", "warning", title, one.python or frame.python, info)
    for failure in run.records(Failure):
        line = failure.python.rpartition(":")[2]
        at = f"{failure.file}:{line}" if failure.file else failure.python
        yield _result("failure", "error", _failure(failure), at, info)
    yield from _accesses(run)
    for outcome in run.records(Outcome):
        if outcome.status == "differs":
            yield _result("difference", "error", outcome.detail, "", info)


def _accesses(run: Run) -> Iterator[dict[str, Any]]:
    for rank, launch, outside in accesses_outside(run):
        level = "note" if outside.inside and outside.access == "load" else "error"
        text = access_outside_sentence(run, rank, launch, outside)
        yield _result("memory", level, text, _line_of(run, rank, launch, outside.where), run.info)
    for rank, launch, one in evidence_of_launches(run):
        if one.kind != "out of bounds":
            text = launch_evidence_sentence(run, rank, launch, one)
            yield _result("memory", "error", text, _line_of(run, rank, launch, one.where or ""), run.info)
    for read in uninitialised_reads(run):
        yield _result("uninitialised", "warning", uninitialised_sentence(read), "", run.info)


def _line_of(run: Run, rank: int, launch: KernelLaunch | None, where: str) -> str:
    # "/home/me/ops.py:12": of the kernel, or of the program that a generated kernel computes
    if launch is None:
        return where
    computed = launch_lines(run, rank, launch)
    if computed:
        return f"{computed[0].file}:{computed[0].line}"
    name, _, line = where.rpartition(":")
    path = (launch.kernel.file or "").rpartition(":")[0]
    return f"{path}:{line}" if name and PurePath(path).name == name else where


def _failure(one: Failure) -> str:
    where = f" in {one.step}" if one.step else ""
    return f"{one.kind} of {one.name} failed{where}: {one.reason}"


def _divergence(one: Mapping[str, Any], info: RunInfo) -> dict[str, Any]:
    accused = one["accused"]
    launch = one["launch"]["b"] if one["launch"]["b"] is not None else one["launch"]["a"]
    what = " ".join(filter(None, (one["kind"], one["argument"])))
    title = f"launch #{launch} {one['kernel']}: {what} differs; accused: {accused_text(accused)}"
    text = "\n".join([title, *one["evidence"]])
    return _result("divergence", "error" if accused["certain"] else "warning", text, one["site"] or "", info)


def _result(rule: str, level: str, text: str, position: str, info: RunInfo) -> dict[str, Any]:
    location = _location(position, info)
    return {
        "ruleId": rule,
        "ruleIndex": list(RULES).index(rule),
        "level": level,
        "message": {"text": text or RULES[rule]},
        **({"locations": [location]} if location else {}),
    }


def _location(position: str, info: RunInfo) -> dict[str, Any] | None:
    match = _POSITION.fullmatch(position)
    if match is None:
        return None
    path = PurePath(match["file"])
    if not path.is_absolute() and path.name == PurePath(info.path).name:
        path = PurePath(info.path)  # records name files of the case without their folder
    uri = Path(path).as_uri() if path.is_absolute() else path.as_posix()
    region = {"startLine": max(1, int(match["line"]))}
    return {"physicalLocation": {"artifactLocation": {"uri": uri}, "region": region}}
