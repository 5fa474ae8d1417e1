"""A kernel's compile as layers of steps: MLIR passes, LLVM's passes, the levels and versions of ptxas.

Each layer starts from the full pipeline and leaves out steps of its own alone. How something is built is the
builder's, which its caller brings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from tracing.analyze.bisect import Judgement, Layer, Step, optional
from tracing.analyze.judge import STAGES, artefact
from tracing.analyze.probes import Build, Compiled, Probes
from tracing.errors import Problem
from tracing.model import PassRecord

MLIR, LLVM, LEVELS, VERSIONS = "MLIR passes", "LLVM passes", "ptxas levels", "ptxas versions"


class Builder(Protocol):
    """Compiles one kernel in other ways than it was."""

    assemblers: Sequence[str]  # names of those there are, that of the full pipeline first

    def without(self, dropped: frozenset[int]) -> Compiled:
        """Without the MLIR passes of these indices."""

    def limited(self, limit: int | None) -> Compiled:
        """With the first `limit` of LLVM's optional passes, None: all; its artefact `passes` lists them.

        Raises Problem where LLVM cannot be told to.
        """

    def assembled(self, level: int | None, assembler: str | None) -> Compiled:
        """With another level or version of ptxas; None: that of the full pipeline."""


@dataclass(frozen=True, slots=True)
class Mandatory:
    """A pass without which the pipeline does not reach its end."""

    record: PassRecord
    failure: str  # of the build without it


@dataclass(frozen=True, slots=True)
class Passes:
    """The MLIR layer, and what it is not made of."""

    layer: Layer
    mandatory: tuple[Mandatory, ...]


class Bisection:
    """The layers of one kernel, each asked for when it is to be searched."""

    def __init__(
        self, passes: Sequence[PassRecord], probes: Probes, builder: Builder, key: Sequence[str]
    ) -> None:
        """Bisect the compilation that `passes` are of.

        key -- what tells this compilation from others in `probes`
        """
        self._probes, self._builder, self._key = probes, builder, key
        last = max(STAGES.index(stage) for stage in probes.judge.stages)
        relevant = [one for one in passes if STAGES.index(one.stage) <= last]
        self.changed = [one for one in relevant if one.changed]
        self.unchanged = len(relevant) - len(self.changed)  # passes that did nothing to this kernel

    def full(self) -> Judgement:
        """What the judge says of the full pipeline, compiled anew."""
        return self._judged(self._without(frozenset()))

    def mlir(self, advance: Callable[[], None] = lambda: None) -> Passes:
        """Find by trying which MLIR passes can be left out; the others are mandatory.

        advance -- called after each try, of which there is one for each pass that changed the IR
        """

        failures: dict[int, str] = {}

        def compiles(dropped: frozenset[int]) -> bool:
            failures[min(dropped)] = self._without(dropped).failure
            advance()
            return not failures[min(dropped)]

        droppable = optional([one.index for one in self.changed], compiles)

        def probe(on: int, *, again: bool = False) -> Judgement:
            return self._judged(self._without(frozenset(droppable[on:]), again=again), again=again)

        def alone(position: int) -> Judgement:
            return self._judged(self._without(frozenset({droppable[position]})))

        steps = [Step(one.index, one.name) for one in self.changed if one.index in droppable]
        needed = (one for one in self.changed if one.index not in droppable)
        mandatory = tuple(Mandatory(one, failures[one.index]) for one in needed)
        return Passes(Layer(MLIR, steps, "the pipeline of mandatory passes alone", probe, alone), mandatory)

    def llvm(self) -> Layer:
        """LLVM's passes, those of its code generator too; raises Problem where they cannot be told apart."""
        whole = self._limited(None)
        if whole.failure:
            raise Problem(f"the build that lists them failed: {whole.failure}")
        names = artefact(whole.folder, "passes").read_text().splitlines()
        steps = [Step(index, name) for index, name in enumerate(names, 1)]

        def probe(on: int, *, again: bool = False) -> Judgement:
            return self._judged(self._limited(on if on < len(steps) else None, again=again), again=again)

        return Layer(LLVM, steps, "LLVM without its optional passes", probe)

    def ptxas(self) -> Iterator[Layer]:
        """ptxas' optimisation levels, then each other version of it."""

        def levels(on: int, *, again: bool = False) -> Judgement:
            return self._judged(self._assembled(on, None, again=again), again=again)

        steps = [Step(level, f"-O{level}") for level in (1, 2, 3)]
        yield Layer(LEVELS, steps, "the cubin of ptxas -O0", levels)
        for other in self._builder.assemblers[1:]:
            yield self._version(self._builder.assemblers[0], other)

    def _version(self, ours: str, other: str) -> Layer:
        def version(on: int, *, again: bool = False) -> Judgement:
            return self._judged(self._assembled(None, ours if on else other, again=again), again=again)

        return Layer(VERSIONS, [Step(0, ours)], f"the cubin of {other}", version)

    def _without(self, dropped: frozenset[int], *, again: bool = False) -> Build:
        key = [*self._key, "without", *map(str, sorted(dropped))]
        return self._probes.build(key, lambda: self._builder.without(dropped), again=again)

    def _limited(self, limit: int | None, *, again: bool = False) -> Build:
        key = [*self._key, "llvm", str(limit)]
        return self._probes.build(key, lambda: self._builder.limited(limit), again=again)

    def _assembled(self, level: int | None, assembler: str | None, *, again: bool = False) -> Build:
        key = [*self._key, "ptxas", str(level), str(assembler)]
        return self._probes.build(key, lambda: self._builder.assembled(level, assembler), again=again)

    def _judged(self, build: Build, *, again: bool = False) -> Judgement:
        return self._probes.judgement(build, again=again)
