"""Reads a recorded run: its records, its blobs, and the launches, operators and passes joined from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from itertools import takewhile
from operator import attrgetter
from pathlib import Path
from typing import TypeVar

import msgspec

from tracing.digest.columns import Row, rows
from tracing.errors import Problem, page
from tracing.model import (
    SCHEMA,
    Blob,
    CallSite,
    Compilation,
    Derivation,
    DigestBatch,
    Kernel,
    KernelLaunch,
    LaunchLine,
    LaunchTime,
    Operator,
    OperatorCall,
    OperatorDigests,
    OperatorSignature,
    OutOfBounds,
    PassEnd,
    PassIR,
    PassRecord,
    PassStart,
    ProgramStep,
    Record,
    RunInfo,
    Segment,
    Signature,
    StageArtefact,
    Storage,
    UserHash,
)
from tracing.store.blobs import Blobs
from tracing.store.joins import LaunchJoiner, in_step, join_operator
from tracing.store.lines import REFUSED, files, files_of_process, lines, lines_of, process_of
from tracing.store.recording import being_recorded
from tracing.store.run_files import RUN_JSON, TENSOR, TEXT, damaged, read
from tracing.store.seals import is_own
from tracing.store.snapshots import snapshot, temporary_folder

R = TypeVar("R", bound=Record)
_SIGNED: Mapping[type[Record], type[Record]] = {LaunchLine: Signature, OperatorCall: OperatorSignature}
_signature: Callable[[Record], int] = attrgetter("signature")  # of a record of a launch or of an operator


class _Numbered(Record, frozen=True):
    id: int


class Run:
    """A recorded run, read from disk."""

    def __init__(self, path: Path, scratch: Path | None = None) -> None:
        """Open the run at `path`; raises Problem if there is none or its schema is another.

        scratch -- a folder with temporary records derived from this run
        """
        self.path = path
        self.name = path.name
        self.scratch = scratch
        self.growing = False  # True: the run is still being recorded, and its complete records are read
        # receives a description of the code to execute; None: execution is refused
        self.consent: Callable[[str], None] | None = None
        if not (path / "run.json").exists():
            raise Problem(
                f"{path} is not a run: it has no run.json",
                "list recorded runs with `tracing list`; record one with `tracing run CASE`",
            )
        self._folder: Path | None = None
        self._signed: dict[tuple[str, type[Record]], frozenset[int]] = {}  # see `_known`
        self.info = _run_info(path, read(path / "run.json", RUN_JSON))
        self._blobs = Blobs([path, scratch] if scratch else [path])

    @property
    def folder(self) -> Path:
        """The folder with the records: that of the run, or a snapshot if steps may be deleted meanwhile."""
        if self._folder is None:
            changes = self.info.steps.drops and being_recorded(self.path)
            self._folder = snapshot(self.path, temporary_folder()) if changes else self.path
        return self._folder

    def use_scratch(self) -> Path:
        """The folder for temporary records derived from this run; it is deleted when this process ends."""
        if self.scratch is None:
            self.scratch = temporary_folder()
            (self.scratch / "blobs").mkdir()
            self._blobs = Blobs([self.path, self.scratch])
        return self.scratch

    def require_trust(self, executed: str, consenting: str = "add `--trust`") -> None:
        """Raise Problem unless this user recorded the run here, or consented to execute its code.

        executed   -- the code to be executed: a command, the source of a kernel, a compiler on its IR
        consenting -- how to consent
        """
        if is_own(self.path):
            return
        if self.consent is None:
            raise Problem(
                f"{self.path} was not recorded by you on this host, or was altered; this would execute"
                f" {executed}",
                f"read that first; then {consenting}: {page('docs/trust.md')}",
            )
        self.consent(executed)

    def records(self, kind: type[R]) -> Iterator[R]:
        """Every record of one kind, process by process, in the order written."""
        for folder in filter(None, (self.folder, self.scratch)):
            for path in files(folder, kind):
                yield from lines(path, kind)

    def text(self, blob: Blob) -> str:
        """The content of a blob as text."""
        return self.bytes(blob, TEXT).decode(errors="replace")

    def bytes(self, blob: Blob, most: int = TENSOR) -> bytes:
        """The content of a blob; raises Problem if it is missing, damaged, too large, or was not derived."""
        if not blob:
            raise Problem(
                "the IR there is not known, because it could not be derived",
                "the first lines of `tracing passes RUN` say why",
            )
        return self._blobs.read(blob, most)

    def launches(self, rank: int | None = None) -> Iterator[KernelLaunch]:
        """Every launch, joined, process by process in launch order; memory does not grow with them.

        rank -- only the launches of this rank; None: of all ranks
        """
        for process in self.processes():
            if rank is None or rank_of(process) == rank:
                yield from map(self.joiner(process).launch, self.rows(process))

    def processes(self, kind: type[Record] = LaunchLine) -> list[str]:
        """The processes that launched something, each as "-<host>-<rank>-<pid>", in this order.

        kind -- the processes that wrote a record of this kind instead
        """
        return list(dict.fromkeys(map(process_of, files(self.folder, kind))))

    def signatures(self, process: str) -> dict[int, tuple[Kernel, Signature]]:
        """The kernels and signatures with which one process launched, by number."""
        signatures = {one.id: one for one in self._written(process, Signature)}  # first: a run may grow
        kernels = {kernel.id: kernel for kernel in self._written(process, Kernel)}
        return {k: (kernels[one.kernel], one) for k, one in signatures.items() if one.kernel in kernels}

    def view(self, process: str, kind: type[Record], fields: type[R], skip: int = 0) -> Iterator[R]:
        """The records of one kind of one process, decoded as a record that has only some of their fields.

        skip -- number of records to skip at the beginning
        """
        known = self._known(process, _SIGNED.get(kind, kind))  # first: a run may grow meanwhile
        records = lines_of(files_of_process(self.folder, kind, process), fields, skip)
        if known is None or kind not in _SIGNED or "signature" not in fields.__struct_fields__:
            return records
        return takewhile(lambda one: _signature(one) in known, records)

    def rows(self, process: str, launches: int = 0, batches: int = 0) -> Iterator[Row]:
        """The launches of one process in launch order, unjoined: some 2 µs a launch, of constant memory.

        launches, batches -- numbers to skip at the beginning: launches, and the lines of their digests
        """
        first = self.first_launch(process)
        started = self._written(process, LaunchLine, launches)
        if first:
            started = (one for one in started if one.index >= first)
        try:
            yield from rows(started, self._written(process, DigestBatch, batches))
        except (ValueError, IndexError) as error:
            raise damaged(self.path, f"digests of {process.strip('-')}: {error}") from None

    def joiner(self, process: str) -> LaunchJoiner:
        """Joins the `rows` of one process."""
        return LaunchJoiner(
            self.path,
            self.signatures(process),
            self.sites(process),
            lambda: self._written(process, LaunchTime),
            lambda: self._written(process, UserHash),
            self.info.digests != "none",
            self.steps(process),
        )

    def steps(self, process: str) -> list[ProgramStep]:
        """The recorded ends of steps of one process, in order."""
        ends = {one.index: one for one in self._written(process, ProgramStep)}  # a segment repeats the last
        return [ends[index] for index in sorted(ends)]

    def first_segment(self, process: str) -> Segment | None:
        """The first segment of one process that is on disk; None: its records are in no segments."""
        return next(self._written(process, Segment), None) if self.info.steps.drops else None

    def first_launch(self, process: str) -> int:
        """The first launch of one process that is on disk with everything about it."""
        segment = self.first_segment(process)
        return segment.launches if segment is not None else 0

    def sites(self, process: str) -> dict[int, CallSite]:
        """The call sites of one process, by number."""
        return {site.id: site for site in self._written(process, CallSite)}

    def storages(self, process: str) -> dict[int, Storage]:
        """The blocks of memory of one process, by number."""
        return {storage.id: storage for storage in self._written(process, Storage)}

    def out_of_bounds(self, process: str) -> list[OutOfBounds]:
        """Accesses of one process outside of arguments, one for each launch, argument, kind and line."""
        # each was written when it was first seen, and once more when the kernel had run
        latest = {
            (one.launch, one.argument, one.access, one.where, one.inside): one
            for one in self._written(process, OutOfBounds)
        }
        return list(latest.values())

    def operators(self, process: str) -> Iterator[Operator]:
        """Every operator outside of Triton of one process, joined, in the order in which they had run."""
        signatures = {one.id: one for one in self._written(process, OperatorSignature)}
        sites, steps = self.sites(process), self.steps(process)
        digests = in_step(self._written(process, OperatorDigests), lambda line: line.operator)
        segment = self.first_segment(process)
        first = segment.operators if segment is not None else 0
        for call in (one for one in self._written(process, OperatorCall) if one.index >= first):
            if call.signature not in signatures:
                raise damaged(self.path, f"operator {call.index} has no signature {call.signature}")
            signature, site = signatures[call.signature], sites.get(call.site)
            try:
                yield join_operator(signature, call, digests(call.index), site, steps)
            except ValueError as error:
                raise damaged(self.path, f"operator {call.index}: {error}") from None

    def passes(self) -> Iterator[PassRecord]:
        """Every recorded pass, joined, process by process, compilation by compilation, in order.

        If the IR of a pass could not be derived, its blobs are "", and the compilation's `Derivation` has the
        reason. Raises Problem if derivation was not attempted yet. For a run that is `growing`, compilations
        that have not ended, or whose IR is not derived yet, are left out.
        """
        if not self.growing and (waiting := len(self.underived())):
            raise Problem(
                f"{self.path} has no IR between passes yet, of compilations: {waiting}",
                "`tracing passes` derives it, with the version of Triton that recorded the run",
            )
        sides = self._sides()
        for process in self.processes(PassStart):
            records = list(self._joined_passes(process, sides))
            open_ones = {one.compilation.id for one in records if not (one.before and one.after)}
            left_out = open_ones if self.growing else set()
            yield from (one for one in records if one.compilation.id not in left_out)

    def underived(self) -> list[tuple[str, Compilation]]:
        """The compilations with passes whose IR was not derived, each with its process."""
        tried = {(one.process, one.compilation) for one in self.records(Derivation)}
        known = self._sides().keys()
        underived: dict[tuple[str, int], Compilation] = {}
        for process in self.processes(PassStart):
            starts = list(self._written(process, PassStart))  # first: a run may grow meanwhile
            compilations = {one.id: one for one in self._written(process, Compilation)}
            for start in starts:
                key = (process[1:], start.compilation)
                if key not in tried and (*key, start.index, "before") not in known:
                    underived.setdefault(key, self._compiled(compilations, start.compilation))
        return [(process, compilation) for (process, _), compilation in underived.items()]

    def _sides(self) -> dict[tuple[str, int, int, str], Blob]:
        # the IR before and after each pass, by process without its first dash
        return {(one.process, one.compilation, one.index, one.side): one.blob for one in self.records(PassIR)}

    def artefacts(self) -> Iterator[tuple[Compilation, StageArtefact]]:
        """Every artefact of a stage with its compilation, process by process."""
        for process in self.processes(StageArtefact):
            artefacts = list(self._written(process, StageArtefact))  # first: a run may grow meanwhile
            compilations = {one.id: one for one in self._written(process, Compilation)}
            for artefact in artefacts:
                yield self._compiled(compilations, artefact.compilation), artefact

    def _written(self, process: str, kind: type[R], skip: int = 0) -> Iterator[R]:
        return self.view(process, kind, kind, skip)

    def _known(self, process: str, kind: type[Record]) -> frozenset[int] | None:
        # The numbers of the signatures that a run which is being recorded had when they were first read:
        # what refers to a later one is read no more. None: the run is complete, or it is another kind.
        if kind not in _SIGNED.values() or not self._grows:
            return None
        if (process, kind) not in self._signed:
            written = lines_of(files_of_process(self.folder, kind, process), _Numbered)
            self._signed[process, kind] = frozenset(one.id for one in written)
        return self._signed[process, kind]

    @cached_property
    def _grows(self) -> bool:
        return being_recorded(self.path)

    def _joined_passes(
        self, process: str, sides: Mapping[tuple[str, int, int, str], Blob]
    ) -> Iterator[PassRecord]:
        starts = list(self._written(process, PassStart))  # first: a run may grow meanwhile
        compilations = {one.id: one for one in self._written(process, Compilation)}
        ends = {(end.compilation, end.index): end for end in self._written(process, PassEnd)}
        for start in starts:
            key = (process[1:], start.compilation, start.index)
            before, after = sides.get((*key, "before"), ""), sides.get((*key, "after"), "")
            end = ends.get((start.compilation, start.index))
            fields = msgspec.structs.asdict(start) | {"before": before}
            fields["compilation"] = self._compiled(compilations, start.compilation)
            if end is not None:
                fields |= {"after": after, "wall_ms": end.wall_ms}
            yield PassRecord(**fields)

    def _compiled(self, compilations: dict[int, Compilation], number: int) -> Compilation:
        if number not in compilations:
            raise damaged(self.path, f"there is no compilation {number}")
        return compilations[number]


def _run_info(path: Path, content: bytes) -> RunInfo:
    remedy = "copy the run once more, or record a new one with `tracing run CASE`"
    try:
        schema = msgspec.json.decode(content, type=dict[str, object]).get("schema")
        if schema != SCHEMA:
            raise Problem(
                f"{path} was written with schema {schema}; this version reads schema {SCHEMA}",
                "read it with the version that wrote it, or record a new run with `tracing run CASE`",
            )
        return msgspec.json.decode(content, type=RunInfo)
    except REFUSED as error:
        raise Problem(f"{path / 'run.json'} is not a run's description: {error}", remedy) from None


def rank_of(process: str) -> int:
    """The rank of a process, by its name in `Run.processes`."""
    rank = process.rsplit("-", 2)[1]
    return int(rank) if rank.isdecimal() else 0
