"""A run as data: the output of `tracing list`, `show` and `winners` with --json; see docs/json.md."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from tracing.analyze.memory.evidence import memory_evidence
from tracing.analyze.memory.uninitialised_reads import uninitialised_reads
from tracing.analyze.runs.recorded_steps import not_covered
from tracing.analyze.runs.winners import Choice
from tracing.model import Digest, Failure, KernelArg, KernelLaunch, MemoryEvidence, Outcome
from tracing.report.findings import crash_text
from tracing.store import Run, rank_of


def summary_json(run: Run) -> dict[str, Any]:
    """One run of `tracing list`."""
    outcome = next(run.records(Outcome), None)
    info, environment = run.info, run.info.environment
    return {
        "name": run.name,
        "path": str(run.path),
        "case": info.case,
        "started": info.started,
        "status": outcome.status if outcome else "unfinished",
        "crash": crash_text(run) or None,
        "device": environment.device,
        "target": environment.target,
        "torch": environment.torch,
        "triton": environment.triton,
    }


def run_json(run: Run, launches: Iterable[tuple[int, KernelLaunch]]) -> dict[str, Any]:
    """The contents of a run.

    launches -- the launches to show, each with its rank
    """
    return {
        **summary_json(run),
        "seed": run.info.seed,
        "world_size": run.info.world_size,
        "memory_evidence": memory_evidence_json(run),
        "uninitialised_reads": uninitialised_json(run),
        "failures": [_failure(one) for one in run.records(Failure)],
        "outcomes": [
            {"status": one.status, "detail": one.detail, "traceback": one.traceback or None}
            for one in run.records(Outcome)
        ],
        "launches": [_launch(rank, one) for rank, one in launches],
        "not_covered": [{"what": one.what, "setting": one.setting} for one in not_covered(run)],
    }


def memory_evidence_json(run: Run) -> list[dict[str, Any]]:
    """The memory evidence of a run."""
    return [
        {"rank": rank, **evidence_json(one)}
        for rank in dict.fromkeys(map(rank_of, run.processes()))
        for one in memory_evidence(run, rank)
    ]


def uninitialised_json(run: Run) -> list[dict[str, Any]]:
    """The kernels that read elements which nothing wrote."""
    return [
        {
            "rank": one.rank, "launch": one.launch, "kernel": one.kernel, "argument": one.argument,
            "first": one.first, "count": one.count, "launches": one.launches,
        }
        for one in uninitialised_reads(run)
    ]  # fmt: skip


def evidence_json(one: MemoryEvidence) -> dict[str, Any]:
    """One item of memory evidence."""
    return {
        "launch": one.launch if one.launch >= 0 else None, "kind": one.kind,
        "arguments": list(one.arguments), "what": one.what, "where": one.where or None,
    }  # fmt: skip


def _failure(one: Failure) -> dict[str, Any]:
    return {
        "kind": one.kind, "name": one.name, "reason": one.reason, "python": one.python or None,
        "code": one.code or None, "step": one.step or None, "nodes": one.nodes or None,
        "stage": one.stage or None, "source": one.source or None, "line": one.line or None,
    }  # fmt: skip


def _launch(rank: int, one: KernelLaunch) -> dict[str, Any]:
    return {
        "rank": rank,
        "index": one.index,
        "kernel": one.kernel_name,
        "hash": one.kernel.hash,
        "grid": list(one.grid),
        "num_warps": one.kernel.num_warps,
        "num_stages": one.kernel.num_stages,
        "constants": dict(one.kernel.constants),
        "phase": one.phase,
        "stream": one.stream,
        "finished": one.finished,
        "step": one.step[0] if one.step else None,
        "launch_in_step": one.step[1] if one.step else None,
        "site": f"{one.site.file}:{one.site.line}" if one.site else None,
        "arguments": [_argument(arg) for arg in one.args],
    }


def _argument(arg: KernelArg) -> dict[str, Any]:
    tensor = arg.tensor
    return {
        "name": arg.name,
        "declared": arg.declared,
        "value": None if tensor else scalar(arg.value),
        "dtype": tensor.dtype if tensor else None,
        "shape": list(tensor.shape) if tensor else None,
        "descriptor": None if arg.descriptor is None else msgspec.to_builtins(arg.descriptor),
        "before": digest_bits(arg.before),
        "after": digest_bits(arg.after),
    }


def digest_bits(digest: Digest | None) -> str | None:
    """The bits of a digest; None: there is none."""
    return digest.bits if digest else None


def winners_json(run: Run, choices: Sequence[Choice]) -> dict[str, Any]:
    """The choices of autotuners."""
    return {
        "run": str(run.path),
        "status": int(any(not one.agreed for one in choices)),
        "choices": [
            {
                "kernel": one.first.kernel,
                "tuner": one.first.tuner,
                "key": list(one.first.key),
                "agreed": one.agreed,
                "by_rank": {str(rank): _config(alike[0].config) for rank, alike in one.by_rank.items()},
            }
            for one in choices
        ],
    }


def _config(config: Mapping[str, object]) -> dict[str, object]:
    return {name: scalar(value) for name, value in config.items()}


def scalar(value: object) -> object:
    """A scalar as a JSON value; inf and nan as text."""
    if (
        value is None
        or isinstance(value, (bool, int, str))
        or (isinstance(value, float) and math.isfinite(value))
    ):
        return value
    return str(value)
