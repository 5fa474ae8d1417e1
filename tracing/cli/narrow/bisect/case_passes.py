"""The end of `tracing bisect CASE` on a GPU: search the compiler passes of the accused kernel.

Two commands run in processes of their own, because this process has opened the GPU: `tracing run` records
the kernel with its inputs, `tracing bisect RUN` compares its builds with Triton's interpreter.
"""

from __future__ import annotations

import json
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracing.environment import module_command


@dataclass(frozen=True, slots=True)
class PassesOfKernel:
    """The result of searching a kernel's passes."""

    commands: tuple[str, ...]  # the commands that were executed
    answer: dict[str, Any] | None  # the object of `tracing bisect RUN --json`, or None
    failure: str  # the reason for None

    @property
    def accused(self) -> str:
        """The pass that makes the kernel's result bad; empty: none does, or it is unknown."""
        return str(((self.answer or {}).get("accused") or {}).get("name") or "")


def passes_of_kernel(words: list[str], kernel: str, runs: Path) -> PassesOfKernel:
    """Record one kernel of a case, and search its passes.

    words  -- case, target, seed
    kernel -- name
    """
    case, target, seed = words
    record = ["run", case, "--target", target, "--seed", seed, "--kernel", kernel, "--keep-inputs"]
    recorded = _answer([*record, "--no-referee", "--runs", str(runs)])
    if "run" not in recorded[1]:
        return PassesOfKernel((recorded[0],), None, recorded[2])
    command, answer, failure = _answer(["bisect", recorded[1]["run"], "--kernel", kernel])
    return PassesOfKernel((recorded[0], command), answer or None, failure)


def _answer(words: list[str]) -> tuple[str, dict[str, Any], str]:
    done = subprocess.run(
        module_command("tracing", *words, "--json"), capture_output=True, text=True, check=False
    )
    lines = done.stderr.strip().splitlines()
    failure = next((line for line in lines if line.startswith("tracing:")), lines[-1] if lines else "")
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        answer = {}
    return shlex.join(["tracing", *words]), answer, failure
