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
    evidence, not_covered = _checked(given)
    status = int(bool(evidence))
    with printed_answer("replay --check-memory", launch.run) as kept, silent() if as_json else nullcontext():
        _print(launch, evidence, not_covered)
        kept.status, kept.rank = status, store.rank_of(launch.process)
        kept.launch, kept.kernel = launch.launch.index, launch.launch.kernel_name
    if as_json:
        answer = {
            "run": str(launch.run.path), "launch": launch.launch.index, "status": status,
            "memory_evidence": [evidence_json(one) for one in evidence], "not_covered": not_covered,
        }  # fmt: skip
        print(json.dumps(answer, indent=2))
    return status


def _print(launch: RecordedLaunch, evidence: Sequence[MemoryEvidence], not_covered: str) -> None:
    of_it = f"launch #{launch.launch.index} {launch.launch.kernel_name}"
    for one in evidence:
        out.print(f"{of_it}: {evidence_sentence(one)}")
    if not evidence:
        nothing = (
            "every access is within the arguments, and no program reads memory that another program writes, "
            "or leaves another value there"
        )
        out.print(f"{of_it}: {nothing}")
    out.print(f"not covered: {not_covered}")
    if not is_virtual(launch.run.info.environment) and shutil.which("compute-sanitizer"):
        out.print("    next      compute-sanitizer python repro.py, of `tracing repro`")


def _checked(launch: RecordedLaunch) -> tuple[list[MemoryEvidence], str]:
    def call() -> dict[str, Any]:
        from tracing.replay.memory_check import NOT_COVERED, memory_check

        evidence = [msgspec.to_builtins(one) for one in memory_check(launch)]
        return {"evidence": evidence, "not_covered": NOT_COVERED}

    with err.status(f"executing launch #{launch.launch.index} in the interpreter"):
        ended = in_child(call, _SECONDS)
    if ended.failure:
        raise Problem(ended.failure)
    return msgspec.convert(ended.result["evidence"], list[MemoryEvidence]), str(ended.result["not_covered"])
