"""`tracing bisect`: the compiler pass with which a kernel's result turns bad."""

from __future__ import annotations

import math
import shlex
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from tracing import environment, store
from tracing.analyze import layers
from tracing.analyze.bisect import FirstBad, Judgement, Layer, Undecided, first_bad
from tracing.analyze.judge import STAGES, CommandJudge
from tracing.analyze.layers import Bisection
from tracing.analyze.passes import compilation, passes_of
from tracing.analyze.probes import Judge, Probes
from tracing.analyze.source_map import artefacts
from tracing.cli.app import RUNS, Runs, app, err, out, progress
from tracing.cli.derived import open_derived
from tracing.errors import Problem
from tracing.model import Compilation, PassRecord
from tracing.report import bisect as report
from tracing.report.passes import Line


@app.command()
def bisect(
    name: Annotated[str, typer.Argument(metavar="RUN", help='A run by path or name, or "latest".')],
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- COMMAND]", help="Judges a build, as that of `git bisect run` does."),
    ] = None,
    kernel: Annotated[
        str | None, typer.Option(help="A kernel by name, by the first digits of its hash, or NAME#2.")
    ] = None,
    launch: Annotated[
        int | None, typer.Option(help="Without COMMAND: the launch to replay, not the first.")
    ] = None,
    atol: Annotated[float | None, typer.Option(help="Without COMMAND: absolute tolerance.")] = None,
    rtol: Annotated[float | None, typer.Option(help="Without COMMAND: relative tolerance.")] = None,
    seconds: Annotated[float, typer.Option(help="What one compile, or one replay, may take.")] = 120.0,
    runs: Runs = RUNS,
) -> None:
    """Find the pass with which a kernel's result turns bad: of MLIR, of LLVM, or of ptxas.

    COMMAND is run once for each build that is tried. {ttir}, {ttgir}, {llir}, {ptx}, {cubin}, {amdgcn} and
    {hsaco} in it become the paths of the build's artefacts, {dir} that of their folder. Its exit status 0
    means good, 125 that it cannot be told, 1 to 127 bad; what is above ends the search. Without COMMAND, on a
    GPU, the kernel is launched again on its recorded inputs, and compared with what Triton's interpreter
    makes of them.

    Interrupted, the same command goes on where it stopped. What is found is a suspect, not proof.
    Exit status 0 if the full pipeline is good, 1 if a first bad step was found, 2 if there is no answer.
    """
    run = open_derived(name, runs)
    _require_its_triton(run)
    chosen = compilation(run, kernel)
    passes, recorded = passes_of(run, chosen), _recorded(run, chosen)
    if not recorded or not passes or passes[-1].after is None:
        raise Problem(
            f"the compilation of {chosen.kernel_name} did not end, so there is no full pipeline to judge",
            f"`tracing passes {run.path}` says in which pass it ended",
        )
    if command:
        judge: Judge = CommandJudge(command, list(recorded))
    else:
        from tracing.cli.build_judge import replay_judge

        judge = replay_judge(run, chosen, launch, atol, rtol, seconds)
    try:
        status = _Search(run, chosen, passes, recorded, judge, seconds).status()
    except KeyboardInterrupt:
        raise Problem("interrupted", "the same command goes on from there") from None
    raise typer.Exit(status)


class _Search:
    """The layers of one kernel, one after the other, and what is printed of them."""

    def __init__(
        self,
        run: store.Run,
        chosen: Compilation,
        passes: Sequence[PassRecord],
        recorded: Mapping[str, str | bytes],
        judge: Judge,
        seconds: float,
    ) -> None:
        environment.use_inductors_ptxas()
        # imports Triton, for which no other command needs to wait
        from tracing.cli.builder import VariantBuilder

        self.run, self.passes, self.judge = run, passes, judge
        self.last, self.nvidia = max(judge.stages, key=STAGES.index), "ptx" in recorded
        self.probes = Probes(run.path, judge)
        builder = VariantBuilder(run, chosen, passes, recorded, self.last, seconds)
        self.where = f"{shlex.quote(str(run.path))} --kernel {chosen.hash[:12]}"
        key = [chosen.hash, run.info.environment.triton, self.last]
        self.bisection = Bisection(passes, self.probes, builder, key)
        self.mandatory: Sequence[layers.Mandatory] = ()

    def status(self) -> int:
        """Search, print, and give the exit status."""
        started = time.perf_counter()
        with err.status("building and judging the full pipeline"):
            full = self.bisection.full()
        spent = time.perf_counter() - started
        out.print(f"full pipeline: {report.judgement_text(full)}", markup=False)
        if full.verdict == "good":
            return 0
        if full.verdict == "skip":
            raise Problem(f"cannot be decided, because the full pipeline cannot be judged: {full.detail}")
        if self.probes.judged:  # otherwise it is known, and says nothing of the time
            ahead = f"{len(self.bisection.changed)} compiles and some 20 builds to judge ahead"
            err.print(
                f"[dim]{ahead}; the first took {spent:.1f} s, later ones resume behind its first passes[/]"
            )
        answers = list(self._answers())
        out.print(f"built {self.probes.built}, judged {self.probes.judged}; others were known", markup=False)
        if any(isinstance(found, FirstBad) for found in answers):
            out.print("A suspect, not proof: leaving out a pass also hides a fault of one that builds on it.")
            return 1
        _print(report.left_over(self.mandatory, self.judge.stages))
        return 2

    def _answers(self) -> Iterator[FirstBad | Undecided]:
        yield self._mlir()
        if STAGES.index(self.last) < STAGES.index("llir"):
            _print([report.not_asked(layers.LLVM, self.judge.stages)])
        else:
            yield self._llvm()
        if self.last == "cubin":
            for layer in self.bisection.ptxas():
                yield self._searched(layer)
        elif self.nvidia:
            _print([report.not_asked("ptxas", self.judge.stages)])

    def _mlir(self) -> FirstBad | Undecided:
        with progress("which MLIR passes can be left out", len(self.bisection.changed)) as advance:
            found = self.bisection.mlir(advance)
        self.mandatory = found.mandatory
        counts = f"{len(found.layer.steps)} can be left out, {len(found.mandatory)} are mandatory"
        out.print(f"{layers.MLIR}: {counts}, {self.bisection.unchanged} changed nothing", markup=False)
        return self._searched(found.layer)

    def _llvm(self) -> FirstBad | Undecided:
        try:
            with err.status("building all of LLVM's passes"):
                layer = self.bisection.llvm()
        except Problem as problem:
            return self._told(Undecided(layers.LLVM, problem.problem))
        return self._searched(layer)

    def _searched(self, layer: Layer) -> FirstBad | Undecided:
        most = 1 + math.ceil(math.log2(max(2, len(layer.steps)))) + 2  # and two to confirm it
        with progress(f"searching {len(layer.steps)} {layer.name}", most) as advance:

            def probe(on: int, *, again: bool = False) -> Judgement:
                found = layer.probe(on, again=again)
                advance()
                return found

            return self._told(first_bad(replace(layer, probe=probe)))

    def _told(self, found: FirstBad | Undecided) -> FirstBad | Undecided:
        if isinstance(found, Undecided):
            _print(report.undecided_text(found))
            return found
        steps = self.passes if found.layer == layers.MLIR else ()
        suspect = next((one for one in steps if one.index == found.step.index), None)
        _print(report.first_bad_text(found, suspect))
        ir = (self.run.text(suspect.before), self.run.text(str(suspect.after))) if suspect else None
        _print(report.difference(found, ir))
        _print(report.reproduction(self._commands(found, suspect)))
        return found

    def _commands(self, found: FirstBad, suspect: PassRecord | None) -> dict[str, str]:
        # what to type to see it again
        commands = {}
        if isinstance(self.judge, CommandJudge):
            commands["bad again"] = shlex.join(self.judge.words(Path(found.bad.where)))
            commands["good again"] = shlex.join(self.judge.words(Path(found.good.where)))
        if suspect is not None:
            commands["the pass"] = f"tracing passes {self.where} --pass {suspect.index}"
        elif found.layer == layers.LLVM:
            commands["the pass"] = f"tracing passes {self.where} --llvm --pass {found.step.index}"
        return commands


def _require_its_triton(run: store.Run) -> None:
    # passes are known by their number in the pipeline, which is another in another release
    recorded, here = run.info.environment.triton, environment.installed("triton")
    if recorded != here:
        raise Problem(
            f"{run.path} was recorded with Triton {recorded}, and this is {here}",
            f"bisect it with Triton {recorded}, or record it again here",
        )


def _recorded(run: store.Run, chosen: Compilation) -> dict[str, str | bytes]:
    return {
        stage: run.bytes(blob) if stage in ("cubin", "hsaco") else run.text(blob)
        for stage, blob in artefacts(run, chosen).items()
        if stage in STAGES
    }


def _print(lines: Iterable[Line]) -> None:
    for line in lines:
        out.print(line)
