"""Names of torch's own files and functions, as frames and command lines show them; imports no torch.

`tracing attach` reads command lines of other processes, and must not wait for an import of torch.
"""

from __future__ import annotations

import re
from pathlib import Path

from tracing.upstream.contract import require

# The files of the two frames in which torch calls a dispatch mode, the caller first: torch wraps it by
# torch._disable_dynamo.
MODE_WRAPPER_FILES = ("torch/_compile.py", "torch/_dynamo/eval_frame.py")
# The files of a frame in which torch calls a mode, or is called by one.
MODE_FILES = (*MODE_WRAPPER_FILES, "torch/_ops.py")
COMPILE_WORKER = "torch/_inductor/compile_worker/__main__.py"  # the pool of Inductor's compile workers
_RESUMED = re.compile(r"torch_dynamo_resume_in_(.+)_at_\d+")


def function_of(name: str) -> str:
    """The user's function of a code object: "forward" for "torch_dynamo_resume_in_forward_at_12"."""
    resumed = _RESUMED.fullmatch(name)
    return resumed[1] if resumed else name


def contract() -> None:
    """Raise Broken or another error if torch has renamed what this file names."""
    import torch
    from torch._dynamo.resume_execution import TORCH_DYNAMO_RESUME_IN_PREFIX

    for name in (*MODE_FILES, COMPILE_WORKER):
        require((Path(torch.__path__[0]).parent / name).is_file(), f"the file {name}")
    resumed = f"{TORCH_DYNAMO_RESUME_IN_PREFIX}_forward_at_12"
    require(function_of(resumed) == "forward", "names of functions that Dynamo resumes")
