"""Functions of torch are known by the names that Dynamo's nodes have, and none that opens a file is."""

from __future__ import annotations

import pytest
import torch

from tracing.upstream.torch.traced_functions import contract, traced_function, traced_method


def test_the_contract_holds() -> None:
    contract()


@pytest.mark.parametrize(
    ("target", "function"),
    [
        ("torch.sin", torch.sin),
        ("torch.nn.functional.softmax", torch.nn.functional.softmax),
        ("torch._tensor.split", torch.Tensor.split),
        ("torch.sym_max", torch.sym_max),
    ],
)
def test_a_function_is_known_by_its_name(target: str, function: object) -> None:
    assert traced_function(target) is function


@pytest.mark.parametrize(
    "target",
    ["torch.load", "torch.from_file", "_operator.call", "torch.hub", "os.system", "torch._tensor.numpy", "x"],
)
def test_other_functions_are_not(target: str) -> None:
    assert traced_function(target) is None


def test_attributes_of_tensors_are_read_and_no_others() -> None:
    attribute = traced_function("builtins.getattr")
    assert attribute is not None

    assert attribute(torch.ones(2, 3), "mT").shape == (3, 2)
    with pytest.raises(TypeError, match="the attribute __class__"):
        attribute(torch.ones(2), "__class__")
    assert traced_method("add_") is torch.Tensor.add_
    assert traced_method("_make_subclass") is None
