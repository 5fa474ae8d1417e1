"""Make gdb index a library's debug information once; a later gdb reads the index.

gdb keys its cache by the library's build id, so a rebuilt library is indexed anew. Standard library only.
Exit status: 0 indexed, also if it was indexed before or if gdb is missing, which other checks report.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

from scripts.machine import installed
from tracing import elf

_INTERVAL = 10.0  # seconds between lines of progress


def build_id(library: Path) -> str:
    """The identifier that the linker gave to a library; empty if there is none."""
    try:
        with elf.opened(library) as file:
            return file.build_id()
    except elf.NotElf:
        return ""


def cached(gdb: str, identifier: str) -> bool:
    shown = subprocess.run(
        [gdb, "-nx", "-batch", "-ex", "show index-cache directory"], capture_output=True, text=True
    )
    folder = shown.stdout.partition('"')[2].partition('"')[0]
    return bool(identifier and folder) and any(Path(folder).glob(f"{identifier}*.gdb-index"))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--gdb", default="gdb")
    parser.add_argument("--venv", type=Path, default=Path(".venv"), help="the environment with Triton")
    parser.add_argument("library", type=Path, nargs="?", help="else Triton's")
    options = parser.parse_args()
    library = options.library or Path(installed(options.venv)["triton_path"], "_C/libtriton.so")
    try:
        return 0 if cached(options.gdb, build_id(library)) else index(options.gdb, library)
    except OSError as error:
        print(f"symbols: not indexed: {options.gdb}: {error.strerror}")
        return 0


def index(gdb: str, library: Path) -> int:
    """Read every symbol once, with progress."""
    started, shown = time.monotonic(), 0.0
    ask = "info line mlir::triton::gpu::CoalescePass::runOnOperation"  # a name: gdb then reads all of them
    words = ["-iex", "set debuginfod enabled off", "-iex", "set index-cache enabled on", "-ex", ask]
    reader = subprocess.Popen([gdb, "-nx", "-batch", *words, str(library)], stdout=subprocess.DEVNULL)
    while reader.poll() is None:
        waited = time.monotonic() - started
        if waited >= shown:
            print(f"symbols: gdb indexes {library.name}, only this once: {waited:.0f} s", flush=True)
            shown += _INTERVAL
        time.sleep(0.2)
    print(f"symbols: gdb has indexed {library.name} in {time.monotonic() - started:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
