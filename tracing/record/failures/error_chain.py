"""An exception with its causes, and the frames of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from traceback import walk_tb
from types import FrameType
from typing import TypeVar

from tracing.program.user_code import is_users

E = TypeVar("E", bound=BaseException)


@dataclass(frozen=True)
class ErrorChain:
    """An exception that ended a case."""

    error: BaseException
    case: Path  # the file of the case

    @cached_property
    def errors(self) -> list[BaseException]:
        """The exception and its causes, the first cause last, those that `raise ... from None` hides too."""
        errors: list[BaseException] = []
        one: BaseException | None = self.error
        while one is not None and one not in errors:
            errors.append(one)
            one = one.__cause__ or one.__context__
        return errors

    @cached_property
    def frames(self) -> list[tuple[FrameType, int]]:
        """The frames that raised or passed on these exceptions, with lines, the innermost of each last."""
        return [frame for one in self.errors for frame in walk_tb(one.__traceback__)]

    def last(self, kind: type[E]) -> E | None:
        """The exception of a kind that was raised first."""
        return next((one for one in reversed(self.errors) if isinstance(one, kind)), None)

    def named(self, name: str) -> BaseException | None:
        """The exception of a class that was raised first; the class by its name."""
        return next((one for one in reversed(self.errors) if type(one).__name__ == name), None)

    def innermost(self) -> Iterator[FrameType]:
        """The frames, the innermost first."""
        return (frame for frame, _ in reversed(self.frames))

    @cached_property
    def line(self) -> str:
        """The innermost line of the user's code, `case.py:12`; empty: none is known."""
        for wanted in (self.case.__eq__, lambda path: is_users(str(path))):
            for frame, line in reversed(self.frames):
                path = Path(frame.f_code.co_filename)
                # a compiled function has a frame of its own, at its first line
                if wanted(path) and frame.f_code.co_firstlineno != line:
                    return f"{path.name}:{line}"
        return ""
