"""Derives the IR between the passes of a recorded run: repeats its compilations and prints the IR.

MLIR takes nearly as long to print a kernel's IR after every pass as to compile the kernel. So a recording
keeps the input of a compilation and the output of each stage, and derives the rest when the program has
ended: in child processes, on every core, with the options of the recording and the settings of this process.
The output of a stage must be equal to the recorded one, bit for bit; else the run says so.

A pass that did not end in the recording is not executed; only its input is derived. The same holds for LLVM.
"""

from __future__ import annotations

import functools
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracing.compiler.child import ChildResult, in_child
from tracing.compiler.resume import ResumePoint, resume
from tracing.compiler.steps import Pass
from tracing.environment.stops import stop_no_more
from tracing.errors import Problem
from tracing.model import Blob, Compilation, Derivation, PackedBlob, PassEnd, PassIR, PassStart, StageArtefact
from tracing.record.passes.ir import PassIRWriter
from tracing.store import Run, RunWriter, blob_name, reopened

BATCH = 8  # compilations that one child derives: each child writes files of its own
SECONDS = 120.0  # that one compilation may take
LEVEL = 9  # level of the compression: no command waits for it
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

    @property
    def died_after(self) -> int | None:
        """The index of its last pass, if all of them ended and their stage did not."""
        last = self.starts[-1]
        return None if last.stage in self.artefacts or self.unfinished is not None else last.index


@dataclass(frozen=True, slots=True)
class _RunFiles:
    path: Path
    scratch: Path | None

    def run(self) -> Run:
        return Run(self.path, self.scratch)

    def writer(self) -> RunWriter:
        return reopened(self.scratch or self.path)


def derive(
    path: Path,
    rank: int | None = None,
    progress: Callable[[int, int], None] = lambda done, of: None,
    *,
    scratch: Path | None = None,
) -> list[Derivation]:
    """Derive the IR of every compilation of a run that has none yet; returns the result for each.

    rank     -- only compilations of this rank
    progress -- receives the number of finished compilations, and of all
    scratch  -- a folder for the derived records; None: the run itself

    A compilation that takes longer than SECONDS is returned but not recorded, because that is not a property
    of it; the same holds for a kill, and for lack of memory or disk.

    Cost: about that of the compilations up to LLVM IR, and as much for printing, over the number of
    cores; some milliseconds where none waits. After an interruption, the next call continues. It forks, and
    uses no GPU.

    Raises Problem if the source of a compilation is missing or damaged.
    """
    waiting = _waiting(Run(path, scratch), rank)
    files = _RunFiles(path, scratch)
    cores = os.cpu_count() or 1
    size = min(BATCH, -(-len(waiting) // cores)) or 1
    batches = [waiting[start : start + size] for start in range(0, len(waiting), size)]
    derivations: list[Derivation] = []
    with ThreadPoolExecutor(max_workers=cores) as pool:
        for derived in pool.map(lambda batch: _batch(files, batch), batches):
            derivations += derived
            progress(len(derivations), len(waiting))
    return derivations


def _waiting(run: Run, rank: int | None) -> list[_Waiting]:
    underived = [one for one in run.underived() if rank in (None, int(one[0].rsplit("-", 2)[1]))]
    artefacts: dict[tuple[str, int], dict[str, Blob]] = {}
    starts: dict[tuple[str, int], list[PassStart]] = {}
    ends: set[tuple[str, int, int]] = set()
    for process in dict.fromkeys(process for process, _ in underived):
        for artefact in run.view(f"-{process}", StageArtefact, StageArtefact):
            artefacts.setdefault((process, artefact.compilation), {})[artefact.stage] = artefact.blob
        for start in run.view(f"-{process}", PassStart, PassStart):
            starts.setdefault((process, start.compilation), []).append(start)
        ends |= {(process, end.compilation, end.index) for end in run.view(f"-{process}", PassEnd, PassEnd)}
    waiting = []
    for process, one in underived:
        run.bytes(one.source)  # raises here, once, if the run is damaged
        passes = starts[process, one.id]
        last = passes[-1].index
        unfinished = None if (process, one.id, last) in ends else last
        waiting.append(_Waiting(process, one, passes, unfinished, artefacts.get((process, one.id), {})))
    return waiting


def _batch(files: _RunFiles, batch: Sequence[_Waiting]) -> list[Derivation]:
    # each compilation, also after the compiler has crashed a child
    derivations: list[Derivation] = []
    while len(derivations) < len(batch):
        rest = batch[len(derivations) :]
        ended = in_child(functools.partial(_derive, files, rest), 2 * SECONDS * len(rest))
        written = {(one.process, one.compilation): one for one in files.run().records(Derivation)}
        for one in rest:
            derivation = written.get((one.process, one.compilation.id))
            if derivation is None:
                derivations.append(_died(files, one, ended))
                break
            derivations.append(derivation)
    return derivations


def _died(files: _RunFiles, one: _Waiting, ended: ChildResult) -> Derivation:
    # the compilation that crashed the child; not recorded if the next attempt may succeed, as after a kill
    of_it = (
        ir.index
        for ir in files.run().records(PassIR)
        if (ir.process, ir.compilation) == (one.process, one.compilation.id)
    )
    where = f"the IR from pass {max(of_it, default=0)} on is not known"
    if ended.timed_out or ended.signal == signal.SIGALRM.name:
        return one.derivation(f"{where}: it did not end within {SECONDS:g} s")
    derivation = one.derivation(f"{where}: {ended.failure}")
    if ended.transient:
        return derivation
    writer = files.writer()
    writer.append(derivation)
    writer.close()
    return derivation


def _derive(files: _RunFiles, batch: Sequence[_Waiting]) -> None:
    # in a child, in this order
    stop_no_more()  # what the program compiled has stopped already
    run, writer = files.run(), files.writer()
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # ends this process in any case
    writer.known(packed.blob for packed in run.records(PackedBlob))
    for one in batch:
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
        derivation = one.derivation(_differs(run, writer, one))
        signal.setitimer(signal.ITIMER_REAL, 0)
        writer.append(derivation)
    writer.close()


class _Reached(Problem):
    # no failure: the rest needs no derivation
    pass


class _Following:
    # an observer that lets the recorded passes through, and no others

    def __init__(self, one: _Waiting, ir: PassIRWriter) -> None:
        self.artefact, self.ended = ir.artefact, ir.ended
        self._one = one
        self._ir = ir

    def before(self, step: Pass, module: Any) -> None:
        starts = self._one.starts
        if step.index == len(starts):
            raise Problem(f"pass {step.index}, {step.name}, is new", PRINT)
        if step.pipeline != (recorded := starts[step.index].pipeline):
            raise Problem(f"pass {step.index} is {step.pipeline}, and was {recorded}", PRINT)
        self._ir.before(step, module)
        self._stop_at(step, self._one.unfinished)

    def after(self, step: Pass, module: Any, wall_ms: float) -> None:
        self._ir.after(step, module, wall_ms)
        self._stop_at(step, self._one.died_after)

    def _stop_at(self, step: Pass, index: int | None) -> None:
        if step.index == index:
            raise _Reached("every recorded compilation is derived")


def _differs(run: Run, writer: RunWriter, one: _Waiting) -> str:
    # runs the passes, and returns the differences from the recording
    ir = _Following(one, PassIRWriter(writer, writer.pack(LEVEL), one.process, one.compilation.id))
    known = one.compilation
    point = ResumePoint(run.text(known.source), known.first, 0, locations=known.block_locations)
    try:
        given = resume(known, point, last=one.starts[-1].stage, observer=ir)
    except _Reached:
        return ""
    except Problem as problem:
        return problem.problem
    other = [stage for stage, content in given.items() if blob_name(content) != one.artefacts.get(stage)]
    verb = "differs" if len(other) == 1 else "differ"
    return f"{', '.join(other)} {verb} from what was recorded" if other else ""
