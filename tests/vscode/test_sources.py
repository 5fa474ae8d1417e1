"""Sources: the pinned commit is fetched sparsely, and a user's own changes are never lost."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import ROOT, script_module
from handmade.repositories import STANDIN, Repository, git, name_llvm, publish

archive, checkout, pins, sources, toolchain = map(
    script_module, ("build.archive", "build.checkout", "pins", "build.sources", "build.toolchain")
)
Problem = pins.Problem
PARTS = ("llvm", "mlir", "lld")


def quiet(_message: str) -> None:
    pass


@pytest.fixture(scope="module")
def llvm(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    return publish(tmp_path_factory.mktemp("llvm"), STANDIN / "llvm-project")


@pytest.fixture
def triton(tmp_path: Path) -> Repository:
    repository = publish(tmp_path / "triton", STANDIN / "triton")
    repository.tag("v3.8.0")
    return repository


@pytest.fixture
def tools(tmp_path: Path) -> Any:
    toolchain_ = toolchain.Toolchain(tmp_path / "toolchain")
    toolchain_.root.mkdir()
    return toolchain_


def at(repository: Repository) -> str:
    return git(repository.work, "rev-parse", "HEAD")


def bring_to_commit(
    folder: Path, commit: str, *repositories: Repository, say: Callable[[str], None] = quiet
) -> None:
    checkout.bring_to_commit(folder, commit, [one.url for one in repositories], PARTS, say)


# ---------------------------------------------------------------- which commit


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("llvm-hash.txt", "{}\n"),
        ("llvm-info.json", '{{"llvm_hash": "{}", "build_number": 2, "sha256sum": {{"ubuntu-x64": "ab"}}}}'),
    ],
)
def test_the_llvm_commit_is_read_from_the_file_of_each_triton_version(
    tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / "cmake").mkdir()
    (tmp_path / "cmake" / name).write_text(text.format("5" * 40))

    assert sources.llvm_pin(tmp_path).commit == "5" * 40


def test_a_tree_that_names_no_llvm_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Problem, match=r"names no LLVM in llvm-info\.json or llvm-hash\.txt"):
        sources.llvm_pin(tmp_path)
    name_llvm(tmp_path, "main")
    with pytest.raises(Problem, match="names LLVM 'main', a commit was needed"):
        sources.llvm_pin(tmp_path)


def test_a_version_is_fetched_by_its_tag_and_its_commit_is_kept(triton: Repository, tools: Any) -> None:
    source = sources.triton(tools, pins.Pins("", (), triton.url), "3.8.0", "", quiet)

    assert source.commit == at(triton) == checkout.head(tools.triton)
    assert (tools.root / "triton-3.8.0.commit").read_text().strip() == source.commit


def test_a_moved_tag_is_reported_before_anything_is_fetched(triton: Repository, tools: Any) -> None:
    (tools.root / "triton-3.8.0.commit").write_text("0" * 40)

    with pytest.raises(Problem, match=r"tag v3\.8\.0 has moved: it names \w{12}, 000000000000 is pinned"):
        sources.triton(tools, pins.Pins("", (), triton.url), "3.8.0", "", quiet)
    assert not tools.triton.exists()


def test_a_version_that_was_never_released_is_refused(triton: Repository, tools: Any) -> None:
    with pytest.raises(Problem, match=r"has no tag v9\.9\.9"):
        sources.triton(tools, pins.Pins("", (), triton.url), "9.9.9", "", quiet)


# ---------------------------------------------------------------- fetching


def test_a_checkout_is_one_commit_with_only_the_needed_directories(llvm: Repository, tmp_path: Path) -> None:
    bring_to_commit(tmp_path / "llvm", at(llvm), llvm)

    assert git(tmp_path / "llvm", "rev-list", "--count", "HEAD") == "1"
    assert {path.name for path in (tmp_path / "llvm").iterdir()} == {".git", *PARTS}


def test_clang_is_added_to_a_checkout_that_is_already_there(llvm: Repository, tools: Any) -> None:
    known = pins.Pins("", (), "", (llvm.url,))
    sources.llvm(tools, known, sources.LlvmPin(at(llvm)), "", quiet)
    sources.llvm(tools, known, sources.LlvmPin(at(llvm)), "", quiet, clang=True)

    assert (tools.llvm / "clang/CMakeLists.txt").exists()


def test_a_commit_that_only_the_fork_has_is_fetched_from_the_fork(llvm: Repository, tmp_path: Path) -> None:
    fork = publish(tmp_path / "fork", STANDIN / "llvm-project")
    (fork.work / "llvm/patch.txt").write_text("of a release branch")
    commit = fork.commit()

    bring_to_commit(tmp_path / "llvm", commit, llvm, fork)

    assert (tmp_path / "llvm/llvm/patch.txt").read_text() == "of a release branch"


def test_a_commit_that_no_server_has_is_reported_with_all_servers(llvm: Repository, tmp_path: Path) -> None:
    with pytest.raises(Problem, match=f"commit {'0' * 40} is not in {llvm.url} nor in {llvm.url}"):
        bring_to_commit(tmp_path / "llvm", "0" * 40, llvm, llvm)


def test_an_existing_checkout_is_kept_without_contacting_a_server(llvm: Repository, tmp_path: Path) -> None:
    said: list[str] = []
    bring_to_commit(tmp_path / "llvm", at(llvm), llvm)
    gone = Repository(tmp_path, tmp_path / "nowhere.git")

    bring_to_commit(tmp_path / "llvm", at(llvm), gone, say=said.append)

    assert said == [f"{tmp_path}/llvm is at {at(llvm)[:12]}: kept"]


def test_a_proxy_that_refuses_is_reported_with_a_remedy(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")

    with pytest.raises(Problem, match=r"https://localhost/x\.git was not reached") as caught:
        checkout.tagged("https://localhost/x.git", "v1")
    assert "HTTPS_PROXY" in caught.value.remedy


# ---------------------------------------------------------------- interruptions

# A git that once, after one of its steps, kills the program that called it.
KILLER = """#!/bin/sh
{git} "$@"; status=$?
case " $* " in *" {step} "*) [ -e {mark} ] || {{ touch {mark}; kill -9 $PPID; }} ;; esac
exit $status
"""
BRING_TO_COMMIT = """
import pathlib, sys
from scripts.build import checkout
checkout.bring_to_commit(pathlib.Path(sys.argv[1]), *eval(sys.argv[2]), print)
"""


@pytest.mark.parametrize("step", ["init", "config", "fetch", "sparse-checkout", "checkout"])
def test_a_fetch_killed_at_any_step_is_completed_by_the_same_command(
    llvm: Repository, tmp_path: Path, step: str
) -> None:
    killer = tmp_path / "bin/git"
    killer.parent.mkdir()
    killer.write_text(KILLER.format(git=shutil.which("git"), step=step, mark=tmp_path / "killed"))
    killer.chmod(0o755)
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PATH": f"{killer.parent}:{os.environ['PATH']}",
    }
    arguments = (at(llvm), [llvm.url], PARTS)
    command = [sys.executable, "-c", BRING_TO_COMMIT, str(tmp_path / "llvm"), repr(arguments)]

    first, second = (subprocess.run(command, env=environment, stdout=subprocess.DEVNULL) for _ in range(2))

    assert (first.returncode, second.returncode) == (-signal.SIGKILL, 0)
    assert checkout.head(tmp_path / "llvm") == at(llvm) and not checkout.changed(tmp_path / "llvm")


def test_a_checkout_killed_while_it_writes_is_completed(llvm: Repository, tmp_path: Path) -> None:
    folder = tmp_path / "llvm"
    bring_to_commit(folder, at(llvm), llvm)
    (folder / ".git" / checkout.MOVING).write_text(at(llvm))  # as after a kill
    (folder / ".git/index.lock").touch()
    (folder / "llvm/CMakeLists.txt").write_text("half")

    bring_to_commit(folder, at(llvm), llvm)

    assert not checkout.changed(folder) and not (folder / ".git" / checkout.MOVING).exists()


# ---------------------------------------------------------------- a user's own changes


def test_local_changes_at_the_pinned_commit_are_kept_and_reported(llvm: Repository, tmp_path: Path) -> None:
    said: list[str] = []
    bring_to_commit(tmp_path / "llvm", at(llvm), llvm)
    (tmp_path / "llvm/llvm/CMakeLists.txt").write_text("mine")

    bring_to_commit(tmp_path / "llvm", at(llvm), llvm, say=said.append)

    assert (tmp_path / "llvm/llvm/CMakeLists.txt").read_text() == "mine"
    assert "with 1 file changed here: kept" in said[0]


def test_local_changes_stop_a_checkout_when_the_pin_moves(triton: Repository, tmp_path: Path) -> None:
    folder, before = tmp_path / "triton-tree", at(triton)
    checkout.bring_to_commit(folder, before, [triton.url], (), quiet)
    (folder / "setup.py").write_text("mine")

    with pytest.raises(
        Problem, match=rf"is at {before[:12]} with changes \(setup\.py\); \w{{12}} was needed"
    ):
        checkout.bring_to_commit(folder, triton.commit(), [triton.url], (), quiet)
    assert (folder / "setup.py").read_text() == "mine"


def test_a_commit_of_the_users_own_stops_a_checkout(triton: Repository, tmp_path: Path) -> None:
    folder = tmp_path / "triton-tree"
    checkout.bring_to_commit(folder, at(triton), [triton.url], (), quiet)
    git(folder, "commit", "--quiet", "--allow-empty", "--message", "mine")

    with pytest.raises(Problem, match="a commit made or chosen here") as caught:
        checkout.bring_to_commit(folder, at(triton), [triton.url], (), quiet)
    assert f"TRITON_SRC={folder}" in caught.value.remedy


def test_a_file_of_the_users_own_is_not_overwritten_when_the_pin_moves(
    triton: Repository, tmp_path: Path
) -> None:
    folder = tmp_path / "triton-tree"
    checkout.bring_to_commit(folder, at(triton), [triton.url], (), quiet)
    (folder / "new.txt").write_text("mine")
    (triton.work / "new.txt").write_text("theirs")

    after = triton.commit()

    for _ in range(2):  # the second call must not take the first one for an interruption
        with pytest.raises(Problem, match="has a file of yours where"):
            checkout.bring_to_commit(folder, after, [triton.url], (), quiet)
    assert (folder / "new.txt").read_text() == "mine"


def test_an_untouched_tree_follows_its_pin(triton: Repository, tmp_path: Path) -> None:
    folder = tmp_path / "triton-tree"
    checkout.bring_to_commit(folder, at(triton), [triton.url], (), quiet)
    (triton.work / "new.txt").touch()
    after = triton.commit()

    checkout.bring_to_commit(folder, after, [triton.url], (), quiet)

    assert checkout.head(folder) == after and (folder / "new.txt").exists()


def test_a_folder_that_is_no_repository_is_left_unchanged(llvm: Repository, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()

    with pytest.raises(Problem, match="exists and is no git repository"):
        bring_to_commit(tmp_path, at(llvm), llvm)


# ---------------------------------------------------------------- folders and archives


def test_a_given_folder_is_used_without_a_copy(tools: Any) -> None:
    source = sources.triton(tools, pins.Pins("", ()), "3.8.0", str(STANDIN / "llvm-project/../triton"), quiet)

    assert source == sources.Source(STANDIN / "triton", "", given=True)


def test_a_folder_that_is_no_source_tree_is_reported_with_its_missing_files(
    tools: Any, tmp_path: Path
) -> None:
    with pytest.raises(Problem, match=r"has no llvm/CMakeLists\.txt, no mlir/CMakeLists\.txt"):
        sources.llvm(tools, pins.Pins("", ()), sources.LlvmPin("5" * 40), str(tmp_path), quiet)


def test_an_archive_is_unpacked_once_with_its_commit(llvm: Repository, tools: Any, tmp_path: Path) -> None:
    packed = tmp_path / "llvm.tar.gz"
    git(llvm.work, "archive", "--prefix=llvm-project/", f"--output={packed}", "HEAD")
    known, pin = pins.Pins("", ()), sources.LlvmPin(at(llvm))

    first = sources.llvm(tools, known, pin, str(packed), quiet)
    (first.folder / "mine.txt").touch()
    second = sources.llvm(tools, known, pin, str(packed), quiet)

    assert first == second and first.commit == at(llvm) and (first.folder / "mine.txt").exists()


def test_a_broken_archive_leaves_no_files(tools: Any, tmp_path: Path) -> None:
    (tmp_path / "llvm.tar.gz").write_bytes(b"\x1f\x8b not all of it")

    with pytest.raises(Problem, match=r"llvm\.tar\.gz cannot be unpacked"):
        sources.take(tools, str(tmp_path / "llvm.tar.gz"), "llvm", quiet)
    assert not list(tools.root.glob("llvm-*"))


# ---------------------------------------------------------------- the toolchain folder


def test_two_commands_do_not_build_in_one_folder(tmp_path: Path) -> None:
    tools = toolchain.Toolchain(tmp_path)

    with tools.locked(), pytest.raises(Problem, match="another build is at work"), tools.locked():
        pass


def test_a_folder_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(Problem, match="cannot be written"), toolchain.Toolchain(tmp_path / "file/x").locked():
        pass


def test_too_little_disk_space_is_reported_with_the_required_amount(tmp_path: Path) -> None:
    with pytest.raises(Problem, match=r"GB are free in .*, 1000000000\.0 GB were needed for LLVM"):
        toolchain.require_room(tmp_path, 1e18, "LLVM")


@pytest.mark.parametrize(
    ("wrote", "cause"),
    [
        ("fatal: write error: No space left on device", "the disk is full"),
        ("fatal: unable to access 'https://x/': Could not resolve host: x", "was not reached"),
        ("fatal: unable to access 'https://x/': CONNECT tunnel failed, response 403", "was not reached"),
        ("error: cannot open '.git/FETCH_HEAD': Permission denied", "git may not write"),
    ],
)
def test_the_output_of_git_is_reduced_to_one_cause(wrote: str, cause: str) -> None:
    assert cause in str(checkout.diagnose(wrote, "https://x/"))
