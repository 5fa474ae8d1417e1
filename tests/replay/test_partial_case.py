"""A case that is compiled in part and judged: what cannot be judged is said, and nothing is accused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracing.analyze.bisect_case.case_search import CaseSearch
from tracing.analyze.bisect_case.evaluation import Evaluation, Variation
from tracing.analyze.bisect_case.symptom import Symptom
from tracing.errors import Problem
from tracing.program.device import Device
from tracing.program.experiment import Experiment
from tracing.replay.partial_case import PartialCase

COUNTING = """
import torch
from tracing import Workload

calls = [0]


@torch._dynamo.disable
def counted(x):
    calls[0] += 1
    return x * calls[0]


def build(device):
    return Workload(lambda x: counted(x) + 1, (torch.ones(8, device=device),))
"""
NO_FORMULA = """
import torch
from tracing import Workload

if not hasattr(torch.ops.partial_case, "plain"):

    @torch.library.custom_op("partial_case::plain", mutates_args=())
    def plain(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @plain.register_fake
    def _(x):
        return torch.empty_like(x)


def fn(x):
    if torch.compiler.is_compiling():
        x = torch.ops.partial_case.plain(x)
    else:
        x = x * 2
    return x.view(-1).sum()


def build(device):
    return Workload(fn, (torch.ones(2, 4, device=device, requires_grad=True),), backward=True)
"""
RAISING = """
import torch
import triton
import triton.language as tl
from tracing import Workload


@triton.jit
def undefined(x, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), missing)


def fn(x):
    undefined[(1,)](x, BLOCK=8)
    return x


def build(device):
    return Workload(fn, (torch.ones(8, device=device),))
"""


OWN = """
import torch
import triton
import triton.language as tl
from tracing import Workload


@triton.jit
def twice(x, y, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, 2 * tl.load(x + at))


def fn(x):
    y = torch.empty_like(x)
    twice[(1,)](x, y, BLOCK=8)
    return y


def build(device):
    return Workload(fn, (torch.ones(8, device=device),))
"""


def test_the_kernels_that_eager_launches_are_named(tmp_path: Path) -> None:
    (tmp_path / "case.py").write_text(OWN)
    device = Device("sm_90")
    case = PartialCase(Experiment(device.load(str(tmp_path / "case.py")), device, 0))

    answer = case.evaluate("inductor", {}, {}, {})

    assert answer["symptom"]["kind"] == "right"
    assert (
        answer["own_kernels"]
        == answer["eager_kernels"]
        == [{"name": "twice", "python": "case.py:9", "backward": False}]
    )


ONLY_COMPILED = OWN.replace(
    "def fn(x):", "def fn(x):\n    if not torch.compiler.is_compiling():\n        return 3 * x"
)


def test_what_a_program_computes_for_compilation_only_is_executed_without_a_compiler(tmp_path: Path) -> None:
    (tmp_path / "case.py").write_text(ONLY_COMPILED)
    device = Device("sm_90")
    case = PartialCase(Experiment(device.load(str(tmp_path / "case.py")), device, 0))

    answer = case.evaluate("uncompiled", {}, {}, {})

    assert (answer["symptom"]["kind"], answer["eager_kernels"]) == ("differs", [])
    assert [one["name"] for one in answer["own_kernels"]] == ["twice"]


def test_a_kernel_that_does_not_compile_fails_alike_with_and_without_inductor(tmp_path: Path) -> None:
    (tmp_path / "case.py").write_text(ONLY_COMPILED.replace("tl.store(", "tl.no_such_function("))
    device = Device("sm_90")
    case = PartialCase(Experiment(device.load(str(tmp_path / "case.py")), device, 0))

    seen = [case.evaluate(stage, {}, {}, {})["symptom"] for stage in ("inductor", "uncompiled")]

    assert [one["kind"] for one in seen] == ["raises", "raises"]
    assert seen[0] == seen[1] and seen[0]["error"] == "CompilationError"


UNDECLARED = """
import torch
from tracing import Workload


def build(device):
    @torch.library.custom_op("partial_case::ema", mutates_args=())
    def ema(seen: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        seen.mul_(0.9).add_(x, alpha=0.1)
        return seen * 2

    @ema.register_fake
    def _(seen, x):
        return torch.empty_like(seen)

    def fn(seen, x):
        y = torch.sin(seen + x)
        return y + torch.ops.partial_case.ema(seen, x), torch.sin(seen + x)

    return Workload(fn, (torch.ones(8, device=device), torch.arange(8.0, device=device)))
"""


def test_no_step_of_the_compiler_is_searched_for_a_write_that_a_schema_does_not_declare(
    tmp_path: Path,
) -> None:
    (tmp_path / "case.py").write_text(UNDECLARED)
    device = Device("sm_90")
    case = PartialCase(Experiment(device.load(str(tmp_path / "case.py")), device, 0))

    symptom = case.evaluate("inductor", {}, {}, {})["symptom"]

    assert symptom["kind"] == "no answer"
    assert symptom["text"] == "partial_case::ema writes seen, and its schema does not say so (case.py:18)"


OTHER_DTYPE = """
import torch
from tracing import Workload


def build(device):
    @torch.library.custom_op("partial_case::narrow", mutates_args=())
    def narrow(x: torch.Tensor) -> torch.Tensor:
        return (x * 2).to(torch.RETURNED)

    @narrow.register_fake
    def _(x):
        return torch.empty_like(x, dtype=torch.FAKE)

    def fn(x):
        return (torch.ops.partial_case.narrow(x.sin()).float() + 1).sum(1)

    return Workload(fn, (torch.ones(16, 10, device=device),))
"""


@pytest.mark.parametrize(("returned", "fake"), [("float16", "float32"), ("float32", "float16")])
def test_no_step_of_the_compiler_is_searched_for_a_wrong_fake_implementation(
    returned: str, fake: str, tmp_path: Path
) -> None:
    (tmp_path / "case.py").write_text(OTHER_DTYPE.replace("RETURNED", returned).replace("FAKE", fake))
    device = Device("sm_90")
    case = PartialCase(Experiment(device.load(str(tmp_path / "case.py")), device, 0))

    symptom = case.evaluate("inductor", {}, {}, {})["symptom"]

    said = f"partial_case::narrow returns {returned}, not {fake} as its fake implementation does (case.py:16)"
    assert (symptom["kind"], symptom["text"]) == ("no answer", said)


WRONG_BACKWARD = (
    ONLY_COMPILED.replace("return 3 * x", "return 2 * x")
    .replace(
        "    y = torch.empty_like(x)\n    twice[(1,)](x, y, BLOCK=8)\n    return y",
        "    return Twice.apply(x)",
    )
    .replace(
        "def fn(x):",
        """class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.empty_like(x)
        twice[(1,)](x, y, BLOCK=8)
        return y

    @staticmethod
    def backward(ctx, g):
        return 3 * g


def fn(x):""",
    )
    .replace(
        "(torch.ones(8, device=device),)",
        "(torch.ones(8, device=device, requires_grad=True),), backward=True",
    )
)


def test_a_wrong_backward_formula_leaves_only_gradients_wrong(tmp_path: Path) -> None:
    (tmp_path / "case.py").write_text(WRONG_BACKWARD)
    device = Device("sm_90")
    case = PartialCase(Experiment(device.load(str(tmp_path / "case.py")), device, 0))

    answer = case.evaluate("uncompiled", {}, {}, {})

    assert [one["name"] for one in answer["symptom"]["results"]] == ["grad of input 0"]
    assert [one["backward"] for one in answer["own_kernels"]] == [False]


def symptom(text: str, folder: Path) -> Symptom:
    path = folder / "case.py"
    path.write_text(text)
    device = Device("sm_90")
    case = PartialCase(Experiment(device.load(str(path)), device, 0))
    answer = case.evaluate("inductor", {}, {}, {})["symptom"]
    return Symptom(answer["kind"], answer["text"], remedy=answer.get("remedy", ""))


def problem(of: Symptom) -> Problem:
    def evaluate(variation: Variation, number: int) -> Evaluation:
        return Evaluation(of, 0.0)

    with pytest.raises(Problem) as raised:
        list(CaseSearch(evaluate, 2, lambda: None).events())
    return raised.value


def test_a_case_that_eager_does_not_repeat_has_no_answer(tmp_path: Path) -> None:
    seen = symptom(COUNTING, tmp_path)

    assert seen.kind == "no answer" and seen.text.startswith("eager itself gives another result each time")
    assert "the program keeps state" in problem(seen).problem
    assert "build(device)" in problem(seen).remedy and "tracing run" not in problem(seen).remedy


NAN_IN_FLOAT64 = """
import torch
from tracing import Workload


def fn(x):
    y = x + (1 - (x * 0 + 1 + 1e-9)).sqrt()  # 1 + 1e-9 is 1 in float32
    return y * 1.5 if torch.compiler.is_compiling() else y


def build(device):
    return Workload(fn, (torch.linspace(1, 2, 64, device=device),))
"""


def test_no_step_is_accused_if_float64_decides_nothing(tmp_path: Path) -> None:
    seen = symptom(NAN_IN_FLOAT64, tmp_path)

    assert seen.kind == "no answer" and seen.text.startswith("not decided: output: ")
    assert "inputs for which eager agrees with float64" in problem(seen).remedy


def test_an_operator_of_the_program_that_lacks_a_formula_is_named_and_no_step_accused(tmp_path: Path) -> None:
    seen = symptom(NO_FORMULA, tmp_path)

    line = next(n for n, code in enumerate(NO_FORMULA.splitlines(), 1) if "plain(x)" in code)
    assert seen.text.startswith("operator partial_case.plain.default (FX node ")
    assert "no autograd formula was registered" in seen.text and f"(case.py:{line}: " in seen.text
    assert "no step of the compiler is to blame" in problem(seen).remedy


def test_a_kernel_that_fails_in_eager_is_named_with_its_line(tmp_path: Path) -> None:
    seen = symptom(RAISING, tmp_path)

    assert "kernel undefined does not compile" in seen.text
    assert "missing is not defined" in seen.text and "case.py:10" in seen.text
    assert "`tracing bisect RUN --crash`" in problem(seen).remedy
