"""The IR between the passes of a recorded run: its compilations run once more, and print it.

MLIR takes nearly as long to print a kernel's IR after every pass as to compile the kernel. So a recording
keeps what enters a compilation and what each stage gives, and the rest is derived when the program has ended:
in child processes, on every core, with the options of the recording and the settings of this process. What a
stage gives then must be what it gave, bit for bit; where it is not, the run says so.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracing.compiler.child import in_child
from tracing.compiler.resume import Place, resume
from tracing.compiler.steps import Pass
from tracing.errors import Problem
from tracing.model import Blob, Compilation, Derivation, PackedBlob, PassEnd, PassIR, PassStart, StageArtefact
from tracing.record.pass_ir import PassIRWriter
from tracing.store import Run, RunWriter, blob_name, reopened

BATCH = 8  # compilations that one child derives: each child writes files of its own
SECONDS = 120.0  # that one compilation may take
LEVEL = 9  # of the compression: nobody waits for it
ENDS = "ends, which did not end in the recording"
PRINT = "record with `--ir during`, which prints the IR as the passes run"


@dataclass(frozen=True, slots=True)
class _Waiting:
    # one compilation whose IR is not known
    process: str  # that recorded it
    compilation: Compilation
    starts: Sequence[PassStart]  # its passes
    unfinished: int | None  # index of the pass that did not end
    artefacts: Mapping[str, Blob]  # by stage

    def derivation(self, differs: str) -> Derivation:
        return Derivation(self.process, self.compilation.id, differs)


def derive(
    path: Path, rank: int | None = None, progress: Callable[[int, int], None] = lambda done, of: None
) -> list[Derivation]:
    """Derive the IR of every compilation of a run that has none yet; give what came of each.

    rank     -- only what processes of this rank recorded
    progress -- is told how many compilations are done, and of how many

    Cost: about that of the compilations up to LLVM IR and as much again for printing, over the number of
    cores; some milliseconds where none waits. What is interrupted goes on with the next call. It forks, and
    touches no GPU.
    """
    waiting = _waiting(Run(path), rank)
    cores = os.cpu_count() or 1
    size = min(BATCH, -(-len(waiting) // cores)) or 1
    batches = [waiting[start : start + size] for start in range(0, len(waiting), size)]
    found: list[Derivation] = []
    with ThreadPoolExecutor(max_workers=cores) as pool:
        for derived in pool.map(lambda batch: _batch(path, batch), batches):
            found += derived
            progress(len(found), len(waiting))
    return found


def _waiting(run: Run, rank: int | None) -> list[_Waiting]:
    found = [one for one in run.underived() if rank in (None, int(one[0].rsplit("-", 2)[1]))]
    artefacts: dict[tuple[str, int], dict[str, Blob]] = {}
    starts: dict[tuple[str, int], list[PassStart]] = {}
    ends: set[tuple[str, int, int]] = set()
    for process in dict.fromkeys(process for process, _ in found):
        for artefact in run.view(f"-{process}", StageArtefact, StageArtefact):
            artefacts.setdefault((process, artefact.compilation), {})[artefact.stage] = artefact.blob
        for start in run.view(f"-{process}", PassStart, PassStart):
            starts.setdefault((process, start.compilation), []).append(start)
        ends |= {(process, end.compilation, end.index) for end in run.view(f"-{process}", PassEnd, PassEnd)}
    waiting = []
    for process, one in found:
        passes = starts[process, one.id]
        last = passes[-1].index
        unfinished = None if (process, one.id, last) in ends else last
        waiting.append(_Waiting(process, one, passes, unfinished, artefacts.get((process, one.id), {})))
    return waiting


def _batch(path: Path, batch: Sequence[_Waiting]) -> list[Derivation]:
    # each of them, also where the compiler takes a child down
    found: list[Derivation] = []
    while len(found) < len(batch):
        rest = batch[len(found) :]
        ended = in_child(functools.partial(_derive, path, rest), SECONDS * len(rest))
        written = {(one.process, one.compilation): one for one in Run(path).records(Derivation)}
        for one in rest:
            derivation = written.get((one.process, one.compilation.id))
            if derivation is None:
                found.append(_died(path, one, ended.failure))
                break
            found.append(derivation)
    return found


def _died(path: Path, one: _Waiting, failure: str) -> Derivation:
    # the compilation that took the child down: as in the recording, or not
    of_it = (
        ir.index
        for ir in Run(path).records(PassIR)
        if (ir.process, ir.compilation) == (one.process, one.compilation.id)
    )
    reached = max(of_it, default=None)
    as_recorded = one.unfinished is not None and one.unfinished == reached
    derivation = one.derivation("" if as_recorded else f"the passes behind {reached}: {failure}")
    writer = reopened(path)
    writer.append(derivation)
    writer.close()
    return derivation


def _derive(path: Path, batch: Sequence[_Waiting]) -> None:
    # in a child, in this order
    run, writer = Run(path), reopened(path)
    writer.known(place.blob for place in run.records(PackedBlob))
    for one in batch:
        writer.append(one.derivation(_differs(run, writer, one)))
    writer.close()


class _Following:
    # an observer that lets the recorded passes through, and no others

    def __init__(self, one: _Waiting, ir: PassIRWriter) -> None:
        self.reached = -1
        self.artefact, self.after, self.ended = ir.artefact, ir.after, ir.ended
        self._starts = one.starts
        self._ir = ir

    def before(self, step: Pass, module: Any) -> None:
        self.reached = step.index
        if step.index == len(self._starts):
            raise Problem(f"pass {step.index - 1} {ENDS}", PRINT)
        if step.pipeline != (recorded := self._starts[step.index].pipeline):
            raise Problem(f"pass {step.index} is {step.pipeline}, and was {recorded}", PRINT)
        self._ir.before(step, module)


def _differs(run: Run, writer: RunWriter, one: _Waiting) -> str:
    # runs the passes, and says what came out otherwise than in the recording
    ir = _Following(one, PassIRWriter(writer, writer.pack(LEVEL), one.process, one.compilation.id))
    known = one.compilation
    place = Place(run.text(known.source), known.first, 0, locations=known.block_locations)
    try:
        given = resume(known, place, last=one.starts[-1].stage, observer=ir)
    except Problem as problem:
        return "" if one.unfinished == ir.reached else problem.problem
    if one.unfinished is not None:
        return f"pass {one.unfinished} {ENDS}"
    other = [stage for stage, content in given.items() if blob_name(content) != one.artefacts.get(stage)]
    return f"{', '.join(other)} came out otherwise" if other else ""
