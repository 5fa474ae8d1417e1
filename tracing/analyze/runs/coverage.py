"""Select the launches that both of two runs recorded: only those can be compared."""

from __future__ import annotations

from dataclasses import dataclass
from shlex import join

from tracing.model import RunInfo, Selection

_OPEN = 1 << 62  # larger than any launch number


@dataclass(frozen=True, slots=True)
class Coverage:
    """The launches that two runs both cover."""

    a: Selection
    b: Selection

    def covers(self, index: int, kernel: str, phase: str, rank: int = 0) -> bool:
        """True if both runs recorded the launch of this number, or would have.

        index -- the launch's number in its run; if only one run has some launches, the numbers of partners
                 differ, and the ends of a range cover different launches of the two runs
        """
        return all(one.wants(index, kernel, phase, rank) for one in (self.a, self.b))

    @property
    def left_out(self) -> str:
        """The launches that are not compared, in one sentence; "" if both runs recorded everything."""
        a, b = (_options(one) for one in (self.a, self.b))
        if a == b:
            return f"both runs were recorded with {a}: the rest is not compared" if a else ""
        texts = [f"{name} was recorded with {text}" for name, text in (("a", a), ("b", b)) if text]
        return f"{', '.join(texts)}: what one of the runs left out is not compared"


def coverage(a: RunInfo, b: RunInfo) -> Coverage:
    """The launches that both runs recorded, or would have recorded."""
    return Coverage(a.selection, b.selection)


def _options(one: Selection) -> str:
    # as typed
    words: list[str] = []
    if one.launches:
        start, stop = one.launches
        words += ["--launches", f"{start}:{'' if stop == _OPEN else stop}"]
    for option, values in (("--kernel", one.kernels), ("--phase", one.phases), ("--rank", one.ranks)):
        words += [word for value in values for word in (option, str(value))]
    return join(words)
