"""Identify the compiler by the content of its files: compiles are comparable only if it is equal.

Version numbers do not change when a pass is edited and rebuilt. So the files are hashed: every loaded
library, including libtriton with its LLVM, every Python module, the assemblers, and the bitcode libraries.
"""

from __future__ import annotations

import hashlib
import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from tracing.compiler.codegen.ptxas import tools
from tracing.environment import compiler_settings
from tracing.upstream.triton.backends import backends


def identity() -> str:
    """A digest of everything that decides the artefacts of a compile in this process or its children.

    Cost: reading some 700 MB, 0.5 s where they are in memory.
    """
    files = sorted({*_mapped(), *_modules(), *_bitcode(), *tools()})
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        contents = list(pool.map(_digest, files))
    parts = [*map(list, zip(map(str, files), contents, strict=True)), sorted(compiler_settings().items())]
    return hashlib.blake2b(msgspec.json.encode(parts), digest_size=16).hexdigest()


def _mapped() -> Iterator[Path]:
    # libraries, also those that LD_PRELOAD names
    for line in Path("/proc/self/maps").read_text().splitlines():
        fields = line.split(maxsplit=5)
        if len(fields) == 6 and "x" in fields[1] and fields[5].startswith("/"):
            yield Path(fields[5])


def _modules() -> Iterator[Path]:
    standard = tuple(sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib"))
    packages = tuple(sysconfig.get_path(name) + os.sep for name in ("purelib", "platlib"))
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if not file or (file.startswith(standard) and not file.startswith(packages)):
            continue
        path = Path(file)
        if path.exists():  # generated and removed code had a unique name
            yield path


def _bitcode() -> Iterator[Path]:
    for backend in backends.values():
        folder = Path(sys.modules[backend.compiler.__module__].__file__ or "").parent
        yield from folder.glob("lib/*.bc")


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return _read(iter(lambda: file.read(1 << 20), b""))
    except OSError:  # removed while it is in use
        return ""


def _read(pieces: Iterable[bytes]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest()
