"""The layers of a kernel's compilation: MLIR passes, LLVM's passes, the levels and versions of ptxas.

Each layer starts from the full pipeline and leaves out only its own steps. If any build from a layer's input
is good, that input is good, and no earlier layer is to blame. So the last layer is searched first, and the
first answer is the answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from tracing.analyze.bisect.judge import artefact
from tracing.analyze.bisect.leave_out import Dropped, Instance, LeaveOut
from tracing.analyze.bisect.probes import Build, Compiled, Probes
from tracing.analyze.bisect.search import Judgement, Layer, Step
from tracing.errors import Problem

MLIR, LLVM, LEVELS, VERSIONS = "MLIR passes", "LLVM passes", "ptxas levels", "ptxas versions"


class Builder(Protocol):
    """Compiles one kernel in variants of its recorded compilation."""

    assemblers: Sequence[str]  # names of the installed versions; the version of the full pipeline comes first

    def without(self, dropped: frozenset[int], *, afresh: bool) -> Compiled:
        """Without the MLIR passes of these indices; `afresh`: from the source, ignoring cached builds."""

    def limited(self, limit: int | None, disabled: Sequence[str], *, afresh: bool) -> Compiled:
        """With the first `limit` of LLVM's optional passes, None: all, and with none of the disabled names.

        Its artefact `passes` lists them. Raises Problem where LLVM cannot list them.
        """

    def assembled(self, level: int | None, assembler: str | None) -> Compiled:
        """With another level or version of ptxas; None: that of the full pipeline."""


class Bisection:
    """The layers of one kernel; each is built when the search reaches it."""

    def __init__(
        self, passes: Sequence[Instance], probes: Probes, builder: Builder, key: Sequence[str]
    ) -> None:
        """Bisect a compilation.

        passes -- of MLIR, up to the stage that the judge looks at
        key    -- identifies this compilation in `probes`

        `from_source` may be set: builds then begin there, and not before the first pass that is left out.
        """
        self.from_source = False
        self._probes, self._builder, self._key = probes, builder, key
        self.passes = passes

    def full(self) -> Judgement:
        """The judgement of the full pipeline, compiled from its source and judged anew."""
        return self._probes.judgement(self._without(frozenset(), anew=True), anew=True)

    def mlir(self, full: Judgement, good_until: int = -1) -> LeaveOut:
        """The search over the passes of MLIR.

        full       -- the judgement of the full pipeline
        good_until -- the IR after the pass of this index is known to be good
        """
        return LeaveOut(MLIR, self.passes, self, full, good_until)

    def judged(self, dropped: Dropped, *, anew: bool = False) -> Judgement:
        """The judgement of the build without some passes of MLIR."""
        return self._probes.judgement(self._without(dropped, anew=anew), anew=anew)

    def failure(self, dropped: Dropped) -> str:
        """The reason why there is no such build; "" if there is one."""
        return self._without(dropped).failure

    def llvm(self) -> Layer:
        """LLVM's passes, those of its code generator too; raises Problem where they cannot be separated."""
        whole = self._limited(None)
        if whole.failure:
            raise Problem(f"the build that lists them failed: {whole.failure}")
        lines = artefact(whole.folder, "passes").read_text().splitlines()
        steps = [Step(index, *line.split(" on ", 1)) for index, line in enumerate(lines, 1)]

        def probe(on: int, *, anew: bool = False) -> Judgement:
            build = self._limited(on if on < len(steps) else None, anew=anew)
            return self._probes.judgement(build, anew=anew)

        def without(name: str) -> Judgement:
            return self._probes.judgement(self._limited(None, [name], anew=True), anew=True)

        return Layer(LLVM, steps, "LLVM without its optional passes", probe, without)

    def ptxas(self) -> Iterator[Layer]:
        """ptxas' optimisation levels, then each other version of it."""

        def levels(on: int, *, anew: bool = False) -> Judgement:
            return self._probes.judgement(self._assembled(on, None, anew=anew), anew=anew)

        steps = [Step(level, f"-O{level}") for level in (1, 2, 3)]
        yield Layer(LEVELS, steps, "the cubin of ptxas -O0", levels)
        for other in self._builder.assemblers[1:]:
            yield self._version(self._builder.assemblers[0], other)

    def _version(self, ours: str, other: str) -> Layer:
        def version(on: int, *, anew: bool = False) -> Judgement:
            build = self._assembled(None, ours if on else other, anew=anew)
            return self._probes.judgement(build, anew=anew)

        return Layer(VERSIONS, [Step(0, ours)], f"the cubin of {other}", version)

    def _without(self, dropped: Dropped, *, anew: bool = False) -> Build:
        key = [*self._key, "without", *map(str, sorted(dropped))]
        afresh = anew or self.from_source
        return self._probes.build(key, lambda: self._builder.without(dropped, afresh=afresh), anew=anew)

    def _limited(self, limit: int | None, disabled: Sequence[str] = (), *, anew: bool = False) -> Build:
        key = [*self._key, "llvm", str(limit), *disabled]
        afresh = anew or self.from_source
        make = lambda: self._builder.limited(limit, disabled, afresh=afresh)  # noqa: E731
        return self._probes.build(key, make, anew=anew)

    def _assembled(self, level: int | None, assembler: str | None, *, anew: bool = False) -> Build:
        key = [*self._key, "ptxas", str(level), str(assembler)]
        return self._probes.build(key, lambda: self._builder.assembled(level, assembler), anew=anew)
