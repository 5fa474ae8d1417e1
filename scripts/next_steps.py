"""Print what to type after `make run`: the commands as they are called in this environment.

Usage: python -m scripts.next_steps VENV
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

DEMO = "  make demo  # two minutes: a tour, which records the runs that README's commands name"
STEPS = (
    ("passes latest", "what each compiler pass did"),
    ("cases", "other cases to run by name"),
    ("--help", "every command, by the question that it answers"),
)


def next_steps(venv: Path) -> list[str]:
    """A line for each command, with the path of `tracing`; then the command that makes the path needless."""
    program = venv / "bin/tracing"
    called = shutil.which("tracing")
    if called is not None and Path(called).resolve() == program.resolve():
        return ["type next:", *(f"  tracing {step:<16}# {what}" for step, what in STEPS), DEMO]
    lines = [f"  {program} {step:<16}# {what}" for step, what in STEPS]
    activated = f"`source {venv}/bin/activate` makes `tracing` a command of this shell"
    return ["type next:", *lines, DEMO, activated]


if __name__ == "__main__":
    print("\n".join(next_steps(Path(sys.argv[1]))))
