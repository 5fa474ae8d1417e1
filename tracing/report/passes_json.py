"""Compiler passes as data: the keys of `tracing passes --json`, which docs/json.md documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracing.analyze.passes.pass_pairs import PassPair, PassPairs
from tracing.model import Compilation, PassRecord
from tracing.store import Run


def passes_json(run: Run, kernels: Sequence[tuple[Compilation, Sequence[PassRecord]]]) -> dict[str, Any]:
    """The passes of some kernels of a run."""
    return {
        "run": str(run.path),
        "kernels": [
            {
                "kernel": one.kernel_name,
                "hash": one.hash,
                "target": one.target,
                "passes": [_pass(record) for record in records],
            }
            for one, records in kernels
        ],
    }


def _pass(record: PassRecord) -> dict[str, Any]:
    return {
        "index": record.index,
        "stage": record.stage,
        "name": record.name,
        "changed": record.changed,
        "ended": record.after is not None,
        "wall_ms": record.wall_ms,
    }


def pass_pairs_json(
    runs: tuple[Run, Run], kernels: Sequence[tuple[Compilation, Compilation, PassPairs]]
) -> dict[str, Any]:
    """Where the IR of the kernels of two runs first differs."""
    entries = [_kernel(*one) for one in kernels]
    differs = any(not one["entry_equal"] or one["first_difference"] for one in entries)
    return {"a": str(runs[0].path), "b": str(runs[1].path), "status": int(differs), "kernels": entries}


def _kernel(a: Compilation, b: Compilation, pairs: PassPairs) -> dict[str, Any]:
    return {
        "kernel": a.kernel_name,
        "hash": {"a": a.hash, "b": b.hash},
        "entry_equal": pairs.entry_equal,
        "first_difference": _pair(pairs.parting()),
    }


def _pair(pair: PassPair | None) -> dict[str, Any] | None:
    if pair is None:
        return None
    index = {"a": pair.a.index if pair.a else None, "b": pair.b.index if pair.b else None}
    return {"stage": pair.stage, "name": pair.name, "index": index}
