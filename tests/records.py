"""Launches built by hand, for tests of what is done with them."""

from __future__ import annotations

from tracing.model import Digest, Kernel, KernelArg, KernelLaunch, Role, TensorMeta

META = TensorMeta((4,), (1,), "float32", "cpu")


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
