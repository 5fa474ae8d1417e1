"""Compiler passes as data: the keys of `tracing passes --json`, which docs/json.md documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tracing.analyze.passes.compared_compilations import ComparedCompilations
from tracing.analyze.passes.compilation_pairs import CompilationPairs, differing
from tracing.analyze.passes.pass_pairs import PassPair
from tracing.analyze.passes.pass_table import AnyPass, P, PassStep
from tracing.analyze.passes.replacements import ReplacedOperation
from tracing.analyze.passes.source_map import StageLines, Thread
from tracing.model import Compilation, LlvmPass, PassRecord
from tracing.store import Run


def passes_json(run: Run, kernels: Sequence[tuple[Compilation, Sequence[PassRecord]]]) -> dict[str, Any]:
    """The passes of some kernels of a run."""
    return {
        "run": str(run.path),
        "kernels": [
            {**_kernel_json(one), "passes": [record_json(record) for record in records]}
            for one, records in kernels
        ],
    }


def kernel_json(run: Run, chosen: Compilation) -> dict[str, Any]:
    """The run and the kernel that an answer is about."""
    return {"run": str(run.path), **_kernel_json(chosen)}


def _kernel_json(one: Compilation) -> dict[str, Any]:
    return {"kernel": one.kernel_name, "hash": one.hash, "target": one.target}


def record_json(record: AnyPass) -> dict[str, Any]:
    """One pass: of MLIR with its time, of LLVM with its unit."""
    own: dict[str, Any] = {"unit": record.unit} if isinstance(record, LlvmPass) else {}
    own |= {"wall_ms": record.wall_ms} if isinstance(record, PassRecord) else {}
    return {
        "index": record.index,
        "stage": record.stage,
        "name": record.name,
        "changed": record.changed,
        "ended": record.after is not None,
        **own,
    }


def pass_json(step: PassStep[P], *, ir: str | None, diff: str | None) -> dict[str, Any]:
    """The effect of one pass on the number of operations, and its IR or its diff."""
    operations = {"before": dict(step.before), "after": dict(step.after)}
    return {"pass": record_json(step.record), "operations": operations, "diff": diff, "ir": ir}


def history_json(
    steps: Sequence[PassStep[P]], became: Mapping[tuple[int, str], ReplacedOperation]
) -> dict[str, Any]:
    """The passes that change how often some operations occur.

    steps  -- with only those operations
    became -- the replacements of removed operations, by the pass's index and the operation's name
    """
    history = []
    for step in steps:
        one = step.record
        origin = {"index": one.index, "stage": one.stage, "name": one.name}
        for name in sorted({**step.before, **step.after}):
            before, after = step.before.get(name, 0), step.after.get(name, 0)
            if before != after:
                new = became.get((-1 if one.index is None else one.index, name), ReplacedOperation({}, ()))
                counts = {"operation": name, "before": before, "after": after}
                replaced = {"became": dict(new.operations), "others": [*new.others]}
                history.append({**origin, **counts, **replaced})
    return {"history": history}


def lines_json(stages: Sequence[StageLines], threads: Sequence[Thread]) -> dict[str, Any]:
    """A line of Python in each stage, call path by call path."""
    return {
        "stages": [
            {
                "stage": one.stage,
                "lines": len(one.located),
                "with_a_line": sum(1 for located in one.located if located.stacks),
                "note": one.note,
            }
            for one in stages
        ],
        "paths": [
            {
                "stack": [{"file": frame.file, "line": frame.line} for frame in thread.stack],
                "stages": {
                    stage: [{"line": one.line, "text": one.text} for one in located]
                    for stage, located in thread.stages.items()
                },
            }
            for thread in threads
        ],
    }


def pass_pairs_json(
    runs: tuple[Run, Run],
    kernels: Sequence[ComparedCompilations],
    matched: CompilationPairs,
) -> dict[str, Any]:
    """The passes after which the IR of two runs' kernels first differs, and kernels that only one run has."""
    only = {"only_a": _one_sided(matched.only_a), "only_b": _one_sided(matched.only_b)}
    differs = any(one.differ for one in kernels) or any(only.values())
    return {
        "a": str(runs[0].path), "b": str(runs[1].path), "status": int(differs),
        "kernels": [_kernel(one) for one in kernels], **only,
    }  # fmt: skip


def _one_sided(only: Sequence[Compilation]) -> list[dict[str, Any]]:
    return [{"kernel": one.kernel_name, "hash": one.hash, "target": one.target} for one in only]


def _kernel(compared: ComparedCompilations) -> dict[str, Any]:
    a, b, pairs = compared.a, compared.b, compared.passes
    return {
        "kernel": a.kernel_name,
        "hash": {"a": a.hash, "b": b.hash},
        "target": {"a": a.target, "b": b.target},
        "constants": _values(differing(a.constants, b.constants)),
        "options": _values(differing(a.options, b.options)),
        "entry_equal": pairs.entry_equal,
        "first_difference": pair_json(first) if (first := pairs.first_divergence()) else None,
        "artefacts_equal": dict(compared.equal),
        "not_repeated": dict(zip("ab", compared.not_repeated, strict=True)),
    }


def _values(changed: Mapping[str, tuple[str | None, str | None]]) -> dict[str, dict[str, str | None]]:
    return {name: {"a": a, "b": b} for name, (a, b) in changed.items()}


def pair_json(pair: PassPair) -> dict[str, Any]:
    """A pass of two runs."""
    index = {"a": pair.a.index if pair.a else None, "b": pair.b.index if pair.b else None}
    return {"stage": pair.stage, "name": pair.name, "index": index}
