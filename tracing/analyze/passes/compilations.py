"""The compilations of a run, and the one that a user names.

A kernel is named by its name, by the first digits of its hash, or as `NAME#2` if one name was compiled with
several configurations, as by autotuning. A name that fits none or several is refused with the names that
would fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tracing.analyze.passes.numbered_names import nearest, nth_named
from tracing.errors import Problem
from tracing.model import Compilation, Kernel, Outcome, PassRecord
from tracing.model.record import with_fields
from tracing.store import Run

DIGITS = 12  # hex digits of a hash that distinguish the kernels of one run
BINARIES = {"cuda": "cubin", "hip": "hsaco"}  # by backend: the last stage
SHOWN = 12  # kernels in a message: a run can have thousands


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
    near = nearest(kernel or "", list(dict.fromkeys(one.kernel_name for one in known)))
    raise Problem(f"{run.path} has no kernel {kernel}", near)


def other_namesakes(run: Run, kernel: str | None, chosen: Compilation) -> list[Compilation]:
    """The other compilations that a name means; `compilation` chose one among them."""
    return [one for one in meant_compilations(compilations(run), kernel) if one.hash != chosen.hash]


def meant_compilations(known: Sequence[Compilation], kernel: str | None) -> list[Compilation]:
    """The compilations that a user may mean, as for `compilation`."""
    if kernel is None:
        return list(known)
    same_name = [one for one in known if one.kernel_name == kernel]
    numbered = nth_named(known, kernel, lambda one: one.kernel_name)
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


def unfinished_passes(run: Run) -> list[PassRecord]:
    """The passes that started and did not end: each failed, or took its process down, or still runs."""
    return [record for record in run.passes() if record.after is None]


def unended(run: Run) -> set[str]:
    """The hashes of the compilations that did not end, in a pass or after the last one."""
    return {one.compilation.hash for one in unfinished_passes(run)} | {
        one.hash for one, _ in unassembled(run)
    }


def unassembled(run: Run) -> list[tuple[Compilation, str]]:
    """The compilations whose passes of MLIR all ended, and that have no binary; with the binary's name.

    LLVM or the assembler failed or took the process down, or still runs.
    """
    stages = {(one.hash, artefact.stage) for one, artefact in run.artefacts()}
    passed = {record.compilation.hash for record in run.passes()}
    passed -= {record.compilation.hash for record in unfinished_passes(run)}
    among = [(one, BINARIES.get(one.target.partition(":")[0], "")) for one in compilations(run)]
    return [
        (one, binary)
        for one, binary in among
        if binary and one.hash in passed and (one.hash, binary) not in stages
    ]
