"""Options that name an output; one that cannot be written is refused before any work."""

from __future__ import annotations

import os
from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from tracing.errors import Problem


def writable_file(path: Path | None) -> Path | None:
    """The path of a file to write; raises Problem if it is a folder, or its folder is missing or refuses."""
    if path is None:
        return None
    folder = path.absolute().parent
    if path.is_dir():
        raise Problem(f"{path} is a folder", f"name a file, as {path / 'NAME'}")
    if folder.exists() and not folder.is_dir():
        raise Problem(f"{path} cannot be written: {path.parent} is no folder", "name a file in a folder")
    if not folder.exists():
        raise Problem(
            f"{path} cannot be written: there is no folder {path.parent}",
            f"create it, `mkdir -p {quote(str(path.parent))}`, or name a file in another folder",
        )
    _require_permission(path if path.exists() else folder, path)
    return path


def writable_folder(path: Path | None) -> Path | None:
    """The path of a folder to write files into, which need not exist; raises Problem if it cannot be made."""
    if path is None:
        return None
    existing = next(one for one in (path.absolute(), *path.absolute().parents) if one.exists())
    if not existing.is_dir():
        raise Problem(f"{existing} is a file; several files are written", "name a folder")
    _require_permission(existing, path)
    return path


def chosen_output(path: Path, option: str) -> Path:
    """The path of an output that the user has not named; raises Problem if it cannot be written.

    option -- that names another one: "--output DIR"
    """
    existing = next(one for one in (path.absolute(), *path.absolute().parents) if one.exists())
    _require_permission(existing, path, f"name another one with `{option}`")
    return path


def _require_permission(
    existing: Path,
    path: Path,
    remedy: str = "name another one, or ask its owner, whom `ls -ld` shows, for permission",
) -> None:
    if not os.access(existing, os.W_OK):
        what = "folder" if existing.is_dir() else "file"
        raise Problem(f"{path} cannot be written: you may not write the {what} {existing}", remedy)


OutputFileOption = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", callback=writable_file, help="The file to write."),
]
OutputFolderOption = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="DIR", callback=writable_folder, help="The folder to write the files into."
    ),
]
