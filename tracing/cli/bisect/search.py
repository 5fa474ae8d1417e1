"""The search of `tracing bisect`, layer by layer, and what is printed of it."""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from tracing import store
from tracing.analyze.bisect import layers
from tracing.analyze.bisect.judge import STAGES, CommandJudge
from tracing.analyze.bisect.layers import Bisection
from tracing.analyze.bisect.leave_out import Instance
from tracing.analyze.bisect.probes import Judge, Probes
from tracing.analyze.bisect.repeated_judge import Repeated, confidence
from tracing.analyze.bisect.search import (
    Changed,
    Contradiction,
    FirstBad,
    Judgement,
    Layer,
    Undecided,
    first_bad,
)
from tracing.analyze.bisect.snapshots import FirstSeen
from tracing.analyze.passes.source_map import artefacts
from tracing.cli.app import err, out, progress
from tracing.cli.bisect.builder import VariantBuilder
from tracing.cli.bisect.execution import Evidence
from tracing.cli.bisect.snapshots import Narrowed, SnapshotSearch
from tracing.compiler.history import History, history
from tracing.compiler.identity import identity
from tracing.errors import Problem
from tracing.model import Compilation
from tracing.report import bisect as report
from tracing.report.passes import Line

Answer = FirstBad | FirstSeen | Changed | Undecided
PRINTING = 3.0  # how much longer a compile may take that prints its IR
_NOT_OPTIONAL = "LLVM: what it does not leave out (the translation to it, instruction selection)"
_NOT_LEVELS = "ptxas: what each of them does at every level"
_INPUT = "the kernel itself, as it enters the first stage, or faults in several passes at once"


def search(
    run: store.Run, chosen: Compilation, judge: Judge, seconds: float, repeat: int, *, fresh: bool
) -> int:
    """Search, print, and give the exit status."""
    last = max(judge.stages, key=STAGES.index)
    folder = run.path if os.access(run.path, os.W_OK) else run.put_aside()
    with err.status("compiling with every pass"):
        happened = history(chosen, run.text(chosen.source), last=last, seconds=PRINTING * seconds)
        _require_compiled(run, chosen, happened)
        _note_changes(run, chosen, happened)
        if repeat > 1:
            probes = Probes(folder, Repeated(judge, repeat), [identity()], times=1)
        else:
            probes = Probes(folder, judge, [identity()])
    if fresh:
        probes.forget()
    one = _Search(run, chosen, happened, judge, probes, seconds)
    try:
        return one.status()
    except Contradiction as contradiction:
        err.print(f"[dim]{contradiction}[/]: everything is built from the source and judged again")
    probes.forget()
    one.bisection.from_source = True
    try:
        return one.status()
    except Contradiction as contradiction:
        raise _contradicted(contradiction) from None


def _require_compiled(run: store.Run, chosen: Compilation, happened: History) -> None:
    if happened.ended.failure:
        raise Problem(
            f"{chosen.kernel_name} does not compile, so there is nothing to judge: {happened.ended.failure}",
            f"`tracing bisect {shlex.quote(str(run.path))} --kernel {chosen.hash[:12]} --crash` says why",
        )


def _note_changes(run: store.Run, chosen: Compilation, happened: History) -> None:
    recorded = artefacts(run, chosen)
    others = [
        stage
        for stage, content in happened.artefacts.items()
        if isinstance(content, str) and stage in recorded and store.blob_name(content) != recorded[stage]
    ]
    if others:
        err.print(
            f"[dim]{', '.join(others)} come out otherwise than recorded: by another compiler, or with other "
            "settings[/]"
        )


def _contradicted(contradiction: Contradiction) -> Problem:
    return Problem(
        f"cannot be decided, because the judge contradicts itself: {contradiction}",
        "a judge that is not always right is asked more often: `--repeat-judge 15`",
    )


class _Search:
    # the layers of one kernel, the last one first

    def __init__(
        self,
        run: store.Run,
        chosen: Compilation,
        happened: History,
        judge: Judge,
        probes: Probes,
        seconds: float,
    ) -> None:
        self.happened, self.judge, self.probes = happened, judge, probes
        self.last = max(judge.stages, key=STAGES.index)
        self.where = f"{shlex.quote(str(run.path))} --kernel {chosen.hash[:12]}"
        builder = VariantBuilder(chosen, run.text(chosen.source), happened, self.last, seconds)
        passes = [
            Instance(one.step.index, one.step.name, one.before != one.after)
            for one in happened.passes
            if STAGES.index(one.step.stage) <= STAGES.index(self.last)
        ]
        self.bisection = Bisection(passes, probes, builder, [chosen.hash, chosen.source, self.last])
        languages = judge.languages if isinstance(judge, CommandJudge) else ()
        self.snapshots = SnapshotSearch(chosen, happened, probes, languages, seconds)
        self.narrowed = Narrowed()
        self.evidence = Evidence(self.bisection, seconds)
        self.names: Mapping[str, Judgement] = {}

    def status(self) -> int:
        with err.status("building and judging the full pipeline"):
            full = self.bisection.full()
        out.print(f"full pipeline: {report.judgement_text(full)}", markup=False)
        if full.verdict == "good":
            _print([report.never_text("good", 1)])
            return 0
        if full.verdict == "skip":
            raise Problem(f"cannot be decided, because the full pipeline cannot be judged: {full.detail}")
        answers = list(self._answers(full))
        out.print(f"built {self.probes.built}, judged {self.probes.judged}; others were known", markup=False)
        self._print_confidence()
        if isinstance(answers[-1], Undecided):
            self._print_suspects(answers)
            return 2
        out.print("A suspect, not proof: leaving out a pass also hides a fault of one that builds on it.")
        return 1

    def _answers(self, full: Judgement) -> Iterator[Answer]:
        # of the layers, the last one first; those before one that answers are not asked
        for ask in self._questions(full):
            found = ask()
            weighed = self.evidence.weighed(found, self.names)
            if isinstance(found, FirstBad):
                self._print_first_bad(found, believed=weighed is found)
            if weighed is not found or not isinstance(found, FirstBad):
                self._print_answer(weighed)
            yield weighed
            if not isinstance(weighed, Undecided):
                return

    def _questions(self, full: Judgement) -> Iterator[Callable[[], Answer]]:
        if self.snapshots.languages:
            yield partial(self._seen, full)
        if self.narrowed.mlir:
            with err.status("executing the IR between passes"):
                self.evidence.execute(self.snapshots.mlir())
            _print(report.meaning_text(self.evidence.meaning))
        if self.last == "cubin":
            yield from (partial(self._row, layer) for layer in self.bisection.ptxas())
        elif "ptx" in self.happened.stages:
            _print([report.not_asked("ptxas", self.judge.stages)])
        if STAGES.index(self.last) < STAGES.index("llir"):
            _print([report.not_asked(layers.LLVM, self.judge.stages)])
        elif self.narrowed.llvm:
            yield self._llvm
        if self.narrowed.mlir:
            yield partial(self._mlir, full)

    def _seen(self, full: Judgement) -> FirstSeen | Undecided:
        found, self.narrowed = self.snapshots.answer(full)
        return found

    def _mlir(self, full: Judgement) -> FirstBad | Undecided:
        search = self.bisection.mlir(full, self.narrowed.good_until)
        with progress("leaving out MLIR passes", len(search.candidates())) as search.advance:
            found = search.search()
        self.names = search.names
        kinds = [one.verdict for one in search.names.values()]
        good, bad, none = (kinds.count(verdict) for verdict in ("good", "bad", "skip"))
        out.print(
            f"{layers.MLIR}: {len(kinds)} changed something; without {good} of them the result is good, "
            f"without {bad} bad, and {none} cannot be left out",
            markup=False,
        )
        return found

    def _llvm(self) -> FirstBad | Undecided:
        try:
            with err.status("building all of LLVM's passes"):
                layer = self.bisection.llvm()
        except Problem as problem:
            return Undecided(layers.LLVM, problem.problem)
        return self._row(layer)

    def _row(self, layer: Layer) -> FirstBad | Undecided:
        most = 1 + math.ceil(math.log2(max(2, len(layer.steps)))) + 2  # and two to confirm it
        with progress(f"searching {len(layer.steps)} {layer.name}", most) as advance:

            def probe(on: int, *, again: bool = False) -> Judgement:
                found = layer.probe(on, again=again)
                advance()
                return found

            return first_bad(replace(layer, probe=probe))

    def _print_first_bad(self, found: FirstBad, *, believed: bool) -> None:
        _print(report.first_bad_text(found, self._facts(found), believed=believed))
        _print(report.difference(*self._texts(found)))
        _print(report.reproduction(self._commands(found)))
        if believed:
            _print(report.believed_text(found))

    def _print_answer(self, found: Answer) -> None:
        if isinstance(found, Undecided):
            _print(report.undecided_text(found))
        elif isinstance(found, Changed):
            one = self.happened.passes[found.step.index]
            _print(report.changed_text(found))
            _print(report.difference(one.before, one.after or ""))
            _print(report.reproduction(self._pass_command(found.layer, found.step.index)))
        elif isinstance(found, FirstSeen):
            _print(report.first_seen_text(found))
            _print(report.difference(found.good.snapshot.text, found.bad.snapshot.text))
            _print(report.reproduction(self._seen_commands(found)))
            _print(report.believed_text(found))

    def _facts(self, found: FirstBad) -> dict[str, str]:
        if found.layer != layers.MLIR:
            return {}
        step = self.happened.passes[found.step.index].step
        return {
            "arguments": ", ".join(step.arguments) or "none",
            "pipeline": step.pipeline,
            "stage": f"{step.stage}, added at {step.caller}",
        }

    def _texts(self, found: FirstBad) -> tuple[str, str, str]:
        if found.layer == layers.MLIR:
            one = self.happened.passes[found.step.index]
            return one.before, one.after or "", ""
        return report.built_texts(found)

    def _commands(self, found: FirstBad) -> dict[str, str]:
        # what to type to see it again
        of_pass = self._pass_command(found.layer, found.step.index)
        return self._judge_commands(found.bad.where, found.good.where) | of_pass

    def _seen_commands(self, found: FirstSeen) -> dict[str, str]:
        one = found.bad.snapshot
        folders = found.bad.judgement.where, found.good.judgement.where
        return self._judge_commands(*folders) | self._pass_command(one.layer, one.step.index)

    def _judge_commands(self, bad: str, good: str) -> dict[str, str]:
        if not isinstance(self.judge, CommandJudge):
            return {}
        words = self.judge.words
        return {"bad again": shlex.join(words(Path(bad))), "good again": shlex.join(words(Path(good)))}

    def _pass_command(self, layer: str, index: int) -> dict[str, str]:
        llvm = {layers.MLIR: "", layers.LLVM: " --llvm"}.get(layer)
        if llvm is None or index < 0:
            return {}
        return {"the pass": f"tracing passes {self.where}{llvm} --pass {index}"}

    def _print_confidence(self) -> None:
        if isinstance(self.probes.judge, Repeated):
            _print([report.confidence_text(confidence(self.probes.judge.votes))])

    def _print_suspects(self, answers: list[Answer]) -> None:
        suspects = [one for found in answers if isinstance(found, Undecided) for one in found.suspects]
        llvm = self.narrowed.llvm and STAGES.index(self.last) >= STAGES.index("llir")
        rest = {
            _NOT_OPTIONAL: llvm,
            _NOT_LEVELS: self.last == "cubin",
            _INPUT: self.narrowed.mlir and self.narrowed.good_until < 0,
        }
        _print(report.suspects_text(suspects, [what for what, possible in rest.items() if possible]))
        if not self.probes.verdicts["good"]:
            _print([report.never_text("bad", self.probes.verdicts.total())])


def _print(lines: Iterable[Line]) -> None:
    for line in lines:
        out.print(line)
