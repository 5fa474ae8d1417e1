"""How a value of the compiled case differs from eager's: in kind, dtype, strides or numbers."""

from __future__ import annotations

import math

import torch

from tracing.digest.host import digest
from tracing.model import Container, PlainValue, Uncomparable
from tracing.program.structure import Fact


def value_difference(actual: Fact, expected: Fact) -> tuple[str, float]:
    """How two values differ, "" if they agree, and the size of the largest difference."""
    if isinstance(actual, torch.Tensor) and isinstance(expected, torch.Tensor):
        return _tensors(actual, expected)
    if not isinstance(actual, torch.Tensor) and not isinstance(expected, torch.Tensor):
        same = actual.identity == expected.identity or _close(actual, expected) or _iterate(actual, expected)
    else:
        same = False
    texts = fact_text(actual, expected), fact_text(expected, actual)
    return ("", 0.0) if same else (f"compiled gives {texts[0]}, eager gives {texts[1]}", math.inf)


def _iterate(actual: Fact, expected: Fact) -> bool:
    # torch.compile returns an iterator of its own for any other, as a generator
    unknown = isinstance(actual, Uncomparable) and isinstance(expected, Uncomparable)
    return unknown and actual.type == "tuple_iterator"


def differ_in_dtype(actual: torch.Tensor, expected: torch.Tensor) -> bool:
    """True if two tensors differ in their dtypes, and in nothing else."""
    if actual.dtype == expected.dtype:
        return False
    try:
        torch.testing.assert_close(actual, expected, equal_nan=True, check_dtype=False)
    except (AssertionError, RuntimeError, NotImplementedError, TypeError):
        return False
    return True


def _tensors(actual: torch.Tensor, expected: torch.Tensor) -> tuple[str, float]:
    if actual.dtype != expected.dtype and actual.shape == expected.shape:
        values = "its values agree" if differ_in_dtype(actual, expected) else "its values differ, too"
        return f"compiled gives {actual.dtype}, eager gives {expected.dtype}; {values}", math.inf
    try:
        torch.testing.assert_close(actual, expected, equal_nan=True)
    except AssertionError as error:
        return " ".join(str(error).split()), _relative(actual, expected)
    except (RuntimeError, NotImplementedError, TypeError):  # a dtype without arithmetic
        if digest(actual).bits != digest(expected).bits:
            return f"the bits of two tensors of {actual.dtype} differ", math.inf
        return "", 0.0
    return "", _relative(actual, expected)


def stride_difference(name: str, actual: torch.Tensor, expected: torch.Tensor) -> str:
    """The difference in strides of a returned tensor; "": none.

    The strides of a gradient do not matter, nor do those of dimensions with one element.
    """
    if not name.startswith("output") or actual.shape != expected.shape or actual.layout != torch.strided:
        return ""
    strides = [
        [stride for stride, n in zip(one.stride(), one.shape, strict=True) if n > 1]
        for one in (actual, expected)
    ]
    if strides[0] == strides[1] or 0 in actual.shape:
        return ""
    return f"compiled gives strides {actual.stride()}, eager gives {expected.stride()}"


def _relative(actual: torch.Tensor, expected: torch.Tensor) -> float:
    if actual.shape != expected.shape or actual.dtype != expected.dtype or actual.layout != torch.strided:
        return math.inf
    wide = torch.complex128 if actual.is_complex() else torch.float64
    if not actual.numel():
        return 0.0
    largest = float(expected.to(wide).abs().nan_to_num().max())
    apart = float((actual.to(wide) - expected.to(wide)).abs().max())
    return math.inf if math.isnan(apart) else apart / largest if largest else math.inf


def _close(actual: Fact, expected: Fact) -> bool:
    # numbers that came out of tensors, mostly of float32
    if not (isinstance(actual, PlainValue) and isinstance(expected, PlainValue)):
        return False
    if actual.type != expected.type or actual.type not in ("float", "complex"):
        return False
    a, b = complex(actual.text), complex(expected.text)
    return abs(a - b) <= 1e-5 + 1.3e-6 * abs(b)


def fact_text(fact: Fact, other: Fact) -> str:
    """A value as text, without the properties that it shares with another one."""
    match fact:
        case torch.Tensor():
            return f"a tensor of {fact.dtype}"
        case PlainValue():
            return fact.text
        case Container():
            return fact.text(other)
        case Uncomparable():
            return fact.type
