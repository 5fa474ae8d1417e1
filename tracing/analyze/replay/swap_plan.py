"""Find the launches of run b that can be replaced by those of run a, and their differences.

The n-th launch of a kernel in b belongs to the n-th launch of the kernel of that name in a. It can be
replaced by a's source, which includes the functions that it calls; by a's configuration, which is its
tl.constexpr arguments, compiler options and grid; by both; or by Triton's interpreter. Its arguments stay
b's.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tracing.errors import Problem, page
from tracing.model import Kernel, Replacement, Result, Signature
from tracing.store import Run
from tracing.store.kernel_file import configuration, configured, kernel_module, parameters

_KINDS = {"program": "a program", "code": "code that `tracing.recording()` surrounds"}
Version: TypeAlias = Literal["configuration", "source", "eager"]


@dataclass(frozen=True, slots=True)
class SwapLaunch:
    """One launch of a kernel."""

    index: int  # of the launch in run b
    number: int  # among the launches of its kernel, from 0
    replacement: Replacement
    differs: str  # "num_warps 8 → 4": the value in run b, and its replacement


@dataclass(frozen=True, slots=True)
class Candidate:
    """Launches of one kernel that are replaced together."""

    kernel: str
    turns: tuple[SwapLaunch, ...]
    launches: int  # launches of the kernel in run b; those that are not swapped are equal in both runs


@dataclass(frozen=True, slots=True)
class SwapPlan:
    """The launches that a swap test can replace."""

    candidates: tuple[Candidate, ...]  # in the order of their first launches
    alike: tuple[str, ...]  # kernels without a difference
    not_covered: Mapping[str, str]  # by kernel: why it cannot be replaced


def results(run: Run) -> dict[str, str]:
    """The comparable results of a run's case, by name; raises Problem if there are none."""
    bits = {result.name: result.value.identity for result in run.records(Result)}
    if not bits and run.info.kind != "case":
        raise Problem(
            f"swap executes a case with other kernels, and {run.path} is of {_KINDS[run.info.kind]}",
            "replace one launch: `tracing replay A --launch N --against B`; or put what it computes into a "
            f"file with build(device): {page('docs/case.md')}",
        )
    if not bits:
        raise Problem(f"{run.path} has no results to compare", f"`tracing show {run.path}` says how it ended")
    return bits


def plan(a: Run, b: Run, version: Version | None) -> SwapPlan:
    """The launches of run b that can be replaced.

    version -- the replacement; None: a's source and configuration, whichever differs

    Raises Problem for a run of several processes.
    """
    side_a, side_b = _Side(a), _Side(b)
    candidates, alike, not_covered = [], [], {}
    for kernel in side_b.launches:
        try:
            candidate = _candidate(kernel, side_a, side_b, version)
        except Problem as problem:
            not_covered[kernel] = problem.problem
            continue
        if candidate is None:
            alike.append(kernel)
        else:
            candidates.append(candidate)
    return SwapPlan(tuple(candidates), tuple(alike), not_covered)


def each_launch(candidates: Sequence[Candidate]) -> list[Candidate]:
    """A candidate for each launch of these candidates, in launch order."""
    each = [Candidate(one.kernel, (turn,), one.launches) for one in candidates for turn in one.turns]
    return sorted(each, key=lambda one: one.turns[0].index)


def chosen(candidates: Sequence[Candidate]) -> dict[str, dict[int, Replacement]]:
    """Their replacements, by kernel and by number of the launch."""
    replacements: dict[str, dict[int, Replacement]] = {}
    for one in candidates:
        replacements.setdefault(one.kernel, {}).update({turn.number: turn.replacement for turn in one.turns})
    return replacements


class _Side:
    # the launches of one run, by kernel: index and signature

    def __init__(self, run: Run) -> None:
        processes = run.processes()
        if len(processes) != 1:
            what = f"{run.path} has launches of {len(processes)} processes"
            raise Problem(f"{what}, and `tracing swap` executes a case in one", "record it without torchrun")
        self.run, self.signatures = run, run.signatures(processes[0])
        self.launches: dict[str, list[tuple[int, int]]] = {}
        for row in run.rows(processes[0]):
            name = self.signatures[row.line.signature][0].name
            self.launches.setdefault(name, []).append((row.line.index, row.line.signature))


@dataclass(frozen=True, slots=True)
class _Launched:
    # a kernel with the configuration of its launches in one run
    run: Run
    kernel: Kernel
    signature: Signature

    @property
    def source(self) -> str:
        return kernel_module(self.run, self.kernel)

    def configured(self, source: str) -> str:
        return configured(self.run, self.kernel, source)

    def settings(self) -> dict[str, str]:
        source = self.source
        constants, options = _dictionaries(configuration(self.run, self.kernel, source))
        declared = {name for name, constant in parameters(source).items() if constant}
        settings = {name: value for name, value in constants.items() if name in declared} | options
        return settings | {"grid": str(self.signature.grid)}


def _dictionaries(assignments: str) -> Iterator[dict[str, str]]:
    for node in ast.parse(assignments).body:
        assert isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict)
        pairs = zip(node.value.keys, node.value.values, strict=True)
        yield {ast.literal_eval(key): ast.unparse(value) for key, value in pairs if key is not None}


def _candidate(kernel: str, a: _Side, b: _Side, version: Version | None) -> Candidate | None:
    theirs, ours = a.launches.get(kernel, []), b.launches[kernel]
    if version == "eager":
        theirs = ours
    elif not theirs:
        raise Problem(f"run {a.run.name} launches no kernel of this name")
    elif len(theirs) != len(ours):
        raise Problem(f"it is launched {len(ours)} times, and {len(theirs)} times in {a.run.name}")
    known: dict[tuple[int, int], tuple[Replacement, str] | None] = {}
    turns = []
    for number, ((_, their), (index, our)) in enumerate(zip(theirs, ours, strict=True)):
        if (their, our) not in known:
            mine = _Launched(b.run, *b.signatures[our])
            if version == "eager":
                known[their, our] = (
                    _replacement(mine, mine, mine.source, eager=True),
                    "compiled → interpreted",
                )
            else:
                known[their, our] = _replaced(_Launched(a.run, *a.signatures[their]), mine, version)
        if replaced := known[their, our]:
            turns.append(SwapLaunch(index, number, *replaced))
    return Candidate(kernel, tuple(turns), len(ours)) if turns else None


def _replaced(theirs: _Launched, mine: _Launched, version: Version | None) -> tuple[Replacement, str] | None:
    # None: no difference
    differing = []
    source = mine.source
    if version != "configuration" and theirs.source != source:
        wanted, own = parameters(theirs.source), parameters(source)
        if list(wanted) != list(own):
            raise Problem(f"its parameters are {', '.join(own)}; in {theirs.run.name} {', '.join(wanted)}")
        source = theirs.source
        differing.append("source")
    configured = mine
    if version != "source":
        before, after = mine.settings(), theirs.settings()
        names = [name for name in before | after if before.get(name) != after.get(name)]
        differing += [f"{name} {before.get(name, 'unset')} → {after.get(name, 'unset')}" for name in names]
        configured = theirs
    if not differing:
        return None
    return _replacement(mine, configured, source), ", ".join(differing)


def _replacement(mine: _Launched, other: _Launched, source: str, *, eager: bool = False) -> Replacement:
    # other: the launch whose configuration is used
    own = mine.run.text(mine.kernel.source) if mine.kernel.source else ""
    module, grid = other.configured(source), other.signature.grid
    return Replacement(module, grid, own, mine.signature.grid, eager)
