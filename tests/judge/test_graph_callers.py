"""Results of operators that execute graphs of their own: cond, while_loop, scan, FlexAttention."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
from judged_programs import values
from planted_kernels import Program, judgement, recorded
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from tracing.analyze.judge.findings import LibraryOff
from tracing.analyze.judge.judgement import RunJudgement
from tracing.judge.fx import higher_order
from tracing.judge.fx.fx_program import FxProgram
from tracing.judge.fx.no_reference import NoReference
from tracing.program.device import Device
from tracing.record.graphs.graph_nodes import graph_json
from tracing.store.graph_file import FxGraph


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, slope: torch.Tensor) -> torch.Tensor:
    def score(score: Any, b: Any, h: Any, i: Any, j: Any) -> Any:
        return score + slope[h] * (j - i)

    mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, 40, 40, device=str(q.device))
    return flex_attention(q, k, v, score_mod=score, block_mask=mask, enable_gqa=True)


def trained(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    q, k, v = (x @ w).view(1, 40, 3, 2, 16).permute(2, 0, 3, 1, 4)
    y = flex_attention(q, k, v, score_mod=lambda score, b, h, i, j: torch.tanh(score / 5) * 5)
    return y.transpose(1, 2).reshape(40, 32) @ w.t()[:32]


def branches(x: torch.Tensor) -> torch.Tensor:
    y = torch.cond(x.sum() > 0, lambda x: x.sin() * 2, lambda x: x.cos() + 1, (x,))
    return torch.cond(x.sum() < 0, lambda y: y.exp(), lambda y: y * 3, (y,)) + 1


def loop(x: torch.Tensor) -> torch.Tensor:
    def body(i: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return i + 1, y * 1.5 + 1

    start = torch.zeros((), dtype=torch.int64, device=x.device)
    return while_loop(lambda i, y: i < 3, body, (start, x.clone()))[1] * 2


@torch.compiler.nested_compile_region
def region(x: torch.Tensor) -> torch.Tensor:
    return x.sin() * 1.5


def regions(x: torch.Tensor) -> torch.Tensor:
    return region(x) + region(x + 1)


def heads(count: int, seed: int) -> torch.Tensor:
    return values(1, count, 40, 16, g=seed)


PROGRAMS = {
    "flex_attention": Program(
        attention, lambda: (heads(4, 0), heads(2, 1), heads(2, 2), values(4, g=3).detach())
    ),
    "flex_attention backward": Program(
        trained,
        lambda: (values(40, 32).requires_grad_(), values(32, 96, g=1).requires_grad_()),
        backward=True,
    ),
    "cond": Program(branches, lambda: (values(9, 9),)),
    "while_loop": Program(loop, lambda: (values(9, 9),)),
    "invoke_subgraph": Program(regions, lambda: (values(9, 9),)),
}
FAULTS: dict[str, Callable[[str], str]] = {
    "flex_attention": lambda source: source.replace("post_mod_scores = tmp", "post_mod_scores = 1.25 * tmp"),
    "flex_attention backward": lambda source: source.replace("dp - Di", "dp - 1.5 * Di"),
    "cond": lambda source: source.replace("tl_math.sin", "tl_math.exp").replace("tl_math.cos", "tl_math.exp"),
    "while_loop": lambda source: source.replace("1.5", "1.75"),
    "invoke_subgraph": lambda source: source.replace("1.5", "1.75"),
}


SLOW = ("flex_attention backward", "invoke_subgraph")


def names(*slow: str) -> pytest.MarkDecorator:
    marked = [pytest.param(one, marks=[pytest.mark.soak] if one in slow else []) for one in PROGRAMS]
    return pytest.mark.parametrize("name", marked)


def said(name: str, folder: Path, device: Device, faulty: bool) -> RunJudgement:
    planted = []

    def plant(_kernel: str, source: str) -> str:
        edited = FAULTS[name](source)
        planted.append(edited != source)
        return edited

    judged = judgement(recorded(PROGRAMS[name], folder, device, plant if faulty else None))
    assert any(planted) == faulty
    return judged


@names("flex_attention", *SLOW)
def test_what_it_computes_is_judged_and_right(name: str, tmp_path: Path, device: Device) -> None:
    judged = said(name, tmp_path, device, False)

    assert not {one.verdict for one in judged.launches} - {"right", "no reference"}
    assert (judged.findings, judged.status) == ((), 0)
    assert not judged.not_covered


@names(*SLOW)
def test_a_fault_in_it_is_noticed(name: str, tmp_path: Path, device: Device) -> None:
    judged = said(name, tmp_path, device, True)

    assert judged.status == 1
    assert judged.accused is not None or judged.findings


def test_the_operator_that_executes_a_graph_is_off_not_the_part_of_its_result(
    tmp_path: Path, device: Device
) -> None:
    (finding,) = said("while_loop", tmp_path, device, True).findings

    assert isinstance(finding, LibraryOff) and finding.operator == "torch.ops.higher_order.while_loop"


def scanned(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    def step(carried: torch.Tensor, row: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return carried * 0.5 + row, carried.sin()

    last, rows = scan(step, torch.zeros_like(x[0]), x)
    return last, rows


def test_a_scan_computes_what_torch_does() -> None:
    x = values(6, 9)
    graph = make_fx(scanned)(x)
    program = FxProgram(msgspec.convert(msgspec.to_builtins(graph_json(graph)), FxGraph))

    for own, expected in zip(program.called(x), scanned(x), strict=True):
        torch.testing.assert_close(own, expected)


def test_an_associative_scan_combines_each_row_with_those_before_it() -> None:
    x = values(6, 9)

    (own,) = higher_order.associative_scan(lambda a, b: [a * b], [x])

    torch.testing.assert_close(own, x.cumprod(0))


def test_an_attention_with_too_many_scores_has_no_reference() -> None:
    x = torch.empty(1, 1, 2048, 1)

    with pytest.raises(NoReference, match="4194304 scores, of which 1048576 can be computed"):
        higher_order.flex_attention(x, x, x, lambda *_: [], [], 1.0, {})


def test_a_loop_without_an_end_has_no_reference() -> None:
    with pytest.raises(NoReference, match="a while_loop of more than 65536 iterations"):
        higher_order.while_loop(lambda: [True], lambda: [], [])
