"""The deduplicated gdb index of a library: each type is in it once, and everything else is unchanged."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from commands import script_module

gdb_index, library = map(script_module, ("build.gdb_index", "build.library"))

HEADER = "namespace shapes { struct Tile { int rows, columns; }; enum class Order { Row, Column }; }\n"
ROWS = """#include "t.h"
typedef short Word;
int rows(shapes::Tile *t, shapes::Order) { return Word(t->rows); }
"""
MAIN = """#include "t.h"
typedef long Word;
int rows(shapes::Tile *, shapes::Order);
static int own;
int main() { shapes::Tile t{1, 2}; return rows(&t, shapes::Order::Row) + Word(own); }
"""

needs_gold = pytest.mark.skipif(
    not (shutil.which("ld.gold") and shutil.which("g++")),
    reason="needs g++ and ld.gold, which writes an index",
)
needs_gdb = pytest.mark.skipif(not shutil.which("gdb"), reason="needs gdb")


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A program of two files that define the same types."""
    for name, text in (("t.h", HEADER), ("rows.cpp", ROWS), ("main.cpp", MAIN)):
        (tmp_path / name).write_text(text)
    compiler = ["g++", "-g", "-ggnu-pubnames", "-fuse-ld=gold", "-Wl,--gdb-index"]
    subprocess.run([*compiler, "rows.cpp", "main.cpp", "-o", "program"], cwd=tmp_path, check=True)
    return tmp_path / "program"


def index(path: Path) -> dict[str, list[str]]:
    """The index entries of each name, as binutils print them."""
    command = ["readelf", "--debug-dump=gdb_index", str(path)]
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    names = re.findall(r"^\[ *\d+\] (\S+):(.*(?:\n\t.*)*)", shown, re.M)
    return {name: re.findall(r"\d+ \[[\w, ]+\]", entries) for name, entries in names}


@needs_gold
def test_a_type_of_several_files_is_kept_in_one(program: Path) -> None:
    before = index(program)

    left_out = gdb_index.name_types_once(program)

    after = index(program)
    assert before["shapes::Tile"] == ["0 [global, type]", "1 [global, type]"]
    assert after["shapes::Tile"] == ["0 [global, type]"]
    assert (len(before["int"]), len(after["int"])) == (2, 1)
    assert left_out == sum(map(len, before.values())) - sum(map(len, after.values()))


@needs_gold
def test_functions_and_variables_are_unchanged(program: Path) -> None:
    before = index(program)

    gdb_index.name_types_once(program)

    after = index(program)
    assert all(after[name] == before[name] for name in ("own", "rows", "main", "shapes::Row"))


def gdb(program: Path, *asked: str) -> str:
    words = [word for line in asked for word in ("-ex", line)]
    done = subprocess.run(["gdb", "-nx", "-batch", *words, program], capture_output=True, text=True)
    assert not done.stderr
    return done.stdout


@needs_gold
@needs_gdb
def test_gdb_looks_up_types_and_functions_in_the_index(program: Path) -> None:
    gdb_index.name_types_once(program)

    said = gdb(program, "ptype shapes::Tile", "ptype shapes::Order", "info line rows", "break main")

    assert "int columns;" in said
    assert "shapes::Order::Column" in said
    assert 'of "rows.cpp"' in said
    assert "main.cpp, line 5" in said


@needs_gold
@needs_gdb
def test_a_name_with_different_types_in_two_files_means_the_type_of_the_frames_file(program: Path) -> None:
    gdb_index.name_types_once(program)

    said = gdb(program, "break rows", "run", "ptype Word", "up", "ptype Word")

    assert re.findall("^type = (.*)", said, re.M) == ["short", "long"]


@needs_gold
def test_a_deduplicated_index_is_left_unchanged(program: Path) -> None:
    gdb_index.name_types_once(program)
    before = program.read_bytes()

    assert gdb_index.name_types_once(program) == 0
    assert program.read_bytes() == before


@needs_gold
def test_an_index_of_another_version_is_left_unchanged(program: Path) -> None:
    section = next(one for one in library.Library(program).sections if one.name == ".gdb_index")
    with program.open("r+b") as file:
        file.seek(section.offset)
        file.write(struct.pack("<I", 9))
    before = program.read_bytes()

    assert gdb_index.name_types_once(program) == 0
    assert program.read_bytes() == before


def test_a_file_without_an_index_is_left_unchanged(tmp_path: Path) -> None:
    (plain := tmp_path / "plain").write_bytes(b"no program")

    assert gdb_index.name_types_once(plain) == 0
    assert plain.read_bytes() == b"no program"
