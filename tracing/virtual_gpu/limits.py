"""Errors of what a program needs a GPU for: not a fault of the program, and of no kernel."""

from __future__ import annotations

from tracing.errors import Problem


class BeyondVirtualGpu(RuntimeError):
    """Raised in a program as torch raises errors of CUDA; `remedy` is what helps."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(f"{problem}: {remedy}")
        self.remedy = remedy


def remedy_of(error: BaseException | None) -> str:
    """What helps against an error that is, or follows from, a limit of the virtual GPU or the interpreter.

    Empty for any other error.
    """
    seen = set[int]()
    while error is not None and id(error) not in seen:
        if isinstance(error, (BeyondVirtualGpu, Problem)):
            return error.remedy
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return ""
