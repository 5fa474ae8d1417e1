"""What failed in a compile is named in one line, with the Python line; its source is kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import DATA
from recorded.runs import recorded
from torch._inductor.compile_worker.subproc_pool import SubprocException
from torch._inductor.exc import CppCompileError
from triton import knobs
from triton.runtime.errors import OutOfResources

from tracing import store
from tracing.compiler.failed_pass import located
from tracing.model import Failure, Outcome
from tracing.record.failures.diagnosis import Diagnosis, sentence
from tracing.report.failure import failure_text
from tracing.report.run_json import run_json

CASE = DATA / "failures.py"


def line_of(code: str) -> int:
    return next(n for n, line in enumerate(CASE.read_text().splitlines(), 1) if code in line)


def failed(name: str, runs: Path) -> tuple[store.Run, Failure, str]:
    """A run that failed, what failed, and how its outcome describes that."""
    run = recorded(f"{CASE}:name={name}", runs)
    (failure,), (outcome,) = run.records(Failure), run.records(Outcome)
    assert outcome.status == "failed"
    return run, failure, outcome.detail


def diagnosed(error: Exception, folder: Path) -> Failure | None:
    diagnosis = Diagnosis(folder / "case.py", store.RunWriter(folder))
    (folder / "blobs").mkdir()
    with pytest.raises(type(error)), diagnosis:
        raise error
    return diagnosis.failure


def test_a_helper_that_the_frontend_refuses_is_named_with_its_line(tmp_path: Path) -> None:
    run, failure, detail = failed("frontend", tmp_path)

    assert (failure.kind, failure.name, failure.line) == ("frontend", "undefined", 4)
    where = f"failures.py:{line_of('value * exponent')}: return value * exponent"
    assert detail.startswith("kernel undefined does not compile: NameError('exponent is not defined')")
    assert where in detail and "\n" not in detail
    assert ">     4      return value * exponent" in "\n".join(map(str, failure_text(failure, run.text)))


def test_a_name_that_the_frontend_refuses_is_named_with_its_line(tmp_path: Path) -> None:
    _, failure, detail = failed("name", tmp_path)

    assert (failure.kind, failure.name, failure.line) == ("frontend", "größe", 1)
    assert detail.startswith("kernel größe does not compile: invalid function identifier: größe")
    assert f"(failures.py:{line_of('def größe')}: def größe(" in detail


def test_a_function_of_triton_that_the_frontend_refuses_is_located_where_the_kernel_calls_it(
    tmp_path: Path,
) -> None:
    _, failure, detail = failed("of triton", tmp_path)

    assert (failure.name, failure.file) == ("turned_over", str(CASE))
    assert f"(failures.py:{line_of('tl.flip(tl.load(x + at), 5)')}: tl.store(" in detail
    assert "CompileTimeAssertionFailure at standard.py:" in detail and "static_assert(" in detail


def test_a_kernel_that_torch_compile_copied_is_named_with_the_users_line(tmp_path: Path) -> None:
    _, failure, detail = failed("copied", tmp_path)

    assert (failure.kind, failure.name, failure.file) == ("frontend", "accumulated", str(CASE))
    assert f"failures.py:{line_of('for _ in range(2)')}: for _ in range(2)" in detail


def test_a_kernel_is_named_where_a_function_that_it_calls_fails(tmp_path: Path) -> None:
    _, failure, detail = failed("called", tmp_path)

    assert (failure.kind, failure.name) == ("kernel", "calling")
    assert failure.python == f"failures.py:{line_of('tl.store(pointers')}"
    assert detail.startswith("your kernel calling fails: OutOfBoundsError: calling stores out[1073741824]")


def test_a_kernel_that_ptxas_refuses_is_named_with_what_ptxas_says(tmp_path: Path) -> None:
    _, failure, detail = failed("ptxas", tmp_path)

    assert (failure.kind, failure.step) == ("stage", "ptxas")
    assert "kernel nonsense: ptxas failed: Not a name of any known instruction: 'nonsense'" in detail
    assert f"failures.py:{line_of('inline_asm_elementwise')}" in detail


def test_an_operator_that_inductor_cannot_lower_is_named_with_node_and_line(tmp_path: Path) -> None:
    run, failure, detail = failed("lowering", tmp_path)

    assert (failure.kind, failure.name) == ("lowering", "failures.odd.default")
    assert "NotImplementedError: odd numbers are not lowered" in detail
    assert f"failures.py:{line_of('torch.ops.failures.odd(x.sin())')}" in detail
    (outcome,) = run.records(Outcome)
    assert "by this test" in outcome.message
    assert json.loads(json.dumps(run_json(run, [])))["failures"][0]["step"] == failure.step


def test_a_graph_pass_of_the_users_is_named_with_its_line_and_not_the_operator_that_it_edits(
    tmp_path: Path,
) -> None:
    _, failure, detail = failed("graph pass", tmp_path)

    erased = f"erased (failures.py:{line_of('def erased')})"
    assert (failure.kind, failure.step, failure.file) == ("graph pass", "mul", str(CASE))
    assert detail.startswith(f"graph pass post_grad_custom_post_pass, {erased} fails at FX node mul: ")
    assert f"(failures.py:{line_of('graph.erase_node')}: graph.erase_node(node))" in detail


def test_the_last_operator_of_a_forward_is_not_named_where_its_backward_raises(tmp_path: Path) -> None:
    run = recorded(f"{CASE}:name=derivative", tmp_path)
    (outcome,) = run.records(Outcome)

    assert not list(run.records(Failure))
    assert "RuntimeError: derivative for aten::scatter is not implemented" in outcome.detail
    assert "FX node" not in outcome.detail


def test_generated_code_that_raises_is_kept_and_named_with_the_line_that_it_was_made_from(
    tmp_path: Path,
) -> None:
    run, failure, detail = failed("generated", tmp_path)

    assert failure.kind == "generated code"
    assert failure.name in ("assert_size_stride", "assert_tensor_metadata")  # until torch 2.14; since 2.15
    assert "turned" in failure.nodes
    assert f"failures.py:{line_of('failures.turned(x + 1)')}" in detail
    assert failure.code in run.text(failure.source).splitlines()[failure.line - 1]


def test_a_hook_of_the_users_that_raises_is_reported_as_the_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(knobs.runtime, "launch_exit_hook", knobs.HookChain())
    run = recorded(f"{CASE}:name=hook", tmp_path)
    (outcome,) = run.records(Outcome)

    assert outcome.detail == f"ValueError: the user's hook (failures.py:{line_of('raise ValueError')})"
    assert len(list(run.launches())) == 1


def test_an_error_of_a_worker_process_keeps_kernel_and_message(tmp_path: Path) -> None:
    text = (
        "Traceback (most recent call last):\n  File ...\ntriton.compiler.errors.CompilationError: at 3:8:\n"
        "def triton_poi_0(x):\n    at = tl.arange(0, 4)\n    y = zuf0\n        ^\n"
        "NameError('zuf0 is not defined')"
    )

    failure = diagnosed(SubprocException(text, "triton_poi_0"), tmp_path)

    assert failure is not None and (failure.kind, failure.name, failure.code) == (
        "worker", "triton_poi_0", "y = zuf0",
    )  # fmt: skip
    assert failure.reason == "NameError('zuf0 is not defined')"


def test_generated_cpp_that_does_not_compile_is_kept_with_the_compilers_error(tmp_path: Path) -> None:
    source = tmp_path / "generated.cpp"
    source.write_text('#include <x>\nextern "C" void cpp_fused_add_0(float* x)\n{ x = wrong; }\n')
    output = f"{source}:3:7: error: 'wrong' was not declared\n"

    failure = diagnosed(CppCompileError(["g++", str(source)], output), tmp_path)

    assert failure is not None and (failure.code, failure.line) == ("{ x = wrong; }", 3)
    assert sentence(failure).startswith(
        "generated C++ of cpp_fused_add_0 does not compile: 'wrong' was not declared ("
    )


def test_a_kernel_that_needs_too_much_of_the_gpu_says_how_much(tmp_path: Path) -> None:
    failure = diagnosed(OutOfResources(262144, 232448, "shared memory"), tmp_path)

    assert failure is not None and failure.kind == "launch"
    assert "Required: 262144, Hardware limit: 232448" in sentence(failure)


def test_an_error_of_the_case_itself_is_no_failure_of_the_compiler(tmp_path: Path) -> None:
    assert diagnosed(ValueError("mine"), tmp_path) is None


@pytest.mark.parametrize(
    ("said", "reason", "line"),
    [
        ('loc("a/x.py":3:4): error: no layout', "no layout", "x.py:3"),
        ("/tmp/x.py:3:4: error: no layout", "no layout", "x.py:3"),
        ("Assertion `layout' failed.", "Assertion `layout' failed.", ""),
    ],
)
def test_a_diagnostic_is_parted_from_its_location(said: str, reason: str, line: str) -> None:
    assert located(said) == (reason, line)


def test_a_kernel_of_the_user_that_generated_code_copied_is_not_called_generated_code() -> None:
    failure = Failure("kernel", "copy", "OutOfBoundsError: x[1000]", python="case.py:8", file="/case.py")

    assert sentence(failure).startswith("your kernel copy fails: OutOfBoundsError")
    assert (
        failure.problem("/case.py") == "/case.py:8: error: your kernel copy fails: OutOfBoundsError: x[1000]"
    )


LAST = """
import torch
from tracing import Workload

@torch.library.custom_op("failures::last", mutates_args=())
def last(x: torch.Tensor) -> torch.Tensor:
    return (x * 2).contiguous(memory_format=torch.channels_last)

@last.register_fake
def _(x):
    return torch.empty(x.shape, device=x.device)

def build(device):
    return Workload(lambda x: last(x).sin() + 1, (torch.randn(2, 4, 5, 5, device=device),))
"""


def test_an_operator_with_other_strides_than_its_fake_implementation_is_named(tmp_path: Path) -> None:
    (case := tmp_path / "last.py").write_text(LAST)
    run = recorded(str(case), tmp_path / "runs")

    [outcome], [failure] = run.records(Outcome), run.records(Failure)
    assert (outcome.status, failure.kind) == ("failed", "generated code")
    assert outcome.undeclared == (
        "failures::last returns strides (100, 1, 20, 4), not (100, 25, 5, 1) as its fake implementation does "
        "(last.py:14)",
    )
    assert (
        outcome.detail.startswith("failures::last returns strides") and "assert_size_stride" in outcome.detail
    )
