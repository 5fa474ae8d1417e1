"""The function and the backend of a compile by Dynamo."""

from __future__ import annotations

import pytest
import torch

from tracing.upstream.torch import compiled_function
from tracing.upstream.torch.frame_compiles import DynamoCompile, frame_compiles


def scaled(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def test_the_contract_holds_with_the_installed_versions() -> None:
    compiled_function.contract()


@pytest.mark.parametrize(
    ("compiled", "name"),
    [
        (scaled, "scaled"),
        (torch.nn.Sequential(torch.nn.ReLU()), "Sequential.forward"),
        (torch.nn.functional.gelu, "gelu"),
    ],
)
def test_a_compile_names_the_function_of_the_user_and_the_backend(compiled: object, name: str) -> None:
    compiles: list[DynamoCompile] = []
    with frame_compiles(compiles.append):
        torch.compile(compiled, backend="aot_eager")(torch.ones(2))

    assert [(one.function, one.backend) for one in compiles] == [(name, "aot_eager")]
