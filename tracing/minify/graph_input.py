"""The inputs of a small graph: storages with their bytes, and the tensors in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from tracing.analyze.minify.graph_edit import GraphEdit, InputChange
from tracing.minify.recorded_values import StoredTensor, bytes_of


@dataclass(frozen=True, slots=True)
class GraphInputs:
    """Inputs by name, in the order of placeholders, and the bytes of their storages by number."""

    stored: dict[str, StoredTensor]
    contents: dict[int, torch.Tensor]
    numbers: dict[str, int | float | bool]  # inputs that are no tensors

    def tensors(self) -> dict[str, torch.Tensor]:
        """New tensors, leaves of autograd, that share storages as recorded."""
        storages = {number: content.clone() for number, content in self.contents.items()}
        return {name: _placed(storages[one.storage], one) for name, one in self.stored.items()}

    def shared(self, name: str) -> bool:
        """True if another input lies in the same storage."""
        return sum(one.storage == self.stored[name].storage for one in self.stored.values()) > 1

    def with_tensor(self, name: str, tensor: torch.Tensor, *, share: bool = False) -> GraphInputs:
        """The same with one input that has these elements and strides.

        share -- True: it stays in its storage, which other inputs share
        """
        old = self.stored[name]
        storage = old.storage if share else 1 + max(self.contents)
        shape, stride = tuple(tensor.shape), tuple(tensor.stride())
        stored = replace(old, storage=storage, shape=shape, stride=stride, offset=old.offset if share else 0)
        contents = self.contents if share else {**self.contents, storage: bytes_of(tensor).clone()}
        tensors = {**self.stored, name: stored}
        used = {one.storage for one in tensors.values()}
        left = {number: one for number, one in contents.items() if number in used}
        return GraphInputs(tensors, left, self.numbers)


def edited(inputs: GraphInputs, edit: GraphEdit) -> GraphInputs:
    """The inputs after the changes of an edit, those of sizes first."""
    for size in edit.sizes:
        for name, stored in inputs.stored.items():
            if size.size in stored.shape:
                shape = [size.smaller if one == size.size else one for one in stored.shape]
                inputs = _narrowed(inputs, name, shape)
        numbers = {n: size.smaller if v == size.size else v for n, v in inputs.numbers.items()}
        inputs = replace(inputs, numbers=numbers if size.literals else inputs.numbers)
    for change, name in edit.changes:
        if name in inputs.stored:
            inputs = _changed(inputs, change, name)
    return inputs


def _placed(storage: torch.Tensor, stored: StoredTensor) -> torch.Tensor:
    empty = torch.empty(0, dtype=stored.dtype, device=storage.device)
    tensor = empty.set_(storage.untyped_storage(), stored.offset, stored.shape, stored.stride)
    return tensor.requires_grad_(stored.grad)


def _narrowed(inputs: GraphInputs, name: str, shape: Sequence[int]) -> GraphInputs:
    tensor = inputs.tensors()[name].detach()
    for dim, size in enumerate(shape):
        tensor = tensor.narrow(dim, 0, size)
    if inputs.shared(name):
        return inputs.with_tensor(name, tensor, share=True)
    return inputs.with_tensor(name, _compact(tensor))


def _changed(inputs: GraphInputs, change: InputChange, name: str) -> GraphInputs:
    if change == "no grad":
        return replace(inputs, stored={**inputs.stored, name: replace(inputs.stored[name], grad=False)})
    tensor = inputs.tensors()[name].detach()
    if change == "own storage":
        return inputs.with_tensor(name, _compact(tensor))
    if change == "contiguous":
        return inputs.with_tensor(name, tensor.clone(memory_format=torch.contiguous_format))
    share = inputs.shared(name)
    with_values = _with_values(tensor, change)
    if not share:
        return inputs.with_tensor(name, with_values)
    tensor.copy_(with_values)  # the storage is a clone, which the other inputs share
    content = bytes_of(tensor).clone()
    return replace(inputs, contents={**inputs.contents, inputs.stored[name].storage: content})


def _with_values(tensor: torch.Tensor, change: InputChange) -> torch.Tensor:
    result = _compact(tensor)
    one = result.as_strided(result.shape, result.stride())
    if change == "small integers":
        values = one if one.dtype == torch.bool else one.nan_to_num().clamp(0 if _unsigned(one) else -8, 8)
        values = values.round() if values.is_floating_point() else values
    else:
        values = torch.zeros_like(one) if change == "zeros" else torch.ones_like(one)
    return _written(result, values)


def _unsigned(tensor: torch.Tensor) -> bool:
    return not tensor.is_floating_point() and not tensor.is_complex() and not tensor.dtype.is_signed


def _compact(tensor: torch.Tensor) -> torch.Tensor:
    # a clone whose dimensions have the same order in memory, without gaps; expanded dimensions stay expanded
    order = sorted(range(tensor.dim()), key=lambda dim: (tensor.stride(dim), -dim))
    strides, step = [0] * tensor.dim(), 1
    for dim in order:
        if tensor.stride(dim) or tensor.shape[dim] == 1:
            strides[dim] = step
            step *= max(1, tensor.shape[dim])
    result = torch.empty_strided(tensor.shape, strides, dtype=tensor.dtype, device=tensor.device)
    return _written(result, tensor)


def _written(result: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    # of an expanded dimension one element is written for all
    whole = result
    for dim, step in enumerate(result.stride()):
        if step == 0 and result.shape[dim] > 1:
            result, values = result.narrow(dim, 0, 1), values.narrow(dim, 0, 1)
    result.copy_(values)
    return whole
