"""gdb in a terminal: at a pass of a case, at a recorded pass, in a waiting process, and with failures."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from commands import tracing
from debugger.conftest import PROGRAMS, gdb_that_calls
from recorded import kernels

from tracing import environment
from tracing.analyze.passes.compilations import compilation
from tracing.analyze.passes.line_changes import changing_passes
from tracing.analyze.passes.pass_table import passes_of
from tracing.attach import compiling
from tracing.attach.terminal import COMMANDS, Gdb
from tracing.environment import installed_tools, stops
from tracing.store import Run

COALESCE = "mlir::triton::gpu::CoalescePass::runOnOperation"
MI_ONLY = "#!/bin/sh\necho 'Python scripting is not supported in this copy of GDB.' >&2; exit 1\n"


def test_a_recorded_pass_is_rerun_by_itself_and_gdb_stops_in_it(recorded_run: Path) -> None:
    gdb_that_calls("cppdbg")
    words = ("debug", str(recorded_run), "--kernel", "softmax", "--pass", "tritongpu-coalesce")
    asked = ("bt 1", "pass-info", "py-where", "print-module", "print $op()", "info locals", "next", "next")
    done = tracing(*words, *(word for one in asked for word in ("--ex", one)), runs=recorded_run.parent)

    assert done.returncode == 0, done.stderr
    assert f"#0  {COALESCE}" in done.stdout and "Coalesce.cpp:" in done.stdout
    assert "position  executed by itself in stage ttgir" in done.stdout
    assert re.search(
        rf"^recorded  pass \d+ of stage ttgir in {re.escape(str(recorded_run))}$", done.stdout, re.M
    )
    assert "the recorded program compiled softmax and did not launch it\n  source    " in done.stdout
    frames = r"^the frames of this replayed compile.*\n(#\d+ .*\n){1,4}frames left out: .* of tracing"
    assert re.search(frames, done.stdout, re.M)
    assert "breakpoint -" not in done.stdout and "No such file" not in done.stdout + done.stderr
    assert "tt.func public @softmax" in done.stdout and "$1 = module attributes {" in done.stdout
    assert done.stdout.count("`make triton`") == ("<optimized out>" in done.stdout)
    assert (done.stdout + done.stderr).count("`make venv SOURCE=1`") == installed_tools.lacks_source()
    assert ("missing: the C++ source of Triton's wheel" in done.stderr) == installed_tools.lacks_source()


def test_a_stop_shows_the_options_of_the_pass(recorded_run: Path) -> None:
    gdb_that_calls("cppdbg")
    words = ("debug", str(recorded_run), "--kernel", "softmax", "--pass", "tritongpu-pipeline")
    done = tracing(*words, "--ex", "pass-info", runs=recorded_run.parent)

    assert re.search(r"^with      .*\bnum-stages=\d+", done.stdout, re.M), done.stdout + done.stderr


@pytest.mark.parametrize("printed", ["print-op", "print $module()"])
def test_a_step_stays_in_the_pass_after_its_ir_was_printed(recorded_run: Path, printed: str) -> None:
    gdb_that_calls("cppdbg")
    words = ("debug", str(recorded_run), "--kernel", "softmax", "--pass", "tritongpu-coalesce")
    asked = ("break", printed, "bt 1", "next", printed, "step", "info frame", "info breakpoints")
    done = tracing(*words, *(word for one in asked for word in ("--ex", one)), runs=recorded_run.parent)

    assert done.returncode == 0, done.stderr
    innermost = re.findall(rf"^#0  {COALESCE}.*\n? +at .*Coalesce.cpp:", done.stdout, re.M)
    assert len(innermost) == 2  # of the stop, and of `bt`
    assert re.search(r"^ rip = .* in .*\((\S+Coalesce\.cpp|\S+/triton/\S+\.h):\d+\)", done.stdout, re.M)
    assert "mlir/Pass/Pass.h" not in done.stdout
    assert "keep y" in done.stdout and "already hit" not in done.stdout  # of the breakpoint at the stop


def test_gdb_stops_in_a_pass_that_changed_what_a_line_became(recorded_run: Path) -> None:
    file = Path(str(kernels.__file__))
    lines = file.read_text().splitlines()
    position = f"{file.name}:{1 + next(i for i, line in enumerate(lines) if 'y / tl.sum(y, 0)' in line)}"
    words = ("debug", str(recorded_run), "--line", position, "--ex", "pass-info", "--ex", "bt 1")
    done = tracing(*words, runs=recorded_run.parent)
    run = Run(recorded_run)
    changing = {one.name for one in changing_passes(run, compilation(run), position)}

    assert done.returncode == 0, done.stderr
    assert re.findall(r"^pass +([\w-]+), ", done.stdout, re.M)[0] in changing
    assert "#0" in done.stdout and "Pass::runOnOperation (this=" in done.stdout


def test_a_pass_on_ir_whose_functions_are_llvms_stops(recorded_run: Path) -> None:
    run = Run(recorded_run)
    late = [one for one in passes_of(run, compilation(run)) if one.stage == "llir"][
        -1
    ]  # whatever it is called
    words = ("debug", str(recorded_run), "--kernel", "softmax", "--pass", str(late.index))
    done = tracing(*words, "--ex", "pass-info", runs=recorded_run.parent)

    assert done.returncode == 0, done.stderr
    assert f"pass      {late.name}, " in done.stdout and "kernel    softmax" in done.stdout


def test_a_misspelt_pass_is_refused_before_gdb_attaches() -> None:
    done = tracing_attach("1", "--pass", "tritongpu-piepline")

    assert done.returncode == 2
    assert "nearest: tritongpu-pipeline" in done.stderr


def test_a_case_stops_where_it_compiles(tmp_path: Path) -> None:
    words = ("debug", "silu", "--kernel", "triton_*", "--stage", "ttir", "--pass", "canonicalize")
    done = tracing(*words, "--ex", "pass-info", "--ex", "py-where", runs=tmp_path)

    assert done.returncode == 0, done.stderr
    assert "Canonicalizer::runOnOperation" in done.stdout
    assert "in stage ttir" in done.stdout and "make_ttir  " in done.stdout


def test_the_process_that_waits_is_found_and_attached_to(shared: Path) -> None:
    variables = stops.stopping("add:ttgir:tritongpu-coalesce", shared)
    variables["TRACING_STOP_TRACER"] = ""
    own = environment.with_variables(variables)
    started = subprocess.Popen([sys.executable, str(PROGRAMS / "forked.py")], env=own)
    pid = waiting_process(shared)
    done = tracing_attach(str(pid), "--ex", "bt 1")

    assert done.returncode == 0, done.stderr
    assert COALESCE in done.stdout and started.wait(60) == 0


@pytest.mark.soak
@pytest.mark.soak
def test_attached_gdb_reads_symbols_of_the_compiler_and_not_of_torch(tmp_path: Path) -> None:
    words = ("debug", "silu", "--pass", "tritongpu-coalesce", "--ex", "info sharedlibrary", "--ex", "bt")
    said = tracing(*words, runs=tmp_path).stdout
    read = {line.split("/")[-1]: line.split()[2] for line in said.splitlines() if line.startswith("0x")}

    assert read["libtriton.so"] == "Yes" and read["libtorch_cpu.so"] == "No"
    bindings = ("pybind11::cpp_function::dispatcher", "nanobind::detail::func_create")  # since Triton 3.9
    assert any(function in said for function in bindings) and "PyEval" in said


def test_a_process_that_compiles_nothing_is_said_to_have_ended_without_a_pass() -> None:
    program = "import triton._C.libtriton, time; print(flush=True); time.sleep(6)"
    started = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    assert started.stdout is not None and started.stdout.readline()
    done = tracing_attach(str(started.pid), "--pass", "tritongpu-coalesce", "--ex", "pwd")

    assert done.returncode == 2, done.stdout + done.stderr
    assert (
        "no pass tritongpu-coalesce of a kernel * ran; the process ended, and compiled nothing" in done.stdout
    )


def waiting_process(shared: Path) -> int:
    for _ in range(2000):
        if waiting := [now.pid for now in compiling.read(shared) if now.waiting]:
            return waiting[0]
        time.sleep(0.05)
    raise AssertionError("no process waited at the stop within 100 s")


def tracing_attach(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tracing", "attach", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=200)


def test_a_gdb_that_is_killed_at_the_stop_does_not_keep_the_process(shared: Path) -> None:
    own = environment.with_variables(stops.stopping("add:ttgir:cse", shared))
    started = subprocess.Popen([sys.executable, str(PROGRAMS / "add.py")], env=own)
    waiting_process(shared)
    command = Gdb("gdb", script=("echo here\\n", "shell sleep 60")).attach(
        started.pid, compiling.wanted_of("::cse")
    )
    gdb = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert gdb.stdout is not None
    assert any("here" in line for line in gdb.stdout)
    os.killpg(gdb.pid, signal.SIGKILL)

    assert started.wait(60) == 0  # at a stop gdb has taken its breakpoints out of the code


REFUSING = """
import gdb
said = iter(["ptrace: No such process.", "ptrace: No such process.", "the third time"])
def attach(line):
    raise gdb.error(next(said))
gdb.execute = attach
"""


def test_attaching_is_retried_if_a_thread_has_just_ended(tmp_path: Path) -> None:
    refusing = tmp_path / "refusing.py"
    refusing.write_text(REFUSING)
    words = ["-ex", f"source {COMMANDS}", "-ex", f"source {refusing}", "-ex", f"attach-to {os.getpid()}"]
    done = subprocess.run(["gdb", "-nx", "-q", "-batch", *words], capture_output=True, text=True)

    assert done.stderr.strip() == "the third time"


def test_without_gdb_it_says_what_to_install(tmp_path: Path) -> None:
    done = tracing("debug", "silu", "--pass", "cse", runs=tmp_path, GDB="no-such-gdb")

    assert done.returncode == 2 and "no-such-gdb was not found" in done.stderr and "doctor" in done.stderr


def test_a_gdb_without_python_is_refused(tmp_path: Path) -> None:
    fake = tmp_path / "gdb"
    fake.write_text(MI_ONLY)
    fake.chmod(0o755)
    done = tracing("debug", "silu", "--pass", "cse", runs=tmp_path, GDB=str(fake))

    assert done.returncode == 2 and "has no Python" in done.stderr


def test_a_stripped_libtriton_is_said_to_be_stripped(tmp_path: Path) -> None:
    source, library = tmp_path / "empty.c", tmp_path / "libtriton.so"
    source.write_text("int nothing;")
    subprocess.run(["cc", "-shared", "-o", str(library), str(source)], check=True)
    load = f"import ctypes; ctypes.CDLL({str(library)!r})"
    words = ["-iex", f"source {COMMANDS}", "-iex", "break-pass cse", "-ex", "run", "--args", sys.executable]
    done = subprocess.run(["gdb", "-nx", "-q", "-batch", *words, "-c", load], capture_output=True, text=True)

    assert "this Triton has no symbol OpToOpPassAdaptor::run: it is stripped" in done.stdout + done.stderr


@pytest.mark.soak
def test_before_it_reaches_the_pass_gdb_looks_up_no_name_in_triton(tmp_path: Path) -> None:
    first = [f"source {COMMANDS}", "break-pass tritongpu-coalesce", "set debug symbol-lookup 1"]
    words = [word for line in first for word in ("-iex", line)]
    program = [sys.executable, str(PROGRAMS / "add.py")]
    command = ["gdb", "-nx", "-q", "-batch", *words, "-ex", "run", "-ex", "kill", "--args", *program]
    own = environment.with_variables({"TRITON_ALWAYS_COMPILE": "1", "TRITON_CACHE_DIR": str(tmp_path)})
    said = subprocess.run(command, env=own, capture_output=True, text=True)

    # one name, and gdb sorts all that its index has, for more than a second
    assert COALESCE in said.stdout
    assert "lookup_symbol_in_objfile (libtriton.so" not in said.stdout + said.stderr


def test_a_stop_at_which_a_person_types_names_our_commands(recorded_run: Path) -> None:
    words = ["debug", str(recorded_run), "--kernel", "softmax", "--pass", "tritongpu-coalesce"]
    command = [sys.executable, "-m", "tracing", *words]
    done = subprocess.run(command, input="kill\nquit\n", capture_output=True, text=True, timeout=200)

    assert "`print-op` shows the IR" in done.stdout and "`help triton`" in done.stdout


def test_help_names_every_command() -> None:
    words = ["-iex", f"source {COMMANDS}", "-ex", "help triton", "-ex", "help break-pass"]
    said = subprocess.run(["gdb", "-nx", "-q", "-batch", *words], capture_output=True, text=True).stdout

    for name in (
        "break-pass",
        "compiler-symbols",
        "break-opt-bisect",
        "print-op",
        "print-module",
        "pass-info",
        "py-where",
        "triton-sources",
    ):
        assert name in said
    assert "a glob" in said
