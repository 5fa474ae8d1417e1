"""The IR between passes, judged as it is: what `tracing bisect` does with a judge that reads IR."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tracing.analyze.bisect import layers
from tracing.analyze.bisect.judge import MACHINE, MLIR, STAGES
from tracing.analyze.bisect.probes import Compiled, Probes
from tracing.analyze.bisect.search import Judgement, Step, Suspect, Undecided, require_pair
from tracing.analyze.bisect.snapshots import FirstSeen, NotSeen, Seen, Snapshot, first_seen, looked_at
from tracing.cli.app import progress
from tracing.compiler.codegen.llvm import printed
from tracing.compiler.history import History
from tracing.compiler.resume import resume
from tracing.compiler.steps import StageEnds
from tracing.errors import Problem
from tracing.model import Compilation

BETWEEN = "IR between passes"
END = ""  # the layer of what the judge looks at in the end
_SOURCE = Step(-1, "what makes IR of the kernel's source")
_TRANSLATION = Step(-1, "the translation to LLVM IR")
_OTHER = "the judge reads no IR of its language"


@dataclass(frozen=True, slots=True)
class Narrowed:
    """Which layers are left, after the IR between passes was looked at."""

    mlir: bool = True
    llvm: bool = True
    good_until: int = -1  # the IR behind this pass of MLIR is good


class SnapshotSearch:
    """Looks for the first IR that the judge says is bad."""

    def __init__(
        self,
        chosen: Compilation,
        happened: History,
        probes: Probes,
        languages: Sequence[str],
        seconds: float,
    ) -> None:
        """Look at one compilation.

        languages -- of the IR between passes that the judge reads; none: there is nothing to look at
        """
        self.languages = languages
        self._chosen, self._happened = chosen, happened
        self._probes, self._seconds = probes, seconds

    def answer(self, full: Judgement) -> tuple[FirstSeen | Undecided, Narrowed]:
        """The one place where good IR turns bad; where that is not certain, what is left to search.

        full -- what the judge says of the full pipeline, which is bad

        Raises Contradiction if the judge says something else of one of the two when it is asked again.
        """
        mlir = self.mlir()
        last = max(self._probes.judge.stages, key=STAGES.index)
        end = Seen(Snapshot(END, Step(-1, "what writes it as text"), last, ""), full)
        with progress("looking at the IR between passes", len(mlir)) as advance:
            seen = looked_at(mlir, self._judged, advance)
        found = first_seen([*seen, end])
        if self._reads_llvm and (isinstance(found, NotSeen) or found.bad is end):
            llvm = list(self._llvm())
            with progress("looking at LLVM's IR between passes", len(llvm)) as advance:
                seen += looked_at(llvm, self._judged, advance)
            found = first_seen([*seen, end])
        if isinstance(found, NotSeen):
            return Undecided(BETWEEN, found.because, _suspects(found.seen)), Narrowed()
        return self._confirmed(found, full)

    @property
    def _reads_llvm(self) -> bool:
        return bool({"llir", MACHINE} & set(self.languages)) and "llir" in self._happened.artefacts

    def _confirmed(self, found: FirstSeen, full: Judgement) -> tuple[FirstSeen | Undecided, Narrowed]:
        good, bad = found.good.snapshot, found.bad.snapshot
        is_bad = full if bad.layer == END else self._judged(bad, again=True)
        require_pair(bad.step, self._judged(good, again=True), is_bad)
        if not found.between and bad.layer != END:
            return found, Narrowed()
        because = f"the IR behind {good.step} is good, and {bad.step} leaves the next that can be judged"
        return Undecided(BETWEEN, because), _narrowed(good, bad)

    def _judged(self, one: Snapshot, *, again: bool = False) -> Judgement:
        if one.language not in self.languages:
            return Judgement("skip", _OTHER)
        key = ["ir", one.language, hashlib.blake2b(one.text.encode()).hexdigest()]
        build = self._probes.build(key, lambda: Compiled({one.language: one.text}))
        return self._probes.judgement(build, again=again)

    def mlir(self) -> list[Snapshot]:
        """The IR that enters the compilation, and what each pass of MLIR leaves."""
        return list(self._mlir())

    def _mlir(self) -> Iterator[Snapshot]:
        passes = self._happened.passes
        text = passes[0].before
        yield Snapshot(layers.MLIR, _SOURCE, _language(self._chosen.first), text)
        for one in passes:
            step, language = one.step, _language(one.step.stage)
            if one.before != text:
                own = Step(step.index - 1, f"Triton's own code before {step.name}")
                yield Snapshot(layers.MLIR, own, language, one.before)
            text = one.after or ""
            yield Snapshot(layers.MLIR, Step(step.index, step.name), language, text)

    def _llvm(self) -> Iterator[Snapshot]:
        last = "ptx" if "ptx" in self._happened.stages else "amdgcn"
        place = self._happened.place(self._happened.passes[-1].step.index)

        def compile(stage_ended: Callable[[], None]) -> Any:
            return resume(self._chosen, place, last=last, observer=StageEnds(stage_ended))

        ended, found = printed(compile, seconds=self._seconds)
        if ended.failure:
            raise Problem(f"LLVM's passes cannot be looked at: {ended.failure}")
        step = _TRANSLATION
        for one in found:
            yield Snapshot(layers.LLVM, step, _llvm_language(one.before), one.before)
            step = Step(one.index or -1, one.name, one.unit)
            if one.after is not None:
                yield Snapshot(layers.LLVM, step, _llvm_language(one.after), one.after)


def _narrowed(good: Snapshot, bad: Snapshot) -> Narrowed:
    if good.layer == layers.LLVM:
        return Narrowed(mlir=False)
    return Narrowed(llvm=bad.layer != layers.MLIR, good_until=good.step.index)


def _suspects(seen: Sequence[Seen]) -> tuple[Suspect, ...]:
    return tuple(Suspect(one.snapshot.step, "the IR turns bad behind it") for one in seen)


def _language(stage: str) -> str:
    return MLIR if stage == "llir" else stage


def _llvm_language(text: str) -> str:
    return MACHINE if text.startswith("# Machine code") else "llir"
