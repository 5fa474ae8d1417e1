"""The words of a recorded program, as a command that is proposed repeats them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

_MISPLACED = "--judge"  # an option of `tracing run`, which follows a case, and precedes a program


def repeated_words(program: Sequence[str], folder: str) -> list[str]:
    """The words without a `--judge` that was meant for `tracing`, as the program's file does not name it.

    folder -- in which the program ran
    """
    if _MISPLACED in program[1:] and is_misplaced(_MISPLACED, Path(folder, program[0])):
        return [program[0], *(word for word in program[1:] if word != _MISPLACED)]
    return [*program]


def is_misplaced(option: str, program: Path) -> bool:
    """True if the file of a program does not name an option; another module that it imports may."""
    return program.is_file() and option not in program.read_text(errors="replace")
