"""Pair the passes of two compilations, and find the first after which the IR differs.

Passes are aligned by stage and name, in order; of several alignments the one with the most equal IR is
chosen. The IR after each pass of one compilation is compared with that of the other, ignoring value names. So
a pass that only one compilation has is judged by its effect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Literal, TypeAlias

from tracing.analyze.passes.ir_text import PlainModule, canonical, plain, unordered
from tracing.analyze.passes.renaming import renamed
from tracing.model import Blob, PassRecord

State: TypeAlias = Literal["equal", "reordered", "diverges", "differs", "reconverged", "unknown"]
Likeness: TypeAlias = Literal["equal", "reordered", "different"]  # reordered: of operations without effects
Text: TypeAlias = Callable[[Blob], str]
_TEXTS = 256  # that are kept in a normal form: those of two compilations


@dataclass(frozen=True, slots=True)
class PassPair:
    """A pass of both compilations, or of only one, and the comparison of the IR after it."""

    a: PassRecord | None
    b: PassRecord | None
    state: State
    texts: tuple[Blob, Blob]  # the IR of each after it
    entered: tuple[Blob, Blob]  # the IR of each before it

    @property
    def name(self) -> str:
        one = self.a or self.b
        assert one is not None
        return one.name

    @property
    def stage(self) -> str:
        one = self.a or self.b
        assert one is not None
        return one.stage

    @property
    def changed(self) -> bool:
        """True if the pass changed the IR of either compilation."""
        return any(one is not None and one.after is not None and one.changed for one in (self.a, self.b))


@dataclass(frozen=True, slots=True)
class AttributeDifference:
    """An attribute of the module or of a function that has two values, or is in only one run."""

    name: str
    a: str | None  # None: it has none
    b: str | None
    since: PassPair


class PassPairs:
    """Two compilations, compared pass by pass. Each distinct IR is read once, 1 to 50 ms."""

    def __init__(self, a: Sequence[PassRecord], b: Sequence[PassRecord], text_a: Text, text_b: Text) -> None:
        """a, b -- the passes of each compilation in order, at least one
        text_a, text_b -- the IR in a blob of each run
        """
        self.plain_a = cache(lambda blob: plain(text_a(blob)))
        self.plain_b = cache(lambda blob: plain(text_b(blob)))
        self.likeness = cache(self._likeness)  # of the IR of two blobs, one of each run
        self.entry_equal = self.same(a[0].before, b[0].before)
        self.pairs = list(self._pairs(a, b))

    def first_divergence(self) -> PassPair | None:
        """The first pass after which the IR differs; None: it is equal after each."""
        return next((one for one in self.pairs if one.state == "diverges"), None)

    def last_divergence(self) -> PassPair | None:
        """The pass from which on the IR differs to the end; None: it is equal at the end."""
        if self.ends_equal:
            return None
        return next((one for one in reversed(self.pairs) if one.state == "diverges"), None)

    @property
    def ends_equal(self) -> bool:
        """True if the IR after the last pass is equal."""
        return self.same(*self.pairs[-1].texts) if self.pairs else self.entry_equal

    @property
    def differs_throughout(self) -> bool:
        """True if the IR differs before the first pass and after every one."""
        return not self.entry_equal and all(one.state == "differs" for one in self.pairs)

    def attributes(self) -> Iterator[AttributeDifference]:
        """The attributes that differ after some pass, each with the first such pass."""
        known: set[str] = set()
        for pair in self.pairs:
            a, b = self.plain_a(pair.texts[0]).attributes, self.plain_b(pair.texts[1]).attributes
            for name in dict.fromkeys((*a, *b)):
                if a.get(name) != b.get(name) and name not in known:
                    known.add(name)
                    yield AttributeDifference(name, a.get(name), b.get(name), pair)

    def reordered(self) -> PassPair | None:
        """The first pass after which the IR is equal except for its order."""
        return next((one for one in self.pairs if one.state == "reordered"), None)

    def same(self, a: Blob, b: Blob) -> bool:
        """True if two blobs, one of each run, hold equivalent IR."""
        return self.likeness(a, b) != "different"

    def _likeness(self, a: Blob, b: Blob) -> Likeness:
        module_a, module_b = self.plain_a(a), self.plain_b(b)
        if (
            module_a.text == module_b.text
            or _canonical(module_a.text) == _canonical(module_b.text)
            or _alike(module_a, module_b)
        ):
            return "equal"
        return "reordered" if _unordered(module_a.text) == _unordered(module_b.text) else "different"

    def _pairs(self, a: Sequence[PassRecord], b: Sequence[PassRecord]) -> Iterator[PassPair]:
        texts, equal = (a[0].before, b[0].before), self.entry_equal
        for pass_a, pass_b in aligned(a, b, self.same):
            entered = (pass_a.before if pass_a else texts[0], pass_b.before if pass_b else texts[1])
            died = any(side is not None and side.after is None for side in (pass_a, pass_b))
            texts = ((pass_a and pass_a.after) or entered[0], (pass_b and pass_b.after) or entered[1])
            now = self.likeness(*texts)
            state: State = "unknown" if died else _state(equal, now)
            yield PassPair(pass_a, pass_b, state, texts, entered)
            equal = now != "different"


def _state(before: bool, now: Likeness) -> State:
    if now == "different":
        return "diverges" if before else "differs"
    return now if before else "reconverged"


@lru_cache(_TEXTS)
def _canonical(text: str) -> str:
    return canonical(PlainModule(text, {}))


@lru_cache(_TEXTS)
def _unordered(text: str) -> str:
    return unordered(PlainModule(text, {}))


def _alike(a: PlainModule, b: PlainModule) -> bool:
    # a use may precede its definition if blocks are not in the order of control flow
    return a.text.count("\n") == b.text.count("\n") and renamed(a.text, b.text) == a.text


def aligned(
    a: Sequence[PassRecord], b: Sequence[PassRecord], same: Callable[[Blob, Blob], bool]
) -> list[tuple[PassRecord | None, PassRecord | None]]:
    """Pair the passes of two compilations by stage and name, in order.

    same -- whether two texts are equivalent; called for passes of equal names only

    A pass without a partner is a separate row. Among the longest alignments the one with the most equal IR
    wins. Cost: one step for each pair of passes.
    """
    best: dict[tuple[int, int], tuple[int, int]] = {}  # from here on: passes paired, of them with equal IR

    def from_here(i: int, j: int) -> tuple[int, int]:
        return best.get((i, j), (0, 0))

    for i in reversed(range(len(a))):
        for j in reversed(range(len(b))):
            options = [from_here(i + 1, j), from_here(i, j + 1)]
            if _partners(a[i], b[j]):
                paired, equal = from_here(i + 1, j + 1)
                options.append((paired + 1, equal + _equal_after(a[i], b[j], same)))
            best[i, j] = max(options)
    return list(_walk(a, b, best, same))


def _walk(
    a: Sequence[PassRecord],
    b: Sequence[PassRecord],
    best: Mapping[tuple[int, int], tuple[int, int]],
    same: Callable[[Blob, Blob], bool],
) -> Iterator[tuple[PassRecord | None, PassRecord | None]]:
    i = j = 0
    while i < len(a) and j < len(b):
        paired, equal = best.get((i + 1, j + 1), (0, 0))
        if _partners(a[i], b[j]) and best[i, j] == (paired + 1, equal + _equal_after(a[i], b[j], same)):
            yield a[i], b[j]
            i, j = i + 1, j + 1
        elif best[i, j] == best.get((i + 1, j), (0, 0)):
            yield a[i], None
            i += 1
        else:
            yield None, b[j]
            j += 1
    yield from ((one, None) for one in a[i:])
    yield from ((None, one) for one in b[j:])


def _partners(a: PassRecord, b: PassRecord) -> bool:
    return (a.stage, a.name) == (b.stage, b.name)


def _equal_after(a: PassRecord, b: PassRecord, same: Callable[[Blob, Blob], bool]) -> int:
    return int(a.after is not None and b.after is not None and same(a.after, b.after))
