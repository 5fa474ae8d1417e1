"""`tracing reduce`: reduce the IR before a pass."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tracing import store
from tracing.analyze.bisect.reduction import reduced
from tracing.analyze.passes.operations import counts
from tracing.analyze.passes.pass_table import find_pass, passes_of
from tracing.cli.app import NARROW, RUNS, Json, Runs, app, err, spinner
from tracing.cli.narrow.other_compiler import unlike_next, unlike_result
from tracing.cli.options.chosen_kernel import chosen_kernel
from tracing.cli.options.derived import open_derived
from tracing.cli.options.named import OneKernelOption, OnePassOption, RunArgument
from tracing.cli.options.outputs import OutputFileOption
from tracing.cli.options.same_triton import require_same_triton
from tracing.cli.options.trust import Trust
from tracing.environment.installed_tools import use_inductors_ptxas
from tracing.errors import Problem
from tracing.model import Compilation, PassRecord

if TYPE_CHECKING:
    from tracing.cli.narrow.bisect.reduce_predicate import Predicate


@app.command(rich_help_panel=NARROW)
def reduce(
    name: RunArgument,
    which: OnePassOption,
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- COMMAND]", help="Judges the output, if the pass does not die."),
    ] = None,
    kernel: OneKernelOption = None,
    stage: Annotated[str | None, typer.Option(help="Stage of the pass: ttir, ttgir or llir.")] = None,
    output: OutputFileOption = None,
    seconds: Annotated[float, typer.Option(help="Time limit of one run of the pass or of COMMAND.")] = 20.0,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Start with the whole IR, ignoring earlier results.")
    ] = False,
    trust: Trust = False,
    as_json: Json = False,
    runs: Runs = RUNS,
) -> None:
    """Make the IR before a pass as small as possible, while the pass still fails on it.

    Without COMMAND the failure is how the pass dies: the same diagnostic, assertion or signal, or more
    than --seconds. COMMAND judges as for `tracing bisect`: {before} and {after} in it become the paths of
    the IR before and after the pass; {ttgir}, {llir}, {ptx}, ... those of the later artefacts. It must
    judge bad with the pass, and good without it. Operations are counted as by `tracing passes`: functions and
    terminators count, the module does not.

    Without --output the IR is printed. After an interruption, the same command continues from the smallest
    IR. `tracing lit --ir FILE` writes a test from it.

    Example: tracing reduce demo-sound --kernel triton_poi_fused_mul_sigmoid_1#1
    --pass convert-triton-to-tritongpu -- awk '/blocked/ {exit 1}' {after}

    Exit status: 0 if the IR was reduced, 2 if the pass does not fail on it.
    """
    run = open_derived(name, runs, kernel, which, stage, trust=trust)
    run.require_trust(f"Triton's passes on its IR at {which}")
    chosen = chosen_kernel(run, kernel, crashed=not command)
    passes = passes_of(run, chosen)
    record = find_pass(passes, which, stage)
    require_same_triton(run, "reduce it")
    use_inductors_ptxas()
    from tracing.cli.narrow.bisect.reduce_predicate import predicate

    holds = predicate(run, chosen, passes, record, command, seconds)
    search = _Reduction(run, chosen, record, holds, command or [])
    if fresh:
        search.best.unlink(missing_ok=True)
    text = search.smallest()
    _print_smallest(search, text, output, as_json=as_json)


class _Reduction:
    # may be interrupted: the run keeps the smallest IR so far

    def __init__(
        self, run: store.Run, chosen: Compilation, record: PassRecord, holds: Predicate, command: list[str]
    ) -> None:
        key = store.blob_name("\0".join([chosen.hash, str(record.index), *command]))
        self.best = run.path / "reduce" / f"{key}.mlir"
        self.whole = holds.generic(run.text(record.before))
        self.run, self.chosen, self.record, self.holds = run, chosen, record, holds

    def _require_whole(self) -> None:
        try:
            self.holds.require(self.whole)
        except Problem:
            unlike = unlike_result(self.run, [self.record])
            if unlike is None:
                raise
            shown, recorded = (f"`{command}`" for command in unlike_next(self.run, unlike))
            remedy = f"the recorded effect: {shown}\n  record with the installed compiler: {recorded}"
            raise Problem(unlike.sentence, remedy) from None

    def smallest(self) -> str:
        """Validate the predicate, reduce, and return the smallest IR."""
        with spinner("trying the pass on the whole IR"):
            self._require_whole()
            known = self.best.read_text() if self.best.exists() else ""
            start = known if known and self.holds(known) else self.whole
        self.best.parent.mkdir(exist_ok=True)
        with spinner("") as now:

            def holds(text: str) -> bool:
                now(f"{self.holds.asked} tries")
                if not self.holds(text):
                    return False
                partial = self.best.with_suffix(".partial")
                partial.write_text(text)
                partial.replace(self.best)
                return True

            try:
                return reduced(start, holds)
            except KeyboardInterrupt:
                raise Problem("interrupted", f"the same command continues from {self.best}") from None


def _print_smallest(search: _Reduction, text: str, output: Path | None, *, as_json: bool) -> None:
    run, record, holds = search.run, search.record, search.holds
    pretty = holds.pretty(text)
    operations = {"before": counts(run.text(record.before)).total(), "after": counts(pretty).total()}
    err.print(f"{operations['before']} operations became {operations['after']}, by {holds.asked} tries")
    if output is not None:
        output.write_text(pretty)
        where = f"{shlex.quote(str(run.path))} --kernel {search.chosen.hash[:12]} --pass {record.index}"
        err.print(f"a test of it: tracing lit {where} --ir {shlex.quote(str(output))}")
    if as_json:
        of = {"run": str(run.path), "status": 0, "kernel": search.chosen.kernel_name, "pass": record.index}
        to = {"tries": holds.asked, "file": str(output) if output else None, "ir": pretty}
        print(json.dumps({**of, "operations": operations, **to}, indent=2))
    elif output is None:
        print(pretty, end="")
