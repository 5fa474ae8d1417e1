"""Random Triton kernels, and what a launch of one can be observed to do in the interpreter.

A kernel is a list of statements that its seed chooses. Most programs of it are independent; some statements
make programs branch, loop for different times, race, use atomics, or leave the bounds of a tensor.
"""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from tracing import interpreter
from tracing.interpreter.gates import watched
from tracing.launch.memory.accesses import Accesses
from tracing.program.case import import_file

HEAD = """
import triton
import triton.language as tl
from triton.language.extra import libdevice

@triton.jit
def twice(x):
    return x + x

@triton.jit
def larger(a, b):
    return tl.where(a > b, a, b)

@triton.jit
def kernel(x, y, h, out, count, n, BLOCK: tl.constexpr, ROWS: tl.constexpr):
    pid = tl.program_id(0)
    row = tl.program_id(1)
    at = (row * tl.num_programs(0) + pid) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + at, mask=at < n, other=0.5)
    b = tl.load(y + at % n)
    i = at % 7 - 3
"""
# each keeps `a` and `b` blocks of float32 and `i` one of int32
PLAIN = (
    "a = a + b",
    "a = a * 1.5 - b",
    "a = a / (b * b + 1.0)",
    "a = tl.maximum(a, b)",
    "a = tl.where(i > 0, a, -b)",
    "a = tl.exp(-tl.abs(a))",
    "b = tl.log(tl.abs(b) + 1.0) + tl.sin(a)",
    "b = tl.sqrt(tl.abs(a)) + tl.exp2(-tl.abs(b))",
    "a = libdevice.tanh(b) + tl.erf(a)",
    "a = a.to(tl.float16).to(tl.float32) + b.to(tl.bfloat16).to(tl.float32)",
    "b = (b.to(tl.bfloat16) * a.to(tl.bfloat16)).to(tl.float32)",
    "a = a - tl.sum(a, 0) / BLOCK",
    "b = b - tl.max(b, 0)",
    "a = a + tl.reduce(b, 0, larger)",
    "b = tl.cumsum(b, 0) * 0.125",
    "i = i * 3 // 2 + i % 5",
    "i = (i << 2) ^ (i >> 1) & 15",
    "i = i + tl.argmax(a, 0)",
    "a = twice(a) + i",
    "a = tl.sort(a)",
    "b = tl.flip(b, 0)",
    "m = tl.reshape(a, (ROWS, BLOCK // ROWS)); b = b + tl.reshape(tl.trans(m) * 2.0, (BLOCK,))",
    "m = tl.reshape(b, (ROWS, BLOCK // ROWS)); a = a + tl.reshape(m * tl.sum(m, 1)[:, None], (BLOCK,))",
    "m = tl.trans(tl.reshape(b, (ROWS, BLOCK // ROWS))); a = a + tl.sum(tl.sum(m * 1.25, 1), 0) + tl.sum(m)",
    "m = tl.reshape(a, (BLOCK // 16, 16)); a = b + tl.sum(tl.dot(m, tl.trans(m)))",
    "a = a + tl.load(h + at % n).to(tl.float32)",
    "b = b + tl.load(x + tl.load(count + at % 4) % n)",
    "a = a + (pid * 3 + row).to(tl.float32)",
    "a, b = tl.split(tl.join(a, b)); a = tl.cat(a, b, can_reorder=True).reshape((2, BLOCK)).sum(0)",
    "for k in range(3):\n        a = a * 0.5 + k",
    "while tl.sum(a, 0) > 1e9:\n        a = a * 0.5",
)
BRANCHING = (
    "if pid == 0:\n        a = a + 1.0\n    else:\n        b = b - 1.0",
    "for k in range(pid % 3):\n        a = a * 0.5 + k",
    "for k in range(pid, pid + 2):\n        b = b + k",
    "for k in range(pid, 9, 3):\n        b = b + tl.load(x + k)",
    "while tl.sum(a, 0) > 1.0:\n        a = a * 0.5",
    "if tl.sum(i, 0) % 2 == 0:\n        tl.store(out + at, b, mask=at < n)",
)
STORES = (
    "tl.store(out + at, a, mask=at < n)",
    "tl.store(h + at, b.to(tl.float16), mask=at < n)",
    "tl.store(x + at, a + i, mask=at < n)",  # in place
    "tl.store(out + at, a, mask=at < n); b = b + tl.load(out + at, mask=at < n)",
)
SHARING = (
    "tl.store(out + tl.arange(0, BLOCK), a)",  # several programs write it
    "a = a + tl.load(out + (at + BLOCK) % n); tl.store(out + at, a, mask=at < n)",  # another one reads it
    "tl.atomic_add(count + tl.arange(0, 4), i.to(tl.int32).sum(0))",
    "b = b + tl.atomic_add(out + at % n, a)",
    "tl.store(count + pid % 2, pid)",
    "tl.store(out + at, a)",  # out of bounds in the last program
    "b = b + tl.load(y + at * 2)",
    "tl.device_assert(pid < 2)",
)


def source_of(seed: int) -> str:
    """The text of a random kernel."""
    chance = random.Random(seed)
    lines = [chance.choice(PLAIN) for _ in range(chance.randint(2, 7))]
    lines += [chance.choice(BRANCHING) for _ in range(chance.choice((0, 0, 1, 2)))]
    lines += [chance.choice(STORES) for _ in range(chance.randint(0, 2))]
    lines += [chance.choice(SHARING)] * (chance.random() < 0.25)
    chance.shuffle(lines)
    lines.append(chance.choice(STORES))
    return HEAD + "".join(f"    {line}\n" for one in lines for line in one.split("; "))


def kernel_of(seed: int, folder: Path) -> Any:
    """The random kernel, as a JITFunction of a module in the folder."""
    path = folder / f"kernel_{seed}.py"
    path.write_text(source_of(seed))
    module: Any = import_file(path)
    return module.kernel


def launched_twice(kernel: Any, seed: int) -> tuple[list[object], list[object]]:
    """Launch a random kernel on random tensors: programs together, and one at a time."""
    chance = random.Random(seed)
    block, grid = chance.choice((16, 64, 256)), (chance.randint(1, 7), chance.randint(1, 3), 1)
    n = max(4, block * grid[0] * grid[1] - chance.choice((0, 0, 3)))
    torch.manual_seed(seed)
    x = torch.randn(n)
    x[::11] = -0.0
    x[3::13] = float("nan") if chance.random() < 0.1 else 0.0
    tensors = {
        "x": x,
        "y": torch.randn(n),
        "h": torch.randn(n).half(),
        "out": torch.zeros(n),
        "count": torch.arange(4, dtype=torch.int32),
    }
    values = {**tensors, "n": n, "BLOCK": block, "ROWS": chance.choice((1, 2, 8))}
    return observed_twice(kernel, values, ("BLOCK", "ROWS"), grid)


def observed_twice(
    kernel: Any, values: dict[str, Any], constants: tuple[str, ...], grid: tuple[int, int, int]
) -> tuple[list[object], list[object]]:
    """Launch a kernel twice on the same memory: programs together, and one at a time."""
    together = observed(kernel, values, constants, grid)
    with interpreter.one_program_at_a_time():
        return together, observed(kernel, values, constants, grid)


def observed(
    kernel: Any, values: dict[str, Any], constants: tuple[str, ...], grid: tuple[int, int, int]
) -> list[object]:
    """Launch a kernel; returns its error, the bytes of its tensors, and the recorded accesses.

    The tensors have their contents back when it returns.
    """
    tensors = {name: value for name, value in values.items() if isinstance(value, torch.Tensor)}
    before = {name: tensor.clone() for name, tensor in tensors.items()}
    accesses = Accesses("kernel", tensors)
    accesses.fatal = True
    error = ""
    try:
        with watched([accesses]):
            interpreter.launch(kernel, values, constants, grid)
    except Exception as raised:
        error = f"{type(raised).__name__}: {raised}"
    seen = [error, {name: bytes_of(tensor) for name, tensor in tensors.items()}, *evidence(accesses)]
    for name, tensor in tensors.items():
        tensor.copy_(before[name])
    return seen


def bytes_of(tensor: torch.Tensor) -> bytes:
    """The elements of a tensor of any dtype."""
    return tensor.contiguous().view(torch.uint8).numpy().tobytes()


def evidence(accesses: Accesses) -> list[object]:
    """What was recorded of a launch, relative to the addresses of its arguments."""
    noted: list[object] = [accesses.role(name) for name in accesses.names]
    for name in accesses.names:
        known = accesses.of(name)
        assert known is not None
        argument, block = known
        noted += [block.read(argument).tobytes(), block.written(argument).tobytes()]
        noted += [block.content_before(argument).tobytes()]
        noted += [replace(one, start=one.start - argument.start, stop=one.stop - argument.start)
                  for one in accesses.outside if one.argument == name]  # fmt: skip
    if accesses.conflict is not None:
        conflict, where = accesses.conflict
        noted += [accesses.names_at(conflict.address), conflict.other, conflict.writer, where]
        noted.append(conflict.kind)
    return noted
