"""The answer of `tracing show --operators`: the calls of operators outside of Triton, or one in full."""

from __future__ import annotations

import json
from collections.abc import Iterator
from shlex import quote

from tracing import store
from tracing.cli.app import out
from tracing.errors import Problem
from tracing.model import Operator, OperatorSignature
from tracing.report.operators import operator_in_full, operator_text, operators_json
from tracing.report.run import PAGE
from tracing.report.text import plural
from tracing.store.recorded_operator import find_operator


def print_operators(run: store.Run, page: int | None, *, as_json: bool) -> None:
    """Print a line for each operator; page -- this page of them, from 1; None: all.

    Raises Problem if the run has none, or no such page.
    """
    if as_json:
        print(json.dumps(operators_json(str(run.path), list(_operators(run))), indent=2))
        return
    start, stop = (0, None) if page is None else (PAGE * (page - 1), PAGE * page)
    total = 0
    for rank, one in _operators(run):
        if start <= total and (stop is None or total < stop):
            out.print(operator_text(rank, one))
        total += 1
    if page is not None and page > max(1, -(-total // PAGE)):
        raise Problem(
            f"{run.path} has {plural(total, 'operator call')}, {PAGE} a page", "give an earlier `--page`"
        )
    show = f"tracing show {quote(str(run.path))}"
    shown = f", page {page} of {-(-total // PAGE)}; other pages: `--page N`" if page and total > PAGE else ""
    out.print(
        f"{plural(total, 'operator call')} outside of Triton{shown}; one in full: `{show} --operator N`"
    )
    if total and run.info.operators != "digests":
        out.print("their digests were not recorded: `tracing run --operators digests`")


def print_operator(run: store.Run, index: int, *, as_json: bool) -> None:
    """Print one operator in full, that of each rank; raises Problem if the run has no such operator."""
    chosen = [(rank, one) for rank, one in _operators(run) if one.index == index]
    if as_json and chosen:
        print(json.dumps(operators_json(str(run.path), chosen), indent=2))
        return
    if not chosen:
        raise Problem(
            f"{run.path} has no operator {index}",
            f"list them with `tracing show {quote(str(run.path))} --operators`",
        )
    for rank, one in chosen:
        for line in operator_in_full(rank, one):
            out.print(line)
        whose = f" --rank {rank}" if run.info.world_size > 1 else ""
        if one.reads and not find_operator(run, index, rank).missing:
            out.print(f"    next      tracing repro {quote(str(run.path))} --operator {index}{whose}")


def _operators(run: store.Run) -> Iterator[tuple[int, Operator]]:
    # with their ranks
    if run.info.operators == "none":
        raise Problem(
            f"{run.path} has no operators: it was recorded with --operators none",
            "record it with `tracing run --operators digests`",
        )
    for process in run.processes(OperatorSignature):
        yield from ((store.rank_of(process), one) for one in run.operators(process))
