"""Watches the digests of launches and operators, while they are recorded, for the first NaN or inf."""

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
        self.first: tuple[int, str] | None = None  # its launch, and a text
        self._counted = {"nan": (0,), "inf": (1,), "any": (0, 1)}[kind]
        self._name = {"nan": "a NaN", "inf": "an inf", "any": "a NaN or inf"}[kind]
        self._launched: dict[int, LaunchTemplate] = {}  # whose digests have not arrived

    def launched(self, index: int, template: LaunchTemplate) -> None:
        """A launch was made whose digests will arrive."""
        self._launched[index] = template
        if len(self._launched) > _FAILED:
            del self._launched[next(iter(self._launched))]

    def digested(self, launches: DigestedLaunches) -> None:
        """Digests of launches have arrived."""
        for one in launches:
            template = self._launched.pop(one.launch, None)
            if template is not None and self.first is None and one.columns.special:
                self._look(one, template)

    def _look(self, one: Digested, template: LaunchTemplate) -> None:
        positions, read = template.positions, {template.positions[i] for i in template.reads}
        written = {positions[i] for i in template.writes}
        sides = [(position, position in read) for position in one.before]
        sides += [(position, position in written) for position in one.after]
        for n, (position, counts) in enumerate(sides):
            special = one.columns.special.get(one.first + n)
            if counts and special is not None and any(special[i] for i in self._counted):
                verb = "read" if n < len(one.before) else "wrote"
                name = template.site.names[position]
                what = f"launch #{one.launch} {template.site.name} {verb} {self._name} in {name}"
                self.first = one.launch, what
                return

    def operator(self, name: str, launches: int, after: Sequence[Digest]) -> None:
        """An operator outside of Triton has written tensors, after so many launches."""
        if self.first is None and any((one.nan, one.inf)[i] for one in after for i in self._counted):
            self.first = launches, f"{name} wrote {self._name}"
