"""The operator calls of one process, in order: the next launch, the call count, the digests."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator
from itertools import islice, takewhile

from tracing.model import OperatorCall, OperatorDigests, OperatorSignature
from tracing.store import Run


class CalledOperators:
    """The operators of one process."""

    def __init__(self, run: Run, process: str) -> None:
        self._run, self._process = run, process
        self._totals: Counter[tuple[str, str]] | None = None  # by name; read when it is asked for
        self.signatures = {one.id: one for one in run.view(process, OperatorSignature, OperatorSignature)}
        self._calls = run.view(process, OperatorCall, OperatorCall)
        self._waiting = next(self._calls, None)
        recorded = run.view(process, OperatorDigests, OperatorDigests)
        self._digests = {one.operator: one for one in recorded}
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
            self._totals = Counter(map(self.name, self._run.view(self._process, OperatorCall, OperatorCall)))
        return self._totals[name, arguments]

    def numbered(self, name: str, arguments: str, number: int) -> OperatorCall | None:
        """The call with this number of earlier equal calls; None: there are fewer."""
        calls = self._run.view(self._process, OperatorCall, OperatorCall)
        alike = (call for call in calls if self.name(call) == (name, arguments))
        return next(islice(alike, number, None), None)

    def on(self, storage: int, name: str, arguments: str, last: int) -> Iterator[tuple[int, OperatorCall]]:
        """The equal calls that wrote a storage, each with its number of earlier equal calls.

        last -- the number of the last one among all calls; reads the calls up to it
        """
        calls = takewhile(
            lambda one: one.index <= last, self._run.view(self._process, OperatorCall, OperatorCall)
        )
        alike = (call for call in calls if self.name(call) == (name, arguments))
        for number, call in enumerate(alike):
            if storage in call.storages[len(self.signatures[call.signature].reads) :]:
                yield number, call

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

    def draw_site(self, number: int) -> int:
        """The number of the line that makes a call that drew random numbers; -1: unknown."""
        return self._draws[1][number]

    def digests(self, call: int) -> OperatorDigests | None:
        """The digests of a call, if they were recorded."""
        return self._digests.get(call)
