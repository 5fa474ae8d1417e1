"""Decides whether launches of two runs are equal, and how similar they are, for their alignment."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import zip_longest

from tracing.analyze.compare.causes.cause_answer import Follows
from tracing.analyze.compare.causes.input_causes import Causes
from tracing.analyze.compare.kernel_code import KernelCodes
from tracing.analyze.compare.launch_counts import LaunchCounts
from tracing.analyze.compare.launch_difference import LaunchDifferences, touched_equally
from tracing.analyze.compare.signature_pair import Signatures, identities
from tracing.analyze.compare.timeline.timeline import Timeline
from tracing.analyze.compare.timeline.timeline_step import TimelineStep
from tracing.model import CallSite
from tracing.views import extent


class LaunchLikeness:
    """The `Launches` of an `Alignment`, for one process of each run."""

    def __init__(
        self,
        known: tuple[Signatures, Signatures],
        sites: tuple[Mapping[int, CallSite], Mapping[int, CallSite]],
        codes: KernelCodes,
        differences: LaunchDifferences,
        causes: Causes,
        timelines: tuple[Timeline, Timeline],
        counts: LaunchCounts,
    ) -> None:
        self._timelines, self._counts = timelines, counts
        self._sites, self._codes, self._differences, self._causes = sites, codes, differences, causes
        self._keys: tuple[dict[int, str], dict[int, str]] = ({}, {})  # by signature
        self._identities = identities(known[0]), identities(known[1])
        shared = set(self._identities[0].values()) & set(self._identities[1].values())
        self._shared: dict[object, int] = {one: n for n, one in enumerate(shared)}

    def kernel(self, launch: TimelineStep, side: int) -> str:
        """The name of its kernel."""
        return launch.kernel.name

    def settings(self, launch: TimelineStep, side: int) -> str:
        """Equal for launches of equal code, configuration and arguments; tensors may overlap differently."""
        number = launch.row.line.signature
        known = self._keys[side].get(number)
        if known is None:
            code, identity = self._codes.key(launch.kernel, side), self._identities[side].get(number)
            own = f"{code} {'ab'[side]}{number}"  # the other run has no such launch
            shared = identity is not None and identity in self._shared
            known = self._keys[side][number] = f"{code} {self._shared[identity]}" if shared else own
        return known

    def exact(self, launch: TimelineStep, side: int) -> str:
        """Equal for launches of equal settings whose arguments overlap equally."""
        overlaps, settings = launch.overlaps(), self.settings(launch, side)
        return f"{settings} {overlaps}" if overlaps else settings

    def content(self, launch: TimelineStep) -> Hashable:
        """The bits that it read and wrote."""
        if launch.access is not None:
            return tuple(sorted(launch.access.read.items())), tuple(sorted(launch.access.written.items()))
        row = launch.row
        return tuple(
            (row.digest(n, "before") if arg.reads else "", row.digest(n, "after") if arg.writes else "")
            for n, arg in enumerate(launch.signature.args)
        )

    def permuted(self, a: TimelineStep, b: TimelineStep) -> bool:
        """True if the program may have made these launches in another order."""
        seen = self._differences.of(a, b)
        if seen.pair.changes or self._differences.code(seen) is not None:
            return True
        return any(not isinstance(self._causes.of(a, b, slot.position), Follows) for slot in seen.inputs)

    def same_inputs(self, a: TimelineStep, b: TimelineStep) -> bool:
        """True if these launches are launched alike, and all their inputs are equal."""
        return not self._differences.of(a, b).inputs and self._launched_alike(a, b)

    def same_operands(self, a: TimelineStep, b: TimelineStep) -> bool:
        """True if these launches are launched alike, and all inputs that the kernel only reads are equal.

        False if it writes each of its inputs, too.
        """
        seen, args = self._differences.of(a, b), a.signature.args
        before = [slot for slot in seen.pair.slots if slot.side == "before"]
        read = [slot for slot in before if not args[slot.position].writes]
        return bool(read) and not any(slot in seen.inputs for slot in read) and self._launched_alike(a, b)

    def _launched_alike(self, a: TimelineStep, b: TimelineStep) -> bool:
        seen = self._differences.of(a, b)
        return not (seen.pair.changes or self._differences.code(seen)) and a.overlaps() == b.overlaps()

    def common(self, a: TimelineStep, b: TimelineStep) -> int:
        """The number of equal inputs; an input that a kernel only reads counts twice."""
        seen = self._differences.of(a, b)
        equal = [slot for slot in seen.pair.slots if slot.side == "before" and slot not in seen.inputs]
        return sum(1 if a.signature.args[slot.position].writes else 2 for slot in equal)

    def context(self, a: TimelineStep, b: TimelineStep) -> int:
        """Whether they have the same call site, and how many of the preceding operators are equal.

        An operator that only one run calls does not count: it tells nothing about the position.
        """
        same_site = self._site(a, 0) == self._site(b, 1)
        called = [
            [name for name in step.operators if other.operators.total(*name)]
            for step, other in zip((a, b), reversed(self._timelines), strict=True)
        ]
        return 16 * same_site + _common_end(*called)

    def repeats(self, earlier: TimelineStep, later: TimelineStep, side: int) -> bool:
        """True if two launches of one run have equal settings and one line, and read the same tensors."""
        pair = earlier, later
        settings, lines = ([of(one, side) for one in pair] for of in (self.settings, self._site))
        read = [[(tensor.storage, extent(tensor.meta)[0]) for tensor in one.read_tensors()] for one in pair]
        return settings[0] == settings[1] and lines[0] == lines[1] and bool(read[0]) and read[0] == read[1]

    def same_tensors(self, a: TimelineStep, b: TimelineStep) -> bool:
        """True if both are known to read the same tensors: those that were created alike.

        A tensor that a launch accessed first tells nothing.
        """
        ours, theirs = (
            [born and born._replace(earlier=0) for born in map(timeline.born, step.read_tensors())]
            for timeline, step in zip(self._timelines, (a, b), strict=True)
        )
        pairs = [
            pair
            for pair in zip_longest(ours, theirs)
            if not all(one and one.kind == "launch" for one in pair)
        ]
        return bool(pairs) and all(one is not None and one == other for one, other in pairs)

    def as_often(self, kernel: str) -> bool:
        """False if it is known that one of the runs launches a kernel more often."""
        return self._counts.are_equal(kernel)

    def _site(self, step: TimelineStep, side: int) -> tuple[str, int, int] | None:
        site = self._sites[side].get(step.row.line.site)
        return (site.file, site.line, site.instruction) if site else None

    def equal(self, a: TimelineStep, b: TimelineStep) -> bool:
        """True if they are launched alike, and read and wrote equal bits."""
        seen = self._differences.of(a, b)
        outputs = [slot for slot in seen.outputs if touched_equally(slot, a, b) is not True]
        return not (seen.inputs or outputs or seen.pair.changes or self._differences.code(seen))


def _common_end(a: Sequence[object], b: Sequence[object]) -> int:
    # number of equal elements at the end; equal sequences have the most in common
    if a == b:
        return 15
    backwards = zip(reversed(a), reversed(b), strict=False)
    return next((n for n, (one, other) in enumerate(backwards) if one != other), min(len(a), len(b)))
