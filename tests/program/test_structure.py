"""The values that a result consists of: their names, types and texts, and those that cannot be compared."""

from __future__ import annotations

import enum
import threading
from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from tracing.model import Container, PlainValue, Uncomparable
from tracing.program.structure import facts_of

Pair = namedtuple("Pair", "low high")


class Colour(enum.Enum):
    RED = 1


@dataclass
class Output:
    logits: object
    loss: object = None


class Plain:
    def __init__(self, x: object) -> None:
        self.x = x


class Slotted:
    __slots__ = ("x",)

    def __init__(self, x: object) -> None:
        self.x = x


X = torch.ones(2)


@pytest.mark.parametrize(
    ("value", "names"),
    [
        (X, ["output"]),
        ((X, X), ["output", "output[0]", "output[1]"]),
        ({"a": X, 3: X}, ["output", "output['a']", "output[3]"]),
        (Pair(X, X), ["output", "output.low", "output.high"]),
        (Output(X), ["output", "output.logits", "output.loss"]),
        (Plain(X), ["output", "output.x"]),
        (Slotted(X), ["output", "output.x"]),
        (np.ones(2), ["output", "output[:]"]),
        ({"logits": Output([X])}, ["output", "output['logits']", *(
            f"output['logits'].{end}" for end in ("logits", "logits[0]", "loss")
        )]),
    ],
)  # fmt: skip
def test_values_are_named_by_their_access_path(value: object, names: list[str]) -> None:
    assert list(facts_of(value, "output")) == names


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (-0.0, "float", "-0.0"),
        (float("nan"), "float", "nan"),
        (True, "bool", "True"),
        (1, "int", "1"),
        (None, "NoneType", "None"),
        ("a", "str", "'a'"),
        (Colour.RED, "Colour", "Colour.RED"),
        (torch.float32, "dtype", "torch.float32"),
        (torch.Size([2, 3]), "Size", "torch.Size([2, 3])"),
        (np.float32(0.5), "float32", "0.5"),
        ({"b", "a"}, "set", "{'a', 'b'}"),
    ],
)
def test_a_plain_value_is_its_type_and_text(value: object, kind: str, text: str) -> None:
    assert facts_of(value, "output") == {"output": PlainValue(kind, text)}


@pytest.mark.parametrize(
    ("value", "kind", "keys"),
    [
        ([], "list", ()),
        ((1,), "tuple", ("[0]",)),
        ({"a": 1}, "dict", ("['a']",)),
        (OrderedDict(a=1), "OrderedDict", ("['a']",)),
        (Pair(1, 2), "Pair", (".low", ".high")),
    ],
)
def test_a_container_is_its_type_and_keys(value: object, kind: str, keys: tuple[str, ...]) -> None:
    assert facts_of(value, "output")["output"] == Container(kind, keys)


@pytest.mark.parametrize("value", [threading.Lock(), object(), lambda: 0, torch.nn.Linear(1, 1), {X}, Plain])
def test_an_object_without_equality_is_marked_as_incomparable(value: object) -> None:
    assert isinstance(facts_of(value, "output")["output"], Uncomparable)


def test_an_object_that_contains_itself_is_walked_once() -> None:
    value: list[Any] = [1]
    value.append(value)

    assert facts_of(value, "output")["output[1]"] == Uncomparable("list", "it contains itself")


def test_a_long_text_is_shortened_and_still_distinguished_from_another() -> None:
    (one,), (other,) = (facts_of("x" * 5000 + end, "output").values() for end in "ab")

    assert one != other
    assert isinstance(one, PlainValue) and len(one.text) < 300


def test_the_order_of_a_set_does_not_matter() -> None:
    words = [str(n) for n in range(50)]

    assert facts_of(set(words), "output") == facts_of(set(reversed(words)), "output")


def test_a_tensor_of_a_subclass_is_compared_as_a_tensor() -> None:
    def made() -> torch.Tensor:
        class Own(torch.Tensor):
            pass

        return torch.ones(2).as_subclass(Own)

    facts = [facts_of(made(), "output")["output"] for _ in range(2)]

    assert [type(one) for one in facts] == [torch.Tensor] * 2
    parameter = torch.nn.Parameter(torch.ones(2))
    assert facts_of(parameter, "output")["output"] is parameter
