"""Errors of operators that a program defines by torch.library."""

from __future__ import annotations

from pathlib import Path
from traceback import walk_tb

import torch

_LIBRARY = Path(torch.__file__).parent / "_library"  # what registers them, and calls what was registered


def files_of_operator(error: BaseException) -> list[str]:
    """The files of the frames that passed on an error, from torch.library's own on; [] if there is none."""
    files = [frame.f_code.co_filename for frame, _ in walk_tb(error.__traceback__)]
    inside = [n for n, file in enumerate(files) if Path(file).parent == _LIBRARY]
    return files[inside[0] :] if inside else []
