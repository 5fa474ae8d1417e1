"""Other builds of a recorded kernel: without some passes, with fewer of LLVM's, by another assembler.

Every build runs in a child process with a time limit, and starts as late in the recorded compilation as what
is left out allows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tracing.compiler import llvm, ptxas
from tracing.compiler.child import Ended, in_child
from tracing.compiler.resume import options_of, place_before, resume
from tracing.compiler.steps import Pass
from tracing.model import Blob, Compilation, PassRecord

# artefacts beside the stages
SHARED = "shared"  # bytes of shared memory that a launch must ask for
LLVM_PASSES = "passes"  # LLVM's passes that can be left out, "simplifycfg on function (matmul)", a line each
_SHARED = re.compile(r"\bttg\.shared = (\d+)")


class Variants:
    """The builds of one compilation; what a build gives is its artefacts by stage, and those named above."""

    def __init__(
        self,
        compilation: Compilation,
        passes: Sequence[PassRecord],
        text: Callable[[Blob], str],
        recorded: Mapping[str, str | bytes],
        *,
        last: str,
        seconds: float,
    ) -> None:
        """Build variants of `compilation`.

        passes   -- all of its passes, in order
        text     -- the IR in a blob
        recorded -- the artefacts of its stages, in order
        last     -- the stage with which a build ends, "ptx"
        seconds  -- that one build may take
        """
        self._compilation, self._passes, self._text = compilation, passes, text
        self._recorded, self._last, self._seconds = recorded, last, seconds

    def without(self, dropped: Collection[int]) -> Ended:
        """The build without these passes, by index, resumed at the first of them; without none, at pass 0."""
        return in_child(lambda: self._resumed(min(dropped, default=0), dropped), self._seconds)

    def limited(self, limit: int | None) -> Ended:
        """The build with the first `limit` of LLVM's optional passes, None: all; it holds `LLVM_PASSES`, too.

        Raises Problem as `llvm.limited` does.
        """
        last, count = self._passes[-1].index, llvm.ALL if limit is None else limit
        found = llvm.limited(lambda: self._resumed(last, ()), count, seconds=self._seconds)
        names = "\n".join(f"{one.name} on {one.unit}" for one in found.passes)
        made = found.ended
        return replace(made, result={**made.result, LLVM_PASSES: names}) if made.result else made

    def assembled(self, level: int | None, assembler: str | None) -> Ended:
        """The recorded PTX by another level or version of ptxas; None: as Triton calls it."""
        arch = int(self._compilation.target.removeprefix("cuda:"))
        options = options_of(self._compilation.options)

        def call() -> dict[str, str | bytes]:
            ptx = str(self._recorded["ptx"])
            cubin = ptxas.assemble(ptx, arch, opt=level, assembler=assembler, options=options)
            return {**self._recorded, "cubin": cubin, **_shared(self._text(self._passes[-1].before))}

        return in_child(call, self._seconds)

    def _resumed(self, index: int, dropped: Collection[int]) -> dict[str, str | bytes]:
        place = place_before(self._passes[index], self._passes, self._text)
        watch = _Watch(place.ir)
        made = resume(self._compilation, place, last=self._last, drop=dropped, observer=watch)
        stages = list(self._recorded)
        before = {name: self._recorded[name] for name in stages[: stages.index(place.stage)]}
        return {**before, **made, **watch.shared}


class _Watch:
    # how much shared memory the kernel wants: an attribute that a pass sets, and no artefact shows

    def __init__(self, text: str) -> None:
        self.shared = _shared(text)

    def before(self, step: Pass, module: Any) -> None: ...

    def after(self, step: Pass, module: Any, wall_ms: float) -> None:
        found = module.get_int_attr("ttg.shared")
        if found is not None:
            self.shared = {SHARED: str(found)}

    def artefact(self, stage: str, content: object, wall_ms: float) -> None: ...

    def ended(self) -> None: ...


def _shared(text: str) -> dict[str, str]:
    found = _SHARED.search(text)
    return {SHARED: found[1]} if found else {}
