"""One recorded launch as a script of its own: kernel, inputs, configuration, and the digests it must leave.

The script needs torch, Triton, NumPy and safetensors, and nothing else of this project: what executes the
kernel where there is no GPU lies in its folder, as a copy. Of a run recorded without a GPU that leaves the
recorded bits; a GPU's own bits it leaves only where no rounding is involved.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any

from tracing import errors, interpreter
from tracing.replay.arguments import layout_of
from tracing.store.recorded_launch import RecordedLaunch
from tracing.upstream import patch

_TEMPLATE = Path(__file__).with_name("repro.py.in")
_INTERPRETER = "interpreter"  # the copy, as the script imports it


@dataclass(frozen=True, slots=True)
class Repro:
    """What was written."""

    script: Path
    files: tuple[Path, ...]


def write_repro(recorded: RecordedLaunch, folder: Path) -> Repro:
    """Write a launch into a folder, which is made: repro.py, kernel.py, launch.json, inputs, interpreter.

    Inputs of which no content was kept are zeros. Raises Problem for an argument that is no number.
    """
    folder.mkdir(parents=True, exist_ok=True)
    launch = recorded.launch
    names = {"index": launch.index, "kernel": launch.kernel_name, "run": recorded.run.name}
    files = {
        "repro.py": Template(_TEMPLATE.read_text()).substitute(names),
        "kernel.py": recorded.module,  # a file of its own: its names are not the script's
        "launch.json": json.dumps(_facts(recorded), indent=1),
        **{f"{name}.safetensors": content for name, content in recorded.contents().items()},
        **dict(_interpreter()),
    }
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return Repro(folder / "repro.py", tuple(folder / name for name in files))


def _facts(recorded: RecordedLaunch) -> dict[str, Any]:
    layout = layout_of(recorded.launch)
    return {
        "index": recorded.launch.index,
        "device": recorded.run.info.environment.device,
        "grid": recorded.launch.grid,
        "values": recorded.values,
        "storages": layout.storages,
        "contents": list(recorded.inputs),
        "tensors": {
            name: {"storage": one.storage, "dtype": str(one.dtype).removeprefix("torch."),
                   "shape": one.shape, "stride": one.stride, "offset": one.offset}
            for name, one in layout.tensors.items()
        },
        "read": {name: bits for name, bits in recorded.read.items() if name in recorded.inputs},
        "expected": {name: digest.bits for name, digest in recorded.expected.items()},
    }  # fmt: skip


def _interpreter() -> Iterator[tuple[str, str]]:
    # a package of the same modules, and of the two that they use
    modules = sorted(Path(str(interpreter.__file__)).parent.glob("*.py"))
    for path in (*modules, Path(str(errors.__file__)), Path(str(patch.__file__))):
        text = (
            path.read_text()
            .replace("tracing.interpreter", _INTERPRETER)
            .replace("tracing.upstream", "tracing")
        )
        yield f"{_INTERPRETER}/{path.name}", text.replace("from tracing.", f"from {_INTERPRETER}.")
