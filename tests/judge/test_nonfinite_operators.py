"""The operator of a fused kernel that makes a NaN or inf is named, with what it reads."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest
import torch
from commands import tracing as command
from documents.json_keys import documented
from torch.nn import functional

import tracing
from tracing.analyze.nonfinite.first_nonfinite import first_nonfinite
from tracing.analyze.nonfinite.nonfinite_operator import Made, NonFiniteOperator
from tracing.judge.fx.fx_program import FxProgram
from tracing.judge.nonfinite_operators import nonfinite_operators
from tracing.model import KernelLaunch
from tracing.model.launches import LaunchLine

X = torch.tensor([[1.0, -4.0], [0.0, 9.0]])
CPU = torch.device("cpu")


def named(
    function: Callable[[torch.Tensor], torch.Tensor], kind: Made, folder: Path, keep: bool = True
) -> list[NonFiniteOperator]:
    """The operators of the first launch that makes such a value."""
    torch._dynamo.reset()
    with tracing.recording(runs=folder, keep_inputs=keep, passes=False) as run:
        torch.compile(function)(X)
    origin = first_nonfinite(run).origin
    assert origin is not None and origin.made and isinstance(origin.event.source, KernelLaunch)
    (process,) = run.processes(LaunchLine)
    return nonfinite_operators(run, process, origin.event.source, kind, CPU)


def test_the_operator_its_element_and_its_operands_are_named(tmp_path: Path) -> None:
    (log,) = named(lambda x: ((x * 2).log() + 1).relu(), "nan", tmp_path)

    assert (log.makes, log.name, log.index, log.operands) == ("nan", "aten::log", (0, 1), (-8.0,))
    assert log.line is not None and log.line.code.startswith("(log,) = named")


def test_an_inf_that_becomes_a_nan_is_named_before_it(tmp_path: Path) -> None:
    inf, nan = named(lambda x: (3 / x) * x + 1, "nan", tmp_path)

    assert (inf.makes, inf.index, inf.operands[-1]) == ("inf", (1, 0), 0.0)
    assert (nan.makes, nan.name, nan.operands) == ("nan", "aten::mul.Tensor", (math.inf, 0.0))


def test_the_infs_of_a_mask_are_the_programs_own(tmp_path: Path) -> None:
    (sub,) = named(lambda x: torch.softmax(x.masked_fill(x < 10, -math.inf), -1) * 2, "nan", tmp_path)

    assert (sub.name, sub.operands) == ("aten::sub.Tensor", (-math.inf, -math.inf))


def test_an_inf_that_is_computed_next_to_those_of_a_mask_is_named(tmp_path: Path) -> None:
    (exp,) = named(lambda x: (x.masked_fill(x < 0, -math.inf) * 20).exp() + 1, "inf", tmp_path)

    assert (exp.makes, exp.name, exp.index, exp.operands) == ("inf", "aten::exp", (1, 1), (180.0,))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.where(x > 0, x.log(), 0.0) + (4 - x).sqrt(),
        lambda x: (4 - x).sqrt() + torch.nan_to_num(x.log()),
        lambda x: (torch.nan_to_num((x + 1).log() * 3) + (4 - x).sqrt() - 1).exp(),
        lambda x: (torch.where(x > 0, x.log(), 0.0) + (4 - x).sqrt()).sum(1),
    ],
)
def test_what_the_program_masks_is_left_out(
    function: Callable[[torch.Tensor], torch.Tensor], tmp_path: Path
) -> None:
    (sqrt,) = named(function, "nan", tmp_path)

    assert (sqrt.name, sqrt.index, sqrt.operands) == ("aten::sqrt", (1, 1), (-5.0,))
    assert sqrt.stored


def test_each_operator_is_named_of_which_one_reaches_memory(tmp_path: Path) -> None:
    def both(x: torch.Tensor) -> torch.Tensor:
        return (x.log() + (4 - x).sqrt()).sum() + torch.nan_to_num((x - 2).log()).sum()

    assert [one.operands for one in named(both, "nan", tmp_path)] == [(-4.0,), (-5.0,)]


def test_an_inf_that_is_masked_is_left_out(tmp_path: Path) -> None:
    nan, *more = named(lambda x: (3 / x).clamp(-9, 9) + (x - 9.5).log(), "nan", tmp_path)

    assert nan.name == "aten::log" and not more


def test_it_is_not_certain_where_random_numbers_may_mask_it(tmp_path: Path) -> None:
    (log,) = named(lambda x: torch.where(torch.rand_like(x) < 2, x.log(), 0.0), "nan", tmp_path)

    assert not log.stored


def test_an_operator_of_a_backward_is_said_to_be_one(tmp_path: Path) -> None:
    torch._dynamo.reset()
    x = torch.tensor([4.0, 0.0, 1.0], requires_grad=True)
    with tracing.recording(runs=tmp_path, keep_inputs=True, passes=False) as run:
        torch.compile(lambda x: (x.sqrt() * x).sum())(x).backward()
    origin = first_nonfinite(run).origin
    assert origin is not None and isinstance(origin.event.source, KernelLaunch)
    (process,) = run.processes(LaunchLine)
    made = nonfinite_operators(run, process, origin.event.source, "nan", CPU)

    assert made and all(one.backward and one.stored for one in made)


def test_a_sum_that_overflows_is_named_without_operands(tmp_path: Path) -> None:
    (total,) = named(lambda x: (x.abs() * 3e37).sum() * 0.5, "inf", tmp_path)

    assert total.name.startswith("aten::sum") and total.operands == ()


def test_what_does_not_depend_on_random_numbers_is_named(tmp_path: Path) -> None:
    (log,) = named(lambda x: functional.dropout(x.log(), 0.5), "nan", tmp_path)

    assert (log.name, log.operands) == ("aten::log", (-4.0,))


@pytest.mark.parametrize(
    ("function", "keep"),
    [
        (lambda x: (torch.rand_like(x) - 2).log() + 1, True),
        (lambda x: x.log(), False),
    ],
    ids=["random", "nothing was kept"],
)
def test_nothing_is_named_that_is_not_known(
    function: Callable[[torch.Tensor], torch.Tensor], keep: bool, tmp_path: Path
) -> None:
    assert named(function, "nan", tmp_path, keep) == []


def test_a_graph_that_fails_in_eager_names_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unable(*arguments: object) -> NoReturn:
        raise RuntimeError('"log" is not implemented on this device')

    monkeypatch.setattr(FxProgram, "executing", unable)

    assert named(lambda x: x.log() + 1, "nan", tmp_path) == []


def test_the_command_names_it_and_proposes_a_recording_that_can(tmp_path: Path) -> None:
    (path := tmp_path / "program.py").write_text(
        "import torch\ntorch.compile(lambda x: x.log() + 1)(-torch.ones(8))\n"
    )
    command("run", "--no-passes", path, runs=tmp_path / "runs")
    without = command("nan", "latest", runs=tmp_path / "runs").stdout
    command("run", "--no-passes", "--keep-inputs", path, runs=tmp_path / "runs")
    printed = command("nan", "latest", runs=tmp_path / "runs").stdout
    (operator,) = json.loads(command("nan", "latest", "--json", runs=tmp_path / "runs").stdout)["made_by"]

    assert "in eager" not in without
    assert re.search(r"next +tracing run --keep-inputs .*; tracing nan latest", without)
    assert f"    → in eager aten::log makes a NaN of -1, at [0]\n      {path}:2 in <lambda>: " in printed
    assert operator == {
        "makes": "nan", "name": "aten::log", "line": f"{path}:2", "index": [0], "operands": ["-1"],
        "backward": False, "stored": True,
    }  # fmt: skip
    assert {f"made_by[].{key}" for key in operator} < documented("## `tracing nan`")
