"""Operators of a program: their names, and the files that raise while torch.library calls them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from tracing.upstream.torch.custom_operators import (
    contract,
    custom_operator,
    files_of_operator,
    formula_line,
)


def test_this_torch_keeps_the_contract() -> None:
    contract()


def test_an_operator_of_the_program_is_named_and_its_error_comes_from_torch_library() -> None:
    @torch.library.custom_op("tests_custom_operators::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        if not len(x):
            raise ValueError("empty")
        return 2 * x

    target = torch.ops.tests_custom_operators.twice
    assert custom_operator(target) == custom_operator(target.default) == "tests_custom_operators::twice"
    assert custom_operator(torch.ops.aten.mul.Tensor) is custom_operator(len) is None

    with pytest.raises(RuntimeError) as without_formula:
        twice(torch.ones(2, requires_grad=True)).sum().backward()
    with pytest.raises(ValueError, match="empty") as own:
        twice(torch.ones(0))

    assert Path(files_of_operator(without_formula.value)[-1]).parent.name == "_library"
    assert files_of_operator(own.value)[-1] == __file__
    assert files_of_operator(ValueError("elsewhere")) == []


def gradient(ctx: Any, given: torch.Tensor) -> torch.Tensor:
    return 2 * given


def test_the_formula_of_an_operator_is_at_its_line() -> None:
    @torch.library.custom_op("tests_custom_operators::thrice", mutates_args=())
    def thrice(x: torch.Tensor) -> torch.Tensor:
        return 3 * x

    target = torch.ops.tests_custom_operators.thrice.default
    assert formula_line(target) is formula_line(torch.ops.aten.mul.Tensor) is formula_line(len) is None

    thrice.register_autograd(gradient)

    assert formula_line(target) == f"{Path(__file__).name}:{gradient.__code__.co_firstlineno}"


def test_a_formula_of_an_operator_that_only_has_a_schema_is_known_without_its_line() -> None:
    torch.library.define("tests_custom_operators::fourfold", "(Tensor x) -> Tensor")
    target = torch.ops.tests_custom_operators.fourfold.default

    assert formula_line(target) is None

    torch.library.register_autograd("tests_custom_operators::fourfold", gradient)

    assert formula_line(target) == ""
