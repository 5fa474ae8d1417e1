"""On a processor with AMX, an older gdb can call functions if it is extended; else it says what is needed."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tracing.attach import gdb_with_amx
from tracing.attach.terminal import COMMANDS

# Fills a vector register and a mask, which a call of `clear` clears, and prints them.
PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
int preloaded(void) { return getenv("LD_PRELOAD") != 0; }
double clear(double x) {
  __asm__ volatile("vpxorq %%zmm17, %%zmm17, %%zmm17\\n kxorq %%k3, %%k3, %%k3" ::: "xmm17", "k3");
  return x * 1.5;
}
void stop(void) {}
int main(void) {
  double wanted = 3.25, last[8];
  unsigned long mask = 0x1234567, left;
  __asm__ volatile("vbroadcastsd %0, %%zmm17\\n kmovq %1, %%k3" :: "m"(wanted), "r"(mask) : "xmm17", "k3");
  stop();
  __asm__ volatile("vmovupd %%zmm17, %0\\n kmovq %%k3, %1" : "=m"(last), "=r"(left));
  printf("left %g %lx\\n", last[7], left);
}
"""


@pytest.fixture
def old_gdb() -> str:
    path = shutil.which("gdb")
    if path is None or not gdb_with_amx.needed(path):
        pytest.skip("needs a gdb before 14 on a processor with AMX")
    return path


def test_calls_work_and_leave_the_registers_and_the_environment_of_the_program(
    old_gdb: str, tmp_path: Path
) -> None:
    (tmp_path / "program.c").write_text(PROGRAM)
    flags = ("-g", "-O0", "-mavx512f", "-mavx512bw")
    subprocess.run(["cc", *flags, "-o", str(tmp_path / "program"), str(tmp_path / "program.c")], check=True)
    gdb = gdb_with_amx.able_to_call(old_gdb, tmp_path / "own")
    asked = ("break stop", "run", "print clear(2)", "print preloaded()", "continue")
    words = [word for line in asked for word in ("-ex", line)]
    done = subprocess.run(
        [gdb, "-nx", "-batch", *words, str(tmp_path / "program")], capture_output=True, text=True
    )

    assert re.findall(r"^(?:\$\d =|left) (.*)", done.stdout, re.M) == ["3", "0", "3.25 1234567"]
    assert gdb_with_amx.refused_call(gdb) == "" and gdb_with_amx.refused_call(old_gdb) != ""


def test_a_gdb_that_a_script_starts_can_call_too(old_gdb: str, tmp_path: Path) -> None:
    script = tmp_path / "gdb"
    script.write_text(f'#!/bin/sh\nexec env {old_gdb} "$@"\n')
    script.chmod(0o755)

    assert gdb_with_amx.refused_call(gdb_with_amx.able_to_call(str(script), tmp_path / "own")) == ""


def test_a_gdb_that_cannot_call_says_what_is_needed(old_gdb: str) -> None:
    calls = "python import gdb_calls; gdb_calls._call('getpid')"
    asked = (f"source {COMMANDS}", "catch syscall exit_group", "run", calls, calls)
    words = [word for line in asked for word in ("-ex", line)]
    done = subprocess.run(
        [old_gdb, "-nx", "-batch", *words, "--args", "/bin/true"], capture_output=True, text=True
    )

    assert done.stderr.count("on this processor, which has AMX: take gdb 14 or later") == 2
    assert "Bad address" not in done.stderr


def test_a_gdb_of_version_14_or_later_is_started_as_it_is(tmp_path: Path) -> None:
    newer = tmp_path / "gdb"
    newer.write_text("#!/bin/sh\necho 'GNU gdb (GDB) 14.1'\n")
    newer.chmod(0o755)

    assert gdb_with_amx.able_to_call(str(newer), tmp_path / "own") == str(newer)
    assert gdb_with_amx.able_to_call("no-such-gdb", tmp_path / "own") == "no-such-gdb"
    assert not (tmp_path / "own").exists()


def test_a_folder_that_ld_preload_cannot_name_is_not_used(old_gdb: str, tmp_path: Path) -> None:
    assert gdb_with_amx.able_to_call(old_gdb, tmp_path / "of a user") == old_gdb
