"""Runs on an object store or a web server, named by address: s3://bucket/runs/silu-20261120-231502.

fsspec, a dependency of torch, reads the addresses, with a package for each scheme: s3fs, gcsfs,
aiohttp. DuckDB reads through the same file systems. DuckDB's own httpfs is not in its wheel: it would
be downloaded at first use, which fails for jobs without internet access.
"""

from __future__ import annotations

import importlib
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TypeAlias

from tracing.errors import Problem
from tracing.store.reader import Run

UNKNOWN = datetime.fromtimestamp(0, timezone.utc)  # for files without a modification time
FileSystem: TypeAlias = Any  # fsspec.AbstractFileSystem; fsspec has no types


def is_remote(name: str) -> bool:
    """True if a name is an address."""
    return "://" in name


def filesystem(address: str) -> FileSystem:
    """The file system of an address; raises Problem if nothing installed can read it."""
    kind = address.partition("://")[0]
    try:
        fsspec = importlib.import_module("fsspec")
        files = fsspec.filesystem(kind, skip_instance_cache=True)
    except ImportError as error:
        raise Problem(
            f"{kind}:// cannot be read: {error}",
            "install what reads it: `pip install s3fs` for s3://, `gcsfs` for gs://, `aiohttp` for https://",
        ) from None
    except ValueError:
        raise Problem(
            f"there is no kind of address {kind}://", "s3://, gs:// and https:// are known"
        ) from None
    if type(files).modified is fsspec.AbstractFileSystem.modified:  # not implemented: for https://
        files.modified = lambda path: UNKNOWN  # DuckDB asks, and would give up
    return files


def holds(folder: str, name: str) -> bool:
    """True if a folder, local or remote, has a file of this name; raises Problem if it cannot be accessed."""
    if not is_remote(folder):
        return Path(folder, name).is_file()
    files = filesystem(folder)
    try:
        return bool(files.exists(inside(folder, name)))
    except Exception as error:  # each kind of store has exceptions of its own
        raise _unreadable(folder, error) from None


def inside(folder: str, name: str) -> str:
    """The address, or the path, of a file in a folder."""
    return f"{folder.rstrip('/')}/{name}"


def fetched(address: str, into: Path) -> Run:
    """Copy a run without its blobs into the folder `into`; it lacks only IR and tensors."""
    files = filesystem(address)
    folder = into / address.rstrip("/").rpartition("/")[2]
    folder.mkdir()
    try:
        names = [one.rstrip("/").rpartition("/")[2] for one in files.ls(address, detail=False)]
        wanted = [name for name in names if name == "run.json" or ".ndjson" in name]
        files.get([inside(address, name) for name in wanted], [str(folder / name) for name in wanted])
    except Exception as error:  # as above
        raise _unreadable(address, error) from None
    return Run(folder)


def _unreadable(address: str, error: Exception) -> Problem:
    lines = str(error).splitlines()
    return Problem(
        f"{address} cannot be read: {type(error).__name__}{f': {lines[0]}' if lines else ''}",
        "check the address, and that this machine may read it (s3:// takes the credentials of `aws s3 ls`,"
        " gs:// those of `gcloud auth application-default login`)",
    )
