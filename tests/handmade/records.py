"""Hand-built records of launches and compilations."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from tracing import store
from tracing.model import (
    SCHEMA,
    Compilation,
    Digest,
    Environment,
    Kernel,
    KernelArg,
    KernelLaunch,
    PassEnd,
    PassIR,
    PassStart,
    Role,
    RunInfo,
    TensorMeta,
)

INFO = RunInfo(
    SCHEMA,
    "silu",
    "/silu.py",
    ("tracing",),
    0,
    store.now(),
    Environment("3", "2", "3", "cpu", "", "h", "p", {}),
)
META = TensorMeta((4,), (1,), "float32", "cpu")


def new_run(folder: Path, triton: str = "3") -> store.RunWriter:
    environment = Environment("3", "2", triton, "cpu", "cuda:90", "host", "platform", {})
    return store.create(folder, RunInfo(SCHEMA, "case", "/case.py", (), 0, store.now(), environment))


def arg(
    name: str,
    role: Role,
    before: str,
    after: str | None = None,
    storage: int | None = None,
    writer: str | None = None,
) -> KernelArg:
    """A tensor argument whose digests are the given words; `storage` defaults to one made from the name."""
    number = hash(name) if storage is None else storage
    return KernelArg(name, role, META, number, None, Digest(before), Digest(after or before), writer)


def kernel(name: str = "triton_poi_fused_mul_0", num_warps: int = 4) -> Kernel:
    return Kernel(0, name, f"hash of {name}", "cuda:90", num_warps, 3, 1, {"XBLOCK": "256"}, {})


def launch(
    index: int, *args: KernelArg, name: str = "triton_poi_fused_mul_0", num_warps: int = 4, grid: int = 1
) -> KernelLaunch:
    return KernelLaunch(index, kernel(name, num_warps), (grid, 1, 1), 0, "cpu", "forward", args)


def compiled(
    writer: store.RunWriter,
    name: str,
    ir: str,
    *passes: tuple[str, str, str | None],
    number: int = 0,
    target: str = "cuda:90",
    constants: Mapping[str, str] = MappingProxyType({}),
    **options: str,
) -> Compilation:
    """Write a compilation: each pass is (stage, name, IR after it); None: it did not end."""
    record = Compilation(
        number, name, f"{number:02}hash of {name}", target, options, writer.blob(ir), "k.py:1",
        constants=dict(constants),
    )  # fmt: skip
    writer.append(record)
    for index, (stage, pass_name, after) in enumerate(passes):
        adder, caller = f"passes.add_{pass_name}", "compiler.py:7"
        writer.append(PassStart(number, index, stage, pass_name, adder, (), f"any({pass_name})", caller))
        writer.append(PassIR(writer.process, number, index, "before", writer.blob(ir)))
        if after is not None:
            writer.append(PassIR(writer.process, number, index, "after", writer.blob(after)))
            writer.append(PassEnd(number, index, 1.5))
            ir = after
    return record
