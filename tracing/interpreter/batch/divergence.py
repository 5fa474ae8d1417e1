"""Why the programs of a batch cannot be executed together any further."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

T = TypeVar("T")


class Diverged(Exception):
    """A value that decides about Python's control flow differs between programs."""

    def __init__(self, values: npt.NDArray[np.generic]) -> None:
        """values -- [programs]"""
        super().__init__("programs take different branches")
        self.values = values

    def groups(self, programs: Sequence[T]) -> Iterator[list[T]]:
        """The programs with each value, in the order of their first program."""
        byte_strings = [value.tobytes() for value in self.values]
        for value in dict.fromkeys(byte_strings):
            yield [one for one, own in zip(programs, byte_strings, strict=True) if own == value]


class TooLarge(Exception):
    """An array needs more bytes than a batch may have: fewer programs are executed together."""

    def __init__(self, needed: int, allowed: int) -> None:
        super().__init__(f"{needed} bytes in one array")
        self.needed, self.allowed = needed, allowed


class OneAtATime(Exception):
    """The programs of a launch depend on one another, or do something that only one program can do."""
