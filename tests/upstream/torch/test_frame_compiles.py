"""Dynamo's compiles of frames, as they happen and in its caches."""

from __future__ import annotations

import contextlib
import logging

import pytest
import torch

from tracing.upstream.contract import Broken
from tracing.upstream.torch import frame_compiles


def test_the_contract_holds_with_the_installed_versions() -> None:
    frame_compiles.contract()


def test_compiles_are_read_where_the_program_has_disabled_logging(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = vars(logging.getLogger("torch.__trace"))
    monkeypatch.delitem(trace, "isEnabledFor", raising=False)  # as in torch 2.11
    logging.disable(logging.WARNING)
    try:
        frame_compiles.contract()
    finally:
        logging.disable(logging.NOTSET)


def test_a_compile_without_its_number_breaks_the_contract(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame_compiles.convert_frame, "_compile", lambda code: None)

    with pytest.raises(Broken, match="compile_id"):
        frame_compiles.contract()


def test_a_guard_tree_that_cannot_be_read_does_not_stop_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreadable(wrapper: object) -> None:
        raise AttributeError("no get_leaf_guards")

    monkeypatch.setattr(frame_compiles, "_guards", unreadable)
    compiles: list[frame_compiles.DynamoCompile] = []
    with frame_compiles.frame_compiles(compiles.append):
        result = torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))

    assert result.tolist() == [2, 2]
    assert [one.unread for one in compiles] == ["AttributeError: no get_leaf_guards"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_interrupted_compile_is_no_graph_break(error: type[BaseException]) -> None:
    def backend(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> object:
        raise error

    compiles: list[frame_compiles.DynamoCompile] = []
    with frame_compiles.frame_compiles(compiles.append), pytest.raises(error):
        torch.compile(lambda x: x * 2, backend=backend)(torch.ones(2))

    (one,) = compiles
    assert one.breaks == []
    assert one.failure == f"its compile was interrupted by {error.__name__}"


def branching(x: torch.Tensor) -> torch.Tensor:
    return x * 2 if x.sum() > 0 else x


def compiles_of(x: torch.Tensor, **options: bool) -> list[frame_compiles.DynamoCompile]:
    compiles: list[frame_compiles.DynamoCompile] = []
    torch.compiler.reset()
    with frame_compiles.frame_compiles(compiles.append), contextlib.suppress(Exception):
        torch.compile(branching, backend="eager", **options)(x)
    return compiles


def test_a_frame_whose_compile_raises_does_not_stay_in_eager() -> None:
    raised = [one.raised for one in compiles_of(torch.ones(2), fullgraph=True)]

    assert raised == [True]
    assert not any(one.raised for one in compiles_of(torch.ones(2)))


@pytest.mark.parametrize("suppressed", [True, False])
def test_an_error_of_a_backend_that_torch_suppresses_leaves_the_frame_in_eager(suppressed: bool) -> None:
    def backend(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> object:
        raise ValueError("no code")

    compiles: list[frame_compiles.DynamoCompile] = []
    torch.compiler.reset()
    with (
        torch._dynamo.config.patch(suppress_errors=suppressed),
        frame_compiles.frame_compiles(compiles.append),
        contextlib.suppress(Exception),
    ):
        torch.compile(lambda x: x * 2, backend=backend)(torch.ones(2))

    assert [one.raised for one in compiles] == [not suppressed]
