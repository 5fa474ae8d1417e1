"""What is known of two runs when they were compared, beside what differs."""

from __future__ import annotations

from dataclasses import dataclass, field

from tracing.analyze.alignment import WINDOW
from tracing.analyze.divergence import Divergence
from tracing.store import Run


@dataclass(slots=True)
class Tally:
    """Counts and notes, kept while two runs are compared."""

    a: Run
    b: Run
    window: int = WINDOW
    pairs: int = 0  # launches that both runs have
    undigested: int = 0  # of these, those without digests in one run
    consequences: int = 0  # that differ as earlier differences make them
    unwritten: int = 0  # results that differ in memory which held other bits before
    first_unwritten: Divergence | None = None
    first_untouched: Divergence | None = None  # likewise, which it holds still
    reported: int = 0  # differences, without those that repeat one
    notes: list[str] = field(default_factory=list)  # what was not compared, and why

    @property
    def complete(self) -> bool:
        """Whether all was compared that both runs were told to record.

        Not if one is damaged, was interrupted, or lacks a process.
        """
        told = "none" not in (self.a.info.digests, self.b.info.digests)
        return not (self.notes or (self.undigested and told))

    def note(self, what: str) -> None:
        """Tell once what was not compared."""
        if what not in self.notes:
            self.notes.append(what)

    @property
    def suspect(self) -> Divergence | None:
        """What to look at first if results differ, and no launch was seen to make them do so."""
        return self.first_unwritten or self.first_untouched
