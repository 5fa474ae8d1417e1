"""Finds what an operator of the program does although it does not declare it.

It may change an input, or return one, or a view of one. torch.compile orders and merges reads by what schemas
declare, takes a result for new memory, and expects the dtype, shape and strides that the operator's fake
implementation returns, so a correct compiler gives wrong results. Operators of torch
itself are not observed: their schemas are tested.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from tracing.digest.host import digest
from tracing.launch.hidden_computation import HiddenComputation
from tracing.launch.tensors import has_memory
from tracing.program.user_code import is_users
from tracing.upstream.inductor.code import is_generated, program_lines
from tracing.upstream.torch.custom_operators import custom_operator
from tracing.upstream.torch.dispatch_modes import OperatorMode
from tracing.upstream.torch.fake_tensors import fake_result
from tracing.upstream.torch.operator_schemas import OWN_NAMESPACES, is_composite, is_operator, schema_of
from tracing.upstream.torch.pytrees import tree_leaves, tree_tensors
from tracing.upstream.torch.tensor_subclasses import has_storage, storage_key


class InputBits:
    """The bits of the inputs that an operator does not declare to write, before it is executed."""

    def __init__(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Cost: a digest of each such input; nothing for an operator of torch itself."""
        self.operator = custom_operator(func) or ""
        self._inputs: list[tuple[str, torch.Tensor, Any]] = []
        if self.operator:
            self._take(
                _named(func, args, kwargs), {one.name for one in schema_of(func).arguments if _written(one)}
            )

    def _take(self, given: Mapping[str, Any], declared: set[str]) -> None:
        for name, value in given.items():
            for leaf in tree_leaves(value) if name not in declared else ():
                if isinstance(leaf, torch.Tensor) and leaf.layout == torch.strided and not leaf.is_quantized:
                    self._inputs.append((name, leaf, digest(leaf).bits))

    def changed(self) -> list[tuple[str, torch.Tensor]]:
        """Name and tensor of each input whose bits are others now."""
        return [(name, one) for name, one, before in self._inputs if digest(one).bits != before]


class UndeclaredEffects(OperatorMode):  # type: ignore[no-untyped-call, unused-ignore]
    """While active, notes what operators of the program do against their schemas, and the first line of each.

    Cost: some 4 µs for each operator that this thread calls, and digests of the inputs of the program's own.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call, unused-ignore]
        self._noted: dict[str, str] = {}  # by effect: the line, "train.py:12"
        self._observed: dict[Any, bool] = {}  # by operator

    @property
    def texts(self) -> tuple[str, ...]:
        """Each effect: "mylib::op writes x, and its schema does not say so (train.py:12)"."""
        return tuple(effect_text(*one) for one in self._noted.items())

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if not self._observes(func) or not all(map(has_memory, tree_tensors((args, kwargs)))):
            return func(*args, **kwargs)
        with HiddenComputation():
            inputs = InputBits(func, args, kwargs)
        result = func(*args, **kwargs)
        with HiddenComputation():
            for effect in undeclared_effects(inputs, inputs.changed(), func, args, kwargs, result):
                self._noted.setdefault(effect, calling_line())
        return result

    def _observes(self, func: Any) -> bool:
        known = self._observed.get(func)
        if known is None:  # a higher order operator is none
            known = self._observed[func] = is_operator(func) and custom_operator(func) is not None
        return known


def undeclared_effects(
    inputs: InputBits,
    changed: Sequence[tuple[str, torch.Tensor]],
    func: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    result: Any,
) -> Iterator[str]:
    """What a call of an operator did against its schema, in the third person.

    inputs, changed -- of before the call, and those that it changed
    """
    for name, _ in changed:
        yield f"{inputs.operator} writes {name}, and its schema does not say so"
    for name in _returned_inputs(func, args, kwargs, result):
        yield f"{inputs.operator} returns the memory of {name}, and its schema says that it is new"
    for unlike in _other_results(func, args, kwargs, result):
        yield f"{inputs.operator} returns {unlike} as its fake implementation does"


def effect_text(effect: str, line: str) -> str:
    """An effect, with its line if it is known."""
    return f"{effect} ({line})" if line else effect


def _returned_inputs(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> Iterator[str]:
    """The names of the inputs whose memory an output shares, of which the schema says that it is new.

    A composite operator is taken apart by torch.compile: its schema decides nothing.
    """
    if custom_operator(func) is None or func.namespace in OWN_NAMESPACES or is_composite(func.name()):
        return
    returns = schema_of(func).returns
    results = result if len(returns) > 1 else (result,)
    new = [one for one, declared in zip(results, returns, strict=False) if not declared.alias_info]
    shared = _storages(new)
    for name, value in _named(func, args, kwargs).items():
        if shared & _storages(value):
            yield name


def _other_results(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> Iterator[str]:
    """What an operator of the program returns, and its fake implementation otherwise: "float16, not float32".

    torch.compile compiles the code that reads a result for what the fake implementation returns.
    """
    if custom_operator(func) is None or func.namespace in OWN_NAMESPACES or is_composite(func.name()):
        return
    with suppress(Exception):  # it has none, or one for a compile only, as where the values decide a shape
        fakes = tree_leaves(fake_result(func, args, kwargs))
        for real, fake in zip(tree_leaves(result), fakes, strict=True):
            if isinstance(real, torch.Tensor) and isinstance(fake, torch.Tensor):
                yield from _unlike(real, fake)


def _unlike(real: torch.Tensor, fake: torch.Tensor) -> Iterator[str]:
    # the first fact that differs
    if real.dtype != fake.dtype:
        yield f"{str(real.dtype).removeprefix('torch.')}, not {str(fake.dtype).removeprefix('torch.')}"
    elif real.shape != fake.shape:
        yield f"{list(real.shape)}, not {list(fake.shape)}"
    elif real.layout == fake.layout == torch.strided:
        used = [i for i, size in enumerate(real.shape) if size > 1]
        strides = [tuple(one.stride(i) for i in used) for one in (real, fake)]
        if strides[0] != strides[1] and real.numel():
            yield f"strides {real.stride()}, not {fake.stride()}"


def calling_line() -> str:
    """The line of the user's code that makes the current call: "train.py:12"; empty: there is none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file, line = frame.f_code.co_filename, frame.f_lineno
        made_from = program_lines(file, line) if is_generated(file) else [(file, line)]
        for file, line in made_from:
            if is_users(file):
                return f"{Path(file).name}:{line}"
        frame = frame.f_back
    return ""


def _named(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    given = {one.name: value for one, value in zip(schema_of(func).arguments, args, strict=False)}
    return {**given, **kwargs}


def _storages(value: Any) -> set[int]:
    return {storage_key(one.untyped_storage()) for one in tree_tensors(value) if has_storage(one)}


def _written(argument: Any) -> bool:
    return bool(argument.alias_info and argument.alias_info.is_write)
