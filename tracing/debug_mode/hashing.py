"""Hashes tensors with the function that DebugMode's user chose, and notes its failures."""

from __future__ import annotations

import functools
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from tracing.digest import host as digest
from tracing.launch.hidden_computation import HiddenComputation
from tracing.program.case import describe
from tracing.record.launches.user_hash import HashFn, source_file
from tracing.upstream.torch.torch_debug_mode import hash_tensor_fn, norm_hash_fn

NAMES = ("norm", "hash_tensor")  # of torch's hash functions


@dataclass(frozen=True, slots=True)
class Hashing:
    """A hash function; if it fails in the middle of a model, the error is kept until a call can report it."""

    fn: HashFn
    inputs: bool = False
    failures: list[str] = field(default_factory=list)

    def __call__(self, tensor: torch.Tensor) -> Any:
        try:
            value = self.fn(tensor)
        except (Exception, SystemExit) as error:
            self.failures.append(f"hash_fn raised {describe(error, source_file(self.fn))}")
            return None
        if _is_hash(value):
            return value
        what = f"hash_fn returned a {type(value).__name__}"
        self.failures.append(f"{what}; it must be a number, str, bytes, None or a tuple of these")
        return None

    def failure(self, *_dispatched: Any) -> dict[str, Any] | None:
        """The failure since the last call of this method, which belongs to the call being recorded."""
        if not self.failures:
            return None
        log = {"hash_error": self.failures[0]}
        self.failures.clear()
        return log

    def of(self, tensors: Mapping[int, list[torch.Tensor]], values: Sequence[Any]) -> dict[int, Any]:
        """The hashes of a call's tensors by position; a tuple of hashes for a tuple of tensors."""
        hashes = {i: tuple(map(self, members)) for i, members in tensors.items()}
        return {i: hashed if isinstance(values[i], tuple) else hashed[0] for i, hashed in hashes.items()}


def _is_hash(value: object) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_hash, value))
    return value is None or isinstance(value, (numbers.Number, str, bytes))


def hash_fn_of(chosen: HashFn | str | list[str] | None) -> HashFn:
    """The hash function for an argument of `DebugMode.log_tensor_hashes`: a function, a name, or None."""
    # names that are not upstream's were refused by upstream
    if chosen is None:
        return lambda tensor: digest.bits(tensor)[0]
    if isinstance(chosen, list):
        several = [hash_fn_of(name) for name in chosen]
        return lambda tensor: tuple(fn(tensor) for fn in several)
    if isinstance(chosen, str):
        return _named(chosen)
    return chosen


def hidden_hash(name: str) -> HashFn:
    """torch's hash function "norm" or "hash_tensor", which a recording does not see read a tensor."""
    fn = _named(name)

    def hashed(tensor: torch.Tensor) -> Any:
        with HiddenComputation():
            return fn(tensor)

    return hashed


def _named(name: str) -> HashFn:
    return functools.partial(norm_hash_fn if name == "norm" else hash_tensor_fn, use_scalar=True)
