"""The exception for user errors, with a problem and a remedy; and the message of any other exception."""

from __future__ import annotations

from pathlib import Path


class Problem(Exception):
    """Invalid input or a missing requirement; printed without a traceback, exit status 2.

    problem -- what was found and what was needed, lower case, with the file or launch
    remedy  -- the most frequent solution, a command if possible
    """

    def __init__(self, problem: str, remedy: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.remedy = remedy


def message(error: BaseException) -> str:
    """The message of any exception, as text that can be encoded; `__str__` of a user's own may raise."""
    try:
        text = str(error)
    except Exception as other:
        return f"its message cannot be had: {type(other).__name__}"
    return text.encode(errors="backslashreplace").decode()


def summary(text: str) -> str:
    """The first line of a message, with the following lines while it ends with a colon."""
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    count = next((n for n, line in enumerate(lines, 1) if not line.endswith(":")), len(lines))
    return " ".join(lines[:count])


def page(name: str) -> str:
    """The path of a page of the documentation, `docs/case.md`: from the working directory if it is there."""
    file = name.partition("#")[0]
    checkout = Path(__file__).parents[1]
    return name if Path(file).exists() or not (checkout / file).exists() else str(checkout / name)
