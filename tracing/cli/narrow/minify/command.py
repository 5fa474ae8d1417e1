"""`tracing minify`: find the smallest graph of a case that still fails, and write it as a script."""

from __future__ import annotations

import json
import shlex
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tracing.analyze.minify.graph_search import GraphSearch
from tracing.analyze.minify.minified_script import MinifiedScript
from tracing.analyze.minify.minify_events import CandidateTried, Minimal, SearchStep
from tracing.analyze.minify.trial import FAILURES, Trial, script_forms
from tracing.cli.app import NARROW, RUNS, Json, Runs, app, err, out, silent, spinner
from tracing.cli.narrow.minify.fresh_process import fresh_run
from tracing.cli.narrow.minify.question import TIMES, PredicateName, Question, settings
from tracing.cli.narrow.minify.trials import Trials
from tracing.cli.options.check_options import CheckOptions
from tracing.cli.options.named import CaseArgument, TargetOption
from tracing.cli.options.option_record import with_option_records
from tracing.cli.options.outputs import OutputFolderOption, chosen_output
from tracing.errors import Problem, message
from tracing.model.chips import DEFAULT_TARGET
from tracing.program.case import require_case
from tracing.report import minify as report

if TYPE_CHECKING:
    from tracing.minify.graph_trials import GraphTrials


@app.command(rich_help_panel=NARROW)
@with_option_records
def minify(
    case: CaseArgument,
    options: CheckOptions,
    predicate: Annotated[
        PredicateName,
        typer.Option(help="fails: wrong results or a crash; unstable: other bits each time; kernels: other "
                          "code; constraint: a violation."),
    ] = "fails",
    times: Annotated[int, typer.Option(min=2, help="Executions that test stability.")] = TIMES,
    setting: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="Setting of Inductor that gives other kernels. Repeatable."),
    ] = None,
    tries: Annotated[int, typer.Option(min=1, help="Maximum number of executions.")] = 200,
    seconds: Annotated[float, typer.Option(help="Time limit of one execution.")] = 120.0,
    output: OutputFolderOption = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Ignore cached executions.")] = False,
    target: TargetOption = DEFAULT_TARGET,
    seed: Annotated[int, typer.Option(help="Seed of torch's random generators.")] = 0,
    as_json: Json = False,
    runs: Runs = RUNS,
) -> None:  # fmt: skip
    """Find the smallest graph of a case that fails as the whole graph does, and write it as a script.

    Executes Dynamo's graph, eager against compiled, with fewer and fewer nodes, then with simpler inputs. A
    value of a removed node becomes an input with its recorded value. Each execution is a separate process. A
    candidate that fails differently is rejected.

    The script needs torch, safetensors and Triton, but neither this project nor pickle. It is executed once
    in a fresh process, to verify that it fails. Without --output it is in RUNS/minify/CASE. After an
    interruption, the same command continues.

    Example: tracing minify gated_mlp --predicate constraint --unsupported sigmoid

    Exit status: 1 if a smaller graph fails, 2 if no graph of the case fails.
    """
    question = Question(case, target, seed, predicate, times, settings(setting or []), options)
    require_case(case)
    below = output or chosen_output(runs / "minify", "--output DIR")
    try:
        with spinner("importing torch"):
            graphs = _graphs(question)
    except KeyboardInterrupt:
        raise Problem("interrupted; no graph was executed yet") from None
    folder = output or below / graphs.name
    trials = Trials(graphs, question, folder, seconds)
    if fresh:
        trials.forget()
    try:
        with silent() if as_json else nullcontext():
            answer = _minified(trials, tries, folder, seconds)
    except KeyboardInterrupt:
        known = f"interrupted, after {trials.executed} executions"
        raise Problem(known, f"the same command continues from {trials.file}") from None
    if as_json:
        print(json.dumps({"case": graphs.name, "status": 1, **answer}, indent=2))
    raise typer.Exit(1)


def _graphs(question: Question) -> GraphTrials:
    try:
        return question.graphs()
    except Problem:
        raise
    except Exception as error:  # raised by the case itself
        reason = next(iter(message(error).splitlines()), "")
        raise Problem(
            f"the case fails in eager: {type(error).__name__}: {reason}",
            f"`tracing run {question.case}` records what fails",
        ) from error


def _minified(trials: Trials, tries: int, folder: Path, seconds: float) -> dict[str, Any]:
    # prints the events of the search; returns the answer for --json
    graph, wanted = _failing(trials)
    for line in report.whole_text(graph, len(trials.graphs.graphs), wanted):
        out.print(line)
    if trials.known:
        err.print(report.known_text(trials.known, str(trials.file)))
    err.print(report.cost_text(tries, wanted))
    whole = trials.graphs.whole(graph)
    search = GraphSearch(trials, trials.graphs.nodes(graph), whole, wanted, tries)
    smallest = _searched(search, trials, wanted)
    lines = trials.graphs.lines(graph)
    for line in report.minimal_text(smallest, wanted, lines, trials.executed):
        out.print(line)
    script = _script(trials, smallest, folder, seconds)
    for line in report.script_text(script, trials.case):
        out.print(line)
    effort = {"executed": trials.executed, "known": trials.known}
    return {**report.minify_json(smallest, wanted, lines), **report.script_json(script), **effort}


def _failing(trials: Trials) -> tuple[int, Trial]:
    # the first graph that fails without reduction
    endings = []
    for graph in range(len(trials.graphs.graphs)):
        with spinner(f"executing graph {graph}, whole"):
            trial = trials(trials.graphs.whole(graph))
        if trial.kind in FAILURES:
            return graph, trial
        endings.append(f"graph {graph}: {trial.text}")
    if not endings:
        raise Problem("torch.compile makes no graph of the case", "minify a case that it compiles")
    case = shlex.quote(trials.case)
    text = f"no graph of the case fails, so there is nothing to search; {'; '.join(endings)}"
    graphs = range(len(trials.graphs.graphs))
    if own := dict.fromkeys(name for graph in graphs for name in trials.graphs.hand_written(graph)):
        raise Problem(
            f"{text}; each graph is compared with itself in eager, which launches {', '.join(own)}, too",
            f"`tracing bisect {case}` compares with what the case computes in eager",
        )
    raise Problem(text, f"`tracing run {case}` compares the whole case; --predicate asks for another failure")


def _searched(search: GraphSearch, trials: Trials, wanted: Trial) -> Minimal:
    smallest, step, executed = wanted, "", trials.executed
    with spinner("") as now:
        for event in search.events():
            if isinstance(event, Minimal):
                return event
            if isinstance(event, SearchStep):
                step = event.what
            elif isinstance(event, CandidateTried):
                smallest = event.trial if event.verdict == "fail" else smallest
                if trials.executed > executed:  # the answer was not known from an earlier search
                    err.print(report.tried_text(event))
                executed = trials.executed
            now(f"{step}: {smallest.nodes} nodes fail ({trials.executed} executed)")
    raise AssertionError("a search ends with its smallest graph")


def _script(trials: Trials, minimal: Minimal, folder: Path, seconds: float) -> MinifiedScript:
    # the simplest form with the same failure; without a GPU, Inductor's C++ code is tried before Triton
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / "repro.py"
    forms = script_forms(minimal.trial, virtual=trials.graphs.virtual)
    with spinner("running the script in a fresh process"):
        for form in (*forms, forms[0]):  # if no script fails, the simplest one is kept
            missing = trials.write(minimal.edit, minimal.trial, script, form)
            ran = fresh_run(script, minimal.trial, seconds, loads_case=form.loads_case)
            if ran.fails:
                break
    return MinifiedScript(str(script), ran.fails, ran.output, tuple(missing), form.loads_case)
