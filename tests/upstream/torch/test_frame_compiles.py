"""Dynamo's compiles of frames, as they happen and in its caches."""

from __future__ import annotations

import contextlib
import logging
from typing import Any

import pytest
import torch
from torch.utils._pytree import tree_map

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


class Pair(torch.Tensor):
    """Two tensors, each of which is computed for itself."""

    def __new__(cls, a: torch.Tensor, b: torch.Tensor) -> Pair:
        made: Pair = torch.Tensor._make_wrapper_subclass(cls, a.shape, strides=a.stride(), dtype=a.dtype)
        return made

    def __init__(self, a: torch.Tensor, b: torch.Tensor) -> None:
        self.a, self.b = a, b

    def __tensor_flatten__(self) -> tuple[list[str], None]:
        return ["a", "b"], None

    @staticmethod
    def __tensor_unflatten__(parts: dict[str, torch.Tensor], meta: Any, size: Any, stride: Any) -> Pair:
        return Pair(parts["a"], parts["b"])

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        def of(name: str) -> Any:
            return tree_map(lambda leaf: getattr(leaf, name) if isinstance(leaf, Pair) else leaf, args)

        return Pair(*(func(*of(name), **(kwargs or {})) for name in "ab"))


def test_tensors_of_a_subclass_are_compiled_as_without_the_recorder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.getLogger("torch.__trace"), "handlers", [])  # without those of pytest
    compiles: list[frame_compiles.DynamoCompile] = []
    x = Pair(torch.ones(4), torch.zeros(4))
    compiled = torch.compile(lambda x: (x * 2).sin(), backend="aot_eager", fullgraph=True)
    try:
        compiled(x)
    except torch._dynamo.exc.BackendCompilerFailed as error:
        pytest.skip(f"torch {torch.__version__} does not compile it: {error}")
    torch.compiler.reset()

    with frame_compiles.frame_compiles(compiles.append):
        y = compiled(x)

    assert torch.equal(y.a, torch.full((4,), 2.0).sin()) and torch.equal(y.b, torch.zeros(4))
    (one,) = compiles
    assert one.graph and one.operators == 2 and not one.failure


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
