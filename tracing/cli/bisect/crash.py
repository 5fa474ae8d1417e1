"""`tracing bisect --crash`: the pass in which a compile dies, and the earlier one that provokes it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from typing import Any

from tracing import store
from tracing.analyze.bisect import layers
from tracing.analyze.bisect.crash import CrashBuilds, Died, provoking, provoking_in_llvm
from tracing.analyze.bisect.leave_out import Dropped, Instance
from tracing.analyze.bisect.search import FirstBad, Step, Undecided, Verdict
from tracing.analyze.bisect.search_events import Searching
from tracing.cli.app import err, out, progress
from tracing.compiler.child import Ended, in_child
from tracing.compiler.codegen import llvm, ptxas
from tracing.compiler.death import Death, attempt
from tracing.compiler.history import History, history, start_of
from tracing.compiler.resume import ResumePoint, options_of, resume
from tracing.compiler.steps import StageEnds
from tracing.model import Compilation
from tracing.report import crash as report
from tracing.report.passes import Line

PRINTING = 3.0  # how much longer a compile may take that prints its IR
LLVM_STARTS = 20.0  # seconds more for one that prints LLVM's
_LLVM_STAGES = ("llir", "ptx", "amdgcn")


def crash(run: store.Run, chosen: Compilation, seconds: float, repeat: int) -> int:
    """Search, print, and give the exit status: 0 if the compile does not die, 1 if it does."""
    source = run.text(chosen.source)
    start = start_of(chosen, source)
    with err.status("compiling from the source"):
        tries = (attempt(chosen, start, seconds=seconds).death for _ in range(repeat))
        death = next((one for one in tries if one is not None), None)
        if death is None:
            out.print(f"{chosen.kernel_name} compiles, and takes less than {seconds:g} s", markup=False)
            return 0
        happened = history(chosen, source, seconds=PRINTING * seconds)
    search = _Crash(run, chosen, happened, seconds, repeat)
    search.mlir(death) if death.index is not None else search.after_mlir(death)
    return 1


class _Crash:
    # one kernel whose compile dies

    def __init__(
        self, run: store.Run, chosen: Compilation, happened: History, seconds: float, repeat: int
    ) -> None:
        self.run, self.chosen, self.happened = run, chosen, happened
        self.seconds, self.repeat = seconds, repeat
        self._advance: Callable[[], None] = lambda: None
        self.where = f"{shlex.quote(str(run.path))} --kernel {chosen.hash[:12]}"

    def mlir(self, death: Death) -> None:
        """It dies in a pass of MLIR."""
        index = death.index or 0
        step = self.happened.passes[index].step
        facts = {
            "pipeline": step.pipeline,
            "its input": f"tracing passes {self.where} --pass {index}",
            "in gdb": f"tracing debug {self.where} --pass {index}",
            "smaller": f"tracing reduce {self.where} --pass {index}",
        }
        where = f"pass {index}, {step.stage}"
        _print(report.died_text(self.chosen.kernel_name, where, step.name, death.said, facts))
        self._provoked(death, index)

    def after_mlir(self, death: Death) -> None:
        """Bisect a death in LLVM, in ptxas, or in what a stage does in addition to its passes."""
        if death.part == "ptxas":
            self._ptxas(death)
        elif death.stage in _LLVM_STAGES and death.part.startswith("LLVM"):
            self._llvm(death)
        else:
            where = f"stage {death.stage}"
            _print(report.died_text(self.chosen.kernel_name, where, death.part, death.said, {}))
        self._provoked(death, len(self.happened.passes))

    def _llvm(self, death: Death) -> None:
        place = self.happened.place(self.happened.passes[-1].step.index)

        def compile(stage_ended: Callable[[], None] = lambda: None) -> Any:
            return resume(self.chosen, place, last=death.stage, observer=StageEnds(stage_ended))

        with err.status("printing LLVM's passes as they run"):
            seconds = PRINTING * self.seconds + LLVM_STARTS
            *_, last = [None, *llvm.printed(compile, seconds=seconds, dies=True)[1]]
            ran = llvm.limited(compile, llvm.ALL, seconds=self.seconds).passes
        name = last.name if last else death.part
        number = f"LLVM pass {last.index}, " if last and last.index else ""
        where = f"{number}{death.stage}{f', on {last.unit}' if last else ''}"
        which = str(last.index) if last and last.index else shlex.quote(name)
        facts = {"its input": f"tracing passes {self.where} --llvm --pass {which}"}
        _print(report.died_text(self.chosen.kernel_name, where, name, death.said, facts if last else {}))
        self._provoked_in_llvm(death, place, ran, last.index if last else None)

    def _provoked_in_llvm(
        self, death: Death, place: ResumePoint, ran: Sequence[llvm.PrintedPass], number: int | None
    ) -> None:
        # number -- of the pass that dies; None: LLVM never leaves it out
        before = [one for one in ran if number is None or one.index < number]
        itself = next((one for one in ran if one.index == number), None)

        def verdict(on: int) -> Verdict:
            seen: list[llvm.PrintedPass] = []

            def run(call: Callable[[], Any], seconds: float) -> Ended:
                limited = llvm.limited(call, on, also=number, seconds=seconds)
                seen.extend(limited.passes)
                return limited.ended

            observed = self._attempt(place, death, run=run)
            if itself is not None and itself not in seen:
                return "skip"  # without some passes LLVM runs others, and counts otherwise
            return "good" if observed is None else "bad" if death.same(observed) else "skip"

        with err.status("leaving out LLVM's passes"):
            provoking = provoking_in_llvm(len(before), verdict)
        if isinstance(provoking, str):
            _print([report.unprovoked_text(layers.LLVM, provoking)])
            return
        one = before[provoking]
        show = {"what it did": f"tracing passes {self.where} --llvm --pass {one.index}"}
        _print(report.provoked_text(layers.LLVM, Step(one.index, one.name, one.unit), (), show))

    def _ptxas(self, death: Death) -> None:
        kept = self.run.path / "bisect" / f"{self.chosen.hash[:12]}.ptx"
        kept.parent.mkdir(exist_ok=True)
        kept.write_text(str(self.happened.artefacts["ptx"]))
        levels = {f"-O{level}": self._assembled(level) for level in ptxas.LEVELS}
        facts = {"its input": str(kept), **levels}
        _print(report.died_text(self.chosen.kernel_name, "stage cubin", "ptxas", death.said, facts))

    def _assembled(self, level: int) -> str:
        arch = int(self.chosen.target.removeprefix("cuda:"))
        options, text = options_of(self.chosen.options), str(self.happened.artefacts["ptx"])

        def call() -> int:
            return len(ptxas.assemble(text, arch, opt=level, options=options))

        return in_child(call, self.seconds).failure or "it ends"

    def _provoked(self, death: Death, count: int) -> None:
        # by a pass of MLIR among the first `count`
        passes = [
            Instance(one.step.index, one.step.name, one.before != one.after)
            for one in self.happened.passes[:count]
        ]
        builds = CrashBuilds(self._death_without(death), self.repeat)
        with ExitStack() as display:  # a progress bar stands until the next event
            for event in provoking(passes, builds, lambda: self._advance()):
                display.close()
                if isinstance(event, Searching):
                    self._advance = display.enter_context(progress(event.what, event.most))
                else:
                    self._print_provoked(event.answer)

    def _print_provoked(self, answer: FirstBad | Undecided) -> None:
        step = answer.step.index if not isinstance(answer, Undecided) else -1
        _print(report.mlir_text(answer, {"what it did": f"tracing passes {self.where} --pass {step}"}))

    def _death_without(self, death: Death) -> Callable[[Dropped, bool], Died | None]:
        def die(dropped: Dropped, from_source: bool) -> Died | None:
            begin = 0 if from_source else min(dropped, default=0)
            place = self.happened.place(begin) if begin else self._start()
            observed = self._attempt(place, death, dropped)
            return Died(death.same(observed), str(observed)) if observed else None

        return die

    def _attempt(
        self,
        place: ResumePoint,
        death: Death,
        dropped: Dropped = frozenset(),
        run: Callable[[Callable[[], Any], float], Ended] = in_child,
    ) -> Death | None:
        return attempt(
            self.chosen,
            place,
            drop=dropped,
            until=death.index,
            last=death.stage,
            seconds=self.seconds,
            run=run,
        ).death

    def _start(self) -> ResumePoint:
        return start_of(self.chosen, self.run.text(self.chosen.source))


def _print(lines: Iterable[Line]) -> None:
    for line in lines:
        out.print(line)
