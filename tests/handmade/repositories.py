"""Repositories on disk of the stand-ins for LLVM and Triton (tests/data/standin), and pins that name them."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from commands import DATA

STANDIN = DATA / "standin"
AUTHOR = {
    f"GIT_{who}_{what}": "test@localhost" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
}


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    environment = {**os.environ, **AUTHOR, "GIT_CONFIG_GLOBAL": os.devnull}
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.strip()


@dataclass(frozen=True)
class Repository:
    work: Path  # the work tree
    bare: Path  # the bare repository that is fetched from

    @property
    def url(self) -> str:
        return f"file://{self.bare}"

    def commit(self, message: str = "change") -> str:
        """Commits all files and publishes them; returns the commit."""
        git(self.work, "add", "--all", "--force")
        git(self.work, "commit", "--quiet", "--allow-empty", "--message", message)
        git(self.work, "push", "--quiet", "--force", "--all", str(self.bare))
        return git(self.work, "rev-parse", "HEAD")

    def tag(self, name: str) -> None:
        git(self.work, "tag", "--force", "--annotate", name, "--message", name)
        git(self.work, "push", "--quiet", "--force", str(self.bare), f"refs/tags/{name}")


def publish(folder: Path, tree: Path) -> Repository:
    """A repository of two commits; the second one holds the files of a tree."""
    repository = Repository(folder / "work", folder / "served.git")
    repository.work.mkdir(parents=True)
    git(repository.work, "init", "--quiet", "--initial-branch=main")
    git(folder, "init", "--quiet", "--bare", "--initial-branch=main", "served.git")
    for setting in ("allowAnySHA1InWant", "allowFilter"):  # like the real servers
        git(repository.bare, "config", f"uploadpack.{setting}", "true")
    repository.commit("earlier")
    shutil.copytree(tree, repository.work, dirs_exist_ok=True)
    repository.commit("the tree")
    return repository


def name_llvm(triton: Path, commit: str) -> None:
    """Makes a tree of Triton name its LLVM, as upstream did up to March 2026."""
    (triton / "cmake").mkdir(exist_ok=True)
    (triton / "cmake/llvm-hash.txt").write_text(commit + "\n")


PINS = """
[default]
torch = "2.13.0"

[source]
triton = "{triton}"
llvm = ["{llvm}", "{fork}"]

[[release]]
triton = "3.8.0"
llvm = "23"

[[pair]]
torch = "2.13.0"
triton = "3.8.0"
python = ["3.10", "3.99"]
"""


def write_pins(path: Path, triton: str, llvm: str, fork: str) -> Path:
    path.write_text(PINS.format(triton=triton, llvm=llvm, fork=fork))
    return path
