"""Results that share memory with each other or with inputs of a call."""

from __future__ import annotations

from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import BaseTorchFunctionMode

from tracing.model import OverlappingInput, SharedBytes
from tracing.record.graphs.shared_memory import overlapping_inputs, passed_inputs, shared_memory


def test_results_share_memory_with_earlier_results_and_with_inputs() -> None:
    x, a = torch.ones(4), torch.ones(2, 4)
    passed = passed_inputs([3, x])

    shared = shared_memory([a, a[1], x.view(2, 2), a[0], None, x.clone()], passed)

    assert shared == (
        SharedBytes(1, "output", 0),
        SharedBytes(2, "input", 1),
        SharedBytes(3, "output", 0),
    )


def test_a_tensor_without_memory_shares_none() -> None:
    with FakeTensorMode():
        fake = torch.ones(4)

    assert shared_memory([fake, fake], passed_inputs([fake])) == ()


def test_modes_of_the_program_see_no_call() -> None:
    class Seen(BaseTorchFunctionMode):
        def __torch_function__(self, func: Any, *args: Any) -> Any:
            raise AssertionError(func)

    tensor = torch.ones(4)
    with Seen():
        shared = shared_memory([tensor, tensor], passed_inputs([tensor]))

    assert len(shared) == 3


def test_neighbours_gaps_and_what_has_no_elements_share_nothing() -> None:
    a, square = torch.ones(8), torch.ones(4, 4)

    assert shared_memory([a[:4], a[4:], a[:0], a[:0], square[:, :2], square[0, 2:]], []) == ()


def test_inputs_overlap_also_where_they_have_gaps() -> None:
    wide = torch.ones(4, 5)

    known = overlapping_inputs([wide[:, 1:], 3, wide[:, 1:][:], torch.ones(2), wide[1]])

    assert known == {
        0: OverlappingInput(0, 0, (5, 1)), 2: OverlappingInput(0, 0, (5, 1)), 4: OverlappingInput(0, 16, (1,))
    }  # fmt: skip
    assert overlapping_inputs([wide[:2], None, wide[2:], wide[:0], torch.ones(4)]) == {}


def test_the_memory_of_an_input_that_was_freed_is_not_shared() -> None:
    memory = torch.ones(4)
    passed = passed_inputs([memory.view(4)])  # its tensor is freed, and another one has its memory

    assert shared_memory([memory], passed) == ()
