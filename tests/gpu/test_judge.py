"""On a GPU: a kernel that the program itself launches is right, compared with Triton's interpreter."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from data.summed import summed
from torch._inductor import config as inductor
from torch._inductor.runtime import triton_helpers
from torch.utils.checkpoint import checkpoint

from tracing import store
from tracing.cli.narrow.judge import judgement_of
from tracing.model import SCHEMA, RunInfo
from tracing.program.device import Device
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.record.outputs import Keep
from tracing.upstream.torch.dynamo import forget_compiled
from tracing.upstream.torch.float32_precision import with_float32_precision

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def test_a_kernel_of_the_program_is_right(tmp_path: Path) -> None:
    environment = Device("sm_90").environment()
    writer = store.create(tmp_path, RunInfo(SCHEMA, "case", "/case.py", (), 0, store.now(), environment))
    with LaunchRecorder(writer, keep=Keep(inputs=True)):
        summed[(1,)](torch.randn(1 << 10, device="cuda"), torch.zeros(1, device="cuda"), 1 << 10, BLOCK=64)
    writer.close()

    run = store.Run(writer.path)
    said = judgement_of(run, run).judgement

    assert [one.verdict for one in said.launches] == ["right"]


def test_what_compiled_code_draws_is_that_of_its_seed(tmp_path: Path) -> None:
    x = torch.randn(300, 70, device="cuda", requires_grad=True)

    @torch.compile
    def drawn(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        ints = torch.randint(3, 90, (700,), device="cuda")
        return torch.nn.functional.dropout(x.sin(), 0.3) * x, torch.randn_like(x).t() + 1, ints

    environment = Device("sm_90").environment()
    writer = store.create(tmp_path, RunInfo(SCHEMA, "case", "/case.py", (), 0, store.now(), environment))
    with LaunchRecorder(writer, keep=Keep(inputs=True)):
        drawn(x)[0].sum().backward()
    writer.close()

    run = store.Run(writer.path)
    said = judgement_of(run, run).judgement

    several = hasattr(triton_helpers, "rand4x")  # whose numbers are in another order
    assert {one.verdict for one in said.launches} == ({"right", "no reference"} if several else {"right"})


def test_a_pooled_gradient_of_another_layout_is_right(tmp_path: Path) -> None:
    # ATen gives other values for it than on the CPU, at least in torch 2.11
    x = torch.randn(2, 8, 16, 16, device="cuda").to(memory_format=torch.channels_last).requires_grad_()

    @torch.compile
    def pooled(x: torch.Tensor) -> torch.Tensor:
        means = torch.nn.functional.avg_pool2d(x.sin(), 3, 2, 1, ceil_mode=True, count_include_pad=False)
        return torch.nn.functional.pad(means, (2, 1, 2, 1), mode="reflect").contiguous()

    environment = Device("sm_90").environment()
    writer = store.create(tmp_path, RunInfo(SCHEMA, "case", "/case.py", (), 0, store.now(), environment))
    with LaunchRecorder(writer, keep=Keep(inputs=True)):
        pooled(x).cos().sum().backward()
    writer.close()

    run = store.Run(writer.path)
    said = judgement_of(run, run).judgement
    assert said.accused is None and said.findings == ()


def test_launches_of_compiled_code_are_right(tmp_path: Path) -> None:
    words, tokens = torch.randn(50, 64, device="cuda"), torch.randint(50, (4, 4000), device="cuda")

    @torch.compile
    def sums(words: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        positions = torch.arange(tokens.shape[1], device="cuda")
        read = words[tokens] * positions[:, None].sin()
        return torch.zeros_like(words).index_add(0, tokens.flatten(), read.flatten(0, 1)).cos()

    environment = Device("sm_90").environment()
    writer = store.create(tmp_path, RunInfo(SCHEMA, "case", "/case.py", (), 0, store.now(), environment))
    with LaunchRecorder(writer, keep=Keep(inputs=True)):
        sums(words, tokens)
    writer.close()

    run = store.Run(writer.path)
    said = judgement_of(run, run).judgement

    assert {one.verdict for one in said.launches} == {"right"}
    assert said.findings == ()


def test_a_product_in_tf32_is_right(tmp_path: Path) -> None:
    x, w = (torch.randn(64, 64, device="cuda") for _ in range(2))
    torch._dynamo.reset()
    environment = Device("sm_90").environment()
    writer = store.create(tmp_path, RunInfo(SCHEMA, "case", "/case.py", (), 0, store.now(), environment))
    with with_float32_precision("high"), LaunchRecorder(writer, keep=Keep(inputs=True)):
        torch.compile(lambda x, w: (x.cos() @ w).sin())(x, w)
    writer.close()

    run = store.Run(writer.path)
    said = judgement_of(run, run).judgement

    assert not said.findings and {one.verdict for one in said.launches} == {"right"}


def attended(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    weighed = torch.nn.functional.scaled_dot_product_attention(x.sin(), y, y, dropout_p=0.3)
    return torch.nn.functional.dropout(weighed, 0.2).cos()


def recomputed(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return checkpoint(attended, x, y, use_reentrant=False).sigmoid()


@pytest.mark.parametrize(
    ("function", "dtype", "dynamic"),
    [
        (attended, torch.float32, False),
        (attended, torch.bfloat16, False),
        (attended, torch.float16, False),
        (attended, torch.bfloat16, True),
        (recomputed, torch.float32, False),
        (recomputed, torch.bfloat16, False),
    ],
)
@pytest.mark.parametrize("wrong", [False, True])
def test_attention_that_drops_weights_is_judged(
    function: Callable[..., torch.Tensor], dtype: torch.dtype, dynamic: bool, wrong: bool, tmp_path: Path
) -> None:
    def with_sin(graph: torch.fx.Graph) -> None:
        for node in graph.find_nodes(op="call_function", target=torch.ops.aten.cos.default):
            node.target = torch.ops.aten.sin.default

    x, y = (torch.randn(2, 4, 70, 32, device="cuda", dtype=dtype, requires_grad=True) for _ in range(2))
    environment = Device("sm_90").environment()
    writer = store.create(tmp_path, RunInfo(SCHEMA, "case", "/case.py", (), 0, store.now(), environment))
    forget_compiled()
    changed = inductor.patch(joint_custom_post_pass=with_sin if wrong else None, force_disable_caches=True)
    with changed, LaunchRecorder(writer, keep=Keep(inputs=True)):
        compiled = torch.compile(function, dynamic=dynamic)
        for _ in range(2):  # in a checkpoint, a generator goes on from call to call
            compiled(x, y).float().sum().backward()
    writer.close()

    run = store.Run(writer.path)
    said = judgement_of(run, run).judgement
    by_dynamo = [one for one in said.not_covered if "by Dynamo's graph" in one]
    assert not [one for one in by_dynamo if "rounding of its larger elements" not in one]  # of a few
    assert bool(said.findings) == wrong
    assert not [one for one in said.not_covered if "random numbers" in one]


def test_convolutions_in_tf32_are_right(tmp_path: Path) -> None:
    torch.manual_seed(0)
    layers = torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(8, 8, 3), torch.nn.SiLU()
    x, model = torch.randn(4, 3, 12, 12, device="cuda"), torch.nn.Sequential(*layers).cuda()
    torch._dynamo.reset()
    environment = Device("sm_90").environment()
    writer = store.create(tmp_path, RunInfo(SCHEMA, "case", "/case.py", (), 0, store.now(), environment))
    with LaunchRecorder(writer, keep=Keep(inputs=True)):
        torch.compile(model)(x).mean((2, 3)).sin().sum().backward()
    writer.close()

    run = store.Run(writer.path)
    said = judgement_of(run, run).judgement

    assert said.accused is None and not said.findings
