"""A symbol's address in a process, looked up in its ELF file, without a debugger's search of all names."""

from __future__ import annotations

import ctypes
import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tracing.attach.terminal import COMMANDS

sys.path.append(str(COMMANDS.parent))
elf_symbol = importlib.import_module("elf_symbol")  # its path is known from here on

LIBRARY = "int other(void); int wanted(void) { return other(); } int unwanted(void) { return 1; }"


@pytest.fixture(scope="module", params=[[], ["-s"]], ids=["all symbols", "those for other files"])
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not shutil.which("cc"):
        pytest.skip("needs a C compiler: make doctor")
    folder = tmp_path_factory.mktemp("library")
    (folder / "wanted.c").write_text(LIBRARY)
    built = folder / "wanted.so"
    subprocess.run(["cc", "-shared", "-fPIC", *request.param, folder / "wanted.c", "-o", built], check=True)
    return built


def test_a_symbol_is_where_the_loader_finds_it(library: Path) -> None:
    loaded = ctypes.CDLL(str(library), mode=os.RTLD_LAZY)
    there = ctypes.cast(loaded.wanted, ctypes.c_void_p).value

    assert elf_symbol.address_of("wanted", library, os.getpid()) == there


def test_what_a_file_only_needs_or_has_not_is_nowhere(library: Path) -> None:
    ctypes.CDLL(str(library), mode=os.RTLD_LAZY)

    assert [elf_symbol.address_of(name, library, os.getpid()) for name in ("other", "want")] == [0, 0]


def test_a_process_without_the_file_is_another_matter_than_a_file_without_the_symbol(library: Path) -> None:
    with subprocess.Popen(["sleep", "9"]) as other, pytest.raises(OSError, match="has no"):
        try:
            elf_symbol.address_of("wanted", library, other.pid)
        finally:
            other.kill()
