"""Shared by all scripts: output lines prefixed with the script's name, two-line errors, and exit statuses."""

from __future__ import annotations

import sys
from collections.abc import Callable

from scripts.pins import Problem


def speaker(name: str) -> Callable[[str], None]:
    def say(message: str) -> None:
        print(f"{name}: {message}", flush=True)

    return say


def run(name: str, work: Callable[[], object]) -> int:
    """Run a script's main function; its exit status is 0, or 2 with the reason of a failure printed."""
    try:
        work()
    except Problem as problem:
        print(f"{name}: {problem}\n  {problem.remedy}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"{name}: interrupted; the same command continues from here", file=sys.stderr)
        return 2
    return 0
