"""Check out one commit: shallow, only the needed directories, never over local changes.

Each step can be repeated, so an interrupted checkout is completed by the same call. On disk are git's
objects, the file MOVING while files are being written, then the file PLACED with the commit that was written.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from scripts.pins import Problem

PLACED = "debug-triton-placed"  # in .git: the commit that this program checked out
MOVING = "debug-triton-moving"  # in .git: the commit whose files are being written
OFFLINE = "bring the sources yourself, as a folder or an archive: make TRITON_SRC=… LLVM_SRC=…"

ABSENT = re.compile(r"not our ref|unadvertised object|find remote ref|no such remote ref|bad object", re.I)
UNREACHED = re.compile(
    r"resolve (host|proxy)|failed to connect|connection (refused|timed out|reset)|tunnel|proxy|error: 40[37]",
    re.I,
)


class GitError(Problem):
    """A git command failed; holds its output."""

    def __init__(self, wrote: str) -> None:
        super().__init__(f"git failed: {last(wrote)}", OFFLINE)
        self.wrote = wrote


class Unreachable(Problem):
    """No server of the sources can be reached."""


def git(folder: Path, *arguments: str) -> str:
    # The messages are compared with the patterns above, and no user is there to type a password.
    environment = {**os.environ, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"}
    command = ("git", "-C", str(folder), *arguments)
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL
        )
    except FileNotFoundError:
        raise Problem("git was not found, one was needed to fetch sources", "make doctor") from None
    if done.returncode:
        raise GitError(done.stderr.strip() or f"status {done.returncode}")
    return done.stdout.strip()


def head(folder: Path) -> str:
    """The commit a folder is at; empty if it is no repository of its own, or has none yet."""
    if not (folder / ".git").exists():
        return ""
    try:
        return git(folder, "rev-parse", "--verify", "--quiet", "HEAD")
    except GitError:
        return ""


def changed(folder: Path) -> list[str]:
    """Tracked files that differ from their commit."""
    lines = git(folder, "status", "--porcelain", "--untracked-files=no").splitlines()
    return [line[2:].strip() for line in lines]


def diagnose(wrote: str, url: str) -> Problem:
    """The cause of a failure of git, with its remedy."""
    if "No space left on device" in wrote:
        return Problem("the disk is full", "free some; the same command continues")
    if "Permission denied" in wrote or "Read-only file system" in wrote:
        return Problem(f"git may not write: {last(wrote)}", "choose another folder: make TOOLCHAIN=…")
    if UNREACHED.search(wrote):
        return Unreachable(f"{url} was not reached: {last(wrote)}", f"set HTTPS_PROXY, or {OFFLINE}")
    return Problem(f"git could not fetch from {url}: {last(wrote)}", OFFLINE)


def last(wrote: str) -> str:
    return wrote.strip().splitlines()[-1].removeprefix("fatal: ")


def tagged(url: str, tag: str) -> str:
    """The commit a tag names at a repository. Raises Problem if there is none."""
    try:
        rows = git(Path(), "ls-remote", url, f"refs/tags/{tag}", f"refs/tags/{tag}^{{}}").splitlines()
    except GitError as error:
        raise diagnose(error.wrote, url) from None
    if not rows:
        raise Problem(f"{url} has no tag {tag}", "choose a version that was released: make TRITON=… triton")
    return rows[-1].split()[0]  # of an annotated tag the last row is the commit


def bring_to_commit(
    folder: Path, commit: str, urls: Sequence[str], parts: Sequence[str], say: Callable[[str], None]
) -> None:
    """Check out a commit in a folder; keep the folder, local changes included, if it is at this commit.

    urls  -- repositories to ask, in this order
    parts -- directories to write, in addition to the files at the top; none: all

    Raises Problem if no repository has the commit, or if the folder holds work that would be lost.
    """
    start(folder)
    if head(folder) == commit and not (folder / ".git" / MOVING).exists():
        keep(folder, commit, parts, say)
        return
    was_interrupted = interrupted(folder)
    if not was_interrupted:
        require_untouched(folder, commit)
    fetch(folder, commit, urls, say)
    (folder / ".git" / MOVING).write_text(commit, encoding="utf-8")
    check_out(folder, commit, parts, urls[0], force=was_interrupted)
    (folder / ".git" / PLACED).write_text(commit, encoding="utf-8")
    (folder / ".git" / MOVING).unlink()


def start(folder: Path) -> None:
    if folder.is_symlink():
        folder.unlink()  # to a tree of the user's, which nobody changes
    if folder.exists() and any(folder.iterdir()) and not (folder / ".git").exists():
        raise Problem(
            f"{folder} exists and is no git repository", "move it away, or choose another TOOLCHAIN=…"
        )
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / ".git" / "HEAD").exists():
        git(folder, "init", "--quiet")
    # A killed git leaves its locks. Only those are removed that no other process can hold now.
    for lock in (folder / ".git").glob("*.lock" if interrupted(folder) else "shallow.lock"):
        lock.unlink()


def interrupted(folder: Path) -> bool:
    """True if an earlier run of this program may have left half-written files."""
    return not head(folder) or (folder / ".git" / MOVING).exists()


def keep(folder: Path, commit: str, parts: Sequence[str], say: Callable[[str], None]) -> None:
    sparse = (folder / ".git/info/sparse-checkout").exists()
    if parts and sparse and set(parts) - set(git(folder, "sparse-checkout", "list").split()):
        git(folder, "sparse-checkout", "set", *parts)
    edited = changed(folder)
    note = f", with {len(edited)} file{'s' if len(edited) > 1 else ''} changed here" if edited else ""
    say(f"{folder} is at {commit[:12]}{note}: kept")


def require_untouched(folder: Path, commit: str) -> None:
    current = head(folder)
    placed = folder / ".git" / PLACED
    remedy = f"to build this folder name it, TRITON_SRC={folder} or LLVM_SRC={folder}; or move it away"
    if edited := changed(folder):
        names = ", ".join(edited[:3]) + (", …" if len(edited) > 3 else "")
        raise Problem(
            f"{folder} is at {current[:12]} with changes ({names}); {commit[:12]} was needed", remedy
        )
    if not placed.exists() or placed.read_text(encoding="utf-8") != current:
        raise Problem(
            f"{folder} is at {current[:12]}, a commit made or chosen here; {commit[:12]} was needed", remedy
        )


def fetch(folder: Path, commit: str, urls: Sequence[str], say: Callable[[str], None]) -> None:
    if has(folder, commit):
        return
    for index, url in enumerate(urls):
        remote = "origin" if index == 0 else f"fork{index}"
        git(folder, "config", f"remote.{remote}.url", url)
        say(f"fetching {commit[:12]} from {url}")
        try:
            # The contents of files come at check-out, and only of the directories that are wanted.
            git(folder, "fetch", "--depth=1", "--no-tags", "--filter=blob:none", remote, commit)
            return
        except GitError as error:
            if not ABSENT.search(error.wrote):
                raise diagnose(error.wrote, url) from None
    remedy = "was the pin mistyped, or its branch deleted? check scripts/pins.toml and Triton's cmake folder"
    raise Problem(f"commit {commit} is not in {' nor in '.join(urls)}", remedy)


def has(folder: Path, commit: str) -> bool:
    try:
        git(folder, "cat-file", "-e", f"{commit}^{{commit}}")
    except GitError:
        return False
    return True


def check_out(folder: Path, commit: str, parts: Sequence[str], url: str, *, force: bool) -> None:
    """Write a commit's files; force: overwrite the files of an interrupted checkout."""
    how = ("--quiet", "--detach", *(("--force",) if force else ()))
    try:
        if parts:
            git(folder, "sparse-checkout", "init", "--cone")
            git(folder, "sparse-checkout", "set", *parts)
        git(folder, "-c", "advice.detachedHead=false", "checkout", *how, commit)
    except GitError as error:
        if "would be overwritten" in error.wrote:  # git compares first, and writes nothing if nothing changed
            (folder / ".git" / MOVING).unlink()
            raise Problem(
                f"{folder} has a file of yours where {commit[:12]} has one", "move it away"
            ) from None
        raise diagnose(error.wrote, url) from None
