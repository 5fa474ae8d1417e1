"""Kernels that a call of a graph does not launch: which one, and no operator or launch is accused for it."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from judged_programs import values
from planted_kernels import Program, edit_code, judgement, recorded
from torch._inductor import config as inductor
from torch._inductor.codegen.triton import TritonKernel
from torch._inductor.codegen.wrapper import PythonWrapperCodegen

from tracing.analyze.judge.findings import NotLaunched, OutputOff
from tracing.analyze.judge.judgement import RunJudgement
from tracing.model import Selection
from tracing.model.first_names import first_names
from tracing.program.device import Device
from tracing.report.judge.judgement import judgement_text


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


def verdicts(said: RunJudgement) -> list[str]:
    return [one.verdict for one in said.launches]


def drop_call(position: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Inductor generates no call of one of its kernels, by their order."""
    call, seen = TritonKernel.call_kernel, itertools.count()

    def dropped(self: Any, *arguments: Any, **options: Any) -> Any:
        return None if next(seen) == position else call(self, *arguments, **options)

    monkeypatch.setattr(TritonKernel, "call_kernel", dropped)


def four_kernels(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return (((x.sin() @ w).cos() @ w).softmax(-1) @ w).exp()


@pytest.mark.parametrize("position", [0, 1, 2])
def test_a_launch_that_is_missing_in_a_later_call_is_found_and_no_operator_accused(
    position: int, device: Device, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dropped(code: str) -> str:
        calls = [*re.finditer(r"\n +(?=triton_\w+\.run\()", code)]
        assert len(calls) == 4
        end, line = calls[position].end(), calls[position].group()
        counts = f"globals().update(made=globals().get('made', 0) + 1){line}"
        return f"{code[:end]}{counts}if made == 1: {code[end:]}"

    edit_code(dropped, monkeypatch)
    program = Program(four_kernels, lambda: (values(64, 64), values(64, 64, g=1)), calls=2)

    with inductor.patch(force_disable_caches=True):
        said = judgement(recorded(program, runs, device))

    (missing,) = said.findings
    first = [one for one in said.launches if one.launch == position]
    assert isinstance(missing, NotLaunched)
    assert [(one.kernel, one.launch) for one in first] == [(missing.kernel, missing.elsewhere)]
    assert {*verdicts(said)} == {"right", "inputs wrong"} and said.status == 1


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize(("position", "node"), [(0, "sin"), (1, "cos"), (2, "div")])
def test_a_kernel_that_generated_code_never_calls_is_named_and_no_other_accused(
    position: int, node: str, dynamic: bool, device: Device, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drop_call(position, monkeypatch)
    program = Program(four_kernels, lambda: (values(64, 64), values(64, 64, g=1)), dynamic=dynamic)

    with inductor.patch(force_disable_caches=True):
        said = judgement(recorded(program, runs, device))

    (missing,) = said.findings
    assert isinstance(missing, NotLaunched) and missing.elsewhere is None and node in missing.nodes
    assert verdicts(said) == ["right"] * position + ["inputs wrong"] * (3 - position)
    title, _, cause, *_ = judgement_text(said, ())
    assert title == f"✗ the kernel of {first_names(missing.nodes)} was not launched"
    assert cause == "    cause     Inductor's generated code, which has no call of it"


def in_parts(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, 0).sum(1).exp().sum()


@pytest.mark.parametrize("position", [0, 3])
def test_a_launch_that_reads_partial_results_of_a_missing_one_is_not_accused(
    position: int, device: Device, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drop_call(position, monkeypatch)
    with inductor.patch(force_disable_caches=True):
        said = judgement(recorded(Program(in_parts, lambda: (values(300, 40),)), runs, device))

    (missing,) = said.findings
    assert isinstance(missing, NotLaunched) and "off" not in verdicts(said)
    assert said.launches[position].why == f"no launch was seen that computes {first_names(missing.nodes)}"


@pytest.mark.parametrize("kernel", ["sin", "cos", "softmax", "exp"])
def test_of_a_right_program_the_launches_that_were_selected_are_right(
    kernel: str, device: Device, runs: Path
) -> None:
    others = [f"*_{one}_*" for one in ("sin", "cos", "softmax", "exp") if one != kernel]
    program = Program(four_kernels, lambda: (values(64, 64), values(64, 64, g=1)))

    said = judgement(recorded(program, runs, device, selection=Selection(kernels=tuple(others))))

    assert (verdicts(said), said.findings) == (["right"] * 3, ())


def test_a_kernel_without_a_call_that_the_recorder_saw_generated_keeps_its_name(
    device: Device, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = PythonWrapperCodegen._generate_kernel_call_helper

    def dropped(self: Any, kernel_name: str, *others: Any, **options: Any) -> Any:
        return None if "_exp_" in kernel_name else call(self, kernel_name, *others, **options)

    monkeypatch.setattr(PythonWrapperCodegen, "_generate_kernel_call_helper", dropped)
    program = Program(four_kernels, lambda: (values(64, 64), values(64, 64, g=1)))

    with inductor.patch(force_disable_caches=True):
        said = judgement(recorded(program, runs, device))

    (missing,) = said.findings
    assert isinstance(missing, NotLaunched) and missing.elsewhere is None and "_exp_" in missing.kernel
    assert verdicts(said) == ["right"] * 3


def test_a_result_that_no_launch_computes_is_said_to_lack_it(
    device: Device, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dropped(code: str) -> str:
        code, count = re.subn(r"\n( +)(?=triton_\w+_exp_\w+\.run\()", r"\n\1if False: ", code)
        assert count == 1
        return code

    edit_code(dropped, monkeypatch)
    program = Program(lambda x, w: (x.sin() @ w).exp(), lambda: (values(64, 64), values(64, 64, g=1)))

    with inductor.patch(force_disable_caches=True):
        said = judgement(recorded(program, runs, device))

    (finding,) = said.findings
    assert isinstance(finding, OutputOff) and finding.complete and not finding.launched
    first, *_ = judgement_text(said, ())
    assert first == "✗ output 0 is off, and no launch was seen that computes it"


def repeated(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return (((x @ w).sin() @ w).sin() @ w).sin() @ w


def test_of_a_call_that_lacks_one_of_several_launches_of_a_kernel_no_launch_is_accused(
    device: Device, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dropped(code: str) -> str:
        code, count = re.subn(
            r"\n( +)(?=triton_\w+\.run\()",
            r"\n\1globals().update(made=globals().get('made', 0) + 1)\n\1if made != 4: ",
            code,
        )
        assert count == 3
        return code

    edit_code(dropped, monkeypatch)
    program = Program(repeated, lambda: (values(64, 64), values(64, 64, g=1)), calls=2)

    with inductor.patch(force_disable_caches=True):
        said = judgement(recorded(program, runs, device))

    assert [type(one) for one in said.findings] == [NotLaunched]
    assert verdicts(said) == ["right"] * 3 + ["no reference"] * 2
