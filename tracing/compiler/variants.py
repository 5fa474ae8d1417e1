"""Build a kernel differently: without some passes, with fewer of LLVM's, by another assembler.

Every build runs in a child process with a time limit. It is resumed before the first omitted pass,
or, to confirm an answer, starts from the source.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from tracing.compiler.child import ChildResult, in_child
from tracing.compiler.codegen import llvm, ptxas
from tracing.compiler.history import History, start_of
from tracing.compiler.resume import options_of, resume
from tracing.compiler.steps import Pass
from tracing.errors import Problem
from tracing.model import Compilation

# artefacts in addition to the stages
SHARED = "shared"  # bytes of shared memory that a launch must ask for
LLVM_PASSES = "passes"  # LLVM passes that can be left out, "simplifycfg on function (matmul)", a line each
_SHARED = re.compile(r"\bttg\.shared = (\d+)")


class Variants:
    """The builds of one compilation; a build is a mapping from stages, and the names above, to artefacts."""

    def __init__(
        self, compilation: Compilation, source: str, history: History, *, last: str, seconds: float
    ) -> None:
        """Build variants of `compilation`.

        source  -- the text that enters it
        history -- its history with this compiler
        last    -- the stage with which a build ends, "ptx"
        seconds -- time limit of one build
        """
        self._compilation, self._source, self._history = compilation, source, history
        self._last, self._seconds = last, seconds

    def without(self, dropped: Collection[int], *, afresh: bool = False) -> ChildResult:
        """The build without these passes, by index, resumed at the first of them; `afresh`: at its source."""
        start = 0 if afresh else min(dropped, default=0)
        return in_child(lambda: self._resumed(start, dropped), self._seconds)

    def limited(
        self, limit: int | None, disabled: Collection[str] = (), *, afresh: bool = False
    ) -> ChildResult:
        """The build with the first `limit` of LLVM's optional passes, None: all; it holds `LLVM_PASSES`, too.

        disabled -- names of LLVM's passes that never run
        afresh   -- start at the source, not before the last pass of MLIR

        Raises Problem as `llvm.limited` does.
        """
        count = llvm.ALL if limit is None else limit
        start = 0 if afresh else self._history.passes[-1].step.index
        built = llvm.limited(lambda: self._resumed(start, ()), count, disabled, seconds=self._seconds)
        names = "\n".join(f"{one.name} on {one.unit}" for one in built.passes)
        made = built.ended
        return replace(made, result={**made.result, LLVM_PASSES: names}) if made.result else made

    def assembled(self, level: int | None, assembler: str | None) -> ChildResult:
        """The full pipeline's PTX by another level or version of ptxas; None: as Triton calls it."""
        arch = int(self._compilation.target.removeprefix("cuda:"))
        options = options_of(self._compilation.options)
        made = self._history.artefacts

        def call() -> dict[str, str | bytes]:
            cubin = ptxas.assemble(str(made["ptx"]), arch, opt=level, assembler=assembler, options=options)
            return {**made, "cubin": cubin, **_shared(self._history.passes[-1].before)}

        return in_child(call, self._seconds)

    def _resumed(self, index: int, dropped: Collection[int]) -> dict[str, str | bytes]:
        history = self._history
        point = history.resume_point(index) if index else start_of(self._compilation, self._source)
        watch = _Watch(point.ir, history)
        made = resume(self._compilation, point, last=self._last, drop=dropped, observer=watch)
        earlier = history.stages[: history.stages.index(point.stage)]
        return {**{name: history.artefacts[name] for name in earlier}, **made, **watch.shared}


class _Watch:
    # checks that the passes are the recorded ones, because passes are left out by number; and reads the
    # shared memory that the kernel requests: a pass sets that attribute, and no artefact has it

    def __init__(self, text: str, history: History) -> None:
        self.shared = _shared(text)
        self._names: Mapping[int, str] = {one.step.index: one.step.name for one in history.passes}

    def before(self, step: Pass, module: Any) -> None:
        if self._names.get(step.index, step.name) != step.name:
            wanted = self._names[step.index]
            raise Problem(
                f"pass {step.index} is {step.name} in this build, and {wanted} in the full pipeline"
            )

    def after(self, step: Pass, module: Any, wall_ms: float) -> None:
        shared = module.get_int_attr("ttg.shared")
        if shared is not None:
            self.shared = {SHARED: str(shared)}

    def artefact(self, stage: str, content: object, wall_ms: float) -> None: ...

    def ended(self) -> None: ...


def _shared(text: str) -> dict[str, str]:
    match = _SHARED.search(text)
    return {SHARED: match[1]} if match else {}
