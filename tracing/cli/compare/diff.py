"""`tracing diff`: how far results differ, element by element, within which tolerances."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from tracing import store
from tracing.cli.answers import recording_hints
from tracing.cli.answers.kept_answer import (
    IntoOption,
    finite_cells,
    keep_answer,
    require_run_of,
    run_for_answer,
)
from tracing.cli.app import COMPARE, RUNS, Json, Runs, app, out, spinner
from tracing.cli.options.backends import known_backends_of
from tracing.cli.options.completion import case_and_run_names
from tracing.cli.options.named import TargetOption
from tracing.cli.options.opened import open_run
from tracing.cli.options.run_pair import Anyway, open_pair
from tracing.errors import Problem, message
from tracing.model import AnswerHeat, AnswerTable, KeptTensor
from tracing.model.chips import DEFAULT_TARGET
from tracing.program.case import case_name, require_case
from tracing.store.kept_process import kept_process

if TYPE_CHECKING:
    from tracing.numerics.diff_report import KernelDiffReport
    from tracing.numerics.tensor_diff import ComparisonConfig

_MAPS = 12  # heat maps that are kept

_BY_DTYPE = "Default: by dtype, as torch.testing.assert_close."
BackendsOption = Annotated[
    str | None,
    typer.Option(
        metavar="REFERENCE,BACKEND…", help="Backends of torch.compile, or eager. Default: eager,inductor."
    ),
]


@app.command(rich_help_panel=COMPARE)
def diff(
    names: Annotated[
        list[str],
        typer.Argument(metavar="CASE | A B", help="A case, or two runs.", autocompletion=case_and_run_names),
    ],
    backends: BackendsOption = None,
    atol: Annotated[float | None, typer.Option(min=0, help=f"Absolute tolerance. {_BY_DTYPE}")] = None,
    rtol: Annotated[float | None, typer.Option(min=0, help=f"Relative tolerance. {_BY_DTYPE}")] = None,
    ulp: Annotated[
        float | None, typer.Option(min=0, help="Allowed distance in units in the last place.")
    ] = None,
    target: TargetOption = DEFAULT_TARGET,
    seed: Annotated[int, typer.Option(help="Seed of torch's random generators, for a case.")] = 0,
    rank: Annotated[int, typer.Option(help="Rank of both runs.")] = 0,
    into: IntoOption = None,
    anyway: Anyway = False,
    as_json: Json = False,
    runs: Runs = RUNS,
) -> None:
    """Show how far results differ: per element, in ULP and in RMSE, each with its own verdict.

    Of a case: outputs, gradients and state with each backend, against the first one. Of two runs that were
    recorded with --keep-outputs: the outputs of each launch of B, against A.

    Example: tracing diff gated_mlp --backends eager,aot_eager,inductor

    Exit status: 0 if all is within the tolerances, 1 if something is not, 2 if there is nothing to compare.
    """
    kept_in = run_for_answer(into, runs)
    _require(names, backends, rank, runs)
    with spinner("importing torch"):
        from tracing.numerics.tensor_diff import ComparisonConfig

        config = ComparisonConfig(atol, rtol, ulp=ulp)
    match names:
        case [case]:
            require_run_of(kept_in, case_name(case))
            chosen = known_backends_of("eager,inductor" if backends is None else backends)
            reports = _of_case(case, chosen, config, target, seed)
        case [a, b, *_]:
            reports = [_of_runs((a, b), config, rank, runs, anyway=anyway, quiet=as_json)]
            kept_in = kept_in or open_run(b, runs)
    if as_json:
        print(json.dumps({"reports": [one.json() for one in reports]}, indent=2))
    else:
        for one in (line for report in reports for line in report.rendered()):
            out.print(one)
        if len(names) == 1 and any(one.failed for one in reports):
            asked = f"tracing run {quote(names[0])}"
            out.print(f"these tolerances are fixed; whether rounding explains the difference: `{asked}`")
    compared = all(report.results for report in reports)
    status = 2 if not compared else 0 if all(one.passed for one in reports) else 1
    if kept_in is not None:
        keep_answer(kept_in, "diff", status, _lines(reports), **_parts(reports), rank=rank)
    raise typer.Exit(status)


def _require(names: list[str], backends: str | None, rank: int, runs: Path) -> None:
    # refuse before torch is imported
    match names:
        case [case]:
            if rank:
                raise Problem("--rank needs two runs, and a case is given", "leave it out, or name two runs")
            require_case(case)
        case [_, _] if backends is None:
            for run in [store.open_run(name, runs) for name in names]:  # a name that is none is refused first
                if not run.processes(KeptTensor):
                    command = recording_hints.record_command(run, "--keep-outputs")
                    raise Problem(f"{run.path} kept no tensors", f"record it with them: `{command}`")
                kept_process(run, rank)
        case [_, _]:
            raise Problem("--backends needs a case, and two runs are given", "leave it out, or name one case")
        case _:
            raise Problem(f"{len(names)} names are given", "name one case, or two runs")


def _lines(reports: Sequence[KernelDiffReport]) -> Iterator[str]:
    # the tables are kept as tables
    for report in reports:
        yield from (one.plain for one in report.rendered() if isinstance(one, Text))


def _parts(reports: Sequence[KernelDiffReport]) -> dict[str, Any]:
    from tracing.numerics.diff_report import table_rows

    tables, heat = [], []
    for report in reports:
        names = [name.rpartition("/")[2] for name in (report.test_backend, report.reference_backend)]
        pair = " against ".join(names)  # of runs without their folders
        columns, rows = table_rows(report)
        tables.append(AnswerTable(f"{report.model_name}: {pair}", columns, rows))
        heat += [
            AnswerHeat(one.name, finite_cells(one.tensor.heat))
            for one in report.failed
            if one.tensor is not None and one.tensor.heat
        ]
    return {"tables": tuple(tables), "heat": tuple(heat[:_MAPS])}


def _of_case(
    name: str, backends: list[str], config: ComparisonConfig, target: str, seed: int
) -> list[KernelDiffReport]:
    with spinner("importing torch") as now:
        from tracing.backend import ConstraintsViolated
        from tracing.numerics.kernel_diff import case_diffs
        from tracing.program.device import Device
        from tracing.program.experiment import Experiment

        device = Device(target)
        experiment = Experiment(device.load(name), device, seed)
        try:
            return list(case_diffs(experiment, backends, config, now))
        except Problem:
            raise
        except ConstraintsViolated as violated:
            raise Problem(
                message(violated).partition("\n\n")[0], "MOCK_STRICT=0 makes them warnings"
            ) from None
        except Exception as error:  # raised by the case or by a backend
            text = f"{type(error).__name__}: {message(error).strip()}"
            raise Problem(f"the case failed: {text}", f"the traceback: `tracing run {name}`") from error


def _of_runs(
    names: tuple[str, str], config: ComparisonConfig, rank: int, runs: Path, *, anyway: bool, quiet: bool
) -> KernelDiffReport:
    a, b = open_pair(*names, runs, anyway=anyway, quiet=quiet)
    with spinner("comparing tensors"):
        from tracing.numerics.diff_report import KernelDiffReport
        from tracing.replay.kept_diff import kept_diffs

        results = tuple(kept_diffs(a, b, rank, config))
    return KernelDiffReport(a.info.case, str(a.path), str(b.path), results, ())
