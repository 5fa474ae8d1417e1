"""The doctor's report: missing requirements for debugging and building, their cost, and their remedy."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import script, script_module

build_checks, check, debug_checks, doctor, library = map(
    script_module, ("build_checks", "check", "debug_checks", "doctor", "build.library")
)
HERE = Path(sys.prefix)  # an environment with torch and Triton


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: Any) -> Path:
    """A machine without any program on its PATH."""
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("CC", "CXX"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


# ---------------------------------------------------------------- output


def test_no_compiler_is_a_blocker_with_a_command_that_installs_one(bare: Path) -> None:
    done = script("doctor.py", "--json", "--venv", bare / "none")
    report = json.loads(done.stdout)
    compiler = next(row for row in report["checks"] if row["name"] == "compiler")

    assert done.returncode == report["status"] == 2
    assert compiler["level"] == "blocker" and "install" in compiler["remedy"]


def test_the_json_has_one_complete_row_for_each_check(bare: Path) -> None:
    rows = json.loads(script("doctor.py", "--json", "--venv", bare / "none").stdout)["checks"]

    assert len(rows) == len(doctor.CHECKS) == len({row["name"] for row in rows})
    assert all(set(row) == {"name", "found", "needed", "level", "remedy", "cost"} for row in rows)
    assert all(row["remedy"] and row["cost"] for row in rows if row["level"] != "ok")


@pytest.mark.parametrize(
    ("levels", "expected"), [(["ok"], 0), (["ok", "warning"], 1), (["blocker", "ok"], 2)]
)
def test_the_exit_status_is_that_of_the_worst_check(levels: list[str], expected: int) -> None:
    assert doctor.status([check.Check("a", "b", "c", level) for level in levels]) == expected


def test_a_row_says_what_it_is_about(bare: Path) -> None:
    rows = {row.name: row.found for row in (check(bare) for check in doctor.CHECKS)}

    assert rows["linker"] == "neither lld nor mold"
    assert rows["cache"].startswith("neither ccache nor sccache")
    assert rows["venv"] == "Python's modules venv and ensurepip"
    assert "a pair listed in scripts/pins.toml" in doctor.check_pair(bare).needed


# ---------------------------------------------------------------- building


@pytest.mark.parametrize("name", ["cmake", "ninja", "git", "clang", "linker", "zlib"])
def test_a_missing_build_tool_is_a_warning_with_its_cost(bare: Path, name: str) -> None:
    check = getattr(build_checks, f"check_{name}")(bare)

    assert check.level == "warning" and check.cost and check.remedy
    assert check.remedy.startswith("sudo") or "conda install" in check.remedy


def test_an_old_cmake_is_reported_with_the_required_version(bare: Path) -> None:
    (bare / "cmake").write_text("#!/bin/sh\necho cmake version 3.16.3\n")
    (bare / "cmake").chmod(0o755)

    check = build_checks.check_cmake(bare)

    assert (check.found, check.level) == ("3.16", "warning") and "3.20" in check.needed


def test_too_little_disk_for_llvm_is_reported_with_smaller_alternatives(
    tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: shutil._ntuple_diskusage(10**9, 0, 10**9))

    check = build_checks.check_build(tmp_path)

    assert check.level == "warning" and "LLVM=prebuilt" in check.remedy


# ---------------------------------------------------------------- the installed Triton


def test_the_installed_triton_is_reported_with_its_version_and_its_llvm_commit() -> None:
    check = debug_checks.check_origin(HERE)

    assert check.found.startswith("Triton 3.") and len(check.found.split()[-1]) == 12


@pytest.mark.parametrize("name", ["symbols", "index", "tools", "exports"])
def test_a_missing_triton_is_reported_with_the_command_that_installs_it(tmp_path: Path, name: str) -> None:
    check = getattr(debug_checks, f"check_{name}")(tmp_path)

    assert (check.found, check.level, check.remedy) == ("no libtriton.so yet", "warning", "make venv")


def test_a_gdb_whose_calls_fail_is_reported_with_its_message(bare: Path) -> None:
    (bare / "gdb").write_text("#!/bin/sh\necho cannot call\n")
    (bare / "gdb").chmod(0o755)

    check = debug_checks.check_calls(HERE)

    if check.found == "not tried: ptrace is refused":
        pytest.skip(check.found)
    assert check.level == "warning" and check.found.endswith(": cannot call") and "gdb 14" in check.remedy


def test_the_installed_triton_has_what_a_debugger_needs() -> None:
    assert debug_checks.check_tools(HERE).level == debug_checks.check_symbols(HERE).level == "ok"


def test_a_missing_gdb_index_is_reported_with_its_cost_and_its_command(bare: Path) -> None:
    (bare / "gdb").write_text(f"#!/bin/sh\necho 'The directory of the index cache is \"{bare}\".'\n")
    (bare / "gdb").chmod(0o755)
    libtriton = debug_checks.library(HERE).path

    before = debug_checks.check_index(HERE).found
    (bare / f"{debug_checks.index_symbols.build_id(libtriton)}.gdb-index").touch()

    assert "takes 3 to 5 s more" in before and before.endswith("`make vscode` makes it")
    assert debug_checks.check_index(HERE).found == "gdb's index of the symbols is in its cache"


# ---------------------------------------------------------------- libraries


def elf(*sections: str) -> bytes:
    """A 64-bit ELF file that consists of these sections' headers and, as the last section, their names."""
    names = b"\0".join(name.encode() for name in (*sections, ".shstrtab")) + b"\0"
    starts = [names.index(name.encode() + b"\0") for name in (*sections, ".shstrtab")]
    rows = [struct.pack("<IIQQQQI20x", start, 0, 0, 0, 64, len(names), 0) for start in starts]
    header = struct.pack("<16s24xQ10xHHH", b"\x7fELF\x02\x01", 64 + len(names), 64, len(rows), len(rows) - 1)
    return header + names + b"".join(rows)


def test_the_sections_of_a_library_are_read_from_its_headers(tmp_path: Path) -> None:
    (tmp_path / "lib.so").write_bytes(elf(".symtab", ".debug_line"))

    assert library.Library(tmp_path / "lib.so").names() == {".symtab", ".debug_line", ".shstrtab"}


def test_a_file_that_is_no_elf_has_no_sections(tmp_path: Path) -> None:
    (tmp_path / "lib.so").write_text("a linker script")

    assert library.Library(tmp_path / "lib.so").names() == set()


def test_exports_needs_and_the_llvm_inside_are_read_from_a_library(tmp_path: Path) -> None:
    source, built = tmp_path / "lib.c", tmp_path / "lib.so"
    commit = "0123456789" * 4
    source.write_text(
        f'const char *version = "LLVM version 23.0.0git ({commit})";\n'
        "double cos(double);\n"
        "double parsePassPipeline(void) { return cos((long)version); }\n"
        "static int registerPass(void) { return 0; }\n"
        "int other(void) { return registerPass(); }\n"
    )
    subprocess.run(["cc", "-shared", "-fPIC", "-Wl,--no-as-needed", "-o", built, source, "-lm"], check=True)
    read = library.Library(built)

    assert (read.llvm_version(), read.llvm_commit()) == ("23.0.0git", commit)
    assert read.hooks() == ["parsePassPipeline"] and "libm.so.6" in read.needed()
