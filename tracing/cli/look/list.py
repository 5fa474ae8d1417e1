"""`tracing list`: one line for each recorded run."""

from __future__ import annotations

import json

from tracing import store
from tracing.cli.app import LOOK, RUNS, Json, Runs, app, err, out
from tracing.errors import Problem
from tracing.report.run import summary_text
from tracing.report.run_json import summary_json


@app.command("list", rich_help_panel=LOOK)
def list_runs(as_json: Json = False, runs: Runs = RUNS) -> None:
    """List the recorded runs, oldest first.

    A case has passed, or differs from eager; a program has ended. compiled: nothing was executed or compared.
    unfinished: the recording continues, or its process was killed.

    Example: tracing list

    Exit status: 0; 2 if there is no such folder.
    """
    store.require_folder(runs)
    readable, damaged = [], {}
    for path in store.recorded(runs):
        try:
            run = store.Run(path)
            line = summary_text(run)
        except Problem as problem:
            damaged[str(path)] = problem.problem
            line = f"{path.name}  {problem.problem}"
        else:
            readable.append(run)
        if not as_json:
            out.print(line)
    if as_json:
        print(json.dumps({"runs": [summary_json(one) for one in readable], "damaged": damaged}, indent=2))
    elif not readable and not damaged:
        err.print(f"{runs} has no run; record one with `tracing run CASE`")
