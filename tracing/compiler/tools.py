"""Find LLVM's and Triton's command line tools on this machine."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import triton

from tracing.environment import installed_tools
from tracing.errors import Problem

_PACKAGE = Path(triton.__file__).parent


def filecheck_path() -> Path:
    """The FileCheck that Triton's wheel holds; raises Problem where there is none."""
    path = _PACKAGE / "FileCheck"
    if not path.exists():
        raise Problem(f"{_PACKAGE} holds no FileCheck", "the wheels of Triton 3.6 to 3.9 do: `make venv`")
    return path


def filecheck(checks: str, text: str, arguments: Sequence[str] = ()) -> str:
    """FileCheck's complaint about a text; empty if the text matches.

    checks    -- a file with CHECK lines
    text      -- the checked text
    arguments -- of FileCheck, "--implicit-check-not=tt.load"
    """
    with tempfile.NamedTemporaryFile("w", prefix="tracing-", suffix=".mlir") as file:
        file.write(checks)
        file.flush()
        command = [str(filecheck_path()), file.name, "--enable-var-scope", "--dump-input=never", *arguments]
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    return done.stderr.replace(file.name, "test") if done.returncode else ""


def triton_opt() -> str | None:
    """A real triton-opt: the one in TRITON_OPT, or that of the build of the installed Triton.

    Raises Problem if TRITON_OPT does not name an executable.
    """
    named = installed_tools.triton_opt()
    if named and not Path(named).is_file():
        raise Problem(
            f"TRITON_OPT is {named}, and there is no such file", "unset it, or build Triton: `make triton`"
        )
    # an editable install is <checkout>/python/triton, and its build <checkout>/build/<platform>
    built = sorted(_PACKAGE.parent.parent.glob("build/*/bin/triton-opt"))
    return named or (str(built[0]) if built else None)
