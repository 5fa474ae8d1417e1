"""Launches, tensors and lines of code, for a terminal.

A launch is written as `name[grid=(x, y, z)](argument=value, …)`; a tensor as `t: f32[32, 1, 896]` with
the first digits of its digest, or of both digests if the launch changed it.
"""

from __future__ import annotations

import os.path
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

from rich.text import Text

from tracing.model import CopiedFunction, KernelArg, KernelLaunch, TensorMeta
from tracing.model.one_line import one_line
from tracing.store.graph_file import PythonLine

Line: TypeAlias = str | Text  # the console has no markup: a str is printed unchanged, a Text with its styles
SHORT = {
    "float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16", "complex64": "c64",
    "complex128": "c128", "int64": "i64", "int32": "i32", "int16": "i16", "int8": "i8", "uint8": "u8",
    "uint16": "u16", "uint32": "u32", "uint64": "u64", "bool": "b8",
}  # fmt: skip
DIGITS = 12  # hex digits of a digest: 48 bits distinguish the tensors of one run
_LINES = 8  # lines of Python that are listed
_LONG = 160  # characters of an outcome that has more than one line


def plural(count: int, noun: str) -> str:
    """`1 launch`, `2 launches`."""
    ending = "" if count == 1 else "es" if noun.endswith(("ch", "s")) else "s"
    return f"{count} {noun}{ending}"


def outcome_lines(text: str) -> list[str]:
    """An outcome as it is printed: one line, or, if it is long, a line for each of its parts."""
    first, *others = text.split("; ") if len(text) > _LONG else [text]
    return [first, *(f"    {one}" for one in others)]


def tensor_text(meta: TensorMeta) -> str:
    """`t: f32[32, 1, 896]`, the form in which torch's DebugMode writes a tensor."""
    return f"t: {SHORT.get(meta.dtype, meta.dtype)}[{', '.join(map(str, meta.shape))}]"


def line_text(line: PythonLine) -> str:
    """`cases/silu.py:9 in forward: return x * y`, relative to the working directory if it is inside of it."""
    near = os.path.relpath(line.file)
    file = line.file if near.startswith("..") else near
    return one_line(f"{file}:{line.line} in {line.function}: {line.code}")


def source_position(file: str, copied: Sequence[CopiedFunction] = ()) -> str:
    """`path:line` where a kernel's source begins; `name:line` if the file is gone, as Inductor's often is.

    copied -- the kernel's functions that are copies of the user's: the user's own position then comes first
    """
    path, _, line = file.rpartition(":")
    here = file if Path(path).exists() else f"{Path(path).name}:{line}"
    after = [one for one in copied if one.file == path and one.line >= int(line)]  # its decorators come first
    if not after:
        return here
    own = min(after, key=lambda one: one.line)
    return f"{own.user_file}:{own.user_line}, which torch.compile copied to {here}"


def some_lines(lines: Sequence[PythonLine]) -> list[str]:
    """The first lines as `line_text` writes them, then how many more there are."""
    more = len(lines) - _LINES
    return [*map(line_text, lines[:_LINES]), *([f"and {plural(more, 'more line')}"] if more > 0 else [])]


def argument_text(arg: KernelArg) -> str:
    """`[OUT] out_ptr0=t: f32[32, 1, 896]  4d0bd1650fb8 -> 69f6cb5239c5  (out)`."""
    if arg.tensor is None:
        return f"{arg.name}={arg.value}"
    mark = "[OUT] " if (arg.writes and arg.declared != "unknown") or arg.modified else ""
    wrote = f", last written by {arg.writer}" if arg.writer else ""
    return f"{mark}{arg.name}={tensor_text(arg.tensor)}  {_digests(arg)}  ({arg.declared}{wrote})"


def _digests(arg: KernelArg) -> str:
    if arg.after is None:
        return "not digested"
    after = arg.after.bits[:DIGITS]
    before = f"{arg.before.bits[:DIGITS]} " if arg.before else ""
    text = after if before == f"{after} " else f"{before}-> {after}"
    counts = {"nan": arg.after.nan, "inf": arg.after.inf}
    return text + "".join(f" {name}={count}" for name, count in counts.items() if count)


def launch_text(launch: KernelLaunch) -> Iterator[str]:
    """One launch, one line per argument."""
    site = [f"{'computes' if launch.site.of_operation else 'at'} {launch.site}"] if launch.site else []
    remarks = [*site, *step_text(launch), *times(launch), *([] if launch.finished else ["did not finish"])]
    suffix = f"  # {', '.join(remarks)}" if remarks else ""
    call = f"[Triton] {launch.kernel_name}[grid={launch.grid}]"
    if launch.kernel.target == "cpu":
        call = f"[C++] {launch.kernel_name}"
    yield f"#{launch.index} {call}({suffix}"
    for position, arg in enumerate(launch.args):
        yield f"    {argument_text(arg)}{user_hashes(launch, position)},"
    yield ")"


def step_text(launch: KernelLaunch) -> Iterator[str]:
    """`step 3, launch 7 of it`, both from 0, if the program has steps."""
    if launch.step is not None:
        yield f"step {launch.step[0]}, launch {launch.step[1]} of it"


def times(launch: KernelLaunch) -> Iterator[str]:
    """The duration of a launch on the host and on the device, if it was measured."""
    if launch.time is not None:
        yield f"{launch.time.wall_us:.1f} µs on the host"
        if launch.time.device_us is not None:
            yield f"{launch.time.device_us:.1f} µs on the device"


def user_hashes(launch: KernelLaunch, position: int) -> str:
    """`  hash_fn: 3.5 -> 4.5`; one value if the other is missing or equal."""
    if launch.hashes is None:
        return ""
    sides = (launch.hashes.before, launch.hashes.after)
    hashes = dict.fromkeys(repr(side[position]) for side in sides if position in side)
    return f"  hash_fn: {' -> '.join(hashes)}" if hashes else ""
