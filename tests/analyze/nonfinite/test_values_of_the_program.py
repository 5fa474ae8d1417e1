"""Distinguishes a NaN or inf that a program passes as a number or as data from one that is computed."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch
from commands import tracing
from handmade.records import INFO, arg, launch
from handmade.runs import saved
from msgspec.structs import replace

from tracing import recording, step, store
from tracing.analyze.nonfinite.data_events import Kind
from tracing.analyze.nonfinite.first_nonfinite import first_nonfinite
from tracing.analyze.nonfinite.nonfinite_answer import NonFiniteAnswer
from tracing.cli.compare.nan import commands_of_nan
from tracing.model import Cut, Outcome, StepSelection
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.record.outputs import Keep
from tracing.report.nonfinite import nonfinite_text

NAN, INF = float("nan"), float("inf")
PYTHON = "it computes nothing: the value is from Python or NumPy"


def ones() -> torch.Tensor:
    return torch.ones(4, 4)


def mask() -> torch.Tensor:
    return torch.ones(4, 4).tril() > 0


def array() -> Any:
    return np.array([1, NAN], "f4")


def assigned(index: Any, value: float) -> None:
    ones()[index] = value


DATA: dict[str, Callable[[], Any]] = {
    "a list": lambda: torch.tensor([1.0, NAN]) * 2,
    "a constant's clone": lambda: torch.tensor(NAN).clone(),
    "an array": lambda: torch.from_numpy(array()) * 2,
    "as_tensor": lambda: torch.as_tensor(array()) * 2,
    "copy_": lambda: ones().copy_(torch.tensor(NAN)),
    "a mask's fill": lambda: ones().masked_fill(mask(), torch.tensor(-INF)),
}
ASSIGNED: dict[str, Callable[[], Any]] = {
    "an element": lambda: assigned((2, 1), NAN),
    "a row": lambda: assigned(2, -INF),
    "under a mask": lambda: assigned(mask(), NAN),
}
FILLS = ("aten::fill_.Scalar", "aten::masked_fill_.Scalar")
NUMBERS: dict[str, tuple[Callable[[], Any], str, str]] = {
    "fill_": (lambda: ones().fill_(NAN), "aten::fill_.Scalar", "value=nan"),
    "constant_": (lambda: torch.nn.init.constant_(ones(), NAN), "aten::fill_.Scalar", "value=nan"),
    "full": (lambda: torch.full((3,), NAN), "aten::full", "fill_value=nan"),
    "new_full": (lambda: ones().new_full((3,), NAN), "aten::new_full", "fill_value=nan"),
    "complex": (lambda: torch.full((3,), complex(NAN, 1)), "aten::full", "fill_value=(nan+1j)"),
    "masked_fill": (lambda: ones().masked_fill(mask(), -INF), "aten::masked_fill.Scalar", "value=-inf"),
    "where": (lambda: torch.where(mask(), NAN, ones()), "aten::scalar_tensor", "s=nan"),
    "add": (lambda: ones() + NAN, "aten::add.Tensor", "other=nan"),
    "foreach": (
        lambda: torch._foreach_mul([ones(), ones()], [1.0, NAN]),
        "aten::_foreach_mul.ScalarList",
        "scalars=[1.0, nan]",
    ),
}
COMPUTED: dict[str, tuple[Callable[[], Any], str]] = {
    "log": (lambda: torch.zeros(3).log() * 0, "aten::log"),
    "0 / 0": (lambda: torch.zeros(3) / torch.zeros(3), "aten::div.Tensor"),
    "x / 0": (lambda: torch.zeros(3).div_(0), "aten::div_.Tensor"),
    "0 * inf": (lambda: torch.zeros(3) * INF, "aten::mul.Tensor"),
    "overflow": (lambda: torch.full((3,), 1000.0).exp(), "aten::exp"),
    "a product": (lambda: torch.full((8, 8), 400.0).half() @ torch.full((8, 8), 400.0).half(), "aten::mm"),
    "sqrt'": (lambda: torch.zeros(3, requires_grad=True).sqrt().sum().backward(), "aten::div.Tensor"),
    "nan_to_num": (lambda: torch.nan_to_num(torch.ones(3), nan=0.0).sub(1).log(), "aten::log"),
}  # fmt: skip


def recorded(call: Callable[[], Any], runs: Path, keep: Keep | None = None) -> store.Run:
    writer = store.create(runs, replace(INFO, operators="digests"))
    with LaunchRecorder(writer, operators="digests", keep=keep):
        call()
    writer.append(Outcome("ended", "exit status 0"))
    return store.Run(writer.path)


def described(answer: NonFiniteAnswer) -> tuple[str, str, str]:
    """The verb, the operator, and the printed answer."""
    assert answer.origin is not None
    text = "\n".join(line.plain for line in nonfinite_text(answer, {}, []))
    return answer.origin.verb, answer.origin.event.name, text


@pytest.mark.parametrize("program", DATA)
def test_a_value_of_python_is_passed_on_and_its_line_is_named(program: str, tmp_path: Path) -> None:
    run = recorded(DATA[program], tmp_path)
    answer = first_nonfinite(run)

    verb, name, text = described(answer)

    assert (verb, name) == ("passes", "aten::lift_fresh")
    assert "passes on the first NaN or inf" in text and PYTHON in text
    assert f"{Path(__file__).name}:" in text.splitlines()[1]
    assert not [command for command in commands_of_nan(run, answer) if "repro" in command]


@pytest.mark.parametrize("program", ASSIGNED)
def test_a_number_that_is_assigned_is_passed_on_and_its_line_is_named(program: str, tmp_path: Path) -> None:
    run = recorded(ASSIGNED[program], tmp_path)
    answer = first_nonfinite(run)

    verb, name, text = described(answer)

    assert verb == "passes"
    assert name in ("aten::lift_fresh", *FILLS)  # torch 2.13 makes a tensor of the number, 2.15 fills
    assert (PYTHON if name == "aten::lift_fresh" else "it is called with value=") in text
    assert f"{Path(__file__).name}:" in text.splitlines()[1]
    assert not [command for command in commands_of_nan(run, answer) if "repro" in command]


def test_the_operator_that_wrote_the_bits_of_a_value_as_integers_is_named(tmp_path: Path) -> None:
    def infinite() -> None:
        bits = torch.full((4,), 0x7F7FFFFF, dtype=torch.int32) + 1
        bits.view(torch.float32).sum()

    verb, name, text = described(first_nonfinite(recorded(infinite, tmp_path)))

    assert (verb, name) == ("reads", "aten::sum")
    assert "aten::add.Tensor (after 0 launches) wrote these bytes as int32, " in text
    assert "no recorded launch or operator made it" not in text


@pytest.mark.parametrize("program", NUMBERS)
def test_a_number_that_an_operator_is_called_with_is_passed_on(program: str, tmp_path: Path) -> None:
    call, operator, number = NUMBERS[program]
    run = recorded(call, tmp_path)
    answer = first_nonfinite(run)

    verb, name, text = described(answer)

    assert (verb, name) == ("passes", operator)
    assert f"it is called with {number}" in text and "    output    output " in text
    assert not [command for command in commands_of_nan(run, answer) if "repro" in command]


@pytest.mark.parametrize("program", COMPUTED)
def test_an_operator_that_computes_the_value_makes_it(program: str, tmp_path: Path) -> None:
    call, operator = COMPUTED[program]
    answer = first_nonfinite(recorded(call, tmp_path))

    verb, name, text = described(answer)

    assert (verb, name) == ("makes", operator)
    assert "makes the first NaN or inf" in text and "every value that it reads is finite" in text


@pytest.mark.soak
@pytest.mark.parametrize("program", ["x / 0", "0 * inf", "a product"])
def test_the_script_that_is_offered_of_an_operator_can_be_executed(program: str, tmp_path: Path) -> None:
    run = recorded(COMPUTED[program][0], tmp_path, Keep(inputs=True))

    (command,) = commands_of_nan(run, first_nonfinite(run))
    done = tracing(*shlex.split(command)[1:], "--output", str(tmp_path / "script"), runs=tmp_path)

    assert done.returncode == 0, done.stderr


def test_no_script_is_offered_of_an_operator_that_draws_random_numbers(tmp_path: Path) -> None:
    run = recorded(lambda: torch.ones(3).log_normal_(1000.0), tmp_path, Keep(inputs=True))
    answer = first_nonfinite(run)

    verb, name, text = described(answer)

    assert (verb, name) == ("makes", "aten::log_normal_")
    assert "it reads no element of a tensor" in text
    assert commands_of_nan(run, answer) == []


@pytest.mark.parametrize(
    ("kind", "printed"),
    [
        ("any", "operator #4 aten::masked_fill.Scalar (after 0 launches) passes on the first NaN or inf"),
        ("nan", "operator #5 aten::_softmax (after 0 launches) makes the first NaN\n"),
        ("inf", "operator #4 aten::masked_fill.Scalar (after 0 launches) passes on the first inf\n"),
    ],
)
def test_an_infinite_mask_does_not_hide_the_nan_that_is_computed_from_it(
    kind: Kind, printed: str, tmp_path: Path
) -> None:
    x = torch.ones(2, 2)
    run = recorded(lambda: torch.softmax((x + 1).masked_fill(x * 2 > -x, -INF), -1), tmp_path)
    answer = first_nonfinite(run, kind)

    _, _, text = described(answer)

    assert printed in text
    assert ("no value that it reads is NaN" in text) == (kind == "nan")
    hinted = f"tracing nan {run.path} --kind nan" in commands_of_nan(run, answer)
    assert hinted == (kind == "any")


def test_an_answer_about_nan_says_nothing_of_inf(tmp_path: Path) -> None:
    answer = first_nonfinite(recorded(lambda: torch.zeros(3).log(), tmp_path), "nan")

    (line,) = nonfinite_text(answer, {}, [])

    assert line.plain == "✓ no NaN: 0 launches, 2 operator calls"


@pytest.mark.parametrize(
    ("steps", "options"),
    [
        (StepSelection(every=3, start=2, stop=8), ""),
        (StepSelection(last=5, every=2), "--last 5 --until any "),
        (StepSelection(last=5, disk=1 << 24, until="nan"), "--last 5 --until nan --disk 16777216 "),
    ],
)
def test_the_command_that_decides_leaves_out_no_step_before_the_value(
    steps: StepSelection, options: str, tmp_path: Path
) -> None:
    info = replace(INFO, kind="program", program=("train.py",), seed=None, folder=str(Path.cwd()))
    run = store.Run(store.create(tmp_path, replace(info, operators="writers", steps=steps)).path)
    answer = NonFiniteAnswer(record=["--operators digests"])

    anew = f"tracing run --operators digests {options}--runs {tmp_path} train.py"
    assert commands_of_nan(run, answer) == [f"{anew}; tracing nan latest --runs {tmp_path}"]


@pytest.mark.parametrize(("until", "partial"), [("", True), ("nan", False), ("inf", True), ("any", False)])
def test_deleted_steps_had_no_nan_if_the_recording_would_have_ended_there(
    until: Literal["", "nan", "inf", "any"], partial: bool, tmp_path: Path
) -> None:
    with recording(runs=tmp_path, operators="digests", passes=False, last=1, until=until) as run:
        for number in range(30):
            torch.tensor([-1.0 if number == 29 else 1.0]).log()
            step()
    origin = first_nonfinite(run, "nan").origin

    assert origin is not None and origin.event.source.step == 29
    assert origin.partial == partial


def test_a_damaged_run_has_no_answer(tmp_path: Path) -> None:
    run = saved(tmp_path, [launch(0, arg("in_ptr0", "in", "x"))])
    assert not first_nonfinite(run).unknown

    next(run.path.glob("outcomes-*")).unlink()

    answer = first_nonfinite(store.Run(run.path))
    assert answer.status == 2 and any("all its records are lost" in one for one in answer.unknown)


def test_a_run_that_ended_before_its_program_is_not_called_finite(tmp_path: Path) -> None:
    launches, full = [launch(0, arg("in_ptr0", "in", "x"))], Cut("OSError: No space left on device", 1)

    killed = first_nonfinite(saved(tmp_path / "killed", launches, ended=False))
    cut = first_nonfinite(saved(tmp_path / "cut", launches, [full]))

    assert killed.status == cut.status == 2
    assert killed.unknown == ["later launches: the run was interrupted, or is still being recorded"]
    assert cut.unknown == [f"later launches: the run was not recorded after launch 0: {full.error}"]


FILLED = """
import torch

@torch.compile
def padded(x):
    y = torch.empty(x.shape[0] + 2, x.shape[1], device=x.device)
    y[1:-1] = x.exp()
    y[0] = 0
    y[-1] = y[1:-1].sum(0)
    return y

y = padded(torch.randn(6, 5))
"""


LARGEST = """
import torch

@torch.library.custom_op("largest::into", mutates_args=("y",))
def into(y: torch.Tensor, x: torch.Tensor) -> None:
    y.copy_(x.amax(1))

@torch.compile
def logarithm(x):
    y = torch.empty(x.shape[0], device=x.device)
    into(y, x)
    return y + ((x - y[:, None]).exp().sum(1) * 1e-46).log()

logarithm(torch.randn(6, 5))
"""


def test_a_kernel_that_computes_an_inf_in_place_of_torch_empty_makes_it(tmp_path: Path) -> None:
    (path := tmp_path / "largest.py").write_text(LARGEST)
    tracing("run", path, runs=tmp_path / "runs")

    done = tracing("nan", "latest", runs=tmp_path / "runs")

    assert (done.returncode, "makes the first NaN or inf" in done.stdout) == (1, True), done.stdout


@pytest.mark.parametrize(
    "computes",
    ["x.masked_fill(x > 0, -float('inf')).topk(2).values", "(x + torch.zeros_like(x).log()).topk(2).values"],
)
def test_a_constant_of_a_generated_kernel_is_a_masks_or_one_that_the_compiler_has_computed(
    computes: str, tmp_path: Path
) -> None:
    text = (
        f"import torch\n\n@torch.compile\ndef f(x):\n    return {computes}\n\nf(torch.randn(4, 5).cuda())\n"
    )
    (path := tmp_path / "constant.py").write_text(text)
    recorded = tracing("run", path, runs=tmp_path / "runs").stderr

    done = tracing("nan", "latest", runs=tmp_path / "runs")

    assert "not finite" not in recorded
    assert (done.returncode, "may make the first NaN or inf" in done.stdout) == (2, True), done.stdout
    assert "--kind nan" in done.stdout


def test_a_kernel_that_fills_memory_of_torch_empty_is_not_certain_to_make_a_nan(tmp_path: Path) -> None:
    (path := tmp_path / "filled.py").write_text(FILLED)
    recorded = tracing("run", path, runs=tmp_path / "runs").stderr

    done = tracing("nan", "latest", runs=tmp_path / "runs")

    assert "not finite" not in recorded  # nothing reads one
    assert (done.returncode, "may make the first NaN" in done.stdout) == (2, True), done.stdout
    assert f"not set ({path}:6) with NaN" in " ".join(done.stdout.split())


def test_a_nan_in_memory_of_torch_empty_is_a_finding_if_a_launch_reads_it(tmp_path: Path) -> None:
    unset = FILLED.replace("    y[0] = 0\n", "") + "torch.compile(lambda y: y.sin())(y)\n"
    (path := tmp_path / "unset.py").write_text(unset)

    recorded = tracing("run", path, runs=tmp_path / "runs").stderr

    assert "may make the first NaN" in recorded and "where it fills memory that is not set" in recorded


def test_what_computes_a_nan_after_memory_that_is_filled_is_named(tmp_path: Path) -> None:
    (path := tmp_path / "later.py").write_text(FILLED + "torch.compile(lambda y: y.log())(-torch.ones(9))\n")
    recorded = tracing("run", path, runs=tmp_path / "runs").stderr

    done = tracing("nan", "latest", runs=tmp_path / "runs")

    assert "a NaN or inf is made of finite values by launch #" in recorded
    assert (done.returncode, "fused_log_0 makes more" in done.stdout) == (1, True), done.stdout
