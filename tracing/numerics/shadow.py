"""Compute a program's results in float64: execute every operator a second time, on wide copies of its inputs.

The program itself runs as it is. Each of its storages has a shadow of as many elements, in float64 or
complex128; integers keep their dtype. An operator that writes is executed on the shadows, too, so views,
in-place operators, mutated inputs, gradients and optimizers need no special rules. Random numbers are those
that the program drew.

With noise, each operator reads its inputs rounded at random to the program's dtype, and the program's inputs
are moved by up to the distance to the next number: such runs show how far rounding may move a result. A value
is rounded anew at each use, because in a fused kernel one use may read it unrounded, and another one rounded.

Limits: a Triton kernel that the program launches, an operator without float64, NumPy and other writes of the
host use the program's own values. `missing` names them for every result that depends on them,
except for writes of the host, which cannot be observed. Decisions in Python (`.item()`) are those of the
program, and so are those of `cond` and `while_loop`; `missing` names a branch that rounding decides.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import torch

from tracing.numerics.choices import Choices
from tracing.numerics.conversions import with_any_integer
from tracing.numerics.default_dtype import with_default_dtype
from tracing.numerics.operator_tensors import gives_views, written_names, written_tensors
from tracing.numerics.rounding import Noise, rounded_at_random
from tracing.numerics.shadow_storages import BY_ROUNDING, ShadowStorages, ValueOrigin, is_inexact
from tracing.numerics.ties import (
    compared,
    first,
    rounded,
    selects,
    without_rounding,
)
from tracing.numerics.undeclared_effects import InputBits, calling_line, undeclared_effects
from tracing.numerics.wide_operators import REDUCING, UNSUPPORTED, WideOperators
from tracing.program.building import is_building
from tracing.upstream.torch.dispatch_modes import OperatorMode, dispatch_disabled
from tracing.upstream.torch.higher_order import DECIDING, DENSE
from tracing.upstream.torch.operator_schemas import draws, is_composite, is_operator, schema_of
from tracing.upstream.torch.pytrees import tree_leaves, tree_map, tree_tensors
from tracing.upstream.torch.quantized_decomposed import quantization_parts
from tracing.upstream.torch.tensor_subclasses import as_tensor, is_zero

_PLAIN = (torch.Tensor, torch.nn.Parameter)
_READ = "aten::_local_scalar_dense"  # by Python, as `if` does
_EMPTY = ("aten::empty", "aten::new_empty", "aten::_empty")


class Shadow(OperatorMode):  # type: ignore[no-untyped-call, unused-ignore]
    """While active, shadows the program's computations on this thread and in its backward passes."""

    def __init__(
        self,
        noise: Noise | None = None,
        exact: Choices | None = None,
        tf32: Collection[str] | None = None,
    ) -> None:
        """noise -- None: exact results; else every rounding is random

        exact -- the choices of a run without noise
        tf32  -- products that may be computed in TF32, as `tf32_products`; None: by this process
        """
        super().__init__()  # type: ignore[no-untyped-call, unused-ignore]
        self._noise = noise
        self._operators = WideOperators(noise, tf32)
        self.choices = Choices(exact)
        self._storages = ShadowStorages(noise)
        self._branches: frozenset[str] = frozenset()  # of Python, on which all that follows depends
        # what the program's operators do and do not declare: sentences, with the first line
        self.undeclared: dict[str, str] = {}

    def of(self, tensor: torch.Tensor) -> torch.Tensor:
        """[*] the exact values of a tensor of the program."""
        return self._storages.view(tensor)

    def missing(self, tensor: torch.Tensor) -> frozenset[str]:
        """Names of operators and kernels without float64 on which a tensor depends."""
        known = self._storages.known(tensor)
        return known.origin.missing if known is not None else frozenset()

    def drawn(self, tensor: torch.Tensor) -> bool:
        """True if a tensor depends on random numbers that the program drew, not only its inputs."""
        known = self._storages.known(tensor)
        return known is not None and known.origin.drawn

    def written(self, tensor: torch.Tensor, by: str) -> None:
        """Something other than an operator wrote to a tensor: continue with the program's own values."""
        if tensor.layout == torch.strided:
            self._storages.take(tensor, ValueOrigin(frozenset([by])))

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if not is_operator(func):  # a higher order operator
            if (dense := DENSE.get(str(func))) is not None:
                return self._in_operators(str(func), dense, args, kwargs)
            return self._as_it_is(func, args, kwargs)
        own: Any = tree_map(_as_tensor, (args, kwargs))
        if not all(map(_is_strided, tree_tensors(own))):  # a sparse tensor has no shadow
            return self._as_it_is(func, args, kwargs)
        if _all_plain(own) and is_composite(func.name()):
            # in inference mode `linear` is not taken apart, nor are `to` and `reshape`, which may copy
            with self:
                return func.decompose(*args, **kwargs)
        if gives_views(func) or not _all_plain(own):
            return func(*args, **kwargs)
        if (parts := quantization_parts(func.name())) is not None:
            with self:
                return parts(*args, **kwargs)
        given = self._given(func, *own)
        if func.name() == _READ and own[0][0].dtype == torch.bool and self._decided_by_rounding(own[0][0]):
            self._branches = frozenset([f"a branch{BY_ROUNDING}"])
        sources = [known for leaf in tree_leaves(own) if (known := self._storages.known(leaf)) is not None]
        # the inputs of a compiled program are those of eager, whatever they were made of
        drawn = draws(func, args, kwargs) and not is_building()
        origin = ValueOrigin(
            self._branches.union(*(one.origin.missing for one in sources)),
            any(one.origin.drawn for one in sources) or drawn,
        )
        inputs = InputBits(func, args, kwargs)
        result = func(*args, **kwargs)
        changed = inputs.changed()
        self._follow(func, own, given, tree_map(_as_tensor, result), origin)
        for _, tensor in changed:
            self.written(tensor, inputs.operator)
        for effect in undeclared_effects(inputs, changed, func, args, kwargs, result):
            self.undeclared.setdefault(effect, calling_line())
        return result

    def _in_operators(
        self, name: str, dense: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        # a higher order operator by what it executes; a branch or a number of iterations is the program's
        origin = ValueOrigin()

        def decided(pred: Any) -> bool:
            nonlocal origin
            with dispatch_disabled():
                known = self._storages.known(pred)
                if known is not None:
                    by_rounding = [f"{shown}{BY_ROUNDING}"] if self._decided_by_rounding(pred) else []
                    origin |= known.origin | ValueOrigin(frozenset(by_rounding))
                return bool(pred)

        shown = name.removesuffix("_stack_output")
        if name in DECIDING:
            first, *others = args
            decision = (lambda *values: decided(first(*values))) if callable(first) else decided(first)
            args = (decision, *others)
        with self:
            result = dense(*args, **kwargs)
        if origin != ValueOrigin():
            for tensor in tree_tensors(result):
                self._storages.mark(tensor, origin)
        return result

    def _decided_by_rounding(self, pred: torch.Tensor) -> bool:
        return bool(self._storages.view(pred)) != bool(pred)

    def _as_it_is(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        # a higher order operator, or one of other layouts
        result = func(*args, **kwargs)
        written = written_tensors(func, args, kwargs) if is_operator(func) else []
        for tensor in [*written, *tree_tensors(tree_map(_as_tensor, result))]:
            if _all_plain(tensor) and _is_strided(tensor):
                self._storages.take(tensor, ValueOrigin(frozenset([str(func)])))
        return result

    # ---- one operator

    def _follow(self, func: Any, own: Any, given: Any, result: Any, origin: ValueOrigin) -> None:
        name = func.name()
        written = written_tensors(func, *own)
        if name.startswith(_EMPTY):
            return
        if name == "aten::native_dropout":
            self._dropped(own, given, result, origin)
            return
        if draws(func, *own):
            if "attention" in name:  # it computes more than random numbers
                origin |= ValueOrigin(frozenset([name]))
            for tensor in filter(_is_strided, [*written, *tree_tensors(result)]):
                self._storages.take(tensor, origin)
            return
        try:
            with with_default_dtype("float64"):  # in which torch.arange(3) / 2 is exact
                given = self.choices.sided(name, own[0], given, self._noise, self._storages.exact)
                computed = self._operators.computed(func, name, own, given)
            results = self.choices.tested(name, given, computed, self._noise)
            if self._noise is not None:
                if self._all_exact(compared(name, own[0]) or rounded(name, own[0])):
                    results = result
                results = with_any_integer(name, given[0], results, self._noise)
            if selects(name) and self._storages.exact(own[0][0]):
                results = first(own, results)
            exact_result = self._all_exact(tree_tensors(own)) and without_rounding(func, name, own, result)
        except UNSUPPORTED:
            for tensor in filter(_is_strided, [*written, *tree_tensors(result)]):
                self._storages.take(tensor, origin | ValueOrigin(frozenset([name])))
            return
        for tensor in written:
            self._storages.mark(tensor, origin)
        for tensor, exact in zip(tree_leaves(result), tree_leaves(results), strict=True):
            if not isinstance(tensor, torch.Tensor) or not _is_strided(tensor):  # as a gradient not needed
                continue
            if is_zero(tensor) or self._storages.known(tensor) is not None:  # written in place, or an input
                continue
            if isinstance(exact, torch.Tensor) and exact.shape == tensor.shape:
                self._storages.give(tensor, exact, origin, is_exact=exact_result)
            else:  # the values decide it, as of unique
                self._storages.take(tensor, origin | ValueOrigin(frozenset([name])))

    def _all_exact(self, operands: Sequence[torch.Tensor]) -> bool:
        return bool(operands) and all(map(self._storages.exact, operands))

    def _dropped(self, own: Any, given: Any, result: Any, origin: ValueOrigin) -> None:
        (_, chance, *_), _ = own
        mask = result[1]
        self._storages.take(mask, origin)
        self._storages.give(result[0], given[0][0] * mask / (1 - chance if chance < 1 else 1), origin)

    # ---- shadows

    def _given(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, Any]:
        # the shadows of an operator's arguments; views of shadows for arguments that it writes
        arguments = schema_of(func).arguments
        written = written_names(func, args, kwargs)
        read = self._moved_already if func.name().startswith(REDUCING) else self._read
        take = {one.name: self._view_of if one.name in written else read for one in arguments}
        positional = [tree_map(take[one.name], value) for one, value in zip(arguments, args, strict=False)]
        return tuple(positional), {name: tree_map(take[name], value) for name, value in kwargs.items()}

    def _view_of(self, leaf: Any) -> Any:
        return (
            self._storages.view(leaf)
            if isinstance(leaf, torch.Tensor) and leaf.layout == torch.strided
            else leaf
        )

    def _read(self, leaf: Any) -> Any:
        view = self._view_of(leaf)
        if self._noise is None or not is_inexact(leaf) or leaf.layout != torch.strided:
            return view
        return rounded_at_random(view.resolve_conj().resolve_neg(), leaf.dtype, self._noise)

    def _moved_already(self, leaf: Any) -> Any:
        # inputs of the program, as large matrices, were moved on entering, and are once more by a reduction
        return self._view_of(leaf) if self._storages.entered(leaf) else self._read(leaf)


def _as_tensor(leaf: Any) -> Any:
    return as_tensor(leaf) if isinstance(leaf, torch.Tensor) else leaf


def _all_plain(given: Any) -> bool:
    return all(type(one) in _PLAIN and not one.is_meta for one in tree_tensors(given))


def _is_strided(tensor: torch.Tensor) -> bool:
    return tensor.layout == torch.strided
