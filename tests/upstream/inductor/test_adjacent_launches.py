"""Launches of generated code between which the device does nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from torch._inductor.runtime.triton_heuristics import CachingAutotuner

from tracing.upstream.inductor import adjacent_launches
from tracing.upstream.inductor.adjacent_launches import following_launch


class Kernel(CachingAutotuner):  # type: ignore[misc, unused-ignore]
    def __init__(self) -> None:
        pass


SCOPE: dict[str, Any] = {"first": Kernel(), "second": Kernel(), "choice": object()}
FIRST, SECOND = "first.run(buf0, buf1, 64, stream=stream0)", "second.run(buf1, buf2, 64, stream=stream0)"


def following(tmp_path: Path, lines: list[str], needed: tuple[int, ...] = (1,)) -> int | None:
    """The line after the one of the first launch, which is 3, in the body of a generated function."""
    file = tmp_path / "generated.py"
    body = ["with torch.cuda._DeviceGuard(0):", *(f"    {line}" for line in lines)]
    file.write_text("\n".join(["def call(self, args):", *(f"    {line}" for line in body)]) + "\n")
    scope: dict[str, Any] = {}
    exec(compile(file.read_text(), str(file), "exec"), scope)
    return following_launch(scope["call"].__code__, 3, SCOPE, needed)


@pytest.mark.parametrize(
    "between",
    [
        [],
        ["buf2 = empty_strided_cuda((64, ), (1, ), torch.float32)"],
        ["# Topologically Sorted Source Nodes: [add]", "stream0 = get_raw_stream(0)"],
        ["del buf0"],
        ["buf3 = buf1; del buf1  # reuse"],
        ["buf3 = reinterpret_tensor(buf1, (8, 8), (8, 1), 0); del buf1  # reuse"],
        ["assert_size_stride(buf0, (64, ), (1, ))", "'a comment'"],
    ],
    ids=str,
)
def test_work_of_the_host_may_lie_between(tmp_path: Path, between: list[str]) -> None:
    comments = sum(line.startswith("#") for line in between)

    assert following(tmp_path, [FIRST, *between, SECOND]) == 4 + len(between), comments


@pytest.mark.parametrize(
    "between",
    [
        ["extern_kernels.mm(buf1, arg0, out=buf2)"],
        ["buf2 = extern_kernels.convolution(buf1, arg0)"],
        ["buf2 = torch.ops.aten.clone.default(buf1)"],
        ["buf2 = empty_strided_cuda((64, ), (1, ), other(buf1))"],
        ["buf2.copy_(buf1)"],
        ["buf2 = alloc_from_pool(pool0, 0, torch.float32, (64, ), (1, ))"],
        ["choice.run(buf0, buf1, stream=stream0)"],
        ["if u0:", "    buf2.zero_()"],
        ["del buf1"],
        ["buf1 = buf0"],
        ["buf1 = empty_strided_cuda((64, ), (1, ), torch.float32)"],
        ["buf3 = buf1; del buf1, buf3"],
        ["self.cached = buf1"],
        ["return buf1"],
    ],
    ids=str,
)
def test_nothing_else_may(tmp_path: Path, between: list[str]) -> None:
    assert following(tmp_path, [FIRST, *between, SECOND]) is None


@pytest.mark.parametrize(
    "lines",
    [
        [FIRST],
        [FIRST, "choice.run(buf1, buf2, 64, stream=stream0)"],
        [FIRST, "second.run(*args, stream=stream0)"],
        [FIRST, "second.run(buf1, buf2, 64)"],
        ["choice.run(buf0, buf1, 64, stream=stream0)", SECOND],
    ],
    ids=str,
)
def test_both_are_launches_of_one_kernel(tmp_path: Path, lines: list[str]) -> None:
    assert following(tmp_path, lines) is None


def test_only_the_memory_that_is_needed_must_live(tmp_path: Path) -> None:
    lines = [FIRST, "del buf1", SECOND]

    assert following(tmp_path, lines, needed=(0,)) == 5
    assert following(tmp_path, lines, needed=(0, 1)) is None


def test_code_that_is_not_there_or_no_python_has_no_launches(tmp_path: Path) -> None:
    code = compile("x = 1", str(tmp_path / "gone.py"), "exec")

    assert following_launch(code, 3, SCOPE, (1,)) is None


def test_the_contract_holds_with_the_installed_versions() -> None:
    adjacent_launches.contract()
