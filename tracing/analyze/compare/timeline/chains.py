"""Bounds the chains of operators through which a value is followed back.

An operator's result refers to the operator's inputs, these to the operators that wrote them, and so on: in a
training loop that calls only operators, the chain has no end.
"""

from __future__ import annotations

from tracing.analyze.compare.timeline.memory import Input, Sources, Write

DEEP = 64  # operators in a row through which a value is followed back at least, and at most twice as many
_KNOWN = 1 << 14  # writes whose shorter form is remembered


class Chains:
    """Cuts chains that have twice the needed length."""

    def __init__(self) -> None:
        self._writes: dict[int, tuple[Write, Write]] = {}  # by id of the long one, which is held
        self._inputs: dict[int, tuple[tuple[Input, ...], tuple[Input, ...]]] = {}

    def followed(self, sources: Sources) -> Sources:
        """The inputs of an operator, without the inputs of operators that are far before it."""
        if len(self._writes) > _KNOWN:
            self._writes.clear()
            self._inputs.clear()
        return self._shortened(sources, 2 * DEEP)

    def _shortened(self, sources: Sources, depth: int) -> Sources:
        # those of at least this depth
        return tuple([self._short(one) if one is not None and one.depth >= depth else one for one in sources])

    def _short(self, write: Write) -> Write:
        if id(write) not in self._writes:
            if write.depth > DEEP:
                short = write._replace(reads=self._read(write.reads), depth=write.depth - DEEP)
            else:
                short = write._replace(reads=(), depth=0, cut=write.cut or bool(write.reads))
            self._writes[id(write)] = write, short
        return self._writes[id(write)][1]

    def _read(self, reads: tuple[Input, ...]) -> tuple[Input, ...]:
        # the results of an operator share them
        if id(reads) not in self._inputs:
            short = tuple([one._replace(sources=self._shortened(one.sources, 1)) for one in reads])
            self._inputs[id(reads)] = reads, short
        return self._inputs[id(reads)][1]
