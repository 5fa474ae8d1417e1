"""`tracing bench`: compile time and latency of cases with several backends."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tracing.cli.answers.kept_answer import IntoOption, keep_answer, run_for_answer
from tracing.cli.app import RECORD, Json, app, err, out, spinner
from tracing.cli.options.backends import known_backends_of
from tracing.cli.options.completion import case_names
from tracing.cli.options.option_record import with_option_records
from tracing.errors import Problem, message
from tracing.model import AnswerBars, AnswerTable, CaseBench
from tracing.program.case import require_case
from tracing.report.bench import bench_json, bench_rows, bench_text, device_text, remarks_text

if TYPE_CHECKING:
    from tracing.program.device import Device

CASES = ["bert", "resnet18", "ssm"]


class BenchDevice(str, Enum):
    """Where a case is measured."""

    auto = "auto"  # the GPU if there is one
    cpu = "cpu"
    cuda = "cuda"


def _calls(text: str | int) -> int:
    if not str(text).isdecimal() or int(text) < 1:
        raise typer.BadParameter(f"{str(text)!r} is no number of measured calls; bench records no run")
    return int(text)


@dataclass(frozen=True)
class MeasureOptions:
    """How cases are measured, and compared."""

    backends: Annotated[
        str, typer.Option(metavar="REFERENCE,BACKEND…", help="Backends of torch.compile, or eager.")
    ] = "eager,inductor"
    warmup: Annotated[int, typer.Option(min=0, help="Calls before the measured ones.")] = 3
    runs: Annotated[
        int,
        typer.Option(
            parser=_calls,
            metavar="N",
            help="Number of measured calls. Of other commands, --runs is a folder.",
        ),
    ] = 10
    device: Annotated[BenchDevice, typer.Option(help="auto: the GPU if there is one.")] = BenchDevice.auto
    atol: Annotated[
        float | None, typer.Option(min=0, help="Absolute tolerance. Default: by dtype, then by float64.")
    ] = None
    rtol: Annotated[float | None, typer.Option(min=0, help="Relative tolerance. Default: the same.")] = None
    seed: Annotated[int, typer.Option(help="Seed of torch's random generators.")] = 0


@app.command(rich_help_panel=RECORD)
@with_option_records
def bench(
    options: MeasureOptions,
    cases: Annotated[
        list[str] | None,
        typer.Argument(metavar="[CASE…]", help="Default: bert resnet18 ssm.", autocompletion=case_names),
    ] = None,
    into: IntoOption = None,
    as_json: Json = False,
) -> None:
    """Measure cases with several backends: compile time, latency, graphs, violations, agreement of results.

    Each row is a case, and each line of it a backend. Latency is measured with CUDA events on a GPU, and
    with the clock on a CPU. Without a GPU the CPU is measured, where Inductor compiles C++, and never the
    virtual GPU, which interprets kernels: neither says how fast a GPU is. A case that launches a Triton
    kernel of its own can only be measured on a GPU. Violations are the nodes that `tracing check CASE`
    reports. After Ctrl-C, the finished cases are printed.

    Example: tracing bench silu --runs 5

    Exit status: 0 if all results agree with the first backend's, 1 if some differ, 2 if a case could not be
    measured.
    """
    kept_in = run_for_answer(into)
    done: list[CaseBench] = []
    interrupted = False
    try:
        for measured in _measured(cases or CASES, options):
            done.append(measured)
    except KeyboardInterrupt:
        interrupted = True
    status = 2 if interrupted else max(one.status for one in done)
    if as_json:
        print(json.dumps(bench_json(done, interrupted=interrupted, status=status), indent=2))
    else:
        for line in bench_text(done):
            out.print(line)
    if kept_in is not None:
        lines = [device_text(one.device) for one in done[:1]]
        keep_answer(kept_in, "bench", status, [*lines, *remarks_text(done)], **_parts(done))
    if interrupted:
        finished = "the rows are the cases that were finished" if done else "no case was finished"
        err.print(f"tracing: interrupted; {finished}")
    raise typer.Exit(status)


def _measured(names: Sequence[str], options: MeasureOptions) -> Iterator[CaseBench]:
    for name in names:
        require_case(name)
    backends = known_backends_of(options.backends)
    with spinner("importing torch") as now:
        measure = _measure(backends, options)
        for number, name in enumerate(names, 1):
            yield _timed(measure, name, _prefixed(now, f"{number} of {len(names)}: {name}: "))


def _parts(done: Sequence[CaseBench]) -> dict[str, Any]:
    measured = [case for case in done if case.backends]
    bars = [(f"{case.case} {one.backend}", one.median_ms) for case in measured for one in case.backends]
    columns, rows = bench_rows(measured)
    return {
        "tables": (AnswerTable("Compile time and latency", columns, rows),),
        "bars": (AnswerBars("Latency of a call, median", "ms", tuple(bars)),),
    }


def _timed(
    measure: Callable[[str, Callable[[str], None]], CaseBench], name: str, now: Callable[[str], None]
) -> CaseBench:
    # prints how long the case took, its compiles included
    started = time.perf_counter()
    measured = measure(name, now)
    ended = "could not be measured, after" if measured.failure else "was measured in"
    err.print(f"{name} {ended} {time.perf_counter() - started:.0f} s")
    return measured


def _prefixed(now: Callable[[str], None], prefix: str) -> Callable[[str], None]:
    return lambda text: now(prefix + text)


def _measure(
    backends: Sequence[str], options: MeasureOptions
) -> Callable[[str, Callable[[str], None]], CaseBench]:
    from tracing.backend import ConstraintsViolated
    from tracing.bench.case_bench import BenchSettings, bench_case
    from tracing.numerics.tensor_diff import ComparisonConfig
    from tracing.program.experiment import Experiment
    from tracing.upstream.triton.driver import lacks_gpu

    device = _device(options.device)
    tolerances = ComparisonConfig(options.atol, options.rtol)
    settings = BenchSettings(backends, options.warmup, options.runs, tolerances)

    def measure(name: str, now: Callable[[str], None]) -> CaseBench:
        try:
            return bench_case(Experiment(device.load(name), device, options.seed), settings, now)
        except Problem as problem:
            return CaseBench(name, device.name, failure=problem.problem, remedy=problem.remedy)
        except ConstraintsViolated as violated:
            text = message(violated).strip().splitlines()[0]
            return CaseBench(
                name, device.name, failure=text, remedy=f"all of them: `tracing check {quote(name)}`"
            )
        except Exception as error:  # the case failed; the other cases are measured
            if lacks_gpu(error):
                own = "it launches a Triton kernel of its own, which a CPU does not execute"
                remedy = f"measure it on a GPU; `tracing run {quote(name)}` checks it without one"
                return CaseBench(name, device.name, failure=own, remedy=remedy)
            text = f"{type(error).__name__}: {message(error).strip().splitlines()[0]}"
            return CaseBench(name, device.name, failure=text, remedy=f"the traceback: `tracing run {name}`")

    return measure


def _device(kind: BenchDevice) -> Device:
    from tracing.program.device import Device

    device = Device("sm_90")
    if kind is BenchDevice.cuda and device.virtual:
        raise Problem("--device is cuda, and torch sees no GPU", "measure on the CPU with --device cpu")
    return device.host() if kind is BenchDevice.cpu or device.virtual else device
