"""The stop in a process that compiles: where it stops, its report, and that it never blocks a program."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from commands import TESTS

from tracing.attach import compiling, session
from tracing.attach.compiling import Compiling, SeenCompilation, WantedStop
from tracing.attach.processes import compilers
from tracing.attach.python_stack import described
from tracing.environment import stops

PROGRAMS = TESTS / "debugger" / "programs"
LAUNCH = Path(compiling.__file__).parent / "launch"
TTGIR = SeenCompilation("softmax", "ttgir", ("tritongpu-coalesce", "canonicalize", "cse"))
TTIR = SeenCompilation("softmax", "ttir", ("inline", "cse"))
TRACER = """
import ctypes, sys, time
assert ctypes.CDLL(None, use_errno=True).ptrace(0x4206, int(sys.argv[1]), None, None) == 0, ctypes.get_errno()
print("traced", flush=True)
time.sleep(60)
"""


@pytest.fixture
def shared() -> Iterator[Path]:
    """The folder that the processes of one debugged program share."""
    folder = stops.stop_folder()
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def program(name: str, wanted: str, **variables: str) -> subprocess.Popen[str]:
    own = {"PYTHONPATH": str(LAUNCH), "TRACING_STOP": wanted, **variables}
    own = {key: value for key, value in {**os.environ, **own}.items() if value}
    command = [sys.executable, str(PROGRAMS / name)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=own, stdout=pipe, stderr=pipe, text=True)


def ended(started: subprocess.Popen[str]) -> tuple[str, str]:
    out, err = started.communicate(timeout=120)
    assert started.returncode == 0, err
    return out, err


def until(condition: Callable[[], object], within: float = 60) -> None:
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.05)


def waits(folder: Path) -> Callable[[], bool]:
    return lambda: any(now.waiting for now in compiling.read(folder))


# ---- where to stop ----


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("add:ttgir:cse", WantedStop("add", "ttgir", "cse")),
        ("add:make_ttgir:", WantedStop("add", "ttgir", "*")),
        ("add", WantedStop("add", "*", "*")),
        ("::cse", WantedStop("*", "*", "cse")),
    ],
)
def test_an_omitted_part_matches_everything(text: str, wanted: WantedStop) -> None:
    assert compiling.wanted_of(text) == wanted


def test_passes_must_match_kernel_stage_and_pass() -> None:
    wanted = WantedStop("soft*", "ttgir", "c*")

    assert wanted.passes(TTGIR.kernel, TTGIR.stage, TTGIR.passes) == ["canonicalize", "cse"]
    assert wanted.passes(TTIR.kernel, TTIR.stage, TTIR.passes) == []
    assert wanted.passes("matmul", "ttgir", TTGIR.passes) == []


@pytest.mark.parametrize(
    ("wanted", "came", "problem", "remedy"),
    [
        (WantedStop("sotfmax", "*", "*"), [TTIR, TTGIR], "a kernel sotfmax", "nearest: softmax"),
        (WantedStop("*", "ttgri", "*"), [TTIR, TTGIR], "a stage ttgri", "nearest: ttgir, ttir"),
        (
            WantedStop("*", "ttgir", "canonicalise"),
            [TTIR, TTGIR],
            "a pass canonicalise",
            "nearest: canonicalize",
        ),
        (
            WantedStop("*", "ttir", "tritongpu-coalesce"),
            [TTIR, TTGIR],
            "a pass tritongpu-",
            "there were: inline",
        ),
        (WantedStop("*", "*", "*"), [], "Triton compiled nothing", "launch a Triton kernel"),
    ],
)
def test_a_pass_that_never_ran_is_reported_with_similar_names(
    wanted: WantedStop, came: list[SeenCompilation], problem: str, remedy: str
) -> None:
    refusal = compiling.never_came(wanted, came)

    assert refusal is not None and problem in refusal.problem and remedy in refusal.remedy


# ---- in the process ----


def test_without_a_debugger_the_program_continues_and_its_kernels_have_their_usual_hash(
    tmp_path: Path,
) -> None:
    usual, _ = ended(program("add.py", "", TRITON_CACHE_DIR=str(tmp_path)))
    out, err = ended(  # its cache is warm
        program("add.py", "add:ttgir:cse", TRITON_CACHE_DIR=str(tmp_path), TRACING_STOP_SECONDS="0.3")
    )

    assert "waits before cse of add (ttgir)" in err and "no debugger attached within 0.3 s" in err
    assert out == usual and "hash" in out


@pytest.mark.soak
def test_what_derives_the_ir_of_a_recording_does_not_stop(tmp_path: Path, shared: Path) -> None:
    ended(
        subprocess.Popen(
            [sys.executable, "-m", "tracing", "run", "--compile-only", "--runs", str(tmp_path), "silu"],
            env=os.environ | {"PYTHONPATH": str(LAUNCH), "TRACING_STOP": "*:ttgir:tritongpu-coalesce",
                              "TRACING_STOP_DIR": str(shared), "TRACING_STOP_SECONDS": "0.3"},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=TESTS.parent,
        )
    )  # fmt: skip

    assert len([*shared.glob("*")]) > 0
    assert len({now.pid for now in compiling.read(shared)}) == 1


def test_a_program_that_ends_before_the_pass_reports_it_and_leaves_no_folder(tmp_path: Path) -> None:
    _, err = ended(program("forked.py", "add:ttgir:tritongpu-coalece", TMPDIR=str(tmp_path)))

    assert "no compile reached a pass tritongpu-coalece" in err and "nearest: tritongpu-coalesce" in err
    assert list(tmp_path.glob(f"{stops.STOP_PREFIX}*")) == []


def test_an_invalid_stop_is_reported_and_the_program_runs() -> None:
    out, err = ended(program("add.py", "a:b:c:d"))

    assert "'a:b:c:d' has 4 parts" in err and "done" in out


def test_a_process_that_waits_is_listed_with_what_it_compiles(shared: Path) -> None:
    started = program("forked.py", "add:ttgir:cse", TRACING_STOP_DIR=str(shared))
    until(waits(shared))
    waiting = [one for one in compilers() if one.waiting and one.now and one.now.stage == "ttgir"]
    mine = [one for one in waiting if one.now in list(compiling.read(shared))]
    os.kill(mine[0].pid, signal.SIGKILL)
    started.kill()

    now = mine[0].now
    assert len(mine) == 1 and mine[0].pid != started.pid and now is not None
    assert now.kernel == "add" and now.options["num_warps"] == "4" and "cse" in now.passes
    assert now.stack[-1].startswith("make_ttgir")


def test_a_debugger_that_dies_before_its_breakpoints_does_not_keep_the_process(tmp_path: Path) -> None:
    started = program("add.py", "add:ttgir:cse", TRACING_STOP_DIR=str(tmp_path))
    until(waits(tmp_path))
    tracer = subprocess.Popen(
        [sys.executable, "-c", TRACER, str(started.pid)], stdout=subprocess.PIPE, text=True
    )
    assert tracer.stdout is not None
    if tracer.stdout.readline() != "traced\n":
        started.kill()
        pytest.skip("ptrace is not permitted here, so no debugger can come")
    time.sleep(0.5)
    tracer.kill()
    time.sleep(0.5)
    assert any(now.waiting for now in compiling.read(tmp_path))  # another debugger may attach
    _, err = ended(started)

    assert "the debugger detached before it had set a breakpoint in libtriton: the process continues" in err


def test_a_pipeline_that_runs_pass_by_pass_stops_at_its_pass_too() -> None:
    _, err = ended(program("stepwise.py", "add:ttgir:cse", TRACING_STOP_SECONDS="0.2"))

    assert err.count("waits before cse of add (ttgir)") == 1


def test_the_sitecustomize_that_is_hidden_is_imported_too(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('hidden')")
    paths = f"{LAUNCH}{os.pathsep}{tmp_path}"
    out, _ = ended(program("add.py", "", PYTHONPATH=paths))

    assert out.startswith("hidden")


def test_a_folder_of_a_program_that_was_killed_is_removed_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    gone = subprocess.Popen(["true"])
    gone.wait()
    (tmp_path / f"{stops.STOP_PREFIX}{gone.pid}-abc").mkdir()
    folder = stops.stop_folder()

    assert list(tmp_path.iterdir()) == [folder]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_folders_of_other_users_are_neither_read_nor_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = tmp_path / f"{stops.STOP_PREFIX}{2**22 + 1}-planted"  # of a process that is not there
    folder.mkdir()
    os.mkfifo(folder / "1.json")  # waits for ever
    (folder / "2.json").symlink_to("/dev/zero")  # all memory
    victim = Compiling(os.getpid(), "add", "ttgir", (), {}, (), "", waiting=True)
    compiling.write(folder, victim)
    os.chown(folder, 65534, 65534)
    (tmp_path / f"{stops.STOP_PREFIX}{2**22 + 2}-link").symlink_to(folder)
    code = (
        "from tracing.environment import stops; from tracing.attach.processes import compilers; "
        "print(stops.stop_folders(), [one for one in compilers() if one.waiting]); "
        "stops.stop_folder()"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip

    assert done.stdout.startswith("[] "), done.stderr
    assert str(os.getpid()) not in done.stdout
    assert len(list(folder.iterdir())) == 3


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_user_sees_only_the_folders_of_that_user(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as name:  # pytest's folders are closed to other users
        _two_owners(Path(name), monkeypatch)


def _two_owners(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(shared))
    mine = stops.stop_folder()
    theirs = shared / f"{stops.STOP_PREFIX}{os.getpid()}-theirs"
    theirs.mkdir(mode=0o700)
    os.chown(theirs, 65534, 65534)
    shared.chmod(0o755)

    assert stops.stop_folders() == [mine]
    os.seteuid(65534)
    try:
        assert stops.stop_folders() == [theirs]
    finally:
        os.seteuid(0)


# ---- requests to VSCode ----


def test_every_word_of_the_native_configuration_is_filled_in(tmp_path: Path) -> None:
    words = {"{pid}": "7", "{pass}": "cse", "{kernel}": "add"}
    template = {"name": "C++ {pass} of {kernel} ({pid})", "pid": "{pid}", "commands": [{"text": "b {pass}"}]}

    assert session._filled(template, words, 7) == {
        "name": "C++ cse of add (7)", "pid": 7, "commands": [{"text": "b cse"}],
    }  # fmt: skip


def test_outside_of_debugpy_nothing_is_asked_for(tmp_path: Path) -> None:
    now = Compiling(1, "add", "ttgir", (), {}, (), "")

    assert not session.request(tmp_path / "native.json", now, "cse")


def test_frames_of_this_tool_and_of_its_command_line_are_counted_instead_of_listed() -> None:
    frames = []
    for name in ("tracing.cli", "typer._click.core", "runpy", "train"):
        scope = {"__name__": name, "sys": sys}
        exec(compile("def here():\n    return sys._getframe()", "train.py", "exec"), scope)
        frames.append(eval("here()", scope))

    assert described(frames) == (("here  train.py:2",), {"tracing": 1, "typer": 1, "runpy": 1})
