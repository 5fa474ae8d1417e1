"""Watches the digests of launches and operators, while they are recorded, for the first NaN or inf.

A launch wrote such a value only if its output holds more of them after it than before it: others may be old
contents of elements that it did not write.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from tracing.digest.columns import Digested, DigestedLaunches
from tracing.model import Digest
from tracing.record.launches.launch_template import LaunchTemplate

_FAILED = 1 << 16  # more waiting launches than this mean that the oldest of them failed


class NonFiniteWatch:
    """The first launch or operator that read or wrote such a value.

    A buffer that a kernel only writes is not looked at before its launch: it may not be initialised.
    """

    def __init__(self, kind: Literal["nan", "inf", "any"]) -> None:
        self.declared = False  # outputs have no digests before a launch, overwritten as a whole or not
        self.first: tuple[int, str] | None = None  # its launch, and a text
        self._counted = {"nan": (0,), "inf": (1,), "any": (0, 1)}[kind]
        self._name = {"nan": "a NaN", "inf": "an inf", "any": "a NaN or inf"}[kind]
        self.launched: dict[int, LaunchTemplate] = {}  # whose digests have not arrived; C++ adds to it, too

    def digested(self, launches: DigestedLaunches) -> None:
        """Digests of launches have arrived."""
        while len(self.launched) > _FAILED:
            del self.launched[next(iter(self.launched))]
        for one in launches:
            template = self.launched.pop(one.launch, None)
            if template is not None and self.first is None and one.columns.special:
                self._look(one, template)

    def _look(self, one: Digested, template: LaunchTemplate) -> None:
        positions, read = template.positions, {template.positions[i] for i in template.reads}
        written = {positions[i] for i in template.writes}
        sides = [(position, position in read) for position in one.before]
        sides += [(position, position in written) for position in one.after]
        held = {position: self._count(one, n) for n, position in enumerate(one.before)}
        for n, (position, counts) in enumerate(sides):
            reads = n < len(one.before)
            old = (0, 0) if reads else held.get(position, (0, 0))
            if counts and any(now > then for now, then in zip(self._count(one, n), old, strict=True)):
                left = "left" if self.declared else "wrote"
                name = template.site.names[position]
                what = f"{template.site.name} {'read' if reads else left} {self._name} in {name}"
                self.first = one.launch, f"launch #{one.launch} {what}"
                return

    def _count(self, one: Digested, n: int) -> tuple[int, int]:
        # NaN and inf of its digest n, as far as they are searched for
        special = one.columns.special.get(one.first + n, (0, 0, 0))
        return special[0] * (0 in self._counted), special[1] * (1 in self._counted)

    def operator(self, name: str, launches: int, after: Sequence[Digest]) -> None:
        """An operator outside of Triton has written tensors, after so many launches."""
        if self.first is None and any((one.nan, one.inf)[i] for one in after for i in self._counted):
            self.first = launches, f"{name} wrote {self._name}"
