"""`tracing bisect` with a judge: build the search, and print its events."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from rich.text import Text

from tracing import store
from tracing.analyze.bisect import layers
from tracing.analyze.bisect.execution import Meaning
from tracing.analyze.bisect.judge import STAGES, CommandJudge
from tracing.analyze.bisect.layer_search import LayerSearch
from tracing.analyze.bisect.layers import Bisection
from tracing.analyze.bisect.leave_out import Instance
from tracing.analyze.bisect.probes import Judge, Probes
from tracing.analyze.bisect.repeated_judge import Repeated, confidence
from tracing.analyze.bisect.search import BuildTried, Changed, Contradiction, FirstBad, Undecided
from tracing.analyze.bisect.search_events import (
    Answer,
    Answered,
    Building,
    Executed,
    FullPipeline,
    LeftOut,
    NoAnswer,
    NotSearched,
    SearchEvent,
    Searching,
)
from tracing.analyze.bisect.snapshot_search import SnapshotSearch
from tracing.analyze.bisect.snapshots import FirstSeen
from tracing.analyze.passes.compilations import compilations, label
from tracing.analyze.passes.source_map import artefacts
from tracing.cli.answers.recording_hints import latest, record_command
from tracing.cli.app import err, out, progress, silent, spinner
from tracing.cli.narrow.bisect.builder import VariantBuilder
from tracing.cli.narrow.bisect.execution import meaning_of, signatures_of
from tracing.cli.narrow.bisect.snapshots import llvm_snapshots, mlir_snapshots, reads_llvm
from tracing.compiler.history import History, history
from tracing.compiler.identity import identity
from tracing.errors import Problem
from tracing.model import Compilation
from tracing.report.bisect import bisect as report
from tracing.report.bisect.bisect_json import bisection_json
from tracing.report.text import Line, plural

PRINTING = 3.0  # time limit of a compile that prints its IR, relative to one that does not


def search(
    run: store.Run,
    chosen: Compilation,
    judge: Judge,
    seconds: float,
    repeat: int,
    *,
    fresh: bool,
    as_json: bool,
) -> int:
    """Search, print, and return the exit status."""
    last = max(judge.stages, key=STAGES.index)
    folder = run.path if os.access(run.path, os.W_OK) else run.use_scratch()
    with spinner("compiling with every pass"):
        happened = history(chosen, run.text(chosen.source), last=last, seconds=PRINTING * seconds)
        _require_compiled(run, chosen, happened)
        unlike = _unlike(run, chosen, happened)
        if unlike:
            why = "differ from the recorded ones: another compiler, or other settings"
            err.print(Text(f"{unlike} {why}", "dim"))
        if repeat > 1:
            probes = Probes(folder, Repeated(judge, repeat), [identity()], times=1)
        else:
            probes = Probes(folder, judge, [identity()])
    if fresh:
        probes.forget()
    one = _Search(run, chosen, happened, judge, probes, seconds)
    one.unrecorded = _unrecorded(run, chosen, unlike) if unlike else None
    if not as_json:
        return _searched(one, probes)
    with silent():
        status = _searched(one, probes)
    answer = {"run": str(run.path), "status": status, "kernel": chosen.kernel_name}
    effort = {"built": probes.built, "judged": probes.judged}
    print(json.dumps({**answer, **bisection_json(one.events), **effort}, indent=2))
    return status


def _searched(one: _Search, probes: Probes) -> int:
    try:
        return one.status()
    except Contradiction as contradiction:
        err.print(Text(f"{contradiction}: everything is built from the source and judged anew", "dim"))
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


def _unlike(run: store.Run, chosen: Compilation, happened: History) -> str:
    # the artefacts that this compiler makes otherwise than the one that recorded the run
    recorded = artefacts(run, chosen)
    return ", ".join(
        stage
        for stage, content in happened.artefacts.items()
        if isinstance(content, str) and stage in recorded and store.blob_name(content) != recorded[stage]
    )


def _unrecorded(run: store.Run, chosen: Compilation, unlike: str) -> Problem:
    anew = f"{record_command(run)}; tracing passes {shlex.quote(str(run.path))} {latest(run)}"
    kernel = shlex.quote(label(compilations(run), chosen))
    return Problem(
        f"the full pipeline of this compiler is good, and it is not the recorded one: {unlike} of "
        f"{chosen.kernel_name} differ. No pass of the recorded compiler was judged",
        "bisect with the compiler, the environment variables and the PYTHONPATH of the recording; or name "
        f"the pass at which both compilers differ:\n  {anew} --kernel {kernel}",
    )


def _contradicted(contradiction: Contradiction) -> Problem:
    return Problem(
        f"cannot be decided, because the judge contradicts itself: {contradiction}",
        "a judge that is not always right is asked more often: `--repeat-judge 15`",
    )


class _Search:
    # the search of one kernel, and the printing of its events

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
        self.where = f"{shlex.quote(str(run.path))} --kernel {chosen.hash[:12]}"
        last = max(judge.stages, key=STAGES.index)
        builder = VariantBuilder(chosen, run.text(chosen.source), happened, last, seconds)
        passes = [
            Instance(one.step.index, one.step.name, one.before != one.after)
            for one in happened.passes
            if STAGES.index(one.step.stage) <= STAGES.index(last)
        ]
        self.bisection = Bisection(passes, probes, builder, [chosen.hash, chosen.source, last])
        languages = judge.languages if isinstance(judge, CommandJudge) else ()
        mlir = list(mlir_snapshots(chosen, happened))
        llvm = (
            (lambda: llvm_snapshots(chosen, happened, seconds)) if reads_llvm(languages, happened) else None
        )
        self.events: list[SearchEvent] = []
        self.unrecorded: Problem | None = None  # raised if this compiler is good, and not the recorded one
        self._advance: Callable[[], None] = lambda: None
        self._snapshots = SnapshotSearch(probes, languages, mlir, llvm)
        self._seconds = seconds
        self._signatures = partial(signatures_of, run, chosen.hash)

    def _layers(self) -> LayerSearch:
        def execute() -> Meaning:
            return meaning_of(self._snapshots.mlir, self._signatures(), self._seconds)

        return LayerSearch(self.bisection, self._snapshots, execute, self.happened.stages)

    def status(self) -> int:
        """Search, print the events, and return the exit status."""
        self.events = []
        with ExitStack() as display:  # a status or a progress bar is shown until the next event
            for event in self._layers().events():
                if isinstance(event, FullPipeline) and event.judgement.verdict == "good" and self.unrecorded:
                    raise self.unrecorded
                self._print(event, display)
                self.events.append(event)
        last = self.events[-1]
        if isinstance(last, FullPipeline):
            return 0
        if isinstance(last, NoAnswer):
            return 2
        self._print_effort()
        out.print("A suspect, not proof: leaving out a pass also hides a fault of one that builds on it.")
        return 1

    def _print(self, event: SearchEvent, display: ExitStack) -> None:
        if isinstance(event, BuildTried):
            self._advance()
            return
        display.close()
        if isinstance(event, Building):
            display.enter_context(spinner(event.what))
        elif isinstance(event, Searching):
            self._advance = display.enter_context(progress(event.what, event.most))
        elif isinstance(event, Answered):
            self._print_answered(event)
        elif isinstance(event, NoAnswer):
            self._print_effort()
            self._print_suspects(event)
        else:
            out.print_lines(self._lines(event))

    def _lines(self, event: FullPipeline | Executed | NotSearched | LeftOut) -> Iterator[Line]:
        if isinstance(event, FullPipeline):
            yield from report.full_text(event.judgement)
        elif isinstance(event, Executed):
            yield from report.meaning_text(event.meaning)
        elif isinstance(event, NotSearched):
            yield report.not_asked(event.layer, self.judge.stages)
        else:
            yield report.left_out_text(event.names)

    def _print_answered(self, event: Answered) -> None:
        believed = event.weighed is event.answer
        if isinstance(event.answer, FirstBad):
            self._print_first_bad(event.answer, believed=believed)
        if not believed or not isinstance(event.answer, FirstBad):
            self._print_answer(event.weighed)

    def _print_effort(self) -> None:
        rest = "; the rest is known from earlier searches" if self.probes.reused else ""
        built, judged = plural(self.probes.built, "build"), plural(self.probes.judged, "call")
        out.print(f"{built}, {judged} of the judge{rest}")
        self._print_confidence()

    def _print_suspects(self, event: NoAnswer) -> None:
        out.print_lines(report.suspects_text(list(event.suspects), list(event.rest)))
        if not self.probes.verdicts["good"]:
            out.print(report.never_text("bad", self.probes.verdicts.total()))
        if isinstance(self.judge, CommandJudge) and not self.judge.languages:
            out.print(report.looking_text())

    def _print_first_bad(self, first_bad: FirstBad, *, believed: bool) -> None:
        out.print_lines(report.first_bad_text(first_bad, self._facts(first_bad), believed=believed))
        out.print_lines(report.difference(*self._texts(first_bad)))
        out.print_lines(report.reproduction(self._commands(first_bad)))
        if believed:
            out.print_lines(report.believed_text(first_bad))

    def _print_answer(self, answer: Answer) -> None:
        if isinstance(answer, Undecided):
            out.print_lines(report.undecided_text(answer))
        elif isinstance(answer, Changed):
            one = self.happened.passes[answer.step.index]
            out.print_lines(report.changed_text(answer))
            out.print_lines(report.difference(one.before, one.after or ""))
            out.print_lines(report.reproduction(self._pass_command(answer.layer, answer.step.index)))
        elif isinstance(answer, FirstSeen):
            out.print_lines(report.first_seen_text(answer))
            out.print_lines(report.difference(answer.good.snapshot.text, answer.bad.snapshot.text))
            out.print_lines(report.reproduction(self._seen_commands(answer)))
            out.print_lines(report.believed_text(answer))

    def _facts(self, first_bad: FirstBad) -> dict[str, str]:
        if first_bad.layer != layers.MLIR:
            return {}
        step = self.happened.passes[first_bad.step.index].step
        return {
            "arguments": ", ".join(step.arguments) or "none",
            "pipeline": step.pipeline,
            "stage": f"{step.stage}, added at {step.caller}",
        }

    def _texts(self, first_bad: FirstBad) -> tuple[str, str, str]:
        if first_bad.layer == layers.MLIR:
            one = self.happened.passes[first_bad.step.index]
            return one.before, one.after or "", ""
        return report.built_texts(first_bad)

    def _commands(self, first_bad: FirstBad) -> dict[str, str]:
        # the commands that reproduce it
        of_pass = self._pass_command(first_bad.layer, first_bad.step.index)
        return self._judge_commands(first_bad.bad.where, first_bad.good.where) | of_pass

    def _seen_commands(self, first_seen: FirstSeen) -> dict[str, str]:
        one = first_seen.bad.snapshot
        folders = first_seen.bad.judgement.where, first_seen.good.judgement.where
        return self._judge_commands(*folders) | self._pass_command(one.layer, one.step.index)

    def _judge_commands(self, bad: str, good: str) -> dict[str, str]:
        if not isinstance(self.judge, CommandJudge):
            return {}
        words = self.judge.words
        return {"judged bad": shlex.join(words(Path(bad))), "judged good": shlex.join(words(Path(good)))}

    def _pass_command(self, layer: str, index: int) -> dict[str, str]:
        llvm = {layers.MLIR: "", layers.LLVM: " --llvm"}.get(layer)
        if llvm is None or index < 0:
            return {}
        return {"the pass": f"tracing passes {self.where}{llvm} --pass {index}"}

    def _print_confidence(self) -> None:
        if isinstance(self.probes.judge, Repeated):
            out.print(report.confidence_text(confidence(self.probes.judge.votes)))
