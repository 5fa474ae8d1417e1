"""The precision in which a GPU multiplies float32: settings may allow TF32, which has 10 bits of mantissa."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager

import torch

from tracing.upstream.contract import require

PRODUCTS = ("matmul", "conv", "rnn")  # each has a setting
_CUDNN = PRODUCTS[1:]


def float32_precision() -> str:
    """The precision of this process: "highest", "high" or "medium"; "" if a newer setting of torch has it."""
    try:
        return torch.get_float32_matmul_precision()
    except RuntimeError:  # torch does not mix the settings
        return ""


def tf32_products() -> tuple[str, ...]:
    """The products of float32 that this process allows to be computed in TF32: some of `PRODUCTS`."""
    return tuple(one for one in PRODUCTS if _setting(one) == "tf32")


def has_tf32(tensor: torch.Tensor) -> bool:
    """True if the device of a tensor has tensor cores for TF32."""
    if not tensor.is_cuda or torch.version.hip is not None:
        return False
    return torch.cuda.get_device_capability(tensor.device) >= (8, 0)


@contextmanager
def with_float32_precision(precision: str, tf32: Collection[str] | None = None) -> Iterator[None]:
    """While active, this process multiplies float32 in a precision; "": in its own.

    tf32 -- what it allows in TF32, as `tf32_products`; None: of convolutions and recurrent layers, what it
            allows already
    """
    with ExitStack() as stack:
        stack.enter_context(_products_in(precision or ("high" if "matmul" in (tf32 or ()) else "")))
        for one in _CUDNN if tf32 is not None else ():
            stack.enter_context(_set(one, "tf32" if one in (tf32 or ()) else "ieee"))
        yield


@contextmanager
def _products_in(precision: str) -> Iterator[None]:
    before = float32_precision()
    if not precision or not before:
        yield
        return
    torch.set_float32_matmul_precision(precision)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


@contextmanager
def _set(product: str, precision: str) -> Iterator[None]:
    before = _setting(product)
    torch._C._set_fp32_precision_setter("cuda", product, precision)
    try:
        yield
    finally:
        torch._C._set_fp32_precision_setter("cuda", product, before)


def _setting(product: str) -> str:
    # "tf32", "ieee", "none"; torch.backends.cudnn.allow_tf32 refuses to answer for unequal settings
    return str(torch._C._get_fp32_precision_getter("cuda", product))


def contract() -> None:
    """Raise Broken or another error if torch has changed what this file relies on."""
    before, products = float32_precision(), tf32_products()
    with with_float32_precision("high", ["conv"]):
        require(float32_precision() == "high", "products in TF32")
        require(tf32_products() == ("matmul", "conv"), "the settings of convolutions and recurrent layers")
    require(float32_precision() == before, "the previous precision afterwards")
    require(tf32_products() == products, "the previous settings afterwards")
