"""What fake implementations return."""

from __future__ import annotations

import torch

from tracing.upstream.torch.fake_tensors import contract, fake_result


def test_this_torch_keeps_the_contract() -> None:
    contract()


def test_a_view_and_several_results_are_described() -> None:
    view = fake_result(torch.ops.aten.t.default, [torch.ones(2, 3)], {})
    values, indices = fake_result(torch.ops.aten.topk.default, [torch.ones(4, dtype=torch.float16), 2], {})

    assert (view.stride(), values.dtype, indices.dtype) == ((1, 3), torch.float16, torch.int64)
