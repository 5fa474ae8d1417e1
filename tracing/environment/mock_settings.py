"""The settings of backends that check graphs: variables that begin with MOCK_."""

from __future__ import annotations

import os
from dataclasses import dataclass

from tracing.errors import Problem


@dataclass(frozen=True, slots=True)
class MockSettings:
    """The settings of `mock_backend` and `aot_mock_backend`, from variables that begin with MOCK_."""

    strict: bool = True  # a violation is an error
    alignment: int = 1  # elements, of every size
    max_memory: int = 16 << 30  # bytes of one tensor


def mock_settings() -> MockSettings:
    """The settings of this process; raises Problem for an invalid number."""
    default = MockSettings()
    return MockSettings(
        bool(_number("MOCK_STRICT", int(default.strict), (0, 1))),
        _number("MOCK_ALIGNMENT", default.alignment, (1, None)),
        _number("MOCK_MAX_MEMORY", default.max_memory, (0, None)),
    )


def _number(name: str, default: int, within: tuple[int, int | None]) -> int:
    text = os.environ.get(name) or str(default)
    least, most = within
    if text.isdecimal() and int(text) >= least and (most is None or int(text) <= most):
        return int(text)
    needed = f"a number of at least {least}" if most is None else f"{least} or {most}"
    raise Problem(f"{name} is {text!r}; it must be {needed}", f"unset {name}, or correct it")
