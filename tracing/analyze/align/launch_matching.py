"""Pair the launches of two short stretches, whatever their order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Sequence, Set
from itertools import combinations
from typing import Protocol, TypeAlias, TypeVar

Queue: TypeAlias = tuple[int, int]  # stream and thread; launches of one queue run in order


class Launched(Protocol):
    """A launch to be aligned."""

    @property
    def index(self) -> int:
        """The order in its run."""

    @property
    def queue(self) -> Queue:
        """Stream and thread; launches of one queue run in order."""


_Score: TypeAlias = Callable[[int, int], int]  # of two positions
T = TypeVar("T", bound=Launched)
T_contra = TypeVar("T_contra", bound=Launched, contravariant=True)


class Launches(Protocol[T_contra]):
    """Properties of a launch of run a (side 0) or b (side 1), and comparisons of a launch of each."""

    def kernel(self, launch: T_contra, side: int) -> str:
        """The name of the kernel."""

    def settings(self, launch: T_contra, side: int) -> str:
        """Equal for launches of equal code, configuration and arguments; tensors may overlap differently."""

    def exact(self, launch: T_contra, side: int) -> str:
        """Equal for launches of equal settings whose arguments overlap equally."""

    def content(self, launch: T_contra) -> Hashable:
        """The digests that it read and wrote."""

    def permuted(self, a: T_contra, b: T_contra) -> bool:
        """True if launches of one kernel differ enough that another pairing may fit better."""

    def equal(self, a: T_contra, b: T_contra) -> bool:
        """True if launch, inputs and outputs are equal."""

    def same_inputs(self, a: T_contra, b: T_contra) -> bool:
        """True if these launches are launched alike, and all their inputs are equal."""

    def same_operands(self, a: T_contra, b: T_contra) -> bool:
        """True if these launches are launched alike, and all inputs that the kernel only reads are equal.

        False if it writes each of its inputs, too.
        """

    def common(self, a: T_contra, b: T_contra) -> int:
        """A score of how much of their inputs is equal."""

    def context(self, a: T_contra, b: T_contra) -> int:
        """A score of how similar their positions in the program are: the line, the preceding operators."""

    def repeats(self, earlier: T_contra, later: T_contra, side: int) -> bool:
        """True if two launches of one run have equal settings and one line, and read the same tensors."""

    def same_tensors(self, a: T_contra, b: T_contra) -> bool:
        """True if both are known to read the same tensors, whatever these hold."""

    def as_often(self, kernel: str) -> bool:
        """False if it is known that one of the runs launches a kernel more often."""


def matched(a: Sequence[T], b: Sequence[T], ask: Launches[T]) -> dict[int, int]:
    """The positions of launches of `a`, in order, and of their partners in `b`.

    Partners read and wrote equal bits; else they are launches of equal code, configuration and arguments;
    else of one kernel. Among several candidates, those with the most equal inputs come first, then those at
    the most similar positions in the program, then the nearest. Launches of one kernel stay in order, except
    for those that are known to have moved: by all of their inputs, by what both only read, or by their
    settings. Launches that only repeat each other on the same tensors have not moved, whatever they read.
    """
    exact = [[ask.exact(one, side) for one in launches] for side, launches in enumerate((a, b))]
    kernels = [[ask.kernel(one, side) for one in launches] for side, launches in enumerate((a, b))]
    contents = [
        list(zip(names, map(ask.content, launches), strict=True))
        for names, launches in zip(exact, (a, b), strict=True)
    ]
    partner: dict[int, int] = {}
    _match_equal(partner, contents[0], contents[1])
    equal = frozenset(partner)
    for names in (exact, kernels):
        _match_closest(
            partner,
            names,
            lambda n, m: ask.common(a[n], b[m]),
            lambda n, m: ask.context(a[n], b[m]),
        )
    _put_in_order(partner, equal, a, b, ask)
    _put_repeats_in_order(partner, contents, a, b, ask)
    return dict(sorted(partner.items()))


def first_in_order(a: Sequence[T], b: Sequence[T], ask: Launches[T]) -> tuple[int, int] | None:
    """The positions of the first launches that are partners when most are, in order; None: no kernel is in
    both.

    A pair has a higher weight if more of it is equal: its kernel, its arguments, its bits.
    """
    kernels, exact = ([[of(one, side) for one in launches] for side, launches in enumerate((a, b))]
                      for of in (ask.kernel, ask.exact))  # fmt: skip
    contents = [list(map(ask.content, launches)) for launches in (a, b)]
    candidates: list[tuple[int, int, int]] = []  # how much is equal from there on
    below = [0] * (len(b) + 1)
    for n in reversed(range(len(a))):
        row = [0] * (len(b) + 1)
        for m in reversed(range(len(b))):
            best = max(below[m], row[m + 1])
            if kernels[0][n] == kernels[1][m]:
                alike = exact[0][n] == exact[1][m]
                pair = 1 + alike + 2 * (alike and contents[0][n] == contents[1][m])
                candidates.append((pair + below[m + 1], n, m))
                best = max(best, pair + below[m + 1])
            row[m] = best
        below = row
    most = [(n + m, n, m) for equal, n, m in candidates if equal == below[0]]
    return min(most)[1:] if most else None


def _match_equal(partner: dict[int, int], a: Sequence[Hashable], b: Sequence[Hashable]) -> None:
    partner |= {n: n for n, (one, other) in enumerate(zip(a, b, strict=False)) if one == other}
    positions: dict[Hashable, deque[int]] = {}
    for m, other in enumerate(b):
        if partner.get(m) != m:
            positions.setdefault(other, deque()).append(m)
    for n, one in enumerate(a):
        if n not in partner and positions.get(one):
            partner[n] = positions[one].popleft()


def _match_closest(
    partner: dict[int, int], names: Sequence[Sequence[str]], common: _Score, context: _Score
) -> None:
    # the remaining launches, by most in common, then by context, then by the smallest distance
    taken = set(partner.values())
    pairs = [
        (-common(n, m), -context(n, m), abs(n - m), n, m)
        for n, one in enumerate(names[0])
        for m, other in enumerate(names[1])
        if one == other and n not in partner and m not in taken
    ]
    matched: dict[int, int] = {}
    for *_, n, m in sorted(pairs):
        if n not in matched and m not in taken:
            matched[n] = m
            taken.add(m)
    partner |= matched


def _put_in_order(
    partner: dict[int, int], equal: Set[int], a: Sequence[T], b: Sequence[T], ask: Launches[T]
) -> None:
    # equal -- positions of launches that read and wrote equal bits, which stay partners
    for n, later in combinations(sorted(partner.keys() - equal), 2):
        m, earlier = partner[n], partner[later]
        if m < earlier or ask.kernel(a[n], 0) != ask.kernel(a[later], 0):
            continue
        if not _moved((a[n], a[later]), (b[m], b[earlier]), ask):
            partner[n], partner[later] = earlier, m


def _put_repeats_in_order(
    partner: dict[int, int],
    contents: Sequence[Sequence[tuple[str, Hashable]]],
    a: Sequence[T],
    b: Sequence[T],
    ask: Launches[T],
) -> None:
    # contents -- settings and bits of each launch; the bits show how often a tensor was updated before it
    ours, theirs = contents
    for n, later in combinations(sorted(partner), 2):
        m, earlier = partner.get(n, -1), partner.get(later, -1)
        if m <= earlier or earlier < 0:
            continue
        if ours[n][0] != ours[later][0] or theirs[m][0] != theirs[earlier][0]:
            continue
        unequal = [one for one in (n, later) if ours[one] != theirs[partner[one]]]
        repeats = _only_repeat((a[n], a[later]), (b[m], b[earlier]), ask, by_tensors=bool(unequal))
        if ask.as_often(ask.kernel(a[n], 0)):
            if repeats:
                partner[n], partner[later] = earlier, m
        elif len(unequal) == 1 and (repeats or not ask.same_tensors(a[unequal[0]], b[partner[unequal[0]]])):
            del partner[unequal[0]]  # the equal launches show which one the other run lacks


def _only_repeat(a: tuple[T, T], b: tuple[T, T], ask: Launches[T], *, by_tensors: bool) -> bool:
    # by_tensors -- also if more of them read the same tensors in order: a[0] with b[1], and a[1] with b[0]
    if all(ask.repeats(*pair, side) for side, pair in enumerate((a, b))):
        return True
    crossed, straight = (sum(map(ask.same_tensors, a, other)) for other in (b, b[::-1]))
    return by_tensors and straight > crossed


def _moved(a: tuple[T, T], b: tuple[T, T], ask: Launches[T]) -> bool:
    # whether two launches of a kernel changed their order: a[0] is b[0], and a[1] is b[1]
    of_a, of_b = ([ask.settings(one, side) for one in pair] for side, pair in enumerate((a, b)))
    if of_a == of_b and of_a[0] != of_a[1]:
        return True
    crossed, straight = (sum(map(ask.common, a, other)) for other in (b, b[::-1]))
    # what a launch accumulates into differs if the order does
    return crossed > straight and (any(map(ask.same_inputs, a, b)) or all(map(ask.same_operands, a, b)))
