"""Scripts that run before anything is installed: version choice, installation, diagnosis, `make clean`."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import ROOT

pins: Any = importlib.import_module("scripts.pins")  # untyped, like venv, because tests replace parts of them
venv: Any = importlib.import_module("scripts.venv")
KNOWN = pins.read()
SMALL = pins.Pins(
    "2.13.0",
    (
        pins.Pair("2.15.0", "3.9.0", ("3.11", "3.15")),
        pins.Pair("2.13.0", "3.8.0", ("3.10", "3.14"), "cpu"),
        pins.Pair("2.13.0", "3.7.1", ("3.10", "3.14")),
        pins.Pair("2.12.1", "3.7.1", ("3.10", "3.14")),
        pins.Pair("2.11.0", "3.6.0", ("3.10", "3.14")),
    ),
)
HERE = Path("/tmp/env")


def script(name: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", f"scripts.{name.removesuffix('.py')}", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)


def pick(**asked: Any) -> Any:
    return pins.pick(SMALL, **{"gpu": False, "python": (3, 12), **asked})


# ---------------------------------------------------------------- pins.toml


def test_the_default_torch_is_a_listed_pair() -> None:
    assert KNOWN.default in {pair.torch for pair in KNOWN.pairs}


@pytest.mark.parametrize("pair", KNOWN.pairs, ids=str)
def test_every_pair_can_be_picked_by_naming_both_versions(pair: Any) -> None:
    first, last = (pins.version(python) for python in pair.python)

    assert pins.pick(KNOWN, torch=pair.torch, triton=pair.triton, gpu=False, python=first) == pair
    assert first <= last and pair.allows(last)


def test_the_small_reader_reads_pins_toml_as_tomllib_does() -> None:
    tomllib = pytest.importorskip("tomllib")  # from Python 3.11

    text = pins.PINS.read_text(encoding="utf-8")
    expected = tomllib.loads(text)

    single = {name: [expected[name]] for name in ("default", "source")}
    assert pins.tables(text) == {**expected, **single}


def test_a_torch_for_a_gpu_gets_only_the_triton_that_it_declares() -> None:
    assert pick(torch="2.13.0", gpu=False).triton == "3.8.0"
    assert pick(torch="2.13.0", gpu=True).triton == "3.7.1"


def test_a_triton_without_a_torch_picks_the_default_torch_if_that_fits() -> None:
    assert pick(triton="3.7.1").torch == "2.13.0"
    assert pick(triton="3.6.0").torch == "2.11.0"


def test_a_python_without_wheels_is_refused_with_the_required_versions() -> None:
    with pytest.raises(pins.Problem, match=r"Python 3\.10 was found, torch 2\.15\.0 .* was needed"):
        pick(torch="2.15.0", python=(3, 10))


def test_versions_are_compared_without_their_local_part() -> None:
    assert SMALL.known("2.13.0+cpu", "3.8.0")
    assert not SMALL.known("2.13.0+cpu", "3.6.0")


# ---------------------------------------------------------------- venv.py


def test_without_a_gpu_every_attempt_except_the_last_avoids_the_cuda_libraries() -> None:
    methods = venv.torch_methods(HERE, "2.13.0", gpu=False)

    assert [method.commands[-1][-2:] for method in methods] == [
        ("--quiet", "torch==2.13.0+cpu"),
        ("--torch-backend=cpu", "torch==2.13.0"),
        ("--quiet", "torch==2.13.0"),
    ]
    assert "5 GB" in methods[-1].says and methods[-1].needs > methods[0].needs


def test_with_a_gpu_uv_chooses_the_wheel_for_its_driver() -> None:
    first, second = venv.torch_methods(HERE, "2.13.0", gpu=True)

    assert first.commands[-1][-2:] == ("--torch-backend=auto", "torch==2.13.0")
    assert second.commands == (venv.pip(HERE, "torch==2.13.0"),)


def test_the_systems_setuptools_is_tried_first_if_its_torch_is_used() -> None:
    methods = venv.project_methods(HERE, test=True, site=True)

    assert ["--no-build-isolation" in method.commands[0] for method in methods] == [True, False]
    assert all(method.commands[0][-1].endswith("[test]") for method in methods)


def test_an_unreachable_index_is_distinguished_from_an_index_without_the_wheel() -> None:
    assert "no package index" in str(venv.diagnose("NewConnectionError: name resolution"))
    assert "disk is full" in str(venv.diagnose("OSError: [Errno 28] No space left on device"))
    assert venv.diagnose("ERROR: No matching distribution found for torch==2.13.0+cpu") is None


def test_the_next_attempt_is_made_only_after_the_previous_one_failed(tmp_path: Path) -> None:
    def method(code: str) -> Any:
        return venv.Method("a step", ((sys.executable, "-c", code),))

    venv.take(tmp_path, "it", [method("raise SystemExit('no such wheel')"), method(""), method("1 / 0")])
    with pytest.raises(pins.Problem, match=r"it could not be installed.*\n.*no such wheel"):
        venv.take(tmp_path, "it", [method("raise SystemExit('no such wheel')")])


def test_an_unknown_version_ends_with_status_2_and_the_known_pairs(tmp_path: Path) -> None:
    done = script("venv.py", "--venv", str(tmp_path / "new"), "--torch", "9.9.9", **os.environ)

    assert done.returncode == 2
    assert "torch 9.9.9 is not a known pair" in done.stderr and "Triton 3.8.0" in done.stderr
    assert not (tmp_path / "new").exists()


def test_a_directory_that_is_no_environment_is_left_unchanged(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()

    with pytest.raises(pins.Problem, match="is no Python environment"):
        venv.create(tmp_path, site=False)


def test_packages_of_the_environment_come_before_those_of_the_system() -> None:
    assert venv.system_path(["/usr/lib/python3.12", "/opt/env/lib/python3.12/site-packages"]) == (
        "import site; site.addsitedir('/opt/env/lib/python3.12/site-packages')\n"
    )


def test_a_receipt_for_the_tests_also_covers_the_project_without_tests(tmp_path: Path) -> None:
    venv.Receipt(tmp_path).write(test=True)

    assert venv.Receipt(tmp_path).covers(test=True) and venv.Receipt(tmp_path).covers(test=False)
    venv.Receipt(tmp_path).write(test=False)
    assert not venv.Receipt(tmp_path).covers(test=True)


# ---------------------------------------------------------------- make


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with every output that `make` can produce."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    for made in (".venv/pyvenv.cfg", "toolchain/.lock", "toolchain/triton/mine.cpp", "runs/a/run.json"):
        (tmp_path / made).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / made).touch()
    return tmp_path


def make(project: Path, *arguments: str) -> set[str]:
    subprocess.run(["make", "-C", str(project), *arguments], check=True, capture_output=True)
    return {path.name for path in project.iterdir()}


def test_clean_keeps_sources_builds_and_runs(project: Path) -> None:
    assert make(project, "clean") == {"Makefile", "toolchain", "runs"}


def test_clean_removes_everything_only_if_named(project: Path) -> None:
    assert make(project, "clean", "ALL=1") == {"Makefile"}


def test_clean_says_what_it_keeps_and_leaves_no_workspace_of_the_deleted_environment(project: Path) -> None:
    (project / ".vscode").mkdir()
    (project / "debug-triton.code-workspace").write_text("{}")
    clean = ["make", "--no-print-directory", "clean"]
    done = subprocess.run(clean, cwd=project, capture_output=True, text=True, check=True)

    assert done.stdout.splitlines()[:-1] == [
        "deleting .venv",
        "kept: runs",
        "kept: toolchain",
        "kept: .vscode",
    ]
    assert "make vscode" in done.stdout.splitlines()[-1]
    assert not (project / "debug-triton.code-workspace").exists()


def test_clean_never_removes_a_folder_that_is_no_toolchain(project: Path) -> None:
    (project / "toolchain/.lock").unlink()

    assert "toolchain" in make(project, "clean", "ALL=1")
