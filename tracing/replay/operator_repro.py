"""Writes one recorded call of an operator as a script: its inputs, the call, and the digests of its results.

The script needs torch, NumPy and safetensors, and nothing of this project. It calls the operator repeatedly
on equal inputs, and tries torch's deterministic algorithms if the results differ.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from tracing.errors import Problem
from tracing.replay.arguments import layout_of_tensors
from tracing.replay.operator_call import OperatorExpression, operator_expression
from tracing.replay.repro import Repro, TensorFacts, filled, tensor_facts, write_files
from tracing.store.recorded_operator import RecordedOperator
from tracing.store.run_files import file_name


@dataclass(frozen=True, slots=True)
class OperatorFile:
    """The content of operator.json."""

    index: int
    device: str
    storages: Mapping[int, int]  # bytes of each
    host: tuple[int, ...]  # storages on the CPU; the others are on a GPU, if the script finds one
    contents: tuple[str, ...]  # tensors with a safetensors file
    tensors: Mapping[str, TensorFacts]
    read: Mapping[str, str]  # digests of the contents before the call
    expected: tuple[str, ...]  # digests of what the call wrote, in order; empty: not recorded


def write_operator_repro(recorded: RecordedOperator, folder: Path) -> Repro:
    """Write a call into a new folder: repro.py, recorded.py, operator.json, inputs.

    Raises Problem if an input was not kept, for an operator that is not torch's own, and for an argument
    that no script can contain.
    """
    if recorded.missing:
        inputs = ", ".join(f"input {position}" for position in recorded.missing)
        raise Problem(f"the run lacks the contents of {inputs} of operator {recorded.call.index}")
    expression = operator_expression(recorded.call)
    values = {
        "index": recorded.call.index,
        "operator": file_name(recorded.call.name),
        "run": file_name(recorded.run.name),
        "call": expression.call,
        "written": _written(expression),
    }
    contents = {f"in{position}": content for position, content in recorded.contents().items()}
    files: dict[str, str | bytes] = {
        "repro.py": filled("operator_repro.py.in", values),
        "recorded.py": filled("recorded_tensors.py.in", {"of": "the call", "facts": "operator.json"}),
        "operator.json": json.dumps(asdict(_operator_file(recorded, expression, tuple(contents))), indent=1),
        **{f"{name}.safetensors": content for name, content in contents.items()},
    }
    return write_files(folder, files)


def _written(expression: OperatorExpression) -> str:
    # what the call wrote, in the order of `Operator.writes`, as Python
    mutated = [f"t[{name!r}]" for name in expression.mutated]
    results = "result" if expression.results is None else f"[result[i] for i in {expression.results!r}]"
    new = f"*tensors_in({results})" if not expression.shared else f"*unshared(tensors_in({results}), t)"
    return f"[{', '.join([*mutated, *([new] if expression.results != () else [])])}]"


def _operator_file(
    recorded: RecordedOperator, expression: OperatorExpression, contents: tuple[str, ...]
) -> OperatorFile:
    layout = layout_of_tensors({name: (one.tensor, one.storage) for name, one in expression.tensors.items()})
    kept = {name: one for name, one in expression.tensors.items() if name in contents}
    return OperatorFile(
        recorded.call.index,
        recorded.run.info.environment.device,
        layout.storages,
        tuple({one.storage for one in expression.tensors.values() if one.tensor.device == "cpu"}),
        contents,
        tensor_facts(layout),
        {name: one.digest.bits for name, one in kept.items() if one.digest},
        tuple(one.digest.bits if one.digest else "" for one in recorded.call.writes),
    )
