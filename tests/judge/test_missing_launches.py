"""Kernels that a call of a graph does not launch: which one, and no operator or launch is accused for it."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from judged_programs import values
from planted_kernels import Program, judgement, recorded
from torch._inductor import config as inductor
from torch._inductor.codecache import PyCodeCache
from torch._inductor.codegen.triton import TritonKernel
from torch._inductor.codegen.wrapper import PythonWrapperCodegen

from tracing.analyze.judge.findings import NotLaunched, OutputOff
from tracing.analyze.judge.judgement import RunJudgement
from tracing.model.first_names import first_names
from tracing.program.device import Device
from tracing.report.judge.judgement import judgement_text


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


def verdicts(said: RunJudgement) -> list[str]:
    return [one.verdict for one in said.launches]


def four_kernels(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return (((x.sin() @ w).cos() @ w).softmax(-1) @ w).exp()


@pytest.mark.parametrize("position", [0, 1, 2])
def test_a_launch_that_is_missing_in_a_later_call_is_found_and_no_operator_accused(
    position: int, device: Device, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = PyCodeCache.write

    def dropped(source: str, *others: Any, **options: Any) -> Any:
        calls = [*re.finditer(r"\n +(?=triton_\w+\.run\()", source)]
        if "async_compile.wait(globals())" in source and len(calls) == 4:
            end, line = calls[position].end(), calls[position].group()
            counts = f"globals().update(made=globals().get('made', 0) + 1){line}"
            source = f"{source[:end]}{counts}if made == 1: {source[end:]}"
        return write(source, *others, **options)

    monkeypatch.setattr(PyCodeCache, "write", dropped)
    program = Program(four_kernels, lambda: (values(64, 64), values(64, 64, g=1)), calls=2)

    with inductor.patch(force_disable_caches=True):
        said = judgement(recorded(program, runs, device))

    (missing,) = said.findings
    first = [one for one in said.launches if one.launch == position]
    assert isinstance(missing, NotLaunched)
    assert [(one.kernel, one.launch) for one in first] == [(missing.kernel, missing.elsewhere)]
    assert {*verdicts(said)} == {"right", "inputs wrong"} and said.status == 1


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("position", [0, 1, 2])
def test_a_kernel_that_generated_code_never_calls_is_named_and_no_other_accused(
    position: int, dynamic: bool, device: Device, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call, seen = TritonKernel.call_kernel, itertools.count()

    def dropped(self: Any, *arguments: Any, **options: Any) -> Any:
        return None if next(seen) == position else call(self, *arguments, **options)

    monkeypatch.setattr(TritonKernel, "call_kernel", dropped)
    program = Program(four_kernels, lambda: (values(64, 64), values(64, 64, g=1)), dynamic=dynamic)

    with inductor.patch(force_disable_caches=True):
        said = judgement(recorded(program, runs, device))

    (missing,) = said.findings
    assert isinstance(missing, NotLaunched) and missing.elsewhere is None
    assert (("sin",), ("cos",))[position] == missing.nodes if position < 2 else "div" in missing.nodes
    assert {*verdicts(said)} == ({"inputs wrong"} if position == 0 else {"right", "inputs wrong"})
    title, _, cause, *_ = judgement_text(said, ())
    assert title == f"✗ the kernel of {first_names(missing.nodes)} was not launched"
    assert cause == "    cause     Inductor's generated code, which has no call of it"


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
    write = PyCodeCache.write

    def dropped(source: str, *others: Any, **options: Any) -> Any:
        if "async_compile.wait(globals())" in source:
            source, count = re.subn(r"\n( +)(?=triton_\w+_exp_\w+\.run\()", r"\n\1if False: ", source)
            assert count == 1
        return write(source, *others, **options)

    monkeypatch.setattr(PyCodeCache, "write", dropped)
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
    write = PyCodeCache.write

    def dropped(source: str, *others: Any, **options: Any) -> Any:
        if "async_compile.wait(globals())" in source:
            source, count = re.subn(
                r"\n( +)(?=triton_\w+\.run\()",
                r"\n\1globals().update(made=globals().get('made', 0) + 1)\n\1if made != 4: ",
                source,
            )
            assert count == 3
        return write(source, *others, **options)

    monkeypatch.setattr(PyCodeCache, "write", dropped)
    program = Program(repeated, lambda: (values(64, 64), values(64, 64, g=1)), calls=2)

    with inductor.patch(force_disable_caches=True):
        said = judgement(recorded(program, runs, device))

    assert [type(one) for one in said.findings] == [NotLaunched]
    assert verdicts(said) == ["right"] * 3 + ["no reference"] * 2
