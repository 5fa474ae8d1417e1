"""The operator calls of one process, in order: the next launch, the call count, the digests."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice, takewhile
from typing import NamedTuple

from tracing.analyze.compare.timeline.memory import PlacedTensor, Write
from tracing.model import CallSite, OperatorCall, OperatorDigests, OperatorSignature
from tracing.store import Run


class CallOnTensor(NamedTuple):
    """A call of an operator that wrote the storage of a tensor."""

    number: int  # of earlier calls with these arguments
    launches: int  # before it
    results: Sequence[PlacedTensor]
    bits: str  # of one of the results; empty: no digest was taken


class CalledOperators:
    """The operators of one process."""

    def __init__(self, run: Run, process: str) -> None:
        self._run, self._process = run, process
        self._totals: Counter[tuple[str, str]] | None = None  # by name; read when it is asked for
        self.signatures = {one.id: one for one in run.view(process, OperatorSignature, OperatorSignature)}
        self._calls = self._all()
        self._waiting = next(self._calls, None)
        recorded = run.view(process, OperatorDigests, OperatorDigests)
        self._digests = {one.operator: one for one in recorded}
        self._sites = run.sites(process)
        self._called: dict[tuple[str, str], array[int]] = {}
        # calls that draw random numbers, and the lines that make them
        self._draws = array("q"), array("q")
        self._drawn: list[tuple[str, str]] = []  # their names and arguments

    def before(self, launch: int | None) -> Iterator[OperatorCall]:
        """The calls up to a launch that were not returned yet; None: all remaining ones."""
        while self._waiting is not None and (launch is None or self._waiting.launch <= launch):
            call, self._waiting = self._waiting, next(self._calls, None)
            yield call

    def name(self, call: OperatorCall) -> tuple[str, str]:
        """The name of an operator, and its arguments that are no tensors."""
        signature = self.signatures.get(call.signature)
        return (signature.name, signature.arguments_of(call)) if signature else ("", "")

    def counted(self, call: OperatorCall) -> int:
        """The number of earlier equal calls; counts this call."""
        signature = self.signatures[call.signature]
        calls = self._called.setdefault(self.name(call), array("q"))
        calls.append(call.launch)
        if signature.random:
            self._draws[0].append(call.index)
            self._draws[1].append(call.site)
            self._drawn.append(self.name(call))
        return len(calls) - 1

    def count(self, name: str, arguments: str, launch: int) -> int:
        """The number of equal calls before a launch, as far as calls were counted."""
        return bisect_right(self._called.get((name, arguments), ()), launch)

    def total(self, name: str, arguments: str) -> int:
        """How often it is called like this in the whole process."""
        if self._totals is None:
            self._totals = Counter(map(self.name, self._all()))
        return self._totals[name, arguments]

    def results(self, operator: Write) -> tuple[list[PlacedTensor], CallSite | None]:
        """What the call of this run wrote that has the number of a call of the other run, and its line.

        Empty if this run has no such call. Reads the calls up to it.
        """
        alike = (call for call in self._all() if self.name(call) == (operator.name, operator.argument))
        call = next(islice(alike, operator.call, None), None)
        return ([], None) if call is None else (self._written(call), self.site(call))

    def calls_on(self, tensor: PlacedTensor, operator: Write) -> list[CallOnTensor]:
        """The calls up to a call of an operator, and equal to it, that wrote the storage of a tensor.

        Reads the calls up to it.
        """
        calls = takewhile(lambda one: one.index <= operator.number, self._all())
        alike = (call for call in calls if self.name(call) == (operator.name, operator.argument))
        written = ((call, self._written(call)) for call in alike)
        return [
            CallOnTensor(number, call.launch, results, self._bits_left(call, operator.position))
            for number, (call, results) in enumerate(written)
            if any(one.storage == tensor.storage for one in results)
        ]

    def _all(self) -> Iterator[OperatorCall]:
        return self._run.view(self._process, OperatorCall, OperatorCall)

    def _written(self, call: OperatorCall) -> list[PlacedTensor]:
        signature = self.signatures[call.signature]
        written = zip(call.storages[len(signature.reads) :], signature.writes, strict=False)
        return [PlacedTensor(*one) for one in written]

    def _bits_left(self, call: OperatorCall, position: int) -> str:
        digests = self.digests(call.index)
        return digests.after[position].bits if digests and position < len(digests.after) else ""

    def site(self, call: OperatorCall) -> CallSite | None:
        """The line of the program that makes a call; None: unknown."""
        return self._sites.get(call.site)

    def draws(self, name: str) -> bool:
        """True if the operators of a name draw random numbers."""
        return any(one.random for one in self.signatures.values() if one.name == name)

    def draws_before(self, call: int) -> int:
        """The number of calls that drew random numbers before a call."""
        return bisect_left(self._draws[0], call)

    def draw(self, number: int) -> str:
        """A call that drew random numbers, with its arguments that are no tensors."""
        name, arguments = self._drawn[number]
        return f"{name}({arguments})"

    def draw_text(self, number: int) -> str:
        """The same, with the line of the program that makes the call, if it is known."""
        site = self._sites.get(self._draws[1][number])
        return self.draw(number) if site is None else f"{self.draw(number)}, called at {site}"

    def digests(self, call: int) -> OperatorDigests | None:
        """The digests of a call, if they were recorded."""
        return self._digests.get(call)
