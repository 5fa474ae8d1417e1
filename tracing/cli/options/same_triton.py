"""Refuse to compile for a run that another Triton recorded, because its passes and its LLVM differ."""

from __future__ import annotations

from tracing import store
from tracing.environment import installed
from tracing.errors import Problem


def require_same_triton(run: store.Run, action: str, why: str = "") -> None:
    """Raise Problem unless the installed Triton is the version that recorded the run.

    action -- what to do with that version, for example "bisect it"
    why    -- what the run lacks, so that Triton is needed; default: nothing
    """
    recorded, here = run.info.environment.triton, installed("triton")
    if recorded == here:
        return
    needed = f"; {why}" if why else ""
    raise Problem(
        f"{run.path} was recorded with Triton {recorded}, and this is {here}{needed}",
        f"{action} with Triton {recorded}, or record it anew here",
    )
