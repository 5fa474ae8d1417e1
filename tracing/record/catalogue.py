"""Writes data that repeats from launch to launch only once: kernels, signatures, uncovered launches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import msgspec
import numpy as np
import torch

from tracing.digest.host import element_bytes
from tracing.launch.kernel_module import kernel_module
from tracing.launch.launch_site import Grid, KernelArtefacts, LaunchSite, tensor_of
from tracing.launch.roles import Declared
from tracing.launch.storages import Storages
from tracing.launch.tensors import tensor_meta
from tracing.model import Argument, CopiedFunction, Kernel, NotCovered, Phase, Scalar, Signature, TensorMeta
from tracing.store import RunWriter
from tracing.store.numbers import Numbers
from tracing.upstream.inductor.user_kernels import copied_functions
from tracing.upstream.torch.dispatch_modes import dispatch_disabled
from tracing.upstream.triton.jit import GluonJITFunction

_METAS = 1 << 14  # layouts that are remembered


class Catalogue:
    """The numbers by which launches refer to earlier records."""

    def __init__(self, writer: RunWriter, storages: Storages) -> None:
        self._writer = writer
        self.segments = writer.segments
        self._storages = storages
        self._kernels: dict[tuple[str, str, str], int] = {}
        self._declared: dict[int, Declared] = {}
        self._signatures: Numbers[Signature] = Numbers(
            writer, lambda number, one: msgspec.structs.replace(one, id=number)
        )
        self._uncovered: set[NotCovered] = set()
        self._metas: dict[TensorMeta, TensorMeta] = {}

    def signature(self, site: LaunchSite, values: Sequence[Any], grid: Grid, phase: Phase) -> Signature:
        """The signature of a launch, without a number."""
        kernel, declared = self._kernel(site)
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
        return Signature(0, kernel, grid, phase, device, args)

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
            plain = value is None or isinstance(value, (bool, int, float, str))
            return Argument(name, value=cast(Scalar, value) if plain else repr(value), addresses=addresses)
        return Argument(name, declared.roles.get(name, "unknown"), self.meta(tensor), addresses=addresses)

    def points(self, value: object) -> bool:
        """True if a value looks like addresses: it, or all its elements, point to known memory."""
        tensor = tensor_of(value)
        if tensor is not None and tensor.dtype in (torch.int64, torch.uint64) and tensor.device.type == "cpu":
            with dispatch_disabled():
                return self._storages.hold(element_bytes(tensor).view(np.uint64))
        plain = isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 64
        return plain and self._storages.hold(np.array([value], np.uint64))

    def _kernel(self, site: LaunchSite) -> tuple[int, Declared]:
        compiled = site.compiled()
        key = (site.name, compiled.hash, compiled.target)
        number = self._kernels.get(key)
        if number is None:
            number = self._kernels[key] = len(self._kernels)
            self._writer.append(self._describe(number, site, compiled))
        if site.kind == "interpreted":  # its accesses are recorded anew at each launch
            return number, compiled.declared()
        if number not in self._declared:
            self._declared[number] = self._declared_by(site, compiled)
        return number, self._declared[number]

    def _declared_by(self, site: LaunchSite, compiled: KernelArtefacts) -> Declared:
        try:
            return compiled.declared()
        except (KeyError, ValueError) as error:
            what = f"what {site.name} reads and writes"
            if isinstance(compiled.function, GluonJITFunction):
                self.not_covered(f"{what}: a Gluon kernel has no TTIR", "")
            else:
                self.not_covered(f"{what}: no TTIR to read ({error})", "a fresh Triton cache")
            return Declared({})

    def _describe(self, number: int, site: LaunchSite, compiled: KernelArtefacts) -> Kernel:
        function = compiled.function
        code = getattr(getattr(function, "fn", None), "__code__", None)
        source = getattr(function, "raw_src", None)
        module = kernel_module(function)
        return Kernel(
            id=number,
            name=site.name,
            hash=compiled.hash,
            target=compiled.target,
            num_warps=compiled.settings.get("num_warps", 0),
            num_stages=compiled.settings.get("num_stages", 0),
            num_ctas=compiled.settings.get("num_ctas", 0),
            constants={name: str(value) for name, value in compiled.constants.items()},
            stages={stage: self._writer.blob(content) for stage, content in compiled.artefacts.items()},
            source=self._writer.blob("".join(source)) if source else None,
            file=f"{code.co_filename}:{code.co_firstlineno}" if code is not None else None,
            kind=site.kind,
            module=self._writer.blob(module.text) if module else None,
            undefined=module.undefined if module else (),
            copied=tuple(
                CopiedFunction(copy.file, copy.line, copy.count, user.file, user.line)
                for copy, user in copied_functions(function)
            ),
        )
