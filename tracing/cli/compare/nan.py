"""`tracing nan`: the first NaN or inf of a run."""

from __future__ import annotations

import json
from enum import Enum
from shlex import join, quote
from typing import Annotated

import typer
from msgspec.structs import replace

from tracing import store
from tracing.analyze.nonfinite.first_nonfinite import first_nonfinite
from tracing.analyze.nonfinite.nonfinite_answer import NonFiniteAnswer
from tracing.analyze.nonfinite.nonfinite_elements import nonfinite_elements
from tracing.analyze.nonfinite.nonfinite_operator import Made, NonFiniteOperator
from tracing.analyze.runs.recorded_steps import options_of
from tracing.analyze.runs.recording_commands import is_virtual
from tracing.cli.answers import hints, recording_hints
from tracing.cli.app import COMPARE, RUNS, Json, Runs, app, out, spinner
from tracing.cli.options.named import RunArgument
from tracing.cli.options.opened import open_run
from tracing.model import GraphTensor, KernelLaunch
from tracing.report.nonfinite import nonfinite_text
from tracing.report.nonfinite_json import nonfinite_json


class KindOption(str, Enum):
    """The values to search for."""

    any = "any"
    nan = "nan"
    inf = "inf"


@app.command(rich_help_panel=COMPARE)
def nan(
    name: RunArgument,
    kind: Annotated[
        KindOption, typer.Option(help="nan: inf counts as finite, as in masks. inf: NaN counts as finite.")
    ] = KindOption.any,
    as_json: Json = False,
    runs: Runs = RUNS,
) -> None:
    """Find the first launch or operator that produces a NaN or inf from finite inputs, and its readers.

    Needs no reference. Includes operators outside of Triton if their digests were recorded:
    `tracing run --operators digests`.

    Example: tracing run --operators digests silu && tracing nan latest

    Exit status: 0 if every value is finite, 1 if one is not, 2 if digests are missing.
    """
    run = open_run(name, runs)
    answer = first_nonfinite(run, kind.value)
    elements, commands = _elements(run, answer), commands_of_nan(run, answer)
    operators = _operators(run, answer)
    if as_json:
        print(json.dumps(nonfinite_json(str(run.path), answer, elements, commands, operators), indent=2))
    else:
        for line in nonfinite_text(answer, elements, commands, operators):
            out.print(line)
    raise typer.Exit(answer.status)


def _elements(run: store.Run, answer: NonFiniteAnswer) -> dict[str, list[int]]:
    origin = answer.origin
    if origin is None or not origin.made or not isinstance(origin.event.source, KernelLaunch):
        return {}
    rank, launch = origin.event.rank, origin.event.source.index
    known = {one.name: nonfinite_elements(run, rank, launch, one.position) for one in origin.tensors}
    return {name: indices for name, indices in known.items() if indices}


def _operators(run: store.Run, answer: NonFiniteAnswer) -> list[NonFiniteOperator]:
    # a fused kernel computes many operators: the run may have kept what tells which
    origin = answer.origin
    process = _process_of_graphs(run, answer)
    if origin is None or process is None or not isinstance(origin.event.source, KernelLaunch):
        return []
    with spinner("importing torch") as now:
        from tracing.judge.contents import device_of
        from tracing.judge.nonfinite_operators import nonfinite_operators

        now("executing the launch's graph in eager")
        nans = any(one.bad("nan") for one in origin.tensors) and answer.kind != "inf"
        kind: Made = "nan" if nans else "inf"
        return nonfinite_operators(run, process, origin.event.source, kind, device_of(run))


def _process_of_graphs(run: store.Run, answer: NonFiniteAnswer) -> str | None:
    # that made the launch, if its run has the inputs of its graphs
    origin = answer.origin
    if origin is None or not origin.made:
        return None
    kept = run.processes(GraphTensor)
    return next((one for one in kept if store.rank_of(one) == origin.event.rank), None)


def commands_of_nan(run: store.Run, answer: NonFiniteAnswer) -> list[str]:
    """The commands that lead from the first NaN or inf to its cause."""
    later = _of_later(run, answer)
    no_fault = answer.origin is not None and answer.origin.skipped
    return later if later and no_fault else [*later, *_of_origin(run, answer)]


def _of_later(run: store.Run, answer: NonFiniteAnswer) -> list[str]:
    later = answer.later
    if later is None or not isinstance(later.source, KernelLaunch):
        return []
    commands = [f"tracing {command} {quote(str(run.path))}" for command in ("show", "replay")]
    return [f"{command} --launch {later.source.index}" for command in commands]


def _of_origin(run: store.Run, answer: NonFiniteAnswer) -> list[str]:
    origin = answer.origin
    recorded_anew = [*_complete(run, answer), *_deciding(run, answer)]
    if origin is None:
        return [*recorded_anew, *_other_kind(run, answer)]
    if not isinstance(origin.event.source, KernelLaunch):
        made = origin.made and run.info.kind != "code"
        index, rank = origin.event.source.index, origin.event.rank
        script = hints.repro_of_operator(run, index, rank) if made else []
        return [*script, *([] if origin.made else _other_kind(run, answer))]
    launch, of_run = origin.event.source, quote(str(run.path))
    shown = f"tracing show {of_run} --launch {launch.index}"
    if origin.verb == "keeps":
        return [shown, *filter(None, [hints.of_unwritten(run)]), *recorded_anew]
    if not origin.made or launch.kernel.kind != "triton":
        return [shown, *_other_kind(run, answer), *recorded_anew]
    replay = f"tracing replay {of_run} --launch {launch.index}"  # it records lost inputs anew
    own = [] if run.info.kind == "code" else hints.of_launch(run, launch, origin.event.rank)
    operator = []
    if origin.computes and not run.processes(GraphTensor):  # it is not known
        operator.append(f"{recording_hints.keep_inputs(run)}; tracing nan {recording_hints.latest(run)}")
    return [*operator, shown, replay, *own, *_other_kind(run, answer), *recorded_anew]


def _complete(run: store.Run, answer: NonFiniteAnswer) -> list[str]:
    # what records all that the answer lacks; where steps were deleted, those before the NaN are kept
    steps = run.info.steps
    lacks = "--operators digests" in answer.record
    if not lacks and not steps.skips and not (steps.drops and answer.origin and answer.origin.partial):
        return []
    # with the operators' digests, too, an inf may have been before the NaN at which the recording ended
    until = (steps.until if lacks else "") or (answer.kind if steps.drops else "")
    whole = replace(steps, every=1, start=0, stop=None, until=until)
    kept = ["--keep-inputs"] if run.processes(GraphTensor) else []  # so that operators are named
    anew = recording_hints.record_command(run, "--operators", "digests", *kept, *options_of(whole))
    return [f"{anew}; tracing nan {recording_hints.latest(run)}"]


def _deciding(run: store.Run, answer: NonFiniteAnswer) -> list[str]:
    # what tells a stored value from one that was there before
    if run.info.kind == "code" or all(one.certain for one in answer.undecided):
        return []
    if run.info.digests == "declared":
        return [recording_hints.record_command(run, "--digests", "all")]
    if is_virtual(run.info.environment):
        return [hints.of_unwritten(run)]
    no_gpu = ["env", "CUDA_VISIBLE_DEVICES=", "HIP_VISIBLE_DEVICES="]  # there the accesses are exact
    anew = f"{join(no_gpu)} {recording_hints.record_command(run)}; tracing nan {recording_hints.latest(run)}"
    return [anew, hints.of_unwritten(run)]


def _other_kind(run: store.Run, answer: NonFiniteAnswer) -> list[str]:
    # an inf of the program's own, as in a mask, may precede a NaN that is computed
    origin = answer.origin
    if answer.kind != "any" or not (origin or any(one.explained for one in answer.reads)):
        return []
    if origin is not None and any(one.bad("nan") for one in origin.tensors):
        return []
    return [f"tracing nan {quote(str(run.path))} --kind nan"]
