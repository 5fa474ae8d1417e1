"""The source that a user gives for the wheel is where debuggers look, and stays unchanged."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from commands import ROOT, script_module

checkout, pins, wheel_source = map(script_module, ("build.checkout", "pins", "build.wheel_source"))


def test_a_given_source_is_what_debuggers_find_and_a_build_leaves_it_unchanged(tmp_path: Path) -> None:
    given, there = tmp_path / "mine", tmp_path / "toolchain/triton"
    given.mkdir()
    (given / "setup.py").write_text("mine")
    there.mkdir(parents=True)

    wheel_source.link(there, given)
    wheel_source.link(there, given)
    assert (there / "setup.py").read_text() == "mine"

    checkout.start(there)
    assert not there.is_symlink() and not (there / "setup.py").exists()
    assert [path.name for path in given.iterdir()] == ["setup.py"]


def test_another_tree_where_debuggers_look_is_kept(tmp_path: Path) -> None:
    (tmp_path / "triton").mkdir()
    (tmp_path / "triton/work.txt").write_text("mine")

    with pytest.raises(pins.Problem, match="holds another tree"):
        wheel_source.link(tmp_path / "triton", tmp_path)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tree whose pass begins at the line that the wheel's line tables name."""
    if shutil.which("gdb") is None:
        pytest.skip("gdb is not installed, which reads the wheel's line tables")
    import triton

    library = Path(triton.__file__).parent / "_C/libtriton.so"
    ask = "info line mlir::triton::gpu::CoalescePass::runOnOperation"
    index = ["-iex", "set index-cache enabled on"]
    command = ["gdb", "-nx", "-batch", *index, "-ex", ask, str(library)]
    said = subprocess.run(command, capture_output=True, text=True)
    line = int(said.stdout.partition("Line ")[2].split()[0])
    tree = tmp_path_factory.mktemp("triton-3.8.0")
    shutil.copytree(ROOT / "tests/data/standin/triton", tree, dirs_exist_ok=True)
    empty = "\n" * (line - 1)
    (tree / wheel_source.proofs.COALESCE).write_text(f"{empty}void runOnOperation() override {{\nint x;\n}}")
    return tree


def make_source(given: Path, toolchain: Path) -> subprocess.CompletedProcess[str]:
    choice = {"VENV": sys.prefix, "PYTHON": sys.executable, "TRITON_SRC": given, "TOOLCHAIN": toolchain}
    words = [f"{name}={value}" for name, value in choice.items()]
    command = ["make", "-o", f"{sys.prefix}/.stamp-torch-triton-site", "venv", "SOURCE=1", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


@pytest.mark.parametrize("kind", ["folder", pytest.param("archive", marks=pytest.mark.soak)])
def test_a_folder_or_an_archive_is_taken_without_a_network(tree: Path, tmp_path: Path, kind: str) -> None:
    given = tree
    if kind == "archive":
        given = Path(shutil.make_archive(str(tmp_path / "v3"), "gztar", tree.parent, tree.name))
    done = make_source(given, tmp_path / "toolchain")

    assert done.returncode == 0, done.stderr
    assert "set substitute-path /project " in done.stdout
    source = tmp_path / "toolchain/triton" / wheel_source.proofs.COALESCE
    assert source.read_text() == (tree / wheel_source.proofs.COALESCE).read_text()


@pytest.mark.soak
def test_the_source_of_another_version_is_refused(tmp_path: Path, tree: Path) -> None:
    shutil.copytree(tree, tmp_path / "other")
    source = tmp_path / "other" / wheel_source.proofs.COALESCE
    source.write_text(f"\n\n{source.read_text()}")
    done = make_source(tmp_path / "other", tmp_path / "toolchain")

    assert done.returncode != 0 and "it is of another tree" in done.stderr
    assert not (tmp_path / "toolchain/triton").exists()


def test_without_a_network_it_names_the_archive_and_the_command_that_takes_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "pins.toml"
    own.write_text(pins.PINS.read_text().replace("https://github.com", "https://127.0.0.1:9"))
    words = ["--venv", sys.prefix, "--toolchain", str(tmp_path / "toolchain"), "--pins", str(own)]
    monkeypatch.setattr(sys, "argv", ["wheel_source", *words])

    assert wheel_source.main() == 2
    said = capsys.readouterr().err
    assert "/archive/refs/tags/v" in said and "make venv SOURCE=1 TRITON_SRC=FILE" in said
