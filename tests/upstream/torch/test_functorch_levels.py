"""What a computation of torch.func leaves on its thread where it raises."""

from __future__ import annotations

import pytest
import torch
from torch._C import _autograd, _functorch

from tracing.upstream.torch.functorch_levels import contract, levels_restored


def test_the_contract_holds() -> None:
    contract()


def test_the_levels_around_an_error_are_kept() -> None:
    def refused(row: torch.Tensor) -> torch.Tensor:
        with pytest.raises(RuntimeError, match="by this test"), levels_restored():
            _functorch._jvp_increment_nesting()
            _functorch._grad_increment_nesting()
            _autograd._saved_tensors_hooks_disable("others")
            raise RuntimeError("by this test")
        assert _functorch.get_dynamic_layer_stack_depth() == 2
        assert _autograd._saved_tensors_hooks_get_disabled_error_message() != "others"
        return row.sin().sum()

    made = torch.func.vmap(torch.func.grad(refused))(torch.zeros(2, 3))

    assert torch.equal(made, torch.ones(2, 3))
    assert _functorch.get_dynamic_layer_stack_depth() == 0


def test_a_dual_level_around_an_error_is_kept() -> None:
    def refused(x: torch.Tensor) -> torch.Tensor:
        with pytest.raises(RuntimeError, match="Nested forward mode"), levels_restored():
            torch._C._enter_dual_level()
        return x.sin()

    _, tangent = torch.func.jvp(refused, (torch.zeros(2),), (torch.ones(2),))

    assert torch.equal(tangent, torch.ones(2))
