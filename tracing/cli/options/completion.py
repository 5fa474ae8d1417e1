"""Complete names of cases, runs, kernels and passes in a shell, from files: torch is not imported."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import typer

from tracing import store
from tracing.analyze.passes.compilations import compilations, label
from tracing.errors import Problem
from tracing.model import Compilation, PassStart
from tracing.program.case import described, known_cases

_RUN_PARAMETERS = ("name", "words", "a", "case")  # by which commands call the run of a kernel


def case_names(incomplete: str) -> list[tuple[str, str]]:
    """The cases of the working directory and of this project, each with its description."""
    return [(name, described(path)) for name, path in known_cases().items() if name.startswith(incomplete)]


def run_names(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """The runs of the folder of `--runs`, newest first, and "latest"."""
    runs = Path(ctx.params.get("runs") or "runs")
    names = [("latest", "the newest run"), *((path.name, "") for path in reversed(store.recorded(runs)))]
    return [(name, description) for name, description in names if name.startswith(incomplete)]


def case_and_run_names(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Cases, then runs."""
    return [*case_names(incomplete), *run_names(ctx, incomplete)]


def kernel_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """The kernels of the run that the command line names so far, "latest" by default."""
    return [name for name, _ in _compiled(ctx) if name.startswith(incomplete)]


def pass_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """The passes of the kernel that the command line names so far; by default those of any kernel."""
    named = ctx.params.get("kernel")
    wanted = named[0] if isinstance(named, (list, tuple)) and named else named
    hashes = {one.hash for name, one in _compiled(ctx) if wanted in (None, (), [], name, one.kernel_name)}
    names: dict[str, None] = {}
    for passes in _passes(ctx, hashes):
        counted = Counter(passes)
        seen = Counter[str]()
        for name in passes:
            seen[name] += 1
            names[name if counted[name] == 1 else f"{name}#{seen[name]}"] = None
    return [name for name in names if name.startswith(incomplete)]


def _compiled(ctx: typer.Context) -> list[tuple[str, Compilation]]:
    with suppress(Problem):  # a damaged run completes to nothing
        if (run := _run(ctx)) is not None:
            known = compilations(run)
            return [(label(known, one), one) for one in known]
    return []


def _passes(ctx: typer.Context, hashes: set[str]) -> Iterator[list[str]]:
    # for each compilation of these hashes, in order
    with suppress(Problem):
        if (run := _run(ctx)) is None:
            return
        for process in run.processes(PassStart):
            by_id: dict[int, list[str]] = {}
            for start in run.view(process, PassStart, PassStart):
                by_id.setdefault(start.compilation, []).append(start.name)
            ids = {one.id for one in run.view(process, Compilation, Compilation) if one.hash in hashes}
            yield from (names for number, names in by_id.items() if number in ids)


def _run(ctx: typer.Context) -> store.Run | None:
    runs = Path(ctx.params.get("runs") or "runs")
    # while an option lacks its value, the words before it are not parsed
    words = [one for one in ctx.args if not one.startswith("-")]
    given = [*(ctx.params[one] for one in _RUN_PARAMETERS if ctx.params.get(one)), *words, "latest"]
    named = given[0][0] if isinstance(given[0], list) else given[0]
    return store.open_run(named, runs) if store.is_run(named, runs) else None
