"""Writes data that repeats from launch to launch only once: kernels, signatures, uncovered launches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import torch

from tracing.digest.host import element_bytes
from tracing.launch.launch_site import Grid, LaunchSite, descriptor_of, tensor_of
from tracing.launch.roles import Declared
from tracing.launch.storages import Storages
from tracing.launch.tensors import tensor_meta
from tracing.model import Argument, NotCovered, Phase, Signature, TensorMeta, plain_scalar
from tracing.record.recorded_kernels import RecordedKernels
from tracing.store import RunWriter
from tracing.store.numbers import Numbers
from tracing.upstream.torch.dispatch_modes import dispatch_disabled

_METAS = 1 << 14  # layouts that are remembered


class Catalogue:
    """The numbers by which launches refer to earlier records."""

    def __init__(self, writer: RunWriter, storages: Storages) -> None:
        self._writer = writer
        self.segments = writer.segments
        self._storages = storages
        self._kernels = RecordedKernels(writer, self.not_covered)
        self._signatures: Numbers[Signature] = Numbers(
            writer, lambda number, one: msgspec.structs.replace(one, id=number)
        )
        self._uncovered: set[NotCovered] = set()
        self._metas: dict[TensorMeta, TensorMeta] = {}

    def signature(self, site: LaunchSite, values: Sequence[Any], grid: Grid, phase: Phase) -> Signature:
        """The signature of a launch, without a number."""
        kernel = self._kernels.of(site)
        declared = kernel.declared
        if site.kind == "interpreted":
            named = zip(site.names, values, strict=True)
            declared = declared._replace(addresses=frozenset(n for n, v in named if self.points(v)))
        args = tuple(
            self._argument(name, value, declared) for name, value in zip(site.names, values, strict=True)
        )
        if followed := ", ".join(arg.name for arg in args if arg.addresses):
            what = f"what {site.name} reads and writes at addresses that it is given ({followed})"
            self.not_covered(what, "the tensors themselves as arguments")
        device = next((arg.tensor.device for arg in args if arg.tensor), "")
        return Signature(0, kernel.number, grid, phase, device, args)

    def whole_writes(self, site: LaunchSite, launch: Signature) -> set[str]:
        """The arguments of a launch on a GPU whose earlier contents cannot matter."""
        writes = self._kernels.of(site).whole_writes
        return writes.of(launch.grid, launch.args) if writes is not None else set()

    def number(self, signature: Signature) -> int:
        """The number of a signature, for a launch that is about to be written."""
        return self._signatures.of(signature)

    def meta(self, tensor: torch.Tensor) -> TensorMeta:
        """The layout of a tensor, as one object for all that have it."""
        meta = tensor_meta(tensor)
        if len(self._metas) >= _METAS:
            self._metas.clear()
        return self._metas.setdefault(meta, meta)

    def storage(self, tensor: torch.Tensor) -> int:
        """The number of a tensor's storage."""
        storage = tensor.untyped_storage()
        return self._storages.number(storage.data_ptr(), storage.nbytes())

    def not_covered(self, what: str, setting: str) -> None:
        """Record, once, that something was not covered."""
        record = NotCovered(what, setting)
        if record not in self._uncovered:
            self._uncovered.add(record)
            self._writer.append(record)

    def _argument(self, name: str, value: object, declared: Declared) -> Argument:
        tensor, addresses = tensor_of(value), name in declared.addresses
        if tensor is None:
            addresses |= hasattr(value, "data_ptr")  # an object that Triton takes for a pointer
            return Argument(name, value=plain_scalar(value), addresses=addresses)
        role, descriptor = declared.roles.get(name, "unknown"), descriptor_of(value)
        return Argument(name, role, self.meta(tensor), addresses=addresses, descriptor=descriptor)

    def points(self, value: object) -> bool:
        """True if a value looks like addresses: it, or all its elements, point to known memory."""
        tensor = tensor_of(value)
        if tensor is not None and tensor.dtype in (torch.int64, torch.uint64) and tensor.device.type == "cpu":
            with dispatch_disabled():
                return self._storages.hold(element_bytes(tensor).view(np.uint64))
        plain = isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 64
        return plain and self._storages.hold(np.array([value], np.uint64))
