"""One recorded launch as a script of its own: kernel, inputs, configuration, and the digests it must leave.

The script needs torch, Triton, NumPy and safetensors, and nothing else of this project: what executes the
kernel where there is no GPU lies in its folder, as a copy. Of a run recorded without a GPU that leaves the
recorded bits; a GPU's own bits it leaves only where no rounding is involved.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any

from tracing import errors, interpreter, upstream
from tracing.replay.arguments import layout_of
from tracing.store.recorded_launch import RecordedLaunch

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
        path.parent.mkdir(parents=True, exist_ok=True)
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
    # a package of the same modules, with the modules of `errors` and `upstream` that they import
    folder, upstream_folder = (Path(str(package.__file__)).parent for package in (interpreter, upstream))
    for path in (*sorted(folder.glob("*.py")), Path(str(errors.__file__))):
        yield f"{_INTERPRETER}/{path.name}", _copied(path)
    waiting, copied = ["__init__", *_upstream_modules(folder.glob("*.py"))], set[str]()
    while waiting:
        name = waiting.pop()
        if name not in copied:
            copied.add(name)
            path = upstream_folder / f"{name}.py"
            waiting += _upstream_modules([path])
            yield f"{_INTERPRETER}/upstream/{path.name}", _copied(path)


def _upstream_modules(paths: Iterable[Path]) -> Iterator[str]:
    for path in paths:
        yield from re.findall(r"^from tracing\.upstream\.(\w+) import", path.read_text(), re.MULTILINE)


def _copied(path: Path) -> str:
    text = path.read_text().replace("tracing.interpreter", _INTERPRETER)
    return text.replace("from tracing.", f"from {_INTERPRETER}.")
