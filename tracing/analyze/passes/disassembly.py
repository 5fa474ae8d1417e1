"""Disassemble cubins with NVIDIA's nvdisasm."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TypeAlias

Disassemble: TypeAlias = Callable[[bytes], tuple[str, str]]  # a cubin -> SASS, or why there is none

_TIMEOUT_S = 120  # for one cubin, which takes about a second if it is large


def disassembled(cubin: bytes, nvdisasm: Path) -> tuple[str, str]:
    """What `nvdisasm -gi -c` prints of a cubin; and if it failed, why."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        command = [str(nvdisasm), "-gi", "-c", file.name]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            return "", f"{nvdisasm} failed: {error}"
    return done.stdout, f"{nvdisasm} failed: {done.stderr.strip()}" if done.returncode else ""


@contextmanager
def disassembling(cubins: Iterable[bytes], nvdisasm: Path) -> Iterator[Disassemble]:
    """While active, all cores disassemble these cubins; gives the function that waits for one of them."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        begun = cache(lambda cubin: pool.submit(disassembled, cubin, nvdisasm))
        try:
            for cubin in cubins:
                begun(cubin)
            yield lambda cubin: begun(cubin).result()
        finally:
            pool.shutdown(cancel_futures=True)
