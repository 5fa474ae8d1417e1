"""Resolve the kernel and pass that a user names, and count what each pass did to operations.

A kernel is named by its name, by the first digits of its hash, or as `NAME#2` if one name was compiled with
several configurations, as by autotuning. A pass is named by its index or by its name, or as `canonicalize#2`
if it ran more than once. A name that fits none or several is refused with the names that would fit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Generic, Protocol, TypeVar

from tracing.analyze.passes.operations import counts
from tracing.errors import Problem
from tracing.model import Blob, Compilation, Kernel, Outcome, PassRecord
from tracing.model.first_names import first_names
from tracing.model.record import with_fields
from tracing.store import Run

T = TypeVar("T")
N = TypeVar("N", bound="NamedPass")
P = TypeVar("P", bound="AnyPass")
_LISTED = 8  # names of one sentence
DIGITS = 12  # hex digits of a hash that distinguish the kernels of one run
BINARIES = {"cuda": "cubin", "hip": "hsaco"}  # by backend: the last stage
SHOWN = 12  # kernels in a message: a run can have thousands


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


def compilations(run: Run) -> list[Compilation]:
    """The compilations of a run, process by process, in order; each hash is listed once.

    Each has the name by which it was launched: with `triton.unique_kernel_names = False` Inductor compiles
    every kernel by one name.
    """
    launched = {one.hash: one.name for one in run.records(Kernel)}
    first: dict[str, Compilation] = {}
    for compilation in run.records(Compilation):
        first.setdefault(compilation.hash, compilation)
    return [with_fields(one, kernel_name=launched.get(one.hash, one.kernel_name)) for one in first.values()]


def compilation(run: Run, kernel: str | None = None, *, crashed: bool = False) -> Compilation:
    """The compilation that a user names.

    kernel  -- the kernel's name, the first digits of its hash, or `NAME#n` for the n-th of a name, from 1;
               None: the only one of the run
    crashed -- of several the one that did not end is meant, if only one did not

    Of several the launched one is meant, if only one was launched. Raises Problem if there is none, with near
    names, or if there are several, with the differences between them.
    """
    known = compilations(run)
    if not known:
        command = run.info.command
        by = f": `tracing {command}` made it" if command not in ("", "run") else ""
        for outcome in run.records(Outcome):
            if outcome.status == "failed":
                failed = f"the {run.info.kind} failed before the first one: {outcome.detail}"
                raise Problem(f"{run.path} has no compiler passes: {failed}", f"`tracing show {run.path}`")
        raise Problem(
            f"{run.path} has no compiler passes{by}",
            "record them with `tracing run`, without --no-passes; a kernel from a warm cache has none",
        )
    meant = meant_compilations(known, kernel)
    launched = {one.hash for one in run.records(Kernel)} if len(meant) > 1 else set()
    died = unended(run) - launched if crashed and len(meant) > 1 else set()
    only = [one for one in meant if one.hash in (died or launched)]
    if len(meant) == 1 or len(only) == 1:
        return (only or meant)[0]
    if meant:
        subject = f"{run.path} has passes of" if kernel is None else f"{kernel} means"
        shown = [f"--kernel {choice}" for choice in _choices(run, known, meant[:SHOWN])]
        rest = [f"and {len(meant) - SHOWN} more: `tracing passes {run.path}`"] if len(meant) > SHOWN else []
        raise Problem(f"{subject} {len(meant)} kernels", "\n  ".join(["choose one:", *shown, *rest]))
    near = _near(kernel or "", list(dict.fromkeys(one.kernel_name for one in known)))
    raise Problem(f"{run.path} has no kernel {kernel}", near)


def other_namesakes(run: Run, kernel: str | None, chosen: Compilation) -> list[Compilation]:
    """The other compilations that a name means; `compilation` chose one among them."""
    return [one for one in meant_compilations(compilations(run), kernel) if one.hash != chosen.hash]


def meant_compilations(known: Sequence[Compilation], kernel: str | None) -> list[Compilation]:
    """The compilations that a user may mean, as for `compilation`."""
    if kernel is None:
        return list(known)
    same_name = [one for one in known if one.kernel_name == kernel]
    numbered = _numbered(known, kernel, lambda one: one.kernel_name)
    return same_name or numbered or [one for one in known if one.hash.startswith(kernel)]


def _choices(run: Run, known: Sequence[Compilation], meant: Iterable[Compilation]) -> Iterator[str]:
    # `matmul#2  1a2b3c4d5e6f  num_warps=8`: with what differs among the compilations of one name
    launched = {one.hash for one in run.records(Kernel)}
    facts = {one.hash: {**one.options, **one.constants} for one in known}
    for one in meant:
        mine = facts[one.hash]
        same_name = [facts[other.hash] for other in known if other.kernel_name == one.kernel_name]
        different = [name for name in mine if any(other.get(name) != mine[name] for other in same_name)]
        values = [f"{name}={mine[name]}" for name in different]
        if launched and one.hash not in launched:
            values.append("not launched")
        yield "  ".join([label(known, one), one.hash[:DIGITS], *values])


def label(known: Sequence[Compilation], one: Compilation) -> str:
    """The shortest name that means this compilation among those known: `softmax`, or `softmax#2`."""
    same = [other.hash for other in known if other.kernel_name == one.kernel_name]
    return one.kernel_name if len(same) == 1 else f"{one.kernel_name}#{same.index(one.hash) + 1}"


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


def unfinished(run: Run) -> list[PassRecord]:
    """The passes that started and did not end: each failed, or took its process down, or still runs."""
    return [record for record in run.passes() if record.after is None]


def unended(run: Run) -> set[str]:
    """The hashes of the compilations that did not end, in a pass or after the last one."""
    return {one.compilation.hash for one in unfinished(run)} | {one.hash for one, _ in unassembled(run)}


def unassembled(run: Run) -> list[tuple[Compilation, str]]:
    """The compilations whose passes of MLIR all ended, and that have no binary; with the binary's name.

    LLVM or the assembler failed or took the process down, or still runs.
    """
    stages = {(one.hash, artefact.stage) for one, artefact in run.artefacts()}
    passed = {record.compilation.hash for record in run.passes()}
    passed -= {record.compilation.hash for record in unfinished(run)}
    among = [(one, BINARIES.get(one.target.partition(":")[0], "")) for one in compilations(run)]
    return [
        (one, binary)
        for one, binary in among
        if binary and one.hash in passed and (one.hash, binary) not in stages
    ]


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
    return [one for one in among if one.name == which] or _numbered(among, which, lambda one: one.name)


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


def _numbered(items: Sequence[T], which: str, name: Callable[[T], str]) -> list[T]:
    # `NAME#n`, counted from 1
    wanted, _, number = which.rpartition("#")
    same = [item for item in items if name(item) == wanted]
    return same[int(number) - 1 : int(number)] if number.isdecimal() and int(number) else []


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
    return problem, _near(which, list(dict.fromkeys(one.name for one in passes)))


def _near(name: str, known: Sequence[str]) -> str:
    near = get_close_matches(name, sorted(set(known)), n=3, cutoff=0.5)
    return f"nearest: {', '.join(near)}" if near else f"there are {first_names(known, _LISTED)}"
