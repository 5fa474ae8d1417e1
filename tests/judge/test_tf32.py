"""Products of float32 that a GPU computed in TF32, whose tensor cores cut bits off, are right."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
import torch.nn.functional as F
from judged_programs import values
from planted_kernels import Program, judgement, recorded

from tracing import store
from tracing.analyze.judge.judgement import RunJudgement
from tracing.judge.fx.allowed_tf32 import allowed_tf32
from tracing.judge.fx.higher_order import flex_attention
from tracing.judge.fx.no_reference import NoReference
from tracing.model import CompiledGraph, Environment
from tracing.program.device import Device
from tracing.upstream.torch.float32_precision import with_float32_precision
from tracing.upstream.torch.operator_schemas import implementations

aten = torch.ops.aten
SIZES = [3, 3], [1, 1], [1, 1]  # of kernel, stride, padding


def cut(x: torch.Tensor) -> torch.Tensor:
    return (x.contiguous().view(torch.int32) & -(1 << 13)).view(torch.float32)


def convolution(x: torch.Tensor, w: torch.Tensor, b: Any, *rest: Any) -> torch.Tensor:
    kernel, stride, padding = SIZES
    return aten._slow_conv2d_forward(cut(x), cut(w), kernel, b, stride, padding)


def convolution_backward(g: torch.Tensor, x: torch.Tensor, w: torch.Tensor, *rest: Any) -> Any:
    gx, gw, _ = aten._slow_conv2d_backward.output_mask(cut(g), cut(x), cut(w), *SIZES, [True, True, False])
    return gx, gw, g.sum((0, 2, 3)) if rest[-1][2] else None


@contextmanager
def tensor_cores() -> Iterator[None]:
    with torch.backends.mkldnn.flags(enabled=False), implementations("aten") as library:
        library.impl("convolution", convolution, "CPU")
        library.impl("convolution_backward", convolution_backward, "CPU")
        yield


class Pooled(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.conv = torch.nn.Conv2d(3, 8, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.silu(self.conv(x.sin())).mean((2, 3))


def judged(folder: Path, device: Device, target: str) -> RunJudgement:
    with tensor_cores():
        program = Program(Pooled(), lambda: [values(4, 3, 12, 12)], backward=True)
        run = recorded(program, folder, device)
    info = msgspec.json.decode((run.path / "run.json").read_bytes())
    info["environment"] |= {"device": "NVIDIA H200", "target": target}
    (run.path / "run.json").write_bytes(msgspec.json.encode(info))
    return judgement(store.Run(run.path))


def test_a_convolution_in_tf32_is_right(device: Device, tmp_path: Path) -> None:
    said = judged(tmp_path, device, "cuda:90")

    assert not said.findings and {one.verdict for one in said.launches} == {"right"}
    assert not said.not_covered


def test_a_convolution_in_tf32_is_off_where_settings_forbid_it(device: Device, tmp_path: Path) -> None:
    with with_float32_precision("", ()):
        said = judged(tmp_path, device, "cuda:90")

    assert said.status == 1


@pytest.mark.parametrize("target", ["cuda:75", "hip:gfx942"])
def test_a_device_without_tf32_has_none(target: str, device: Device, tmp_path: Path) -> None:
    said = judged(tmp_path, device, target)

    assert said.status == 1


def test_attention_of_which_only_its_options_allow_tf32_has_no_reference() -> None:
    x, mask = torch.ones(1, 1, 2, 4), (lambda *indices: [indices[2] >= 0],)

    def attention(options: dict[str, str]) -> Any:
        return flex_attention(x, x, x, lambda score, *indices: [score], mask, 1.0, options)

    assert torch.equal(attention({})[0], x)
    with pytest.raises(NoReference, match="kernel_options"):
        attention({"FLOAT32_PRECISION": "'tf32'"})


@pytest.mark.parametrize(
    ("precision", "tf32", "expected"),
    [
        ("highest", ("conv",), {"conv"}),
        ("highest", None, {"conv", "rnn"}),  # of an earlier version
        ("high", None, {"conv", "rnn", "matmul"}),
        ("", (), set()),
    ],
)
def test_what_a_run_allowed(precision: str, tf32: tuple[str, ...] | None, expected: set[str]) -> None:
    gpu = Environment("3", "2", "3", "NVIDIA H200", "cuda:90", "host", "platform", {})
    graph = CompiledGraph(0, "0/0", "forward", *[""] * 6, precision=precision, tf32=tf32)

    assert allowed_tf32(gpu, graph) == expected
