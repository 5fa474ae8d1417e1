"""Name the existing files that a misspelt path may mean."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path


def near_files(path: Path) -> list[str]:
    """Existing paths that differ from `path` by misspelt folders and a misspelt name, nearest first.

    Only names that end like the path's are considered: `train.py` for `trian.py`, not `train.log`.
    """
    folders = [path.parent] if path.parent.is_dir() else map(Path, near_files(path.parent))
    return [str(file) for folder in folders for file in _alike(folder, path.name)]


def _alike(folder: Path, name: str) -> list[Path]:
    try:
        names = [one.name for one in folder.iterdir() if one.suffix == Path(name).suffix]
    except OSError:  # a folder of another user
        return []
    return [folder / one for one in get_close_matches(name, names, n=3, cutoff=0.6)]
