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
program.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any

import torch

from tracing.numerics.choices import Choices
from tracing.numerics.conversions import with_any_integer
from tracing.numerics.default_dtype import with_default_dtype
from tracing.numerics.rounding import Noise, perturbed, rounded_at_random, wide
from tracing.numerics.shadow_storages import ShadowStorages, ValueOrigin, is_inexact
from tracing.numerics.tf32 import CONVOLUTION_BACKWARD, narrowed_factors, tf32_factors
from tracing.numerics.ties import (
    compared,
    compares_number,
    first,
    rounded,
    selects,
    with_rounded_numbers,
    without_rounding,
)
from tracing.numerics.undeclared_effects import InputBits, calling_line, undeclared_effects
from tracing.operators.effects import undeclared_writes
from tracing.program.building import is_building
from tracing.upstream.torch.decompositions import decomposition
from tracing.upstream.torch.dispatch_modes import OperatorMode
from tracing.upstream.torch.higher_order import DENSE
from tracing.upstream.torch.operator_schemas import draws, is_composite, is_operator, schema_of
from tracing.upstream.torch.pytrees import tree_leaves, tree_map
from tracing.upstream.torch.quantized_decomposed import quantization_parts
from tracing.upstream.torch.tensor_subclasses import as_tensor, is_zero

_PLAIN = (torch.Tensor, torch.nn.Parameter)
_EMPTY = ("aten::empty", "aten::new_empty", "aten::_empty")
# These operators round each partial sum of many terms to float32: perturb their inputs, too.
_REDUCING = tuple(
    f"aten::{name}"
    for name in (
        "mm", "bmm", "addmm", "addmv", "addbmm", "baddbmm", "dot", "mv", "convolution", "sum", "mean", "var",
        "std", "_softmax", "_log_softmax", "logsumexp", "native_layer_norm", "native_batch_norm",
        "native_group_norm", "linalg_vector_norm", "norm", "cumsum", "cumprod", "prod", "_scaled_dot_product",
        "embedding_dense_backward", "index_add", "scatter_add", "nll_loss", "avg_pool", "_adaptive_avg_pool",
        "upsample", "_fused_rms_norm", "_foreach_norm",
    )
)  # fmt: skip
# Kernels of these operators add terms with atomics, one after another.
_ACCUMULATING = tuple(
    f"aten::{name}"
    for name in (
        "index_put", "_index_put_impl_", "_unsafe_index_put", "index_add", "scatter_add", "scatter_reduce",
        "embedding_dense_backward",
    )
)  # fmt: skip
_SORTING = ("aten::sort", "aten::argsort", "aten::topk")
_KERNELS = torch.float32  # the dtype of their computation, if their result has this or a narrower dtype
_NARROW = {torch.float64: _KERNELS, torch.complex128: _KERNELS.to_complex()}
# what operators raise for tensors of float64, also those that a program wrote in Python
_UNSUPPORTED = (RuntimeError, NotImplementedError, TypeError, ValueError, LookupError, AssertionError)


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
        self._noise, self._tf32 = noise, tf32
        self.choices = Choices(exact)
        self._storages = ShadowStorages(noise)
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
                with self:
                    return dense(*args, **kwargs)
            return self._as_it_is(func, args, kwargs)
        own: Any = tree_map(_as_tensor, (args, kwargs))
        if not all(map(_is_strided, _tensors(own))):  # a sparse tensor has no shadow
            return self._as_it_is(func, args, kwargs)
        if _all_plain(own) and is_composite(func.name()):
            # in inference mode `linear` is not taken apart, nor are `to` and `reshape`, which may copy
            with self:
                return func.decompose(*args, **kwargs)
        if _gives_views(func) or not _all_plain(own):
            return func(*args, **kwargs)
        if (parts := quantization_parts(func.name())) is not None:
            with self:
                return parts(*args, **kwargs)
        given = self._given(func, *own)
        sources = [known for leaf in tree_leaves(own) if (known := self._storages.known(leaf)) is not None]
        # the inputs of a compiled program are those of eager, whatever they were made of
        drawn = draws(func, args, kwargs) and not is_building()
        origin = ValueOrigin(
            frozenset(name for one in sources for name in one.origin.missing),
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

    def _as_it_is(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        # a higher order operator, or one of other layouts
        result = func(*args, **kwargs)
        written = _written(func, args, kwargs) if is_operator(func) else []
        for tensor in [*written, *_tensors(tree_map(_as_tensor, result))]:
            if _all_plain(tensor) and _is_strided(tensor):
                self._storages.take(tensor, ValueOrigin(frozenset([str(func)])))
        return result

    # ---- one operator

    def _follow(self, func: Any, own: Any, given: Any, result: Any, origin: ValueOrigin) -> None:
        name = func.name()
        written = _written(func, *own)
        if name.startswith(_EMPTY):
            return
        if name == "aten::native_dropout":
            self._dropped(own, given, result, origin)
            return
        if draws(func, *own):
            if "attention" in name:  # it computes more than random numbers
                origin |= ValueOrigin(frozenset([name]))
            for tensor in filter(_is_strided, [*written, *_tensors(result)]):
                self._storages.take(tensor, origin)
            return
        try:
            with with_default_dtype("float64"):  # in which torch.arange(3) / 2 is exact
                given = self.choices.sided(name, own[0], given, self._noise, self._storages.exact)
                computed = self._computed(func, name, own, given)
            results = self.choices.tested(name, given, computed, self._noise)
            if self._noise is not None:
                if self._all_exact(compared(name, own[0]) or rounded(name, own[0])):
                    results = result
                results = with_any_integer(name, given[0], results, self._noise)
            if selects(name) and self._storages.exact(own[0][0]):
                results = first(own, results)
            exact_result = self._all_exact(_tensors(own)) and without_rounding(func, name, own, result)
        except _UNSUPPORTED:
            for tensor in filter(_is_strided, [*written, *_tensors(result)]):
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

    def _computed(self, func: Any, name: str, own: Any, given: Any) -> Any:
        factors = tf32_factors(name, own[0], self._tf32) if self._noise is not None else ()
        if self._noise is None or not factors:
            return self._executed(func, name, own, given)
        args, kwargs = given
        narrow = narrowed_factors(args, factors, self._noise)
        results = self._executed(func, name, own, (narrow, kwargs))
        if name == CONVOLUTION_BACKWARD and args[-1][2]:  # the gradient of its bias is a sum of float32
            args = (*args[:-1], [False, False, True])
            results = (*results[:2], self._executed(func, name, own, (args, kwargs))[2])
        return results

    def _executed(self, func: Any, name: str, own: Any, given: Any) -> Any:
        args, kwargs = tree_map(_wide_dtype, given)
        if compares_number(name, own[0]) and (self._noise is None or self._noise.coin()):
            args = with_rounded_numbers(own[0], args)  # generated code may round them or not
        if name in ("aten::_softmax", "aten::_log_softmax"):
            args = (*args[:2], False)  # half_to_float
        if (
            self._noise is not None
            and name.startswith(_ACCUMULATING)
            and not any(map(_is_wide, _tensors(own)))
        ):
            return _accumulated(func, args, kwargs)
        if self._noise is None or schema_of(func).is_mutable:
            return func(*args, **kwargs)
        computed_in = _computed_in(_tensors(own))
        if name.startswith(_SORTING):
            return self._sorted(func, args, kwargs)
        if name.startswith(_REDUCING):
            written = _written(func, args, kwargs)
            terms = torch.finfo(computed_in).eps
            args = tree_map(
                lambda leaf: leaf if any(leaf is one for one in written) else self._moved(leaf, terms), args
            )
        parts = decomposition(func)
        if parts is not None:
            # some decompositions work only inside of a compiler: then execute the operator itself
            with suppress(*_UNSUPPORTED), _Roundings(self._noise, computed_in):
                return parts(*args, **kwargs)
        return func(*args, **kwargs)

    def _sorted(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        # equal values have no order, unless it is to be stable: their indices are drawn at random
        assert self._noise is not None
        given = {one.name: one.default_value for one in schema_of(func).arguments}
        given |= dict(zip(given, args, strict=False)) | dict(kwargs)
        values, dim = args[0], given["dim"]
        if given.get("stable") or not values.dim():
            return func(*args, **kwargs)
        order = self._noise.uniform(values.new_empty(values.shape[dim])).argsort()
        result = func(values.index_select(dim, order), *args[1:], **kwargs)
        if isinstance(result, torch.Tensor):
            return order[result]
        ordered, indices = result
        return ordered, order[indices]

    def _moved(self, leaf: Any, relative: float) -> Any:
        assert self._noise is not None
        return perturbed(leaf, relative, self._noise) if is_inexact(leaf) else leaf

    def _dropped(self, own: Any, given: Any, result: Any, origin: ValueOrigin) -> None:
        (_, chance, *_), _ = own
        mask = result[1]
        self._storages.take(mask, origin)
        self._storages.give(result[0], given[0][0] * mask / (1 - chance if chance < 1 else 1), origin)

    # ---- shadows

    def _given(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, Any]:
        # the shadows of an operator's arguments; views of shadows for arguments that it writes
        arguments = schema_of(func).arguments
        written = _written_names(func, args, kwargs)
        read = self._moved_already if func.name().startswith(_REDUCING) else self._read
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


class _Roundings(OperatorMode):  # type: ignore[no-untyped-call, unused-ignore]
    """Rounds what every part of an operator gives at random to the dtype in which kernels compute."""

    def __init__(self, noise: Noise, computed_in: torch.dtype) -> None:
        super().__init__()  # type: ignore[no-untyped-call, unused-ignore]
        self._noise, self._computed_in = noise, computed_in

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if not is_operator(func) or schema_of(func).is_mutable or _gives_views(func):
            return result
        return tree_map(self._rounded, result)

    def _rounded(self, leaf: Any) -> Any:
        return rounded_at_random(leaf, self._computed_in, self._noise) if _is_wide(leaf) else leaf


def _accumulated(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    # a CPU adds one term after another, so each partial sum is rounded to float32
    narrow: Any = tree_map(_narrow, (args, kwargs))
    result = func(*narrow[0], **narrow[1])
    if schema_of(func).is_mutable:
        return args[0].copy_(result)
    return result.to(args[0].device, wide(result.dtype))


def _narrow(leaf: Any) -> Any:
    return leaf.to("cpu", _NARROW.get(leaf.dtype, leaf.dtype)) if isinstance(leaf, torch.Tensor) else leaf


def _computed_in(own: Sequence[torch.Tensor]) -> torch.dtype:
    # a scalar tensor does not decide the dtype of a computation
    inexact = [one for one in own if is_inexact(one)]
    deciding = [one for one in inexact if one.dim()] or inexact
    return torch.float64 if any(map(_is_wide, deciding)) else _KERNELS


def _is_wide(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype in (torch.float64, torch.complex128)


def _tensors(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def _as_tensor(leaf: Any) -> Any:
    return as_tensor(leaf) if isinstance(leaf, torch.Tensor) else leaf


def _all_plain(given: Any) -> bool:
    return all(type(one) in _PLAIN and not one.is_meta for one in _tensors(given))


def _is_strided(tensor: torch.Tensor) -> bool:
    return tensor.layout == torch.strided


def _gives_views(func: Any) -> bool:
    returns = schema_of(func).returns
    return bool(returns) and all(one.alias_info and not one.alias_info.is_write for one in returns)


def _written_names(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> set[str]:
    declared = {one.name for one in schema_of(func).arguments if one.alias_info and one.alias_info.is_write}
    return declared | {*undeclared_writes(func, args, kwargs)}


def _written(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[torch.Tensor]:
    names = _written_names(func, args, kwargs)
    positional = zip((one.name for one in schema_of(func).arguments), args, strict=False)
    return [one for name, value in (*positional, *kwargs.items()) if name in names for one in _tensors(value)]


def _wide_dtype(leaf: Any) -> Any:
    return wide(leaf) if isinstance(leaf, torch.dtype) else leaf
