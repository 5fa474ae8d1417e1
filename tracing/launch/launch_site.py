"""A kernel at one launch point, with its compiled artefacts."""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Literal, Protocol, TypeAlias

import torch
from triton.tools.tensor_descriptor import TensorDescriptor

from tracing.launch.memory.accesses import Accesses
from tracing.launch.pointer_objects import addressed
from tracing.launch.roles import Declared
from tracing.model import Descriptor
from tracing.upstream.torch.dispatch_modes import dispatch_disabled
from tracing.upstream.triton.jit import TensorWrapper, torch_names

Grid: TypeAlias = tuple[int, int, int]
KernelKind: TypeAlias = Literal["triton", "interpreted", "cpp"]


@dataclass(frozen=True, slots=True)
class KernelArtefacts:
    """Hash, configuration, constants and artefacts of one kernel."""

    hash: str
    target: str  # "cuda:90"
    settings: Mapping[str, int]  # num_warps, num_stages, num_ctas
    constants: Mapping[str, str]
    artefacts: Mapping[str, str | bytes]  # by stage: "ttir", "ptx", ...
    declared: Callable[[], Declared]  # raises ValueError or KeyError where there is no readable TTIR
    function: Any = None  # the JITFunction
    types: Mapping[str, Any] = field(default_factory=dict)  # of the arguments: "*fp32", "i32", "constexpr"
    options: Mapping[str, str] | None = None  # of the compiler: {"maxnreg": "64"}; None: not known
    passed: Sequence[Any] = ()  # the functions among its constants, as `ACT: tl.constexpr`


class LaunchSite(Protocol):
    """A kernel at one launch point; the recorder reads its facts once, after the first launch."""

    kind: KernelKind
    name: str
    names: Sequence[str]  # of the values that a listener receives, in order; no constants
    flat: FlatSite | None  # of a kernel with arguments that are tuples
    scalars: Sequence[int] | None  # where generated code launches: the positions that are no tensors

    @property
    def accesses(self) -> Accesses | None:
        """The memory accesses of a launch under TRITON_INTERPRET=1; None for other launches."""

    @property
    def binary(self) -> object:
        """What the next launch executes: the same object as long as `compiled` is the same; None: unknown."""

    @property
    def settled(self) -> bool:
        """True once the configuration is chosen: an autotuner chooses at its first launch."""

    def grid(self, values: Sequence[Any]) -> Grid:
        """The grid of a launch with these values."""

    def compiled(self) -> KernelArtefacts:
        """The compiled kernel."""


class FlatSite:
    """A site at which the members of tuples replace the tuples: `args.0`, `args.1.0`."""

    flat: FlatSite | None = None
    scalars: Sequence[int] | None = None

    def __init__(self, site: LaunchSite, paths: Mapping[str, tuple[int, ...]]) -> None:
        """paths -- name of each member, to the indices that lead to it from the site's values"""
        self._site = site
        self._paths = list(paths.values())
        self.kind, self.name, self.settled = site.kind, site.name, site.settled
        self.binary = site.binary
        self.names: Sequence[str] = list(paths)

    @property
    def accesses(self) -> Accesses | None:
        return self._site.accesses

    def at(self, site: LaunchSite) -> FlatSite:
        """The same of another site."""
        other = copy.copy(self)
        other._site = site
        return other

    def values(self, nested: Sequence[Any]) -> list[Any]:
        """The values that `names` refer to, among the values of the site."""
        return [reduce(operator.getitem, path, nested) for path in self._paths]

    def grid(self, values: Sequence[Any]) -> Grid:
        return self._site.grid(values)

    def compiled(self) -> KernelArtefacts:
        return self._site.compiled()


def launched_grid(sizes: Sequence[Any]) -> Grid:
    """The grid of up to three sizes, as a launcher reads them; raises TypeError if one is no integer."""
    x, y, z = (*map(operator.index, sizes), 1, 1, 1)[:3]
    return x, y, z


def tensor_of(value: object) -> torch.Tensor | None:
    """The tensor of a kernel argument: itself, or the one that a descriptor or another object wraps."""
    if isinstance(value, torch.Tensor):
        return value
    base = getattr(value, "base", None)
    if isinstance(base, TensorWrapper):  # a descriptor of a reinterpretation
        return tensor_of(base)
    if isinstance(value, TensorWrapper):
        return _reinterpreted(value, value.base)
    if hasattr(value, "data_ptr"):
        return addressed(value)
    return base if isinstance(base, torch.Tensor) else None


def descriptor_of(value: object) -> Descriptor | None:
    """How a kernel argument describes its tensor; None: it is no tensor descriptor of `triton.tools`."""
    if not isinstance(value, TensorDescriptor):
        return None
    shape, strides, block = (
        tuple(map(int, sizes)) for sizes in (value.shape, value.strides, value.block_shape)
    )
    rounds = getattr(value, "round_f32_to_tf32", False)  # Triton 3.6 has none
    return Descriptor(shape, strides, block, value.padding, rounds)


def _reinterpreted(wrapper: TensorWrapper, base: torch.Tensor) -> torch.Tensor:
    # a view with the dtype of the kernel, if torch has it
    known = (getattr(torch, name, None) for name in torch_names(wrapper.dtype))
    dtype = next((one for one in known if isinstance(one, torch.dtype)), base.dtype)
    if dtype.itemsize != base.itemsize:
        return base
    with dispatch_disabled():
        return base.detach().view(dtype)


def on_host(values: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """The tensors in host memory among named values."""
    tensors = {name: tensor_of(value) for name, value in values.items()}
    return {
        name: tensor for name, tensor in tensors.items() if tensor is not None and tensor.device.type == "cpu"
    }
