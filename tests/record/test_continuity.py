"""An ordinary program has no unseen writer: each read has the bits of the last recorded write."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from handmade.records import INFO

from tracing import store
from tracing.model import Access, OutOfBounds, TensorMeta
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.views import element_bytes, relation
from tracing.virtual_gpu import virtual_gpu


class Touched(NamedTuple):
    """A tensor that was read or written, or whose storage was allocated."""

    who: str
    storage: int
    meta: TensorMeta
    bits: str = ""
    kind: str = "read"


def events(run: store.Run) -> Iterator[Touched]:
    """The tensor accesses of a run's operators and launches, in program order."""
    (process,) = run.processes()
    written = {access.launch: access.written for access in run.records(Access)}
    operators = list(run.operators(process))
    for launch in run.launches():
        while operators and operators[0].launch <= launch.index:
            operator = operators.pop(0)
            for one in operator.reads:
                yield Touched(operator.name, one.storage, one.tensor, one.digest.bits if one.digest else "")
            kind = "allocated" if operator.allocates else "written"
            for one in operator.writes:
                bits = one.digest.bits if one.digest else ""
                yield Touched(operator.name, one.storage, one.tensor, bits, kind)
        for kind in ("read", "written"):
            for position, arg in enumerate(launch.args):
                digest = arg.before if kind == "read" else arg.after
                if arg.tensor and digest and (kind == "read" or position in written[launch.index]):
                    yield Touched(launch.kernel_name, arg.storage or 0, arg.tensor, digest.bits, kind)


def unexplained(run: store.Run) -> tuple[int, list[tuple[Touched, Touched]]]:
    """The number of reads that could be checked, and the reads whose bits are not those of the last write."""
    left: dict[int, list[Touched]] = {}
    checked, changed = 0, []
    for event in events(run):
        known = left.setdefault(event.storage, [])
        if event.kind == "read":
            for one in known:
                if one.meta == event.meta and one.bits and event.bits:
                    checked += 1
                    changed += [(one, event)] if one.bits != event.bits else []
            continue
        known[:] = [
            one for one in known if event.kind == "written" and _between(one.meta, event.meta) == "disjoint"
        ]
        known += [event] if event.kind == "written" else []
    return checked, changed


def _between(of: TensorMeta, to: TensorMeta) -> str:
    start, other = (meta.offset * element_bytes(meta.dtype) for meta in (of, to))
    return relation(of, to, start - other)


def training() -> Callable[[], object]:
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.GELU(), torch.nn.LayerNorm(8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    compiled, x = torch.compile(model), torch.randn(4, 6)

    def run() -> None:
        for _ in range(3):
            optimizer.zero_grad()
            compiled(x).pow(2).sum().backward()
            optimizer.step()

    return run


def views() -> Callable[[], object]:
    def model(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        joined = torch.cat([a, b], 1).roll(2, 1)
        return torch.nn.functional.pad(joined[:, ::2].sort(1)[0] @ joined.t()[:5], (1, 2)).softmax(-1)

    a, b = torch.randn(5, 7), torch.randn(5, 3)
    return lambda: torch.compile(model)(a, b)


@pytest.mark.parametrize("program", [training, views], ids=lambda program: program.__name__)
def test_an_ordinary_program_has_no_unseen_writer_and_no_divergence(
    program: Callable[[], Callable[[], object]], tmp_path: Path
) -> None:
    writer = store.create(tmp_path, INFO)
    with virtual_gpu():
        call = program()
        with LaunchRecorder(writer, operators="digests"):
            call()
    run = store.Run(writer.path)
    checked, changed = unexplained(run)

    assert changed == []
    assert checked > 0
    assert list(run.records(OutOfBounds)) == []
    assert [dict(access.uninitialised) for access in run.records(Access) if access.uninitialised] == []


def test_a_write_of_the_host_is_the_only_unexplained_change(tmp_path: Path) -> None:
    writer = store.create(tmp_path, INFO)
    with virtual_gpu():
        compiled = torch.compile(lambda x: torch.sin(x))
        with LaunchRecorder(writer, operators="digests"):
            x = torch.ones(8).mul_(2)
            compiled(x)
            ctypes.memset(x.data_ptr(), 1, 4)
            compiled(x)
    _, changed = unexplained(store.Run(writer.path))

    assert [(one.who, event.who) for one, event in changed] == [
        ("aten::mul_.Tensor", "triton_poi_fused_sin_0")
    ]
