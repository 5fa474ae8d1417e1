"""A call of an operator as a script that repeats it on the recorded inputs, in a process of its own."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from commands import tracing
from documents.json_keys import require_documented
from handmade.records import INFO

from tracing import store
from tracing.errors import Problem
from tracing.model import KeptOperatorTensor, Operator, OperatorSignature, Selection
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.record.outputs import Keep
from tracing.replay.operator_repro import write_operator_repro
from tracing.store.recorded_operator import recorded_operator

SCRIPTS = """
import runpy, sys
sys.modules["tracing"] = None
times, *folders = sys.argv[1:]
for folder in folders:
    sys.modules.pop("recorded", None)
    sys.path[0], sys.argv[1:] = folder, [times]
    try:
        runpy.run_path(folder + "/repro.py", run_name="__main__")
    except SystemExit as ended:
        print("status", ended.code)
"""
NOISE = """
import itertools, torch
calls, library = itertools.count(), torch.library.Library("aten", "IMPL")
library.impl("mm", lambda a, b: torch.full((len(a), b.shape[1]), float(next(calls))), "CPU")
"""


def program() -> None:
    x, table = torch.arange(24.0).reshape(4, 6), torch.arange(64.0)
    index = torch.tensor([0, 0, 1])
    x.index_add_(0, index, torch.ones(3, 6), alpha=2)
    torch.mm(x, x.t())
    torch.cat([x, x[1:]], dim=-2)
    torch.addmm(x[0], x[:, :4].t().contiguous(), x)
    torch.add(x, 1, out=torch.empty(4, 6))
    table[8:16].copy_(table[:1].expand(8))
    table[:32].view(4, 8)[:, ::2].mul_(float("inf"))
    torch.ones(3, dtype=torch.bool).to(torch.float16)
    torch._foreach_add_([table[:4], table[4:8]], 2.5)
    torch.max(x, 1)
    torch.nn.functional.batch_norm(x, torch.zeros(6), torch.ones(6), training=True)
    x[:, None][torch.tensor([1, 0])]
    torch.view_as_complex(torch.ones(3, 2)).sum()
    torch.full((2,), 1 + 2j)
    torch.rand(3)
    torch.ones(2).normal_(generator=torch.Generator())


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> store.Run:
    writer = store.create(tmp_path_factory.mktemp("runs"), INFO)
    with LaunchRecorder(writer, operators="digests", keep=Keep(inputs=True)):
        program()
    return store.Run(writer.path)


def operators(run: store.Run) -> list[Operator]:
    (process,) = run.processes(OperatorSignature)
    return list(run.operators(process))


def executed(folders: Sequence[Path], times: int = 2, before: str = "") -> list[str]:
    """What the scripts in these folders print, where this project cannot be imported."""
    command = [sys.executable, "-c", before + SCRIPTS, str(times), *map(str, folders)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def written(run: store.Run, index: int, folder: Path) -> Path:
    return write_operator_repro(recorded_operator(run, index), folder).script.parent


def test_scripts_reproduce_the_recorded_bits_of_operators_of_every_kind(
    run: store.Run, tmp_path: Path
) -> None:
    others = ("aten::rand", "aten::normal_", "aten::lift_fresh")
    chosen = [one for one in operators(run) if not one.allocates and one.name not in others]
    folders = [written(run, one.index, tmp_path / str(one.index)) for one in chosen]

    printed = executed(folders)

    assert {one.name for one in chosen} >= {
        "aten::index_add_", "aten::mm", "aten::cat", "aten::addmm", "aten::add.out", "aten::copy_",
        "aten::mul_.Tensor", "aten::_to_copy", "aten::_foreach_add_.Scalar", "aten::max.dim",
        "aten::native_batch_norm", "aten::index.Tensor", "aten::full",
    }  # fmt: skip
    assert printed == ["2 of 2 calls wrote the recorded bits", "status 0"] * len(chosen)


def test_the_command_writes_the_script_and_executes_it(run: store.Run, tmp_path: Path) -> None:
    mm = next(one.index for one in operators(run) if one.name == "aten::mm")
    options = ("--operator", str(mm), "--output", str(tmp_path / "script"), "--times", "3", "--json")

    done = tracing("repro", str(run.path), *options, runs=tmp_path)

    answer = json.loads(done.stdout)
    assert (answer["status"], answer["kernel"], answer["operator"]) == (0, "aten::mm", mm)
    assert "3 of 3 calls wrote the recorded bits" in answer["said"]
    assert re.search(r"^wrote .*recorded\.py, repro\.py.* into .*/script$", done.stderr, re.MULTILINE)
    require_documented(done.stdout, "## `tracing repro`")


def test_an_operator_that_is_not_deterministic_is_repeated_under_torchs_switch(
    run: store.Run, tmp_path: Path
) -> None:
    mm = next(one.index for one in operators(run) if one.name == "aten::mm")

    printed = executed([written(run, mm, tmp_path)], 3, before=NOISE)

    assert printed == [
        "0 of 3 calls wrote the recorded bits",
        "this operator is not deterministic on cpu: 3 different results",
        "under torch.use_deterministic_algorithms(True): calls write 3 different results, too",
        "status 1",
    ]


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("aten::rand", "draws random numbers"),
        ("aten::normal_", "draws random numbers"),
        ("aten::lift_fresh", "whose layout the run lacks"),
    ],
)
def test_an_operator_whose_results_no_call_can_reproduce_is_refused(
    name: str, problem: str, run: store.Run, tmp_path: Path
) -> None:
    index = next(one.index for one in operators(run) if one.name == name)

    with pytest.raises(Problem, match=problem):
        written(run, index, tmp_path)


@torch.library.custom_op("operator_repro::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def test_an_operator_of_the_program_is_refused_and_inputs_that_were_not_kept_are_named(
    tmp_path: Path,
) -> None:
    def calls() -> None:
        twice(torch.ones(2))

    own = recorded_of(calls, tmp_path / "own", Keep(inputs=True))
    unkept = recorded_of(lambda: torch.ones(2).sum(), tmp_path / "unkept", None)

    with pytest.raises(Problem, match="operator_repro::twice is not an operator of torch"):
        written(own, operators(own)[-1].index, tmp_path / "script")
    with pytest.raises(Problem, match="lacks the contents of input 0 of operator 1"):
        written(unkept, 1, tmp_path / "script")


def test_inputs_are_kept_only_of_operators_before_the_selected_launches(tmp_path: Path) -> None:
    def kept(launches: tuple[int, int]) -> int:
        writer = store.create(tmp_path, INFO)
        only = Selection(launches=launches)
        with LaunchRecorder(writer, operators="digests", keep=Keep(inputs=True), selection=only):
            torch.ones(2).sum()
        run = store.Run(writer.path)
        return len([*run.records(KeptOperatorTensor)])

    assert (kept((0, 1)), kept((1, 2))) == (1, 0)


def recorded_of(call: Callable[[], Any], runs: Path, keep: Keep | None) -> store.Run:
    writer = store.create(runs, INFO)
    with LaunchRecorder(writer, operators="digests", keep=keep):
        call()
    return store.Run(writer.path)
