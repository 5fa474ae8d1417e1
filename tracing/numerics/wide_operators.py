"""Execute operators on float64 copies of their arguments; with noise, with roundings at random."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any

import torch

from tracing.numerics.operator_tensors import gives_views, written_tensors
from tracing.numerics.rounding import Noise, perturbed, rounded_at_random, wide
from tracing.numerics.shadow_storages import is_inexact
from tracing.numerics.tf32 import CONVOLUTION_BACKWARD, narrowed_factors, tf32_factors
from tracing.numerics.ties import compares_number, with_rounded_numbers
from tracing.upstream.torch.decompositions import decomposition
from tracing.upstream.torch.dispatch_modes import OperatorMode
from tracing.upstream.torch.operator_schemas import is_operator, schema_of
from tracing.upstream.torch.pytrees import tree_map, tree_tensors

# These operators round each partial sum of many terms to float32: perturb their inputs, too.
REDUCING = tuple(
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
UNSUPPORTED = (RuntimeError, NotImplementedError, TypeError, ValueError, LookupError, AssertionError)


class WideOperators:
    """Executes operators on wide arguments."""

    def __init__(self, noise: Noise | None, tf32: Collection[str] | None) -> None:
        """noise -- rounds at random; None: nothing is rounded

        tf32 -- as of `tf32_factors`
        """
        self._noise, self._tf32 = noise, tf32

    def computed(self, func: Any, name: str, own: Any, given: Any) -> Any:
        """What a call gives for wide arguments.

        func, name -- the operator, and its name: "aten::mm.out"
        own        -- the program's arguments: positional ones, and those by keyword
        given      -- wide copies of these

        Raises what the operator raises for wide arguments.
        """
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
            and not any(map(_is_wide, tree_tensors(own)))
        ):
            return _accumulated(func, args, kwargs)
        if self._noise is None or schema_of(func).is_mutable:
            return func(*args, **kwargs)
        computed_in = _computed_in(tree_tensors(own))
        if name.startswith(_SORTING):
            return self._sorted(func, args, kwargs)
        if name.startswith(REDUCING):
            written = written_tensors(func, args, kwargs)
            terms = torch.finfo(computed_in).eps
            args = tree_map(
                lambda leaf: leaf if any(leaf is one for one in written) else self._moved(leaf, terms), args
            )
        parts = decomposition(func)
        if parts is not None:
            # some decompositions work only inside of a compiler: then execute the operator itself
            with suppress(*UNSUPPORTED), _Roundings(self._noise, computed_in):
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


class _Roundings(OperatorMode):  # type: ignore[no-untyped-call, unused-ignore]
    """Rounds what every part of an operator gives at random to the dtype in which kernels compute."""

    def __init__(self, noise: Noise, computed_in: torch.dtype) -> None:
        super().__init__()  # type: ignore[no-untyped-call, unused-ignore]
        self._noise, self._computed_in = noise, computed_in

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if not is_operator(func) or schema_of(func).is_mutable or gives_views(func):
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


def _wide_dtype(leaf: Any) -> Any:
    return wide(leaf) if isinstance(leaf, torch.dtype) else leaf
