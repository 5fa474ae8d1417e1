"""The answer to the question for the first NaN or inf, and what of it is not known."""

from __future__ import annotations

from dataclasses import dataclass, field

from tracing.analyze.nonfinite.data_events import DataEvent, Kind
from tracing.analyze.nonfinite.memory_contents import OldContents, Undigested
from tracing.analyze.nonfinite.nonfinite_origin import NonFiniteOrigin

DIGESTS = "--operators digests"  # records what operators outside of Triton read and write


@dataclass(frozen=True, slots=True)
class UndigestedRead:
    """An event that reads such a value from memory which an operator without digests wrote."""

    event: DataEvent
    tensor: str
    written: Undigested
    scaler: DataEvent | None = None  # if the scale of torch.amp.GradScaler may cause it: its check after it

    @property
    def explained(self) -> bool:
        """True if it may be a number or data of the program, or an overflow for which a step is skipped."""
        return self.written.given or self.scaler is not None

    def __str__(self) -> str:
        reads = f"{self.event.name} (#{self.event.source.index}) reads one in {self.tensor}"
        text = f"{reads}, which {self.written.text} wrote: its inputs have no digests"
        if self.scaler is None:
            return text
        check = f"torch.amp.GradScaler checks the gradients by operator #{self.scaler.source.index}"
        return f"{text}; {check}, and skips a step in which its scale causes an inf"


@dataclass(slots=True)
class NonFiniteAnswer:
    """The answer to `tracing nan`; `origin` None and no `unknown`: every value is finite."""

    kind: Kind = "any"  # "nan": inf counts as finite; "inf": NaN counts as finite
    origin: NonFiniteOrigin | None = None
    # if the origin is not known, or does not compute the values, or may mean them: the first that certainly
    # makes one, of finite values; after an origin that makes inf and no NaN: a NaN
    later: DataEvent | None = None
    launches: int = 0
    operators: int = 0
    undecided: list[OldContents] = field(default_factory=list)  # launches that may have stored one
    reads: list[UndigestedRead] = field(default_factory=list)  # at which the search ended
    unknown: list[str] = field(default_factory=list)  # what is not decided, such as by missing digests
    record: list[str] = field(default_factory=list)  # options of `tracing run` that would show it
    missing: list[str] = field(default_factory=list)  # steps that the run lacks
    digested: bool = True  # the launches have digests
    selected: bool = False  # only some launches were recorded

    @property
    def lacking(self) -> str:
        """What of the program the run lacks: "a step", "a launch"; empty: nothing that is known."""
        return "a step" if self.missing else "a launch" if self.selected else ""

    @property
    def unexplained(self) -> bool:
        """True if digests show such a value, and neither an event that was seen nor the program's own data
        explains it.
        """
        old = [one for one in self.undecided if one.operator or one.tensor.before is None]
        return any(not one.explained for one in self.reads) or any(not one.given for one in old)

    @property
    def status(self) -> int:
        """The exit status: 1 if an event is named, 2 if it is not certain, 0 if every value is finite."""
        if self.later is not None:
            return 1
        if self.origin is not None:
            return 2 if self.origin.verb == "may make" else 1
        return 2 if self.unknown or self.undecided or self.reads else 0
