"""Writes one recorded launch as a script: kernel, inputs, configuration, and the digests to reproduce.

The script needs torch, Triton, NumPy and safetensors, and nothing else of this project: its folder contains a
copy of the code that executes the kernel without a GPU. It reproduces the recorded bits of a run without a
GPU; a GPU's own bits it reproduces without a GPU only if no rounding is involved.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from inspect import getsource
from pathlib import Path
from string import Template
from typing import Any

import torch

from tracing import errors, interpreter, upstream
from tracing.environment import wants_one_program_at_a_time
from tracing.errors import Problem
from tracing.record.outputs import dump, load
from tracing.replay.arguments import LaunchLayout, ReplayInputs, described_by, layout_of
from tracing.replay.differing import chosen
from tracing.replay.loaded_kernel import load_kernel
from tracing.replay.untouched_elements import untouched_elements
from tracing.store.recorded_launch import Number, RecordedLaunch
from tracing.store.run_files import file_name

_FOLDER = Path(__file__).parent
_INTERPRETER = "interpreter"  # the copy, as the script imports it


@dataclass(frozen=True, slots=True)
class TensorFacts:
    """The layout of one tensor argument, as launch.json states it."""

    storage: int
    dtype: str  # torch's name without "torch."
    shape: tuple[int, ...]
    stride: tuple[int, ...]  # elements
    offset: int  # elements from the start of the storage


@dataclass(frozen=True, slots=True)
class LaunchFile:
    """The content of launch.json."""

    index: int
    device: str
    grid: tuple[int, int, int]
    values: Mapping[str, Number]  # arguments that are neither tensors nor constants
    storages: Mapping[int, int]  # bytes of each
    contents: tuple[str, ...]  # arguments with a safetensors file
    tensors: Mapping[str, TensorFacts]
    descriptors: Mapping[str, Mapping[str, Any]]  # of tensors that are passed by one
    read: Mapping[str, str]  # digests of the contents before the launch
    expected: Mapping[str, str]  # digests of the outputs of the launch


@dataclass(frozen=True, slots=True)
class Repro:
    """The files of a written repro."""

    script: Path
    files: tuple[Path, ...]


def write_repro(
    recorded: RecordedLaunch, folder: Path, unwritten: Mapping[str, bytes] | None = None
) -> Repro:
    """Write a launch into a new folder: repro.py, kernel.py, launch.json, inputs, interpreter.

    unwritten -- of `unwritten_contents`

    Inputs without kept contents are zeros. Raises Problem for an argument that is not a number, or whose name
    is not a Python identifier.
    """
    contents = {**recorded.contents(), **(unwritten or {})}
    for name in contents:
        if not all(part.isidentifier() or part.isdecimal() for part in name.split(".")):
            raise Problem(f"{name!r} is no name of an argument of a kernel")
    launch = recorded.launch
    names = {
        "index": launch.index,
        "kernel": file_name(launch.kernel_name),
        "run": file_name(recorded.run.name),
    }
    files = {
        "repro.py": filled("launch_repro.py.in", names),
        "recorded.py": filled("recorded_tensors.py.in", {"of": "the launch", "facts": "launch.json"}),
        "kernel.py": recorded.module,  # a file of its own: its names are not the script's
        "launch.json": json.dumps(asdict(_launch_file(recorded, tuple(contents))), indent=1),
        **{f"{name}.safetensors": content for name, content in contents.items()},
        **dict(_interpreter()),
    }
    return write_files(folder, files)


def unwritten_contents(recorded: RecordedLaunch) -> dict[str, bytes]:
    """What elements hold that the launch does not write, as files by argument; zeros elsewhere.

    Of results whose contents before the launch were not kept: without them their digests do not recur. Empty
    if the elements are not known. Cost: executes the launch in the interpreter, once.
    """
    lost = [name for name in recorded.outputs if name in recorded.results and name not in recorded.inputs]
    with load_kernel(recorded.module) as kernel:
        known = untouched_elements(recorded.launch, ReplayInputs.of(recorded), kernel) if lost else {}
    files = {}
    for name in lost:
        if name in known and bool(known[name].any()):
            result = load(recorded.run.bytes(recorded.results[name]))
            files[name] = dump(chosen(known[name], result, torch.zeros_like(result)), result.dtype)
    return files


def filled(template: str, values: Mapping[str, object]) -> str:
    """The text of a template of this folder with these values."""
    return Template((_FOLDER / template).read_text()).substitute(values)


def write_files(folder: Path, files: Mapping[str, str | bytes]) -> Repro:
    """Write the files of a repro into a folder, by their names in it; one of them is repro.py."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return Repro(folder / "repro.py", tuple(folder / name for name in files))


def tensor_facts(layout: LaunchLayout) -> dict[str, TensorFacts]:
    """The layout of tensors as a repro states it, by name."""
    return {
        name: TensorFacts(
            one.storage, str(one.dtype).removeprefix("torch."), one.shape, one.stride, one.offset
        )
        for name, one in layout.tensors.items()
    }


def _launch_file(recorded: RecordedLaunch, contents: tuple[str, ...]) -> LaunchFile:
    layout = layout_of(recorded.launch)
    return LaunchFile(
        recorded.launch.index,
        recorded.run.info.environment.device,
        recorded.launch.grid,
        recorded.values,
        layout.storages,
        contents,
        tensor_facts(layout),
        {name: described_by(one) for name, one in recorded.descriptors.items()},
        {name: bits for name, bits in recorded.read.items() if name in recorded.inputs},
        {name: digest.bits for name, digest in recorded.expected.items()},
    )


def _interpreter() -> Iterator[tuple[str, str]]:
    # a package of the same modules, with what they import of `errors`, `environment` and `upstream`
    folder, upstream_folder = (Path(str(package.__file__)).parent for package in (interpreter, upstream))
    modules = sorted(folder.rglob("*.py"))
    for path in modules:
        yield f"{_INTERPRETER}/{path.relative_to(folder)}", _copied(path)
    yield f"{_INTERPRETER}/errors.py", _copied(Path(str(errors.__file__)))
    yield f"{_INTERPRETER}/environment.py", f"import os\n\n\n{getsource(wants_one_program_at_a_time)}"
    waiting, copied = ["__init__", *_upstream_modules(modules)], set[str]()
    while waiting:
        name = waiting.pop()
        if name not in copied:
            copied.add(name)
            path = upstream_folder / f"{name.replace('.', '/')}.py"
            waiting += _upstream_modules([path])
            yield f"{_INTERPRETER}/upstream/{path.relative_to(upstream_folder)}", _copied(path)


def _upstream_modules(paths: Iterable[Path]) -> Iterator[str]:
    for path in paths:
        yield from re.findall(r"^from tracing\.upstream\.([\w.]+) import", path.read_text(), re.MULTILINE)


def _copied(path: Path) -> str:
    text = path.read_text().replace("tracing.interpreter", _INTERPRETER)
    return text.replace("from tracing.", f"from {_INTERPRETER}.")
