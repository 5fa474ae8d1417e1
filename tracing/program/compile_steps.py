"""Choose which steps of a compile are made, and record all of them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class AskedStep:
    """One step of a compile, made or left out."""

    label: str  # unique within its part: the second "mul" is "mul #2"
    kind: str  # the common property of steps of one kind: the operator, the pass, the pattern
    detail: str
    nodes: Sequence[str]  # FX nodes that the step changes


@dataclass(slots=True)
class CompileSteps:
    """Decides by number and by label; records every step in order."""

    # by part: the number of steps that are executed; the rest is left out
    first: Mapping[str, int] = field(default_factory=dict)
    without: Mapping[str, Sequence[str]] = field(default_factory=dict)  # labels, by part
    these: Mapping[str, Sequence[str]] = field(default_factory=dict)  # of a part that has an entry no others
    asked: dict[str, list[AskedStep]] = field(default_factory=lambda: defaultdict(list))
    _seen: Counter[tuple[str, str]] = field(default_factory=Counter)

    def make(
        self, part: str, label: str, *, kind: str = "", detail: str = "", nodes: Sequence[str] = ()
    ) -> bool:
        """Record a step; True if the compile makes it."""
        made = self.open(part)
        self._seen[part, label] += 1
        times = self._seen[part, label]
        unique = label if times == 1 else f"{label} #{times}"
        self.asked[part].append(AskedStep(unique, kind or label, detail, list(nodes)))
        chosen = self.only(part)
        return made and unique not in self.left_out(part) and (chosen is None or unique in chosen)

    def open(self, part: str) -> bool:
        """True if the next step of a part is made, unless its label says otherwise."""
        return part not in self.first or len(self.asked[part]) < self.first[part]

    def left_out(self, part: str) -> list[str]:
        """The labels of the steps that are left out, whatever their number is."""
        return list(self.without.get(part, ()))

    def only(self, part: str) -> list[str] | None:
        """The labels of the only steps that are made; None: no such choice."""
        return list(self.these[part]) if part in self.these else None

    def restart(self) -> None:
        """Clear the recorded steps: the program is compiled once more."""
        self.asked.clear()
        self._seen.clear()
