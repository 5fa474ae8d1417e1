"""Download archives: resume after an interruption, verify the SHA-256, unpack completely or not at all."""

from __future__ import annotations

import hashlib
import os
import shutil
import tarfile
import urllib.error
import urllib.request
from pathlib import Path

from scripts.pins import Problem

PIECE = 1 << 20


def sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            digest.update(piece)
    return digest.hexdigest()


def download(url: str, path: Path, expected: str) -> str:
    """Download `url` to `path`, resuming a partial download, and return the file's SHA-256.

    expected -- the required SHA-256; empty: any

    Raises Problem if the server cannot be reached, or if the file has another hash (then it is deleted).
    """
    part = path.with_name(path.name + ".part")
    if not path.exists():
        try:
            append(url, part)
        except OSError as error:  # URLError is one, too
            raise unreachable(url, error) from None
        part.replace(path)
    actual = sha256(path)
    if expected and actual != expected:
        path.unlink()
        remedy = "the same command fetches it anew; if it happens twice, a proxy changes it"
        raise Problem(f"{url} has sha256 {actual}, {expected} was needed", remedy)
    return actual


def append(url: str, part: Path) -> None:
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        answer = urllib.request.urlopen(request, timeout=60)
    except urllib.error.HTTPError as error:
        if have and error.code == 416:  # the server has no bytes after those on disk: the archive is complete
            return
        raise
    # A server that knows no ranges answers 200 with the whole file.
    with answer, part.open("ab" if have and answer.status == 206 else "wb") as file:
        shutil.copyfileobj(answer, file, PIECE)


def unreachable(url: str, error: OSError) -> Problem:
    if error.errno == 28:
        return Problem(f"the disk is full while fetching {url}", "free some; the same command continues")
    if isinstance(error, urllib.error.HTTPError) and error.code not in (403, 407):
        return Problem(f"{url} was needed, the server answered {error.code} {error.reason}", "LLVM=source")
    proxy = os.environ.get("https_proxy") or os.environ.get("HTTPS_PROXY") or "no proxy is set"
    reason = getattr(error, "reason", error)
    remedy = "set HTTPS_PROXY, or bring sources or archives yourself: make TRITON_SRC=… LLVM_SRC=…"
    return Problem(f"{url} was not reached: {reason} ({proxy})", remedy)


def unpack(archive: Path, folder: Path) -> str:
    """Unpack an archive of one top folder as `folder`; returns the commit that git wrote into it, or "".

    `folder` exists afterwards only if the archive was complete. Raises Problem if it is no archive.
    """
    part = folder.with_name(folder.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        with tarfile.open(archive) as tar:
            commit = tar.pax_headers.get("comment", "")  # `git archive` writes the commit into the header
            extract(tar, part)
    except (tarfile.TarError, EOFError, OSError) as error:
        shutil.rmtree(part, ignore_errors=True)
        remedy = "name a folder or a whole tar archive (.tar.gz, .tar.xz), with room to unpack it"
        raise Problem(f"{archive} cannot be unpacked: {error}", remedy) from None
    tops = list(part.iterdir())
    top = tops[0] if len(tops) == 1 and tops[0].is_dir() else part
    top.replace(folder)
    shutil.rmtree(part, ignore_errors=True)
    return commit if len(commit) == 40 else ""


def extract(tar: tarfile.TarFile, folder: Path) -> None:
    if hasattr(tarfile, "data_filter"):
        tar.extractall(folder, filter="data")
        return
    # Pythons without that filter: refuse members that would leave the folder.
    for member in tar.getmembers():
        inside = (folder / member.name).resolve().is_relative_to(folder.resolve())
        if not inside or member.isdev():
            raise tarfile.TarError(f"{member.name} leads out of the archive")
    tar.extractall(folder)
