"""Operators of PT2E quantization by their parts."""

from __future__ import annotations

import torch
import torch.ao.quantization.fx._decomposed

from tracing.upstream.torch.quantized_decomposed import contract, quantization_parts


def test_this_torch_keeps_the_contract() -> None:
    contract()


def test_an_operator_computes_what_its_parts_compute() -> None:
    operator = torch.ops.quantized_decomposed.quantize_per_tensor.default
    parts = quantization_parts(operator.name())
    given = (torch.randn(64), 0.01, 3, -128, 127, torch.int8)

    assert parts is not None
    assert torch.equal(parts(*given), operator(*given))


def test_an_operator_that_reads_numbers_of_python_has_no_parts() -> None:
    assert quantization_parts(torch.ops.quantized_decomposed.quantize_per_tensor.tensor.name()) is None
    assert quantization_parts(torch.ops.aten.mul.Tensor.name()) is None
