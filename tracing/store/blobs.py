"""The blobs of a run: one file each, or parts of a pack. The name of a blob is the digest of its content."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

from tracing.model import Blob, PackedBlob
from tracing.store.lines import files, lines
from tracing.store.run_files import PACK, damaged, unpacked

_NAME = re.compile(r"[0-9a-f]{32}")
_PACK_NAME = re.compile(r"[\w.-]{1,200}")  # <host>-<rank>-<pid>-<n>


def blob_name(content: str | bytes) -> Blob:
    """The name under which a run stores content."""
    data = content.encode(errors="replace") if isinstance(content, str) else content
    return hashlib.blake2b(data, digest_size=16).hexdigest()


class Blobs:
    """Reads the blobs of one run, which may still be recorded."""

    def __init__(self, folders: Sequence[Path]) -> None:
        """Read the blobs below `folders`: the run, then temporary folders of derived blobs."""
        self._folders = folders
        self._where: dict[Blob, PackedBlob] | None = None
        # the pack that was read last: it mostly contains the next blob
        self._pack: tuple[str, bytes] = "", b""

    def read(self, blob: Blob, most: int) -> bytes:
        """The content of a blob; raises Problem if it is missing, damaged, or has more than `most` bytes."""
        if not _NAME.fullmatch(blob):
            raise damaged(self._folders[0], f"{blob!r} is no name of a blob")
        path = self._file(blob)
        if not path.exists() and (packed := self._packed(blob)):
            data = self._part(packed)
        else:
            data = unpacked(path, most)
        if blob_name(data) != blob:
            raise damaged(path, "its content is not what was recorded")
        return data

    def _file(self, name: str) -> Path:
        paths = [folder / "blobs" / f"{name}.zst" for folder in self._folders]
        return next((path for path in paths if path.exists()), paths[0])

    def _packed(self, blob: Blob) -> PackedBlob | None:
        if self._where is None or blob not in self._where:  # a run that is still recorded grows
            paths = [path for folder in self._folders for path in files(folder, PackedBlob)]
            self._where = {one.blob: one for path in paths for one in lines(path, PackedBlob)}
        return self._where.get(blob)

    def _part(self, packed: PackedBlob) -> bytes:
        start, end = packed.start, packed.start + packed.size
        if not (_PACK_NAME.fullmatch(packed.pack) and 0 <= start <= end <= PACK):
            raise damaged(self._folders[0], f"there is no pack {packed.pack!r} with bytes {start}:{end}")
        if self._pack[0] != packed.pack or len(self._pack[1]) < end:
            self._pack = packed.pack, unpacked(self._file(packed.pack), PACK)
        if len(self._pack[1]) < end:
            raise damaged(
                self._folders[0], f"pack {packed.pack} ends after {len(self._pack[1])} of {end} bytes"
            )
        return self._pack[1][start:end]
