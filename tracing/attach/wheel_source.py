"""The message that the C++ source of Triton's wheel is missing, and how to get it.

Standard library only: `make vscode` and `tracing debug` say it at their start, before any C++ stop.
"""

from __future__ import annotations

MISSING = (
    "missing: the C++ source of Triton's wheel, so a C++ stop shows no code: `make venv SOURCE=1` fetches "
    "it, or without a network takes an archive that was downloaded elsewhere: TRITON_SRC=FILE"
)
