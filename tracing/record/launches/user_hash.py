"""Records what a user's hash_fn returns for the tensors before and after each launch."""

from __future__ import annotations

import importlib
import inspect
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias, cast

import msgspec
import torch

from tracing.errors import Problem
from tracing.launch.coverage import NO_GRAPHS
from tracing.launch.launch_site import tensor_of
from tracing.launch.on_stream import unrecorded
from tracing.model import Scalar, UserHash
from tracing.program.case import describe, import_file
from tracing.store import RunWriter
from tracing.upstream.torch.dynamo import untraced

HashFn: TypeAlias = Callable[[torch.Tensor], Any]

_FAILED = 256  # more waiting launches than this mean that the launch before them failed


@dataclass(slots=True)
class _Hashed:
    # a launch between its two hooks
    launch: int
    stream: int
    before: dict[int, Scalar] = field(default_factory=dict)
    after: dict[int, Scalar] | None = None


class UserHashes:
    """Calls a user's function on the tensors of every launch, while the program runs.

    The function may fail at any launch, in the middle of a model: the model continues without further hashes,
    and `failure` holds the error.
    """

    def __init__(self, writer: RunWriter, hash_fn: HashFn, not_covered: Callable[[str, str], None]) -> None:
        """hash_fn -- tensor -> number, string, bool or None; it must not change the tensor"""
        self.failure = ""
        self._writer = writer
        # Dynamo must not trace it if the launching program is being compiled
        self._hash_fn: HashFn = untraced(hash_fn)
        self._file = source_file(hash_fn)
        self._not_covered = not_covered
        self._running: deque[_Hashed] = deque()  # in launch order

    def before(self, launch: int, positions: Sequence[int], values: Sequence[Any], stream: int) -> None:
        """Hash the tensors before the launch; synchronises the device if the function does."""
        if not self.failure:
            hashed = _Hashed(launch, stream)
            self._running.append(hashed)
            hashed.before = self._hashes(hashed, "before", positions, values)

    def after(self, launch: int, positions: Sequence[int], values: Sequence[Any]) -> None:
        """Hash the tensors after the launch, and write the values of both sides."""
        hashed = next((one for one in self._running if one.launch == launch), None)
        if self.failure or hashed is None:
            return
        hashed.after = self._hashes(hashed, "after", positions, values)
        lines = []
        while self._running and (self._running[0].after is not None or len(self._running) > _FAILED):
            done = self._running.popleft()
            if done.after is not None:
                lines.append(UserHash(done.launch, done.before, done.after))
        self._writer.extend(lines)

    def close(self) -> None:
        """Write the values of launches that failed."""
        done = [one for one in self._running if one.after is not None]
        self._writer.extend([UserHash(one.launch, one.before, one.after or {}) for one in done])
        self._running.clear()

    def _hashes(
        self, hashed: _Hashed, side: str, positions: Sequence[int], values: Sequence[Any]
    ) -> dict[int, Scalar]:
        tensors = {i: tensor for i in positions if (tensor := tensor_of(values[i])) is not None}
        hashes: dict[int, Scalar] = {}
        with unrecorded(hashed.stream, tensors.values()) as capturing:
            if capturing:
                self._not_covered("hash_fn of launches captured into a CUDA graph", NO_GRAPHS)
                return hashes
            for position, tensor in tensors.items():
                try:
                    hashes[position] = _scalar(self._hash_fn(tensor))
                except (Exception, SystemExit) as error:
                    self._failed(f"launch {hashed.launch}, argument {position}, {side} it", error)
                    break
        return hashes

    def _failed(self, origin: str, error: BaseException) -> None:
        self.failure = f"hash_fn failed at {origin}: {describe(error, self._file)}"
        self._not_covered(f"hashes by hash_fn, from {origin} on", "a hash_fn that takes any tensor")


def _scalar(value: object) -> Scalar:
    plain = next((kind(value) for kind in (bool, int, float, str) if isinstance(value, kind)), None)
    if plain is None and value is not None:
        raise TypeError(f"it returned a {type(value).__name__}; a number, str, bool or None is needed")
    msgspec.json.encode(plain)  # raises for what JSON cannot hold: text that is not Unicode
    return plain


def source_file(hash_fn: HashFn) -> Path:
    """The file of a function, whose line an error names."""
    code = getattr(inspect.unwrap(hash_fn), "__code__", None)
    return Path(code.co_filename if code is not None else "")


def load_hash_fn(name: str) -> HashFn:
    """The function named `FILE.py:NAME` or `module:NAME`; raises Problem if there is none."""
    origin, _, attribute = name.rpartition(":")
    if not origin or not attribute:
        raise Problem(f"{name!r} names no function", "give it as FILE.py:NAME or module:NAME")
    path = Path(origin)
    try:
        module = import_file(path.resolve()) if path.suffix == ".py" else importlib.import_module(origin)
    except ImportError as error:
        raise Problem(f"{origin} cannot be imported: {error}", "give a file as FILE.py:NAME") from error
    function = getattr(module, attribute, None)
    if not callable(function):
        raise Problem(f"{origin} has no function {attribute}", f"add `def {attribute}(tensor)` to it")
    return cast(HashFn, function)
