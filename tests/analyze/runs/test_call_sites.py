"""The line of the user's code that made a launch, across any frames in between."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
import torch
import triton
import triton.language as tl
from handmade.records import INFO, launch
from handmade.runs import saved

from tracing import store
from tracing.analyze.runs.call_sites import LaunchOrigin, first_launch, launch_origin
from tracing.launch.call_sites import CallSites
from tracing.model import CallSite, KernelLaunch
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.report.launch import kernel_origin_text
from tracing.virtual_gpu import virtual_gpu


@triton.jit
def double(x_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(x_ptr + at, tl.load(x_ptr + at) * 2)


def launched(x: torch.Tensor) -> None:
    double[(1,)](x, BLOCK=64)


LINE = launched.__code__.co_firstlineno + 1


def launches(runs: Path, call: Callable[[], object]) -> list[KernelLaunch]:
    writer = store.create(runs, INFO)
    with virtual_gpu(), LaunchRecorder(writer):
        call()
    return list(store.Run(writer.path).launches())


def sites(recorded: list[KernelLaunch]) -> list[tuple[str, int, str] | None]:
    return [(one.site.file, one.site.line, one.site.function) if one.site else None for one in recorded]


def test_a_launch_by_hand_has_the_line_that_made_it(tmp_path: Path) -> None:
    recorded = launches(tmp_path, lambda: launched(torch.ones(64)))

    assert sites(recorded) == [(__file__, LINE, "launched")]


def test_launches_of_one_call_site_share_it_and_two_on_one_line_have_different_ones(tmp_path: Path) -> None:
    def program() -> None:
        x = torch.ones(64)
        for _ in range(2):
            double[(1,)](x, BLOCK=64), double[(1,)](x, BLOCK=64)

    recorded = launches(tmp_path, program)
    numbers = [one.site.id for one in recorded if one.site]

    assert len({line for _, line, _ in sites(recorded)}) == 1  # type: ignore[misc]
    assert (numbers[0], numbers[1]) == (numbers[2], numbers[3])
    assert numbers[0] != numbers[1]


def test_a_kernel_that_torch_wrote_has_the_users_function(tmp_path: Path) -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return torch.sin(x) * 2

    (recorded,) = sites(launches(tmp_path, lambda: torch.compile(model)(torch.ones(64))))

    assert recorded == (__file__, model.__code__.co_firstlineno, "model")


def test_a_function_that_goes_on_after_a_graph_break_has_its_own_name(tmp_path: Path) -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        x = torch.sin(x)
        torch._dynamo.graph_break()
        return torch.cos(x)

    recorded = sites(launches(tmp_path, lambda: torch.compile(model)(torch.ones(64))))
    first = model.__code__.co_firstlineno

    assert [one and one[2] for one in recorded] == ["model", "model"]
    assert [one and one[1] for one in recorded] == [first, first + 2]


def test_a_kernel_of_a_backward_pass_has_the_line_that_called_backward(tmp_path: Path) -> None:
    def program() -> None:
        x = torch.ones(64, requires_grad=True)
        loss = torch.compile(lambda x: x.sin().sum())(x)
        loss.backward()

    last = launches(tmp_path, program)[-1]

    assert last.phase == "backward"
    assert sites([last]) == [(__file__, program.__code__.co_firstlineno + 3, "program")]


class Nested(torch.autograd.Function):
    """Calls a function in its backward pass, so deep that autograd continues on a thread of its own."""

    @staticmethod
    def forward(ctx, x, depth, call):
        ctx.rest = depth, call
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        depth, call = ctx.rest
        with torch.enable_grad():
            nested(depth - 1, call) if depth else call()
        return gradient, None, None


def nested(depth: int, call: Callable[[], object]) -> None:
    Nested.apply(torch.ones(1, requires_grad=True), depth, call).backward()


def test_on_a_thread_of_autograds_own_it_is_the_line_that_called_backward(tmp_path: Path) -> None:
    x = torch.ones(64, requires_grad=True)
    threads: set[int] = set()

    def program() -> None:
        loss = torch.compile(lambda x: x.sin().sum())(x)

        def backward() -> None:
            x.register_hook(lambda gradient: threads.add(threading.get_ident()))
            loss.backward()

        nested(60, backward)  # 60 deep autograd takes another thread

    last = launches(tmp_path, program)[-1]

    assert threads != {threading.get_ident()}
    assert last.phase == "backward"
    assert [place and place[2] for place in sites([last])] == ["backward"]


def test_threads_are_numbered_as_they_launch_first(tmp_path: Path) -> None:
    def program() -> None:
        for _ in range(2):
            thread = threading.Thread(target=lambda: launched(torch.ones(64)))
            thread.start()
            thread.join()
        launched(torch.ones(64))

    assert [one.thread for one in launches(tmp_path, program)] == [1, 2, 0]


@pytest.mark.parametrize("file", [torch.__path__[0] + "/x.py", "<string>", "<frozen runpy>", "/tmp/typed"])
def test_a_launch_without_user_code_has_no_call_site(tmp_path: Path, file: str) -> None:
    scope = {"sites": CallSites(store.create(tmp_path, INFO))}
    code = "import sys\nfound = []\nthread = __import__('threading').Thread(target=lambda: found.append(sites.of(sys._getframe())))\nthread.start(); thread.join()"  # noqa: E501
    exec(compile(code, file, "exec"), scope)

    assert scope["found"] == [0 if file == "/tmp/typed" else -1]


# ---- in which turn of a loop


def at(index: int, line: int, name: str = "k") -> KernelLaunch:
    """A launch by a line of the case."""
    return msgspec.structs.replace(launch(index, name=name), site=CallSite(line, "case.py", line, "fn"))


def visited(folder: Path, *recorded: KernelLaunch, asked: int) -> LaunchOrigin | None:
    sites = {one.site.id: one.site for one in recorded if one.site}
    return launch_origin(saved(folder, recorded, sites.values()), 0, recorded[asked])


def test_a_launch_in_a_loop_has_its_iteration(tmp_path: Path) -> None:
    recorded = visited(tmp_path, at(0, 3), at(1, 5), at(2, 5), at(3, 5), asked=2)

    assert recorded is not None
    assert (recorded.site.line, recorded.iteration, recorded.of) == (5, 1, 3)
    assert str(recorded) == "case.py:5 in fn, call 2 of 3 there"


def test_a_launch_that_was_made_once_has_no_turn(tmp_path: Path) -> None:
    assert str(visited(tmp_path, at(0, 3), at(1, 5), asked=1)) == "case.py:5 in fn"


def test_another_kernel_of_the_same_line_does_not_count(tmp_path: Path) -> None:
    recorded = visited(tmp_path, at(0, 5, "other"), at(1, 5), at(2, 5, "other"), at(3, 5), asked=3)

    assert recorded is not None and (recorded.iteration, recorded.of) == (1, 2)


def test_a_launch_without_a_call_site_was_visited_nowhere(tmp_path: Path) -> None:
    assert visited(tmp_path, launch(0), asked=0) is None


def test_a_kernel_has_its_first_launch(tmp_path: Path) -> None:
    recorded = [at(0, 3, "other"), at(1, 5), at(2, 7)]
    run = saved(tmp_path, recorded, [one.site for one in recorded if one.site])
    first = first_launch(run, "hash of k")

    assert first is not None and (first[0], first[1].index) == (0, 1)
    origin = launch_origin(run, *first)
    assert kernel_origin_text("k", "/gone/k.py:1", first[1], origin, "tracing show RUN") == [
        "the recorded program launched k, first as launch #1",
        "  at        case.py:5 in fn",
        "  source    k.py:1",
        "            tracing show RUN",
    ]


def test_a_kernel_that_was_only_compiled_has_no_launch(tmp_path: Path) -> None:
    assert first_launch(saved(tmp_path, [at(0, 3)], []), "hash of other") is None
    assert kernel_origin_text("other", None, None, None, "") == [
        "the recorded program compiled other and did not launch it"
    ]
