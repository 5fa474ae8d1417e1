"""Search the pass in which a compile crashes, and the earlier pass that provokes it; yields events."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tracing import store
from tracing.analyze.bisect import layers
from tracing.analyze.bisect.crash import (
    CompileCrash,
    CrashBuilds,
    CrashEvent,
    CrashPoint,
    Hangs,
    provoking,
    provoking_in_llvm,
)
from tracing.analyze.bisect.leave_out import Dropped, Instance
from tracing.analyze.bisect.search import JudgeAnswer, Step
from tracing.analyze.bisect.search_events import Building
from tracing.compiler.child import ChildResult, in_child
from tracing.compiler.codegen import llvm, ptxas
from tracing.compiler.early_end import EarlyEnd, attempt
from tracing.compiler.history import History, history, start_of
from tracing.compiler.resume import ResumePoint, options_of, resume
from tracing.compiler.steps import StageEnds
from tracing.model import Compilation

PRINTING = 3.0  # time limit of a compile that prints its IR, relative to one that does not
LLVM_STARTS = 20.0  # additional seconds for a compile that prints LLVM's IR
LLVM_PASSES = 200  # passes of a typical kernel
HANG = 10.0  # minimum time limit of a compile in seconds, after one hung
HEALTHY = 5.0  # time limit of a compile, relative to the time up to the part that hangs
_LLVM_STAGES = ("llir", "ptx", "amdgcn")


class CrashSearch:
    """Search for the pass in which a compile crashes, and the earlier pass that provokes it."""

    def __init__(self, run: store.Run, chosen: Compilation, seconds: float, repeat: int) -> None:
        """Search one compilation of a run.

        seconds -- time limit of the first compile; if it is reached, that of the others is shorter
        repeat  -- how often each compile is tried: a crash may be intermittent
        """
        self.run, self.chosen = run, chosen
        self.seconds, self.repeat = seconds, repeat
        self.where = f"{shlex.quote(str(run.path))} --kernel {chosen.hash[:12]}"
        self.happened: History

    def events(self) -> Iterator[CrashEvent]:
        """Search; without a `CompileCrash` among the events, the compile does not die."""
        start = self._start()
        yield Building("compiling from the source")
        tries = (attempt(self.chosen, start, seconds=self.seconds).ending for _ in range(self.repeat))
        ending = next((one for one in tries if one is not None), None)
        if ending is None:
            return
        if ending.kind == "time":
            self.seconds = min(self.seconds, max(HANG, HEALTHY * ending.reached))
        source = self.run.text(self.chosen.source)
        self.happened = history(self.chosen, source, seconds=PRINTING * self.seconds)
        if ending.kind == "time":
            yield self._hangs(ending)
        yield from self._mlir(ending, ending.index) if ending.index is not None else self._after_mlir(ending)

    def _hangs(self, ending: EarlyEnd) -> Hangs:
        before = self.happened.passes[: ending.index]
        builds = len({one.step.name for one in before if one.before != one.after})
        llvm_builds = 1 + LLVM_PASSES.bit_length() if ending.part.startswith("LLVM") else 0
        return Hangs(self.seconds, self.repeat * (builds + llvm_builds))

    def _mlir(self, ending: EarlyEnd, index: int) -> Iterator[CrashEvent]:
        step = self.happened.passes[index].step
        facts = {
            "pipeline": step.pipeline,
            "its input": f"tracing passes {self.where} --pass {index}",
            "in gdb": f"tracing debug {self.where} --pass {index}",
            "smaller": f"tracing reduce {self.where} --pass {index}",
        }
        yield CompileCrash(layers.MLIR, Step(index, step.name), step.stage, ending.message, facts)
        yield from self._provoked(ending, index)

    def _after_mlir(self, ending: EarlyEnd) -> Iterator[CrashEvent]:
        # in LLVM, in ptxas, or in the code of a stage outside of its passes
        if ending.part == "ptxas":
            yield self._ptxas(ending)
        elif ending.stage in _LLVM_STAGES and ending.part.startswith("LLVM"):
            yield from self._llvm(ending)
        else:
            yield CompileCrash("", Step(-1, ending.part), ending.stage, ending.message)
        yield from self._provoked(ending, len(self.happened.passes))

    def _llvm(self, ending: EarlyEnd) -> Iterator[CrashEvent]:
        point = self.happened.resume_point(self.happened.passes[-1].step.index)

        def compile(stage_ended: Callable[[], None] = lambda: None) -> Any:
            return resume(self.chosen, point, last=ending.stage, observer=StageEnds(stage_ended))

        yield Building("printing LLVM's passes as they run")
        seconds = PRINTING * self.seconds + LLVM_STARTS
        *_, last = [None, *llvm.printed(compile, seconds=seconds, dies=True)[1]]
        ran = llvm.limited(compile, llvm.ALL, seconds=self.seconds).passes
        if last is None:
            yield CompileCrash(layers.LLVM, Step(-1, ending.part), ending.stage, ending.message)
        else:
            which = str(last.index) if last.index else shlex.quote(last.name)
            facts = {"its input": f"tracing passes {self.where} --llvm --pass {which}"}
            step = Step(last.index or -1, last.name, last.unit)
            yield CompileCrash(layers.LLVM, step, ending.stage, ending.message, facts)
        yield from self._provoked_in_llvm(ending, point, ran, last.index if last else None)

    def _provoked_in_llvm(
        self, ending: EarlyEnd, point: ResumePoint, ran: Sequence[llvm.PrintedPass], number: int | None
    ) -> Iterator[CrashEvent]:
        # number -- of the pass that dies; None: LLVM never leaves it out
        before = [one for one in ran if number is None or one.index < number]
        itself = next((one for one in ran if one.index == number), None)

        def verdict(on: int) -> JudgeAnswer:
            seen: list[llvm.PrintedPass] = []

            def run(call: Callable[[], Any], seconds: float) -> ChildResult:
                limited = llvm.limited(call, on, also=number, seconds=seconds)
                seen.extend(limited.passes)
                return limited.ended

            observed = self._attempt(point, ending, run=run)
            if itself is not None and itself not in seen:
                return "skip"  # without some passes LLVM runs other passes, and their numbers differ
            return "good" if observed is None else "bad" if ending.same(observed) else "skip"

        yield Building("leaving out LLVM's passes")
        yield from provoking_in_llvm([Step(one.index, one.name, one.unit) for one in before], verdict)

    def _ptxas(self, ending: EarlyEnd) -> CompileCrash:
        kept = self.run.path / "bisect" / f"{self.chosen.hash[:12]}.ptx"
        kept.parent.mkdir(exist_ok=True)
        kept.write_text(str(self.happened.artefacts["ptx"]))
        levels = {f"-O{level}": self._assembled(level) for level in ptxas.LEVELS}
        facts = {"its input": str(kept), **levels}
        return CompileCrash("", Step(-1, "ptxas"), "cubin", ending.message, facts)

    def _assembled(self, level: int) -> str:
        arch = int(self.chosen.target.removeprefix("cuda:"))
        options, text = options_of(self.chosen.options), str(self.happened.artefacts["ptx"])

        def call() -> int:
            return len(ptxas.assemble(text, arch, opt=level, options=options))

        return in_child(call, self.seconds).failure or "it ends"

    def _provoked(self, ending: EarlyEnd, count: int) -> Iterator[CrashEvent]:
        # by a pass of MLIR among the first `count`
        passes = [
            Instance(one.step.index, one.step.name, one.before != one.after)
            for one in self.happened.passes[:count]
        ]
        return provoking(passes, CrashBuilds(self._ending_without(ending), self.repeat))

    def _ending_without(self, ending: EarlyEnd) -> Callable[[Dropped, bool], CrashPoint | None]:
        def die(dropped: Dropped, from_source: bool) -> CrashPoint | None:
            begin = 0 if from_source else min(dropped, default=0)
            point = self.happened.resume_point(begin) if begin else self._start()
            observed = self._attempt(point, ending, dropped)
            return CrashPoint(ending.same(observed), str(observed)) if observed else None

        return die

    def _attempt(
        self,
        point: ResumePoint,
        ending: EarlyEnd,
        dropped: Dropped = frozenset(),
        run: Callable[[Callable[[], Any], float], ChildResult] = in_child,
    ) -> EarlyEnd | None:
        return attempt(
            self.chosen,
            point,
            drop=dropped,
            until=ending.index,
            last=ending.stage,
            seconds=self.seconds,
            run=run,
        ).ending

    def _start(self) -> ResumePoint:
        return start_of(self.chosen, self.run.text(self.chosen.source))
