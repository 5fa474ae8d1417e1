"""Seals: prove that this user recorded a run, on this host or on one with the same home.

A key of the user, outside of every run, signs run.json, and then each line that is not compressed: kernels,
signatures, variables, graphs. Nobody without the key can make such a run or alter one. These lines name blobs
by the digests of their contents, so the code that a replay executes is sealed. Compressed lines, one a launch
or a pass, are not: the order of launches and the IR between passes may have been altered.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import secrets
from pathlib import Path

from tracing import environment
from tracing.errors import Problem
from tracing.model import Seal, file_of
from tracing.store.lines import files, lines, plain_files, whole_lines
from tracing.store.run_files import RUN_JSON, read

_KEY = "recorder.key"
_BYTES = 32


class Sealer:
    """Seals the files that one process writes into a run."""

    def __init__(self, run: Path, key: bytes) -> None:
        self._run = hashlib.sha256(read(run / "run.json", RUN_JSON)).digest()
        self._key = key
        self._macs: dict[str, tuple[int, hmac.HMAC]] = {}

    def seal(self, name: str, data: bytes) -> Seal:
        """The seal of a file that `data` is about to be appended to, from its first byte to its last."""
        size, mac = self._macs.get(name) or (0, hmac.new(self._key, b"tracing 1\0" + self._run, "sha256"))
        if not size:
            mac.update(name.encode() + b"\0")
        mac.update(data)
        self._macs[name] = size + len(data), mac
        return Seal(name, size + len(data), mac.copy().hexdigest())

    def forget(self, name: str) -> None:
        """No more data is appended to this file."""
        self._macs.pop(name, None)


def sealer(run: Path) -> Sealer | None:
    """The sealer of a run's files; None if the user's key cannot be stored, or if the folder is not a run."""
    key = _key(make=True) if (run / "run.json").is_file() else None
    return Sealer(run, key) if key else None


def is_own(run: Path) -> bool:
    """True if this user recorded a run, and nobody altered its sealed files since.

    Cost: reads what is not compressed, some 1 GB a second.
    """
    key = _key()
    if key is None:
        return False
    seals = {(one.file, one.size): one.mac for path in files(run, Seal) for one in lines(path, Seal)}
    sealed = [path for path in plain_files(run) if not path.name.startswith(f"{file_of(Seal).name}-")]
    return all(_is_sealed(run, path, key, seals) for path in (run / "run.json", *sealed))


def _is_sealed(run: Path, path: Path, key: bytes, seals: dict[tuple[str, int], str]) -> bool:
    sealer, made = Sealer(run, key), None
    try:
        for block in whole_lines(path):
            made = sealer.seal(path.name, block)
    except Problem:
        if path.exists():
            raise
        return True  # of a segment that was deleted meanwhile
    return made is None or hmac.compare_digest(
        made.mac.encode(), seals.get((path.name, made.size), "").encode()
    )


def _key(*, make: bool = False) -> bytes | None:
    # a key that another user may read or write is invalid
    path = environment.state_folder() / _KEY
    with contextlib.suppress(OSError):
        if make and not path.exists():
            _make(path)
        status = path.lstat()
        private = status.st_uid == os.getuid() and not status.st_mode & 0o177
        data = read(path, _BYTES) if private else b""
        return data if len(data) == _BYTES else None
    return None


def _make(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    partial = path.with_name(f"{_KEY}.{os.getpid()}-{secrets.token_hex(4)}")
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(secrets.token_bytes(_BYTES))
    with contextlib.suppress(FileExistsError):  # another process was first
        path.hardlink_to(partial)
    partial.unlink()
