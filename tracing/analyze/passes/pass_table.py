"""Resolve the pass that a user names, and count what each pass did to operations.

A pass is named by its index or by its name, or as `canonicalize#2` if it ran more than once. A name that fits
none or several is refused with the names that would fit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from tracing.analyze.passes.compilations import compilations
from tracing.analyze.passes.numbered_names import nearest, nth_named
from tracing.analyze.passes.operations import counts
from tracing.errors import Problem
from tracing.model import Blob, Compilation, Kernel, PassRecord
from tracing.store import Run

T = TypeVar("T")
N = TypeVar("N", bound="NamedPass")
P = TypeVar("P", bound="AnyPass")


class NamedPass(Protocol):
    """The properties by which a user names a pass."""

    @property
    def index(self) -> int | None: ...  # None: it is known only by its name
    @property
    def stage(self) -> str: ...
    @property
    def name(self) -> str: ...


class AnyPass(NamedPass, Protocol):
    """A pass of MLIR or of LLVM."""

    @property
    def before(self) -> Blob: ...
    @property
    def after(self) -> Blob | None: ...
    @property
    def changed(self) -> bool: ...


def passes_of(run: Run, compilation: Compilation) -> list[PassRecord]:
    """The passes of one compilation, in order; if several processes compiled it, those of the first."""
    by_index: dict[int, PassRecord] = {}
    for record in run.passes():
        if record.compilation.hash == compilation.hash:
            by_index.setdefault(record.index, record)
    return list(by_index.values())


def telling_pass(
    passes: Sequence[PassRecord], shows: Callable[[PassRecord], bool] = lambda one: True
) -> str | None:
    """The unique name of a pass for an example: the last of Triton's own that changed TTGIR, else any.

    passes -- those of one compilation
    shows  -- whether what a pass changed can be seen; a pass of which nothing can is the last resort
    """
    changed = [one for one in passes if one.after is not None and one.changed]
    own = [one for one in changed if one.stage == "ttgir" and "triton" in one.name]
    if not (own or changed):
        return None
    candidates = own or changed
    chosen = next(filter(shows, reversed(candidates)), candidates[-1])
    same = [one.index for one in passes if one.name == chosen.name]
    return chosen.name if len(same) == 1 else f"{chosen.name}#{same.index(chosen.index) + 1}"


@dataclass(frozen=True, slots=True)
class KernelPasses:
    """The passes of one compilation in numbers."""

    compilation: Compilation
    count: int
    changed: int  # that changed the IR
    wall_ms: float  # of the passes that ended
    launched: bool  # autotuning compiles kernels that are then not launched


def passes_by_hash(run: Run) -> dict[str, list[PassRecord]]:
    """The passes of every compilation of a run, as `passes_of` gives them; about 10 µs a pass."""
    by_hash: dict[str, dict[int, PassRecord]] = {}
    for record in run.passes():
        by_hash.setdefault(record.compilation.hash, {}).setdefault(record.index, record)
    return {hash: list(by_index.values()) for hash, by_index in by_hash.items()}


def kernel_passes(run: Run) -> list[KernelPasses]:
    """Every compilation with its passes in numbers; reads only records, about 10 µs a pass."""
    by_hash = passes_by_hash(run)
    launched = {kernel.hash for kernel in run.records(Kernel)}
    return [_in_numbers(one, by_hash.get(one.hash, ()), one.hash in launched) for one in compilations(run)]


def _in_numbers(compilation: Compilation, passes: Sequence[PassRecord], launched: bool) -> KernelPasses:
    ended = [one for one in passes if one.after is not None]
    changed, wall_ms = sum(one.changed for one in ended), sum(one.wall_ms or 0.0 for one in ended)
    return KernelPasses(compilation, len(passes), changed, wall_ms, launched)


def find_pass(passes: Sequence[P], which: str, stage: str | None = None, owner: str = "this kernel has") -> P:
    """The pass that a user names.

    passes -- those of one compilation
    which  -- an index, a name, or `NAME#n` for the n-th pass of that name, from 1
    stage  -- only passes of this stage are meant
    owner  -- of the passes, for the problem: "this kernel has"

    Raises Problem if there is none, with near names, or if there are several, with their indices.
    """
    meant = meant_passes(passes, which, stage)
    if len(meant) == 1:
        return meant[0]
    if meant:
        raise Problem(
            f"{which} ran {len(meant)} times", "\n  ".join(["choose one:", *map(_choice, _counted(meant))])
        )
    raise Problem(*no_pass(passes, which, stage, owner))


def meant_passes(passes: Sequence[N], which: str, stage: str | None) -> list[N]:
    """The passes that a user may mean, as for `find_pass`."""
    among = [one for one in passes if stage in (None, one.stage)]
    if which.isdecimal():
        return [one for one in among if one.index == int(which)]
    return [one for one in among if one.name == which] or nth_named(among, which, lambda one: one.name)


@dataclass(frozen=True, slots=True)
class PassStep(Generic[P]):
    """One pass, and the operations of interest before and after it."""

    record: P
    before: Mapping[str, int]  # operation name -> how often
    after: Mapping[str, int]  # empty where the pass did not end


def steps(
    run: Run, passes: Sequence[P], count: Callable[[str], Mapping[str, int]] = counts
) -> list[PassStep[P]]:
    """The passes of one compilation with all their operations; reads each distinct IR once.

    count -- the operations in a text
    """
    known: dict[Blob, Mapping[str, int]] = {}
    for blob in {blob for one in passes for blob in (one.before, one.after) if blob}:
        known[blob] = count(run.text(blob))
    return [PassStep(one, known.get(one.before, {}), known.get(one.after or "", {})) for one in passes]


def history(steps: Sequence[PassStep[P]], wanted: Collection[str]) -> list[PassStep[P]]:
    """The steps that change how often some operations occur, with only those operations in them.

    A pass that did not end changes nothing that is known.
    """
    only = [PassStep(one.record, _only(one.before, wanted), _only(one.after, wanted)) for one in steps]
    return [one for one in only if one.record.after is not None and one.before != one.after]


def _only(counted: Mapping[str, int], wanted: Collection[str]) -> dict[str, int]:
    return {name: count for name, count in sorted(counted.items()) if name in wanted}


def _counted(meant: Sequence[P]) -> list[tuple[str, P]]:
    return [(f"{one.name}#{number}", one) for number, one in enumerate(meant, 1)]


def _choice(counted: tuple[str, P]) -> str:
    name, one = counted
    index = f"index {one.index}, " if one.index is not None else ""
    return f"{name}  {index}{one.stage}{'' if one.changed else ', changed nothing'}"


def no_pass(passes: Sequence[NamedPass], which: str | None, stage: str | None, owner: str) -> tuple[str, str]:
    """The problem and the remedy where no pass has the name, the index or the stage that a user gives."""
    stages = list(dict.fromkeys(one.stage for one in passes))
    if which is None or (stage is not None and stage not in stages):
        return f"{owner} no pass of stage {stage}", f"stages: {', '.join(stages) or 'none'}"
    problem = f"{owner} no pass {which}" + (f" in stage {stage}" if stage else "")
    if which.isdecimal():
        among = [one.index for one in passes if stage in (None, one.stage) and one.index is not None]
        return problem, f"there are {min(among)} to {max(among)}" if among else "name one"
    elsewhere = list(dict.fromkeys(one.stage for one in passes if one.name == which.partition("#")[0]))
    if elsewhere and stage is not None and stage not in elsewhere:
        return problem, f"it is in stage {', '.join(elsewhere)}"
    return problem, nearest(which, list(dict.fromkeys(one.name for one in passes)))
