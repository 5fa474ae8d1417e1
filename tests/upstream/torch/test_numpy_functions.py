"""The functions of numpy in a graph of Dynamo have names by which they are executed."""

from __future__ import annotations

import operator
from typing import Any

import pytest
import torch
import torch._numpy
from torch._dynamo import utils

from tracing.upstream.torch import numpy_functions
from tracing.upstream.torch.numpy_functions import numpy_function, numpy_target


def test_the_contract_holds_with_the_installed_versions() -> None:
    numpy_functions.contract()


def test_a_function_and_a_method_of_one_name_have_two_names() -> None:
    x = torch.tensor([2.0, 1.0])
    names = [
        numpy_target(one)
        for one in (utils.numpy_to_tensor_wrapper(torch._numpy.sort), utils.numpy_method_wrapper("sort"))
    ]
    function, method = (numpy_function(one or "") for one in names)
    assert function is not None and method is not None

    assert torch.equal(function(x), torch.tensor([1.0, 2.0])) and x[0] == 2
    assert method(x) is None and x[0] == 1


@pytest.mark.parametrize("name", ["ndarray.__reduce__", "operator.call", "random.rand", "torch", "_util"])
def test_what_reaches_other_code_or_draws_numbers_is_not_known(name: str) -> None:
    assert numpy_function(f"torch._numpy.{name}") is None
    assert numpy_target(operator.add) is None


@pytest.mark.parametrize("function", [torch._numpy.power, torch._numpy.float32, torch._numpy.fft.fft])
def test_functions_of_other_names_and_types_of_scalars_are_known(function: Any) -> None:
    known = numpy_function(numpy_target(utils.numpy_to_tensor_wrapper(function)) or "")

    assert known is not None and known.f is function
