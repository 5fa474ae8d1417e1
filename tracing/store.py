"""A run directory: append-only records and content-addressed blobs.

    runs/silu-20261120-231502/
      run.json                              what runs, written before it starts
      kernels-<host>-<rank>-<pid>.ndjson    one line a record; likewise signatures-, outputs-, uncovered-, ...
      launches-<host>-<rank>-<pid>.ndjson.zst   the same, compressed as it is written; likewise digests-
      blobs/<digest>.zst                    IR and sources, each stored once

Nothing is ever rewritten, and every line is handed to the operating system when it is complete, so a
run is readable after its process was killed at any moment: a last line without its end is left out.
One process writes one file of a kind; all of them are read together.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import shutil
import socket
import threading
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from difflib import get_close_matches
from pathlib import Path
from typing import IO, BinaryIO, TypeVar

import msgspec
import zstandard

from tracing.errors import Problem
from tracing.model import (
    SCHEMA,
    Blob,
    Compilation,
    DigestLine,
    KeptTensor,
    Kernel,
    KernelArg,
    KernelLaunch,
    LaunchLine,
    NotCovered,
    Outcome,
    PassEnd,
    PassRecord,
    PassStart,
    Record,
    RunInfo,
    Signature,
    StageArtefact,
)

R = TypeVar("R", bound=Record)

KINDS: dict[type[Record], str] = {
    Kernel: "kernels",
    Signature: "signatures",
    LaunchLine: "launches",
    DigestLine: "digests",
    Compilation: "compilations",
    PassStart: "passes",
    PassEnd: "passends",
    StageArtefact: "artefacts",
    KeptTensor: "outputs",
    NotCovered: "uncovered",
    Outcome: "outcomes",
}
PACKED = {"launches", "digests"}  # one line a launch: compressed as they are written
RESERVE = 64 << 20  # bytes of disk that must be free before a run starts


def now() -> str:
    """The time in UTC as a run states it, to the second."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


class RunWriter:
    """A run being recorded by this process."""

    def __init__(self, path: Path, rank: int = 0) -> None:
        self.path = path
        self._writer = f"{socket.gethostname()}-{rank}-{os.getpid()}"
        self._files: dict[str, BinaryIO] = {}
        self._encoder = msgspec.json.Encoder()
        self._packers: dict[str, zstandard.ZstdCompressionObj] = {}

    def append(self, record: Record) -> None:
        """Write one record as one line; it is in the operating system's hands on return."""
        self.extend([record])

    def extend(self, records: Sequence[Record]) -> None:
        """Write records of one kind, a line each, with one call to the operating system."""
        if records:
            kind = KINDS[type(records[0])]
            lines = b"".join(self._encoder.encode(record) + b"\n" for record in records)
            file = self._file(kind)
            file.write(self._packed(kind, lines))
            file.flush()

    def blob(self, content: str | bytes) -> Blob:
        """Store content once and return its name."""
        data = content.encode() if isinstance(content, str) else content
        name = hashlib.blake2b(data, digest_size=16).hexdigest()
        target = self.path / "blobs" / f"{name}.zst"
        if not target.exists():
            partial = target.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
            try:
                partial.write_bytes(zstandard.compress(data))
                partial.replace(target)
            except OSError:
                partial.unlink(missing_ok=True)
                raise
        return name

    def _file(self, kind: str) -> BinaryIO:
        file = self._files.get(kind)
        if file is None:
            suffix = ".ndjson.zst" if kind in PACKED else ".ndjson"
            file = self._files[kind] = (self.path / f"{kind}-{self._writer}{suffix}").open("ab")
        return file

    def _packed(self, kind: str, lines: bytes) -> bytes:
        # one frame a file, flushed: what repeats is found again, and every line so far can be unpacked
        if kind not in PACKED:
            return lines
        if kind not in self._packers:
            self._packers[kind] = zstandard.ZstdCompressor().compressobj()
        packer = self._packers[kind]
        return packer.compress(lines) + packer.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)

    def close(self) -> None:
        """Close the files; what was appended is on disk already."""
        for file in self._files.values():
            file.close()
        self._files.clear()


def create(runs: Path, info: RunInfo, rank: int = 0, job: str | None = None) -> RunWriter:
    """Make a new run directory below `runs`, or join that of another rank of the same job.

    Raises Problem if it cannot be written or the disk is all but full.
    """
    stamp = info.started.translate(str.maketrans("T", "-", "-:"))[:15]
    try:
        path = _fresh(runs, f"{info.case}-{stamp}") if job is None else runs / f"{info.case}-job-{job}"
        (path / "blobs").mkdir(parents=True, exist_ok=True)
        if shutil.disk_usage(path).free < RESERVE:
            raise Problem(
                f"{runs} has less than {RESERVE >> 20} MiB of free disk",
                "free some, or record elsewhere with `--runs DIR`",
            )
        _write_once(path / "run.json", msgspec.json.format(msgspec.json.encode(info)) + b"\n")
    except OSError as error:
        raise Problem(
            f"cannot write a run below {runs}: {error.strerror}", "record elsewhere with `--runs DIR`"
        ) from error
    return RunWriter(path, rank)


def _write_once(path: Path, data: bytes) -> None:
    # whole or not at all; the first rank's stands
    partial = path.with_suffix(f".{socket.gethostname()}-{os.getpid()}")
    partial.write_bytes(data)
    with contextlib.suppress(FileExistsError):
        path.hardlink_to(partial)
    partial.unlink()


def _fresh(runs: Path, name: str) -> Path:
    # two runs of one case in one second get different names
    runs.mkdir(parents=True, exist_ok=True)
    for suffix in ("", *(f"-{n}" for n in range(2, 1000))):
        path = runs / (name + suffix)
        try:
            path.mkdir()
        except FileExistsError:
            continue
        return path
    raise Problem(f"{runs} holds a thousand runs named {name}", "remove some with `tracing clean`")


class Run:
    """A recorded run, read from disk."""

    def __init__(self, path: Path) -> None:
        """Open the run at `path`; raises Problem if there is none or its schema is another."""
        self.path = path
        try:
            content = (path / "run.json").read_bytes()
        except OSError:
            raise Problem(
                f"{path} is not a run: it has no run.json",
                "list recorded runs with `tracing list`; record one with `tracing run CASE`",
            ) from None
        self.info = _run_info(path, content)

    @property
    def name(self) -> str:
        return self.path.name

    def records(self, kind: type[R]) -> Iterator[R]:
        """Every record of one kind, process by process, in the order written."""
        for path in self._files(kind):
            yield from _lines(path, kind)

    def text(self, blob: Blob) -> str:
        """The content of a blob as text."""
        return self.bytes(blob).decode(errors="replace")

    def bytes(self, blob: Blob) -> bytes:
        """The content of a blob; raises Problem if it is missing or damaged."""
        path = self.path / "blobs" / f"{blob}.zst"
        try:
            data = zstandard.decompress(path.read_bytes())
        except (OSError, zstandard.ZstdError) as error:
            raise Problem(
                f"{path} cannot be read: {error}", "copy the run again, or record it again"
            ) from None
        return data

    def launches(self) -> Iterator[KernelLaunch]:
        """Every launch, joined, process by process in launch order; memory does not grow with them."""
        for path in self._files(LaunchLine):
            writer = path.name.removeprefix(KINDS[LaunchLine]).split(".ndjson")[0]
            yield from self._joined(writer)

    def passes(self) -> Iterator[PassRecord]:
        """Every recorded pass, joined, process by process, compilation by compilation, in order."""
        for path in self._files(PassStart):
            yield from self._joined_passes(path.name.removeprefix(KINDS[PassStart]).split(".ndjson")[0])

    def _files(self, kind: type[Record]) -> list[Path]:
        return sorted(self.path.glob(f"{KINDS[kind]}-*.ndjson*"))

    def _written(self, writer: str, kind: type[R]) -> Iterator[R]:
        paths = self.path.glob(f"{KINDS[kind]}{writer}.ndjson*")
        return (line for path in paths for line in _lines(path, kind))

    def _joined_passes(self, writer: str) -> Iterator[PassRecord]:
        compilations = {one.id: one for one in self._written(writer, Compilation)}
        ends = {(end.compilation, end.index): end for end in self._written(writer, PassEnd)}
        for start in self._written(writer, PassStart):
            fields = msgspec.structs.asdict(start) | {"compilation": compilations[start.compilation]}
            if end := ends.get((start.compilation, start.index)):
                fields |= {"after": end.after, "wall_ms": end.wall_ms}
            yield PassRecord(**fields)

    def _joined(self, writer: str) -> Iterator[KernelLaunch]:
        # launches and digests are in the same order, so one pass over both joins them
        kernels = {kernel.id: kernel for kernel in self._written(writer, Kernel)}
        signatures = {signature.id: signature for signature in self._written(writer, Signature)}
        digests = self._written(writer, DigestLine)
        digest = next(digests, None)
        for launch in self._written(writer, LaunchLine):
            while digest is not None and digest.launch < launch.index:
                digest = next(digests, None)
            found = digest if digest is not None and digest.launch == launch.index else None
            signature = signatures.get(launch.signature)
            if signature is None or signature.kernel not in kernels:
                raise Problem(
                    f"{self.path} is damaged: launch {launch.index} has no signature {launch.signature}",
                    "copy the run again, or record it again",
                )
            finished = found is not None or self.info.digests == "none"
            yield _join(kernels[signature.kernel], signature, launch, found, finished)


def _join(
    kernel: Kernel, signature: Signature, line: LaunchLine, digests: DigestLine | None, finished: bool
) -> KernelLaunch:
    storages = iter(line.storages)
    before = digests.before if digests else {}
    after = digests.after if digests else {}
    args = tuple(
        KernelArg(
            argument.name,
            argument.declared,
            argument.tensor,
            next(storages, None) if argument.tensor else None,
            argument.value,
            before.get(position),
            after.get(position, before.get(position)),
            line.writers.get(position),
        )
        for position, argument in enumerate(signature.args)
    )
    return KernelLaunch(
        line.index,
        kernel,
        signature.grid,
        line.stream,
        signature.device,
        signature.phase,
        args,
        finished,
    )


def _run_info(path: Path, content: bytes) -> RunInfo:
    remedy = "copy the run again, or record it again with `tracing run CASE`"
    try:
        schema = msgspec.json.decode(content, type=dict[str, object]).get("schema")
        if schema != SCHEMA:
            raise Problem(
                f"{path} was written with schema {schema}; this version reads schema {SCHEMA}",
                "read it with the version that wrote it, or record it again with `tracing run CASE`",
            )
        return msgspec.json.decode(content, type=RunInfo)
    except msgspec.MsgspecError as error:
        raise Problem(f"{path / 'run.json'} is not a run's description: {error}", remedy) from None


def _lines(path: Path, kind: type[R]) -> Iterator[R]:
    decoder = msgspec.json.Decoder(kind)
    with _opened(path) as file:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                return  # the process was killed while it wrote this line
            try:
                yield decoder.decode(line)
            except msgspec.MsgspecError as error:
                raise Problem(
                    f"{path}:{number} is damaged: {error}", "copy the run again, or record it again"
                ) from None


def _opened(path: Path) -> IO[bytes]:
    if path.suffix != ".zst":
        return path.open("rb")
    reader = zstandard.ZstdDecompressor().stream_reader(path.open("rb"), closefd=True)
    return io.BufferedReader(reader)


def recorded(runs: Path) -> list[Path]:
    """The runs below a folder, oldest first."""
    found = [path.parent for path in runs.glob("*/run.json")]
    return sorted(found, key=lambda path: (path / "run.json").stat().st_mtime)


def open_run(name: str, runs: Path) -> Run:
    """Open a run by path, by name below `runs`, or as "latest"."""
    known = recorded(runs)
    if name == "latest" and known:
        return Run(known[-1])
    path = runs / name
    if Path(name).exists() or not path.exists():
        path = Path(name)
    if path.exists():
        return Run(path)
    near = get_close_matches(name, [run.name for run in known], n=3, cutoff=0.5)
    remedy = f"nearest: {', '.join(near)}" if near else "record one with `tracing run CASE`"
    raise Problem(
        f"there is no run {name}, neither here nor below {runs}", f"{remedy}; list runs with `tracing list`"
    )
