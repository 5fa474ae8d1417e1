"""Records which environment variables a case reads, because its results may depend on them.

A read is recorded if the user's own code makes it: `os.environ[...]`, `os.environ.get`, `in` and `os.getenv`,
in the file of the case or in a module that it imports from outside of the installed packages. Code that reads
all variables at once, such as `dict(os.environ)`, is ignored.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from types import CodeType, FrameType
from typing import Any

from tracing import environment
from tracing.model import ReadVariable
from tracing.model.redaction import redacted_value
from tracing.program.user_code import is_users
from tracing.store import RunWriter
from tracing.upstream.patch import Method, patched

# modules between a reader and a variable
_BETWEEN = ("os", "collections.abc", __name__)


class Reads:
    """While entered, every variable that the user's code reads is noted once, with its first value."""

    def __init__(self) -> None:
        self._variables: dict[str, ReadVariable] = {}
        self._whole: set[tuple[CodeType, int]] = set()  # instructions that iterate over all variables
        self._writer: RunWriter | None = None
        self._exit = ExitStack()

    def into(self, writer: RunWriter) -> None:
        """Write the reads so far, and all later ones, into a run."""
        writer.extend(list(self._variables.values()))
        self._writer = writer

    def __enter__(self) -> Reads:
        owner = type(environment.variables())
        with ExitStack() as stack:
            stack.enter_context(patched(owner, "__getitem__", self._around_get))
            stack.enter_context(patched(owner, "__iter__", self._around_iteration))
            self._exit = stack.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        self._exit.close()

    def _around_get(self, original: Method) -> Method:
        def get(variables: Any, name: Any) -> Any:
            try:
                value = original(variables, name)
            except KeyError:
                self._read(name, None)
                raise
            self._read(name, value)
            return value

        return get

    def _around_iteration(self, original: Method) -> Method:
        def iterate(variables: Any) -> Iterator[Any]:
            if (reader := _reader()) is not None:
                self._whole.add((reader.f_code, reader.f_lasti))
            return original(variables)  # type: ignore[no-any-return]

        return iterate

    def _read(self, name: object, value: str | None) -> None:
        if not isinstance(name, str) or name in self._variables:
            return
        reader = _reader()
        if reader is None or (reader.f_code, reader.f_lasti) in self._whole:
            return
        self._variables[name] = recorded_variable(name, value)
        if self._writer is not None:
            self._writer.append(self._variables[name])


def recorded_variable(name: str, value: str | None) -> ReadVariable:
    """The record of a variable, without its value if that is secret."""
    redacted = value is not None and redacted_value(name, value) != value
    return ReadVariable(name, None if redacted else value, redacted)


def _reader() -> FrameType | None:
    # the frame of the user's code that reads; None: other code does
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_globals.get("__name__") in _BETWEEN:
        frame = frame.f_back
    return frame if frame is not None and is_users(frame.f_code.co_filename) else None
