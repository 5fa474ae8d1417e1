"""Inductor's templates of products and convolutions, which max-autotune takes, on the virtual GPU."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch._inductor.config as inductor
import torch.nn.functional as F
from commands import tracing

from tracing.upstream.inductor.generated_kernels import kernels_written
from tracing.virtual_gpu import virtual_gpu

PROGRAM = """
import torch

product = torch.compile(lambda a, b: (a @ b).relu(), mode="max-autotune-no-cudagraphs")
product(torch.ones(64, 64, device="cuda"), torch.ones(64, 64, device="cuda"))
"""


@pytest.mark.parametrize(
    ("function", "sizes"),
    [
        (lambda a, b: torch.relu(a @ b), [(64, 48), (48, 80)]),
        (lambda a, b, c: F.gelu(torch.addmm(c, a, b)), [(33, 40), (40, 65), (65,)]),
        (lambda a, b: torch.bmm(a, b) * 2, [(3, 33, 20), (3, 20, 17)]),
        (lambda x, w, b: F.conv2d(x, w, b, padding=1).relu(), [(2, 8, 9, 9), (16, 8, 3, 3), (16,)]),
    ],
    ids=["mm", "addmm", "bmm", "convolution with bias"],
)
def test_a_template_agrees_with_eager(
    function: Callable[..., torch.Tensor], sizes: list[tuple[int, ...]]
) -> None:
    torch.manual_seed(0)
    tensors = [torch.randn(size) for size in sizes]
    names: set[str] = set()
    written = lambda name, source, nodes: names.add(name)  # noqa: E731
    with virtual_gpu(), inductor.patch(force_disable_caches=True), kernels_written(written):
        actual = torch.compile(function, mode="max-autotune-no-cudagraphs")(*tensors)

    assert any(name.startswith("triton_tem_fused_") for name in names)
    torch.testing.assert_close(actual, function(*tensors), atol=1e-4, rtol=1e-4)


MULTI_KERNEL = """from tracing import Workload
def build(device):
    x = __import__("torch").ones(40, 300, device=device)
    return Workload(lambda x: x.softmax(1) * 2, (x,), options={"triton.multi_kernel": 1})
"""


def test_of_a_multi_kernel_the_first_alternative_is_launched_and_is_not_called_hand_written(
    tmp_path: Path,
) -> None:
    (case := tmp_path / "case.py").write_text(MULTI_KERNEL)

    done = tracing("run", str(case), "--judge", "--no-passes", runs=tmp_path)

    assert done.returncode == 0, done.stderr
    assert "launches recorded: 1 of 1" in done.stderr and "hand-written" not in done.stdout
    assert "it is one of the kernels of a multi-kernel" in done.stdout


@pytest.mark.soak
def test_nothing_is_measured_and_no_choice_is_reported_as_not_covered(tmp_path: Path) -> None:
    (program := tmp_path / "product.py").write_text(PROGRAM)

    done = tracing("run", str(program), runs=tmp_path)

    assert done.returncode == 0, done.stderr
    assert "not covered" not in done.stderr and "AUTOTUNE" not in done.stderr
    assert "1 launch seen" in done.stderr
