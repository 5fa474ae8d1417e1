"""One launch of a Triton kernel, in the form of the other calls of torch's DebugMode."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch

from tracing.launch.launch_site import tensor_of
from tracing.upstream.torch.torch_debug_mode import TritonKernelCall as UpstreamKernelCall
from tracing.upstream.torch.torch_debug_mode import argument_text


class TritonKernelCall(UpstreamKernelCall):
    """One launch of a Triton kernel; indices are positions in `args`.

    grid           -- programs in x, y and z; empty if the launch failed
    args           -- the values, constants left out. A tensor is its short text, `t: f32[128, 128]`, unless
                      the mode has store_original_args; then later kernels may overwrite it
    kwargs         -- empty: a launch has named every argument
    pre_hashes     -- index -> hash of each tensor argument before the launch, also of one that is not read:
                      an output buffer has arbitrary contents. An argument that is a tuple is written
                      as a whole, and its hashes are a tuple
    post_hashes    -- the same after it
    modified_args  -- arguments that the kernel's TTIR declares written, or possibly written, and arguments
                      that changed. A declared write may rewrite the same bytes or be masked off; a change may
                      come through another argument that shares the memory. Without hashes, only declared ones
    log            -- "hash": of the tensors written, "input_hash": of those read, in argument order;
                      "hash_error" or "not_recorded" where there are none, and why
    record         -- "output": clones of the tensors written, in argument order

    Source: torch.utils._debug_mode, which treats it like its own calls. Its check_hash_mismatches()
    subtracts hashes that differ: it needs numbers, such as "norm".
    """

    pre_hashes: dict[int, Any]  # type: ignore[assignment]
    post_hashes: dict[int, Any]  # type: ignore[assignment]
    log: dict[str, Any]
    record: dict[str, Any]

    def __init__(
        self, kernel_name: str, arg_names: Sequence[str], args: Sequence[Any], call_depth: int
    ) -> None:
        super().__init__(kernel_name, {}, call_depth)
        self.grid: tuple[int, ...] = ()
        self.arg_names = tuple(arg_names)
        self.args = tuple(args)
        self.modified_args: set[int] = set()
        self.pre_hashes, self.post_hashes = {}, {}
        self.log, self.record = {}, {}
        self._margin = ""  # of the lines after the first

    def stringify_args(self, attributes: list[str], tensor_memo: Any = None) -> None:
        """Replace the tensors by their text."""
        self.args = tuple(
            _text(value, attributes, tensor_memo) if tensors_of(value) else value for value in self.args
        )

    def render(self, attributes: list[str]) -> str:
        """The call, one argument a line; attributes are those of tensors to show."""
        marks = ("[OUT] " if i in self.modified_args else "" for i in range(len(self.args)))
        arguments = ",\n".join(
            f"{self._margin}    {mark}{name}={_text(value, attributes)}"
            for mark, name, value in zip(marks, self.arg_names, self.args, strict=True)
        )
        notes = self._notes()
        head = f"[Triton] {self.kernel_name}[grid={self.grid}]"
        return f"{head}(\n{arguments}\n{self._margin})" + (f"  # {notes}" if notes else "")

    def indented(self) -> TritonKernelCall:
        """The same call, with all lines indented like the first line in debug_string()."""
        other = copy.copy(self)
        other._margin = "  " * (self.call_depth + 1)
        return other

    def _notes(self) -> dict[str, Any]:
        if not self.post_hashes:
            return self.log
        outputs = [self.arg_names[i] for i in sorted(self.modified_args)]
        hashes = {"pre_hashes": self.pre_hashes, "post_hashes": self.post_hashes}
        return {"outputs": outputs, **hashes, **self.log}


def tensors_of(value: object) -> list[torch.Tensor]:
    """The tensors of one argument; of a tuple, those of its members."""
    if isinstance(value, tuple):
        return [tensor for member in value for tensor in tensors_of(member)]
    tensor = tensor_of(value)
    return [] if tensor is None else [tensor]


def _text(value: object, attributes: list[str], memo: Any = None) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(_text(member, attributes, memo) for member in value)})"
    tensor = tensor_of(value)
    if tensor is None:
        return str(value)
    text = str(argument_text(tensor, attributes, memo))
    return text if tensor is value else f"{type(value).__name__}({text})"  # a descriptor of the tensor
