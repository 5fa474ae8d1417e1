"""A run as the NDJSON that tritonparse records: an event for each compilation, and one for each launch.

tritonparse has no digests: they are extra keys of an argument, which its parser keeps.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tracing.analyze.graphs.operation_lines import at_operations
from tracing.analyze.passes.compilations import compilations
from tracing.analyze.passes.source_map import artefacts_by_hash
from tracing.model import Compilation, Kernel, KernelArg, KernelLaunch
from tracing.report.run_json import digest_bits, scalar
from tracing.store import Run, rank_of

_BINARY = ("cubin", "hsaco")


def write_tritonparse(path: Path, run: Run) -> None:
    """Write one run; the ranks of a job follow one another."""
    with path.open("w", encoding="utf-8") as file:
        for event in tritonparse_events(run):
            file.write(json.dumps(event) + "\n")


def tritonparse_events(run: Run) -> Iterator[dict[str, Any]]:
    """The events of a run: first the compilations, then the launches in launch order."""
    by_hash = {one.hash: one for one in compilations(run)}
    kernels = {one.hash: one for one in run.records(Kernel)}
    blobs = artefacts_by_hash(run)
    metadata: dict[str, dict[str, Any]] = {}
    for hash in dict.fromkeys((*kernels, *by_hash)):
        kernel, compiled = kernels.get(hash), by_hash.get(hash)
        metadata[hash] = _metadata(kernel, compiled)
        stages = {**(kernel.stages if kernel else {}), **blobs.get(hash, {})}
        name = metadata[hash]["name"]
        texts = {f"{name}.{stage}": run.text(blob) for stage, blob in stages.items() if stage not in _BINARY}
        source = _source(run, kernel)
        payload = {
            "metadata": metadata[hash],
            "file_content": texts,
            "file_path": {name: name for name in texts},
        }
        if source is not None:
            payload["python_source"] = source
        yield {**_event("compilation", run, 0), "payload": payload}
    for process in run.processes():
        pid = int(process.rsplit("-", 1)[1]) if process.rsplit("-", 1)[1].isdecimal() else rank_of(process)
        joined = map(run.joiner(process).launch, run.rows(process))
        for launch in map(at_operations(run, process), joined):
            yield {**_event("launch", run, pid), **_launch(launch, metadata)}


def _event(kind: str, run: Run, pid: int) -> dict[str, Any]:
    return {"event_type": kind, "pid": pid, "timestamp": run.info.started, "stack": []}


def _metadata(kernel: Kernel | None, compiled: Compilation | None) -> dict[str, Any]:
    backend, _, arch = (kernel.target if kernel else compiled.target if compiled else "").partition(":")
    facts: dict[str, Any] = {
        "hash": kernel.hash if kernel else compiled.hash if compiled else "",
        "name": kernel.name if kernel else compiled.kernel_name if compiled else "",
        "backend_name": backend,
        "arch": arch,
    }
    if kernel is not None:
        facts |= {"num_warps": kernel.num_warps, "num_stages": kernel.num_stages, "num_ctas": kernel.num_ctas}
    return facts


def _source(run: Run, kernel: Kernel | None) -> dict[str, Any] | None:
    if kernel is None or kernel.source is None or not kernel.file:
        return None
    file, _, line = kernel.file.rpartition(":")
    code = run.text(kernel.source)
    first = int(line) if line.isdecimal() else 1
    return {
        "file_path": file, "start_line": first, "end_line": first + len(code.splitlines()) - 1, "code": code,
    }  # fmt: skip


def _launch(launch: KernelLaunch, metadata: dict[str, dict[str, Any]]) -> dict[str, Any]:
    stack = []
    if launch.site is not None:
        site = launch.site
        stack = [{"line": site.line, "name": site.function, "filename": site.file, "loc": ""}]
    return {
        "name": launch.kernel_name,
        "function": None,
        "stream": launch.stream,
        "grid": list(launch.grid),
        "stack": stack,
        "compilation_metadata": metadata.get(launch.kernel.hash, {}),
        "extracted_args": {arg.name: _argument(arg) for arg in launch.args},
    }


def _argument(arg: KernelArg) -> dict[str, Any]:
    if arg.tensor is None:
        return {"type": type(arg.value).__name__, "value": scalar(arg.value)}
    tensor = arg.tensor
    return {
        "type": "tensor",
        "shape": list(tensor.shape),
        "dtype": f"torch.{tensor.dtype}",
        "device": tensor.device,
        "stride": list(tensor.stride),
        "numel": math.prod(tensor.shape),
        "storage_offset": tensor.offset,
        "role": arg.declared,
        "digest_before": digest_bits(arg.before),
        "digest_after": digest_bits(arg.after),
    }
