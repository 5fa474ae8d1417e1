"""The search for a small graph, as text and as JSON."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.text import Text

from tracing.analyze.minify.minified_script import MinifiedScript
from tracing.analyze.minify.minify_events import CandidateTried, Minimal
from tracing.analyze.minify.trial import Trial, TrialInput
from tracing.report.text import Line, plural

_VERDICTS: Mapping[str, str] = {"fail": "fails", "pass": "does not fail", "unresolved": "cannot tell"}


def whole_text(graph: int, of: int, trial: Trial) -> Iterator[Line]:
    """How a whole graph fails."""
    which = "the graph" if of == 1 else f"graph {graph} of {of}"
    yield Text.assemble((f"{which} fails", "bold red"), f" ({plural(trial.nodes, 'node')}): {trial.text}")


def cost_text(most: int, trial: Trial) -> Line:
    """The maximum cost of the search."""
    minutes = max(1, round(most * trial.seconds / 60))
    return Text(
        f"    at most {plural(most - 1, 'execution')} to go, one took {trial.seconds:.1f} s: "
        f"up to {plural(minutes, 'minute')}; after an interruption the same command continues",
        "dim",
    )


def known_text(known: int, file: str) -> Line:
    """The results of an interrupted or earlier search, which are not executed once more."""
    return Text(f"    {plural(known, 'execution')} known from {file}", "dim")


def tried_text(event: CandidateTried) -> Line:
    """The result of executing a candidate."""
    nodes, inputs = plural(event.trial.nodes, "node"), _elements(event.trial.inputs)
    detail = f": {event.trial.text}" if event.verdict == "unresolved" else ""
    style = {"fail": "red", "pass": "green"}.get(event.verdict, "yellow")
    return Text.assemble(f"    {nodes}, {inputs}: ", (_VERDICTS[event.verdict], style), detail)


def minimal_text(event: Minimal, whole: Trial, lines: Mapping[str, str], executed: int) -> Iterator[Line]:
    """The smallest graph.

    lines    -- the user's line of each node that has one
    executed -- executions of this search; an earlier one may have made others
    """
    nodes = f"{plural(whole.nodes, 'node')} became {event.trial.nodes}"
    ended = "" if event.finished else "; the limit ended the search, `--tries` raises it"
    now = f", {executed} of them now" if executed < event.executions else ""
    yield Text.assemble((nodes, "bold"), f", by {plural(event.executions, 'execution')}{now}{ended}")
    yield Text(f"    {event.trial.text}")
    for line in event.trial.code.strip().splitlines():
        yield Text(f"    {line}")
    for one in event.trial.inputs:
        yield Text(f"    {input_text(one)}", "dim")
    for name in event.edit.kept:
        if name in lines:
            yield Text(f"    {name}: {lines[name]}", "dim")


def script_text(script: MinifiedScript, case: str) -> Iterator[Line]:
    """The written script, and whether it fails in a fresh process."""
    if script.fails:
        after = "after it loaded the case, which changes the compiler"
        how = after if script.loads_case else "without this project"
        yield Text.assemble(("repro: ", "bold"), script.path, f" (it fails in a fresh process {how})")
        return
    yield Text.assemble(
        ("not a repro: ", "bold yellow"), f"{script.path} does not fail so in a fresh process"
    )
    if script.missing:
        yield Text(f"    no source makes what it uses: {', '.join(script.missing)}")
    for line in script.output.splitlines():
        yield Text(f"    {line}")
    search = f"tracing bisect {shlex.quote(case)}"
    yield Text(
        f"    the failure needs more than this graph and the case's file: `{search}` has the whole case"
    )


def script_json(script: MinifiedScript) -> dict[str, Any]:
    """The script in the answer; docs/json.md has the keys."""
    return {
        "script": script.path, "reproduces": script.fails, "loads_case": script.loads_case,
        "said": script.output, "missing": list(script.missing),
    }  # fmt: skip


def input_text(one: TrialInput) -> str:
    """An input in one line."""
    more = [*(["requires gradients"] if one.grad else []), *(["shares its storage"] if one.shares else [])]
    layout = f"{one.name}: {one.dtype}{list(one.shape)}, strides {list(one.stride)}"
    return ", ".join([layout, *more])


def minify_json(event: Minimal, whole: Trial, lines: Mapping[str, str]) -> dict[str, Any]:
    """The answer; docs/json.md has the keys."""
    return {
        "graph": event.edit.graph,
        "symptom": {"kind": whole.kind, "text": whole.text},
        "nodes": {"before": whole.nodes, "after": event.trial.nodes},
        "executions": event.executions,
        "finished": event.finished,
        "kept": list(event.edit.kept),
        "lines": {name: lines[name] for name in event.edit.kept if name in lines},
        "code": event.trial.code,
        "inputs": [asdict(one) for one in event.trial.inputs],
        "text": event.trial.text,
    }


def _elements(inputs: Sequence[TrialInput]) -> str:
    count = 0
    for one in inputs:
        size = 1
        for length in one.shape:
            size *= length
        count += size
    return f"{plural(len(inputs), 'input')} of {plural(count, 'element')}"
