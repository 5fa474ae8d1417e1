"""Record the values of a graph's nodes at each read.

A tensor is a part of a storage. The bytes of a storage are kept after the first node that uses it, and after
each node that changed them, so in-place writes, writes through views and writes of kernels are included.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import Interpreter, Node
from torch.fx.node import map_aggregate

from tracing.upstream.torch.tensor_subclasses import has_storage

_DATA = (
    bool, int, float, complex, str, type(None), type(...), slice, torch.dtype, torch.device, torch.layout,
    torch.memory_format, torch.Size,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """The position of a tensor in a storage; equal objects describe the same tensor."""

    storage: int  # number, in the order in which storages were met
    dtype: torch.dtype
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int
    grad: bool  # it requires gradients, and the graph began where they are made


@dataclass(slots=True)
class RecordedValues:
    """The values of one execution."""

    of: dict[str, Any] = field(default_factory=dict)  # by node; tensors as StoredTensor
    gradients: dict[str, torch.Tensor] = field(default_factory=dict)  # of nodes, by name
    contents: list[list[tuple[int, torch.Tensor]]] = field(default_factory=list)  # by storage: order, bytes

    def content(self, storage: int, order: int) -> torch.Tensor:
        """The bytes of a storage, [*] uint8, as the node of that order in the graph read them."""
        earlier = [content for written, content in self.contents[storage] if written < order]
        return earlier[-1] if earlier else self.contents[storage][0][1]


class ValueRecorder(Interpreter):
    """Executes a graph in eager and records `values`. Cost: two copies of every tensor that a node reads."""

    def __init__(self, module: torch.fx.GraphModule) -> None:
        # keeps the storage alive, so that no other one gets its address
        super().__init__(module, garbage_collect_values=False)
        self.values = RecordedValues()
        self._makes_gradients = torch.is_grad_enabled()
        self._storages: dict[int, int] = {}  # address -> number
        self._alive: list[torch.Tensor] = []
        self._order = {node: number for number, node in enumerate(module.graph.nodes)}

    def run_node(self, n: Node) -> Any:
        """Execute one node."""
        result = super().run_node(n)
        if n.op == "output":
            return result
        order = self._order[n]
        for read in n.all_input_nodes:
            for tensor in tensors_of(self.env[read]):
                self._note(tensor, order)
        self.values.of[n.name] = map_aggregate(result, lambda one: self._recorded(one, order))
        if isinstance(result, torch.Tensor) and result.requires_grad and not result.is_leaf:
            result.register_hook(  # type: ignore[no-untyped-call, unused-ignore]
                lambda grad: self._gradient(n.name, grad)
            )
        return result

    def _gradient(self, name: str, grad: torch.Tensor) -> None:
        self.values.gradients[name] = grad.detach().clone()

    def _recorded(self, value: Any, order: int) -> Any:
        if not (isinstance(value, torch.Tensor) and is_plain_tensor(value)):
            return value
        storage = self._note(value, order)
        shape, stride = tuple(value.shape), tuple(value.stride())
        grad = value.requires_grad and self._makes_gradients
        return StoredTensor(storage, value.dtype, shape, stride, int(value.storage_offset()), grad)

    def _note(self, tensor: torch.Tensor, order: int) -> int:
        # the number of the storage, whose bytes are kept if they are new
        now = bytes_of(tensor)
        address = tensor.untyped_storage().data_ptr() or -1 - len(self._storages)
        number = self._storages.setdefault(address, len(self.values.contents))
        if number == len(self.values.contents):
            self.values.contents.append([(order, now.clone())])
            self._alive.append(tensor.detach())
        elif not torch.equal(self.values.contents[number][-1][1], now):
            self.values.contents[number].append((order, now.clone()))
        return number


def bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    """The storage of a tensor as [*] uint8, without a copy."""
    return torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage())


def is_plain_tensor(value: torch.Tensor) -> bool:
    """True if a tensor is a strided part of a storage; False inside of torch.vmap."""
    plain = type(value) in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer) and has_storage(value)
    return plain and value.layout == torch.strided and not value.is_quantized and not value.is_conj()


def tensors_of(value: Any) -> Iterator[torch.Tensor]:
    """The tensors in a value that are strided parts of storages."""
    leaves: list[torch.Tensor] = []
    map_aggregate(value, lambda one: leaves.append(one) if isinstance(one, torch.Tensor) else None)
    return (one for one in leaves if is_plain_tensor(one))


def is_data(value: Any) -> bool:
    """True if a recorded value can be an input of a graph: tensors, numbers and containers of them."""
    known: list[bool] = []
    map_aggregate(value, lambda one: known.append(isinstance(one, (StoredTensor, *_DATA))))
    return all(known)
