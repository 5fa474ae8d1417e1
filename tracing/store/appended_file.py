"""A file that this process appends to, compressed or not.

Ctrl-C may stop Python between any two calls, and the program may continue. So bytes stay in memory until the
size of the file shows that they were written; an interrupted append is completed by the next one.
"""

from __future__ import annotations

import io
import os
from itertools import chain

import zstandard

# Lines become as small as at the default level 3, those of digests in a sixth of the time.
_LEVEL, _WINDOW = 1, 21  # the window is log2 of bytes, that of level 3


class AppendedFile:
    """Appends data in their order, each byte once; all of it is on disk on return."""

    def __init__(self, file: io.FileIO, *, compressed: bool) -> None:
        self._file = file
        # one frame a file, so that lines refer to earlier ones
        self._compressor = _compressor() if compressed else None
        self._unwritten: list[bytes] = []  # except for what lies in the file after `_start`
        self._start = self._size()

    def append(self, data: bytes) -> int:
        """Append data, flushed: all so far are readable. Returns how many bytes were written."""
        if self._compressor is None:
            self._unwritten.append(data)
        else:  # one call, as an interrupt after `compress` would lose its result
            flushed = map(self._compressor.flush, [zstandard.COMPRESSOBJ_FLUSH_BLOCK])
            self._unwritten.extend(chain(map(self._compressor.compress, [data]), flushed))
        return self.complete()

    def complete(self) -> int:
        """Write what an interrupt has left; returns how many bytes that were."""
        data = memoryview(b"".join(self._unwritten))
        before = done = self._size() - self._start
        while done < len(data):  # a nearly full disk may accept only a part per call
            self._file.write(data[done:])
            done = self._size() - self._start
        self._unwritten, self._start = [], self._start + len(data)  # no call in between
        return len(data) - before

    def close(self) -> None:
        """Close the file without writing anything."""
        self._file.close()

    def _size(self) -> int:
        return os.fstat(self._file.fileno()).st_size


def _compressor() -> zstandard.ZstdCompressionObj:
    parameters = zstandard.ZstdCompressionParameters.from_level(_LEVEL, window_log=_WINDOW)
    return zstandard.ZstdCompressor(compression_params=parameters).compressobj()
