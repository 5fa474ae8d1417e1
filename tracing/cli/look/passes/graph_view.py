"""`tracing passes RUN --graph N`: the passes of torch.compile over one graph."""

from __future__ import annotations

import json
import sys

from tracing import store
from tracing.analyze.graphs.graph_pass_table import GraphPass, chain_of, graph_passes
from tracing.analyze.passes.pass_table import find_pass, no_pass
from tracing.cli.answers import recording_hints
from tracing.cli.app import out
from tracing.cli.look.passes.question import PassQuestion
from tracing.errors import Problem
from tracing.model import CompiledGraph
from tracing.report.passes import graph_passes as report


def print_graph(run: store.Run, number: int, asked: PassQuestion, *, as_json: bool) -> None:
    """Print the passes over a compiled graph, or one pass.

    number -- of the graph, as `tracing judge` prints it

    Raises Problem if there is no such graph, or if its passes were not recorded.
    """
    asked.require_about_graph()
    graphs = {one.id: one for one in run.records(CompiledGraph)}
    if number not in graphs:
        known = ", ".join(f"{one.id} ({one.compile_id} {one.phase})" for one in graphs.values())
        raise Problem(f"{run.path} has no graph {number}", f"its graphs: {known or 'none was called'}")
    chain = chain_of(run, graphs[number])
    if chain is None:
        anew = f"record them: `{recording_hints.record_command(run, '--graph-passes')}`"
        raise Problem(f"{run.path} has no passes of graph {number}", anew)
    passes = list(graph_passes(run, chain))
    if asked.which is not None:
        one = find_pass(passes, asked.which, asked.stage, "this graph has")
        _print_pass(run, chain.label, one, asked, as_json=as_json)
        return
    if asked.stage is not None and asked.stage not in {one.stage for one in passes}:
        raise Problem(*no_pass(passes, None, asked.stage, "this graph has"))
    shown = [one for one in passes if asked.stage in (None, one.stage) and (one.changed or not asked.changed)]
    if as_json:
        rows = [report.graph_pass_json(one) for one in shown]
        print(json.dumps({"run": str(run.path), "graph": chain.label, "passes": rows}, indent=2))
        return
    for line in report.graph_passes_text(chain.label, shown):
        out.print(line)


def _print_pass(run: store.Run, label: str, one: GraphPass, asked: PassQuestion, *, as_json: bool) -> None:
    before, after = run.text(one.before), run.text(one.after)
    side = {"before": before, "after": after}.get(asked.side or "")
    if as_json:
        asked.require_no_file()
        diff = "\n".join(report.graph_diff(before, after))
        facts = {"run": str(run.path), "graph": label, "pass": report.graph_pass_json(one)}
        print(json.dumps({**facts, "ir": side, "diff": diff if side is None else None}, indent=2))
    elif side is not None:
        if asked.output is not None:
            asked.output.write_text(side)
        else:
            sys.stdout.write(side)
    else:
        for line in report.graph_pass_text(label, one, before, after):
            out.print(line)
