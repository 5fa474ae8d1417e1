"""`tracing replay --check-memory`: the memory evidence of one launch that the interpreter executes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import msgspec

from tracing import store
from tracing.analyze.memory.evidence import evidence_sentence
from tracing.analyze.runs.recording_commands import is_virtual
from tracing.cli.answers.kept_answer import printed_answer
from tracing.cli.app import err, out, silent
from tracing.cli.processes.new_recording import record_anew
from tracing.compiler.child import in_child
from tracing.errors import Problem
from tracing.model import MemoryEvidence
from tracing.report.run_json import evidence_json
from tracing.store.recorded_launch import RecordedLaunch

_SECONDS = 600.0


def print_memory_check(launch: RecordedLaunch, runs: Path, *, as_json: bool) -> int:
    """Check the memory accesses of one launch, print the evidence, and return the exit status."""
    given = launch
    if launch.missing:
        given = record_anew(launch, runs).launch
        err.print(
            f"the launch's inputs were not kept; it was recorded anew, with them, into {given.run.path}"
        )
    check = _checked(given)
    status = 1 if check["evidence"] else 2 if check["undecided"] else 0
    evidence = msgspec.convert(check["evidence"], list[MemoryEvidence])
    with printed_answer("replay --check-memory", launch.run) as kept, silent() if as_json else nullcontext():
        _print(launch, evidence, check)
        kept.status, kept.rank = status, store.rank_of(launch.process)
        kept.launch, kept.kernel = launch.launch.index, launch.launch.kernel_name
    if as_json:
        answer = {
            "run": str(launch.run.path), "launch": launch.launch.index, "status": status,
            "memory_evidence": [evidence_json(one) for one in evidence],
            "undecided": check["undecided"] or None, "not_covered": check["not_covered"],
        }  # fmt: skip
        print(json.dumps(answer, indent=2))
    return status


def _print(launch: RecordedLaunch, evidence: Sequence[MemoryEvidence], check: dict[str, Any]) -> None:
    of_it = f"launch #{launch.launch.index} {launch.launch.kernel_name}"
    for one in evidence:
        out.print(f"{of_it}: {evidence_sentence(one)}")
    if check["undecided"]:
        out.print(f"{of_it}: not decided whether programs race: {check['undecided']}")
    elif not evidence:
        nothing = (
            "atomics order each program that reads what another program writes, or leaves another value there"
            if check["atomics"]
            else "no program reads memory that another program writes, or leaves another value there"
        )
        out.print(f"{of_it}: every access is within the arguments, and {nothing}")
    out.print(f"not covered: {check['not_covered']}")
    if not is_virtual(launch.run.info.environment) and shutil.which("compute-sanitizer"):
        out.print("    next      compute-sanitizer python repro.py, of `tracing repro`")


def _checked(launch: RecordedLaunch) -> dict[str, Any]:
    # the fields of tracing.replay.memory_check.MemoryCheck
    def call() -> dict[str, Any]:
        from tracing.replay.memory_check import memory_check

        fields: dict[str, Any] = msgspec.to_builtins(memory_check(launch))
        return fields

    with err.status(f"executing launch #{launch.launch.index} in the interpreter"):
        ended = in_child(call, _SECONDS)
    if ended.failure:
        raise Problem(ended.failure)
    checked: dict[str, Any] = ended.result
    return checked
