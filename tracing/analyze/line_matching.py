"""Match the equal lines of two texts, in bounded time, as a diff does.

difflib takes quadratic time for some texts, 7 s for 8,000 lines and 20 minutes for 100,000. So only
short texts are compared with it. Longer ones are cut first, at lines that each text has once, as a patience
diff does; what is left between two such lines, if it is still long, counts as different.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import Match, SequenceMatcher
from typing import TypeAlias

_SHORT = 1_000_000  # pairs of lines that difflib may compare
_CUTS = 8  # maximum depth of cutting a text into parts
_Ranges: TypeAlias = tuple[int, int, int, int]  # lines START:STOP of a, and START:STOP of b


class LineMatcher(SequenceMatcher[str]):
    """difflib's SequenceMatcher for lines, whose time is bounded: n log n steps, and n / 1000 short texts."""

    def __init__(self, a: Sequence[str], b: Sequence[str]) -> None:
        super().__init__(None, a, b)
        self._lines = a, b
        self._blocks: list[Match] | None = None

    def get_matching_blocks(self) -> list[Match]:
        if self._blocks is None:
            a, b = self._lines
            whole = 0, len(a), 0, len(b)
            if len(a) * len(b) <= _SHORT:
                self._blocks = super().get_matching_blocks()
            else:
                self._blocks = [*_joined(sorted(_matches(a, b, whole))), Match(len(a), len(b), 0)]
        return self._blocks


def unified_diff(
    a: Sequence[str], b: Sequence[str], titles: tuple[str, str], context: int = 3
) -> Iterator[str]:
    """The lines of a unified diff, as difflib.unified_diff gives them; none if the texts are equal."""
    for number, group in enumerate(LineMatcher(a, b).get_grouped_opcodes(context)):
        if not number:
            yield f"--- {titles[0]}"
            yield f"+++ {titles[1]}"
        (_, a_start, _, b_start, _), (_, _, a_stop, _, b_stop) = group[0], group[-1]
        yield f"@@ -{_range(a_start, a_stop)} +{_range(b_start, b_stop)} @@"
        for kind, i, i_stop, j, j_stop in group:
            if kind == "equal":
                yield from (f" {line}" for line in a[i:i_stop])
            else:
                yield from (f"-{line}" for line in a[i:i_stop])
                yield from (f"+{line}" for line in b[j:j_stop])


def _range(start: int, stop: int) -> str:
    # Source: POSIX, diff -u: an empty range is named by the line before it, and one line by its number only
    count = stop - start
    return str(start + 1) if count == 1 else f"{start + (count > 0)},{count}"


def _matches(a: Sequence[str], b: Sequence[str], whole: _Ranges) -> Iterator[Match]:
    waiting = [(whole, 0)]
    while waiting:
        span, cuts = waiting.pop()
        start, stop, b_start, b_stop = span
        head = _equal(a, b, start, b_start, min(stop - start, b_stop - b_start), 1)
        yield Match(start, b_start, head)
        start, b_start = start + head, b_start + head
        tail = _equal(a, b, stop - 1, b_stop - 1, min(stop - start, b_stop - b_start), -1)
        stop, b_stop = stop - tail, b_stop - tail
        yield Match(stop, b_stop, tail)
        if (stop - start) * (b_stop - b_start) <= _SHORT:
            blocks = SequenceMatcher(None, a[start:stop], b[b_start:b_stop]).get_matching_blocks()
            yield from (Match(start + i, b_start + j, size) for i, j, size in blocks)
        elif cuts < _CUTS and (unique := _unique(a, b, (start, stop, b_start, b_stop))):
            ends = [(start, b_start), *((i + 1, j + 1) for i, j in unique)]
            starts = [*unique, (stop, b_stop)]
            yield from (Match(i, j, 1) for i, j in unique)
            pairs = zip(ends, starts, strict=True)
            waiting += [((i, i_stop, j, j_stop), cuts + 1) for (i, j), (i_stop, j_stop) in pairs]


def _equal(a: Sequence[str], b: Sequence[str], i: int, j: int, most: int, step: int) -> int:
    # the number of consecutive equal lines, beginning with two given ones
    count = 0
    while count < most and a[i + step * count] == b[j + step * count]:
        count += 1
    return count


def _unique(a: Sequence[str], b: Sequence[str], span: _Ranges) -> list[tuple[int, int]]:
    # of the lines that occur once in each text, the most that are in the same order in both: the longest
    # increasing subsequence
    start, stop, b_start, b_stop = span
    counts, b_counts = Counter(a[start:stop]), Counter(b[b_start:b_stop])
    at = {line: j for j, line in enumerate(b[b_start:b_stop], b_start) if b_counts[line] == 1}
    pairs = [(i, at[line]) for i, line in enumerate(a[start:stop], start) if counts[line] == 1 and line in at]
    lasts: list[int] = []  # for each length, the lowest last line of b of a subsequence
    ends: list[int] = []  # the pair that this line belongs to
    before: list[int | None] = []  # for each pair, the pair before it
    for number, (_, j) in enumerate(pairs):
        length = bisect_left(lasts, j)
        before.append(ends[length - 1] if length else None)
        lasts[length : length + 1] = [j]
        ends[length : length + 1] = [number]
    chosen = []
    last = ends[-1] if ends else None
    while last is not None:
        chosen.append(pairs[last])
        last = before[last]
    return chosen[::-1]


def _joined(blocks: Sequence[Match]) -> Iterator[Match]:
    # merges neighbouring blocks, as difflib does
    i, j, size = 0, 0, 0
    for block in blocks:
        if (i + size, j + size) == (block.a, block.b):
            size += block.size
        elif block.size:
            if size:
                yield Match(i, j, size)
            i, j, size = block
    if size:
        yield Match(i, j, size)
