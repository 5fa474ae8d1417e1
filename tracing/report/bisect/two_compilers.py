"""The first stage at which two compilers differ on one case, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rich.text import Text

from tracing.analyze.graphs.compiler_divergence import ComparedStage, CompilerDivergence, TwoCompilers
from tracing.analyze.line_matching import unified_diff
from tracing.model import Environment, Outcome
from tracing.report.passes.passes import DIFF_STYLES, columns
from tracing.report.text import Line, plural

MOST = 60  # lines of a diff


def versions(environment: Environment) -> str:
    """`torch 2.13.0+cpu, Triton 3.8.0`."""
    return f"torch {environment.torch}, Triton {environment.triton}"


def two_compilers_text(answer: TwoCompilers, a: Environment, b: Environment) -> Iterator[Line]:
    """The outcomes, the graphs and kernels, the first divergence with its diff, and the other divergences."""
    for side, environment, outcome in zip("ab", (a, b), answer.outcomes, strict=True):
        yield Text.assemble((f"{side}  ", "bold"), f"{versions(environment)}: {_outcome(outcome)}")
    yield from columns([("", "stages", "a and b"), *map(_row, answer.compared)], "lrl")
    divergences = answer.divergences()
    if not divergences:
        yield Text("no stage differs, down to the last pass of Triton")
    yield from _verdict(answer, versions(b))
    if not divergences:
        return
    yield Text.assemble(("✗ ", "red"), ("the compilers diverge: ", "bold"), sentence(divergences[0]))
    yield from _diff(divergences[0])
    for one in divergences[1:]:
        yield Text(f"also diverges: {sentence(one)}")


def _outcome(outcome: Outcome | None) -> str:
    return "was interrupted" if outcome is None else f"{outcome.status}: {outcome.detail}"


def _verdict(answer: TwoCompilers, b: str) -> Iterator[Line]:
    right = [outcome is not None and outcome.status == "passed" for outcome in answer.outcomes]
    if all(right):
        yield Text("both results are right")
    elif right[0]:
        yield Text("only b is wrong: run this command with the torch of b, and that of a as --good-torch")
    elif not right[1]:
        yield Text(f"{b} is not right either, so their first difference does not show what is wrong in a")
    elif not answer.divergences():
        yield Text(
            "the difference is in something that is not recorded: the code that calls kernels, "
            "libraries, ptxas"
        )


def _row(one: ComparedStage) -> tuple[str, str, str]:
    if one.divergence is not None:
        return one.where, str(one.stages), f"diverge: {one.divergence.stage}"
    return (
        one.where,
        str(one.stages),
        f"equal at the end; differed for some passes from {one.transient} on" if one.transient else "equal",
    )


def sentence(one: CompilerDivergence) -> str:
    """`graph 0/0 forward, joint pass remove_noop_ops`."""
    if one.kind == "stopped":
        return f"{one.where}, {one.stage}: a does not finish it, b does"
    only = f", which only {one.only} has" if one.only else ""
    return f"{one.where}, {one.stage}{only}"


def _diff(one: CompilerDivergence) -> Iterator[Line]:
    lines = diff_lines(one)
    for line in lines[:MOST]:
        yield Text(line, style=DIFF_STYLES.get(line[:1], ""))
    if len(lines) > MOST:
        yield Text(f"... {plural(len(lines) - MOST, 'line')} more: --json prints all", style="dim")


def diff_lines(one: CompilerDivergence) -> list[str]:
    """A unified diff from a to b; if a did not finish the pass, its input."""
    a, b = (text.splitlines() for text in one.texts)
    return a if one.kind == "stopped" else list(unified_diff(a, b, ("a", "b")))


def two_compilers_json(
    answer: TwoCompilers, paths: Sequence[str], environments: Sequence[Environment]
) -> Any:
    """The answer as data, without `status`; keys as in docs/json.md."""
    sides = [
        {
            "run": path,
            "torch": env.torch,
            "triton": env.triton,
            "outcome": outcome.status if outcome else None,
        }
        for path, env, outcome in zip(paths, environments, answer.outcomes, strict=True)
    ]
    divergences = [
        {"where": one.where, "stage": one.stage, "kind": one.kind, "only": one.only, "diff": diff_lines(one)}
        for one in answer.divergences()
    ]
    compared = [
        {"where": one.where, "stages": one.stages, "equal": one.divergence is None} for one in answer.compared
    ]
    return {"a": sides[0], "b": sides[1], "compared": compared, "divergences": divergences}
