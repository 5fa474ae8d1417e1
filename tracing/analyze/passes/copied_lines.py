"""Map lines of a user's kernel that torch.compile copied into a generated file back to the user's file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tracing.analyze.passes.locations import Frame, Located
from tracing.model import Compilation, CopiedFunction, Kernel
from tracing.store import Run


def copied_functions(run: Run, compilation: Compilation) -> tuple[CopiedFunction, ...]:
    """The functions of a compilation that are copies of the user's."""
    kernels = (one for one in run.records(Kernel) if one.hash == compilation.hash)
    return next((one.copied for one in kernels if one.copied), ())


def of_user(located: Sequence[Located], copied: Sequence[CopiedFunction]) -> Sequence[Located]:
    """The same operations or instructions, with the user's lines instead of those of copies."""
    if not copied:
        return located
    return [
        replace(one, stacks=tuple(tuple(_of_user(frame, copied) for frame in stack) for stack in one.stacks))
        for one in located
    ]


def _of_user(frame: Frame, copied: Sequence[CopiedFunction]) -> Frame:
    known = (one.of_user(frame.file, frame.line) for one in copied)
    return next((Frame(*one) for one in known if one is not None), frame)
