"""The blobs of a run: one file each, or parts of a pack."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import zstandard

from tracing.errors import Problem
from tracing.model import Blob, PackedBlob
from tracing.store.lines import content, damaged, files, lines


class Blobs:
    """Reads the blobs of one run, which may still be recorded."""

    def __init__(self, folders: Sequence[Path]) -> None:
        """Read those below `folders`: the run, then what was derived from it and is not kept."""
        self._folders = folders
        self._where: dict[Blob, PackedBlob] | None = None
        self._pack: tuple[str, bytes] = ("", b"")  # the one read last: the next blob is mostly in it

    def read(self, blob: Blob) -> bytes:
        """The content of a blob; raises Problem if it is missing or damaged."""
        path = self._file(blob)
        if not path.exists() and (packed := self._packed(blob)):
            end = packed.start + packed.size
            return self._read_pack(packed.pack, end)[packed.start : end]
        try:
            data = zstandard.decompress(path.read_bytes())
        except (OSError, zstandard.ZstdError) as error:
            raise Problem(
                f"{path} cannot be read: {error}", "copy the run once more, or record a new one"
            ) from None
        return data

    def _file(self, name: str) -> Path:
        paths = [folder / "blobs" / f"{name}.zst" for folder in self._folders]
        return next((path for path in paths if path.exists()), paths[0])

    def _packed(self, blob: Blob) -> PackedBlob | None:
        if self._where is None or blob not in self._where:  # a run that is still recorded grows
            paths = [path for folder in self._folders for path in files(folder, PackedBlob)]
            self._where = {one.blob: one for path in paths for one in lines(path, PackedBlob)}
        return self._where.get(blob)

    def _read_pack(self, name: str, size: int) -> bytes:
        # the content of a pack, of which `size` bytes are needed
        if self._pack[0] != name or len(self._pack[1]) < size:
            try:
                self._pack = name, b"".join(content(self._file(name)))
            except (OSError, zstandard.ZstdError) as error:
                raise damaged(self._folders[0], f"pack {name}: {error}") from None
        if len(self._pack[1]) < size:
            raise damaged(self._folders[0], f"pack {name} ends after {len(self._pack[1])} of {size} bytes")
        return self._pack[1]
