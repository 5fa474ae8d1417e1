"""Processes in which a program starts Python anew are noted, and those of a compiler are not."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tracing.launch.coverage import watched
from tracing.upstream.torch.spawned_processes import spawns_noted
from tracing.virtual_gpu import virtual_gpu


def started(method: str) -> None:
    process = multiprocessing.get_context(method).Process(target=print)  # type: ignore[attr-defined]
    process.start()
    process.join()


@pytest.mark.parametrize(
    ("start", "noted"),
    [
        (lambda: started("spawn"), True),
        (lambda: started("fork"), False),
        (lambda: subprocess.run([sys.executable, "-c", "0"], check=True), True),
        (lambda: subprocess.run("cd . && python3 --version", shell=True, check=True), True),
        (lambda: subprocess.run(["env", "true"], check=True), False),
        (lambda: os.system("python3 --version"), True),
        (lambda: os.system("true"), False),
        (lambda: os.waitpid(os.posix_spawn(sys.executable, ["python", "-c", "0"], os.environ), 0), True),
    ],
    ids=[
        "spawn",
        "fork",
        "subprocess",
        "shell",
        "other program",
        "os.system",
        "other command",
        "posix_spawn",
    ],
)
def test_a_process_of_python_is_noted_while_active(start: Callable[[], object], noted: bool) -> None:
    calls: list[str] = []
    with spawns_noted(lambda: calls.append("noted")):
        start()
    start()

    assert calls == ["noted"] * noted


@pytest.mark.parametrize(
    ("start", "noted"),
    [
        (lambda: subprocess.run(b"cd .;python3 --version", shell=True, check=True), True),
        (
            lambda: subprocess.run("x=$(python3 --version)", shell=True, executable="/bin/bash", check=True),
            True,
        ),
        (lambda: subprocess.run(["name", "-c", "0"], executable=sys.executable, check=True), True),
        (lambda: subprocess.run(["env", "A=1", "python3", "--version"], check=True), True),
        (lambda: subprocess.run(["bash", "-c", "python3 --version"], check=True), True),
        (lambda: subprocess.run(["nice", "-n", "1", "timeout", "9s", "python3", "-V"], check=True), True),
        (lambda: os.system(command="python3 --version"), True),
        (lambda: subprocess.run("which python3", shell=True, check=True), False),
        (lambda: subprocess.run(["echo", "-c", "python3"], check=True), False),
        (lambda: os.system("echo python3"), False),
        (lambda: subprocess.run(map(str, ["echo", 1]), check=True), False),
    ],
)
def test_the_program_of_a_command_decides(start: Callable[[], object], noted: bool) -> None:
    calls: list[str] = []
    with spawns_noted(lambda: calls.append("noted")):
        start()

    assert calls == ["noted"] * noted


def test_a_script_of_python_is_noted(tmp_path: Path) -> None:
    (script := tmp_path / "script").write_text(f"#!{sys.executable}\n")
    script.chmod(0o755)
    calls: list[str] = []
    with spawns_noted(lambda: calls.append("noted")):
        subprocess.run([script], check=True)

    assert calls == ["noted"]


def test_processes_of_a_compiler_are_not_noted() -> None:
    scope = {"__name__": "torch._inductor.worker", "subprocess": subprocess, "sys": sys}
    calls: list[str] = []
    with spawns_noted(lambda: calls.append("noted")):
        exec("subprocess.run([sys.executable, '-c', '0'])", scope)

    assert calls == []


def test_on_the_virtual_gpu_the_first_spawned_process_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    reported: list[str] = []
    with virtual_gpu(), watched(lambda what, setting: reported.append(what)):
        for _ in range(2):
            started("spawn")

    assert capsys.readouterr().err.count("has no virtual GPU; fork it instead") == 1
    assert set(reported) == {"launches and operators of processes that the program spawns"}
