"""Which files of a recorded program are not the user's own."""

from __future__ import annotations

import re
from pathlib import PurePath

_FOLDERS = ("site-packages", "dist-packages", "torchinductor")  # beginnings of their names


def is_library(file: str) -> bool:
    """True if the path of a Python file is that of installed or generated code, or of no file."""
    stdlib = re.search(r"/lib(64)?/python3\.\d+t?/", file) is not None
    return stdlib or file.startswith("<") or any(one.startswith(_FOLDERS) for one in PurePath(file).parts)
