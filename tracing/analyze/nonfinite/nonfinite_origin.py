"""The event that a NaN or an inf comes from, and how: computed, passed on, read, or left in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from tracing.analyze.graphs.launch_lines import filling_lines, launch_lines
from tracing.analyze.nonfinite.data_events import DataEvent, Kind, NonFiniteTensor
from tracing.analyze.nonfinite.memory_contents import OldContents
from tracing.analyze.nonfinite.stored_constants import Share, stored_constants
from tracing.model import KernelLaunch
from tracing.model.library_files import is_library
from tracing.store import Run
from tracing.store.graph_file import PythonLine

# makes:  a launch or operator that reads no such value computed it
# passes: it came to the launch or operator as a number, or as data of Python, or is a constant of a kernel
# reads:  nothing that was recorded wrote it
# keeps:  it was there before the launch, in elements that the launch did not write
# may make: it fills memory of torch.empty with NaN, as Inductor does, or stores a constant, or is called with
#         such a number: that may be all
Verb: TypeAlias = Literal["makes", "passes", "reads", "keeps", "may make"]


@dataclass(frozen=True, slots=True)
class NonFiniteOrigin:
    """The origin of the first NaN or inf of a run."""

    event: DataEvent
    verb: Verb
    tensors: tuple[NonFiniteTensor, ...]  # written by the event; if it reads the values, read by it
    chain: tuple[DataEvent, ...]  # those that carry it on to the last one, each from the one before it
    carriers: int = 0  # how many carry it on, or may, in all
    carriers_known: bool = True  # each of these does
    computes: tuple[PythonLine, ...] = ()  # lines that the launch computes
    fills: tuple[PythonLine, ...] = ()  # lines that allocate memory which it sets in part
    constant: bool = False  # a constant NaN or inf of the kernel's code is stored
    old: OldContents | None = None  # if a launch left it there: that launch
    first: bool = True  # False: a launch before it may have stored one
    unseen: bool = False  # an operator before it, which has no digests, may have made one
    partial: bool = False  # the run lacks launches before it
    cast: tuple[DataEvent, str] | None = None  # what wrote the bytes that it reads, as numbers of that dtype
    unwritten: tuple[str, ...] = ()  # arguments that it reads, and of which nothing wrote any element
    scaler: DataEvent | None = None  # the check of torch.amp.GradScaler that reads the values, or may
    scaled: bool | None = None  # the event reads what depends on its scale; None: the run updates no scale
    stepped: bool = False  # an optimizer stepped with what that check found
    # they depend on its scale, and no check nor, after that step, anything else reads them
    unread: bool = False

    @property
    def made(self) -> bool:
        """True if the event computed the values."""
        return self.verb == "makes"

    @property
    def skipped(self) -> bool:
        """True if the scale of torch.amp.GradScaler may cause the values, and no optimizer takes them."""
        return self.unread or (self.scaler is not None and bool(self.scaled) and not self.stepped)


def with_lines(run: Run, origin: NonFiniteOrigin, kind: Kind) -> NonFiniteOrigin:
    """The origin with the lines that its launch computes; "passes" or "may make" if it stores a constant."""
    source = origin.event.source
    if not isinstance(source, KernelLaunch):
        return origin
    computes = launch_lines(run, origin.event.rank, source)
    nan = kind != "inf" and any(one.bad("nan") for one in origin.tensors)
    fills = filling_lines(run, origin.event.rank, source) if origin.made and nan else ()
    if origin.verb == "passes":  # a number that it is called with
        share = _constant(run, source, origin, kind)
        return replace(origin, computes=computes, verb="passes" if share == "all" else "may make")
    constant = _constant(run, source, origin, kind) if origin.made and not fills else "none"
    verb: Verb = "passes" if constant == "all" else "may make" if fills or constant == "some" else origin.verb
    return replace(origin, computes=computes, fills=fills, constant=constant != "none", verb=verb)


def _constant(run: Run, launch: KernelLaunch, origin: NonFiniteOrigin, kind: Kind) -> Share:
    # which of the values are constants of the kernel's code; none if some of them are computed in any case
    # a constant of a generated kernel may be one that the compiler has computed, as of log(0)
    if (blob := launch.kernel.stages.get("ttir")) is None:
        return "none"
    ttir = run.text(blob)
    kinds: list[Literal["nan", "inf"]] = ["nan", "inf"] if kind == "any" else [kind]
    wrong = [(one.name, bad) for one in origin.tensors for bad in kinds if one.bad(bad)]
    given = {bad: [one.partition("=")[0] for one in origin.event.bad_numbers(bad)] for bad in kinds}
    stored = {stored_constants(ttir, name, bad, given[bad]) for name, bad in wrong}
    generated = is_library(launch.kernel.file or "") and not launch.kernel.copied
    return "none" if "none" in stored else "some" if generated or "some" in stored else "all"


def verb_of(
    event: DataEvent, read: Sequence[NonFiniteTensor], wrote: Sequence[NonFiniteTensor], kind: Kind
) -> Verb:
    """What an event does that reads, or writes, these tensors with such values; as far as digests show."""
    if read:
        return "reads"
    computed_nan = any(one.bad("nan") for one in wrote) and not event.bad_numbers("nan")  # 0 * inf
    if event.from_python or (event.bad_numbers(kind) and not (computed_nan and kind != "inf")):
        return "passes"
    return "makes"
