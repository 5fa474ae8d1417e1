"""`tracing bisect PROGRAM`: the step of torch.compile that makes a program fail, or that there is none."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from commands import DATA, tracing

PROGRAM = DATA / "bisected_program.py"
IS_COMPILING = """
import torch

def f(x):
    return x * 1.5 if torch.compiler.is_compiling() else x

x = torch.ones(4)
torch.testing.assert_close(torch.compile(f)(x), f(x))
"""
COMPILED = "import os, torch\ntorch.compile(torch.sin)(torch.ones(3))\n"
OTHER_BACKEND = "torch.compile(lambda: torch.compiler.is_compiling(), backend='aot_eager')"
FOR_THE_SOAK = [
    (f"{COMPILED}os._exit(4)", "ends alike: exit status 4"),
    (f"import torch\nif {OTHER_BACKEND}(): exit(5)", "compiles no graph by Inductor"),
]
BACKEND = """
import torch
from torch._inductor.compile_fx import compile_fx

def backend(graph, inputs):
    for node in graph.graph.nodes:
        if node.op == "call_function" and node.target is torch.cos:
            node.target = torch.REPLACEMENT
    graph.recompile()
    return compile_fx(graph, inputs)
"""
CHECKED = """
def f(x):
    return torch.cos(x) * torch.nn.functional.silu(x)

x = torch.linspace(0, 1, 64, device="cuda")
torch.testing.assert_close(torch.compile(f, backend=backend)(x), f(x))
"""
COMPILED_CASE = """
from tracing import Workload

def build(device):
    f = torch.compile(lambda x: torch.cos(x) * 2, backend=backend)
    return Workload(f, (torch.ones(64, device=device),))
"""
WRONG_DECOMPOSITION = """
import torch._inductor.decomposition as of_inductor

of_inductor.decompositions[torch.ops.aten.silu.default] = lambda x: x * torch.sigmoid(x) * 1.5
"""
UNDECLARED_WRITE = """
import torch

@torch.library.custom_op("strange::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    x += 1
    return x * 2

@twice.register_fake
def _(x):
    return torch.empty_like(x)

def f(x):
    y = x * 3
    z = twice(y)
    return y.sin() + z

x = torch.linspace(0, 1, 64, device="cuda")
torch.testing.assert_close(torch.compile(f)(x), f(x))
"""
ANSWERS = [
    (f"{COMPILED}raise SystemExit(3)", "ends alike: exit status 3"),
    (f"{COMPILED}os.environ['LOCAL_RANK']", "torchrun sets LOCAL_RANK; to search one rank of the job"),
    *(pytest.param(*one, marks=pytest.mark.soak) for one in FOR_THE_SOAK),
]


def bisect(runs: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return tracing("bisect", "--times", "1", *words, runs=runs)


def test_the_lowering_that_makes_a_program_raise_is_named(tmp_path: Path) -> None:
    done = tracing("bisect", "--times", "1", "--json", str(PROGRAM), "lowering_of_sigmoid", runs=tmp_path)

    answer = json.loads(done.stdout)
    assert (done.returncode, answer["accused"]) == (1, "inductor > lowerings > sigmoid"), done.stderr
    assert answer["symptom"]["kind"] == "raises" and answer["kernels"]


def test_without_the_virtual_gpu_the_compile_for_the_cpu_is_searched(tmp_path: Path) -> None:
    (program := tmp_path / "host.py").write_text(f"{COMPILED}assert not torch.cuda.is_available()\n")

    done = bisect(tmp_path, "--no-virtual-gpu", str(program))
    of_case = bisect(tmp_path, "--no-virtual-gpu", "silu")

    assert done.returncode == 0, done.stderr
    assert (of_case.returncode, "--no-virtual-gpu is for a program" in of_case.stderr) == (2, True)


FAILING = """
import os, torch
from torch._inductor import decomposition, lowering

def abort(x):
    os.abort()

def fail(x):
    raise ValueError("no decomposition today")

PLANTED
torch.compile(lambda x: torch.nn.functional.silu(x) + torch.erf(x))(torch.ones(3))
"""


@pytest.mark.parametrize(
    ("planted", "accused"),
    [
        ("lowering.lowerings[torch.ops.aten.erf.default] = abort", "inductor > lowerings > erf"),
        (
            "decomposition.decompositions[torch.ops.aten.silu.default] = fail",
            "aot_eager_decomp_partition > decompositions > aten.silu.default",
        ),
    ],
)
def test_a_compile_that_ends_before_it_tells_its_graphs_is_searched(
    planted: str, accused: str, tmp_path: Path
) -> None:
    (program := tmp_path / "program.py").write_text(FAILING.replace("PLANTED", planted))

    done = bisect(tmp_path, str(program))

    assert done.returncode == 1 and f"accused: {accused}" in done.stdout, done.stdout + done.stderr


def test_of_a_program_that_dies_in_every_compile_no_step_is_accused(tmp_path: Path) -> None:
    backend = "import os, torch\ndef backend(graph, inputs):\n    os.abort()\n"
    compiled = "torch.compile(lambda x: x + 1, backend=backend)(torch.ones(3))\n"
    (program := tmp_path / "program.py").write_text(backend + compiled)

    done = bisect(tmp_path, str(program))

    assert done.returncode == 2
    assert "nothing can be searched: the process of the program dies before it tells what" in done.stderr


def test_a_backend_of_the_program_is_accused_not_dynamo(tmp_path: Path) -> None:
    (program := tmp_path / "program.py").write_text(BACKEND.replace("REPLACEMENT", "sin") + CHECKED)

    done = bisect(tmp_path, str(program))

    assert done.returncode == 1, done.stderr
    assert "accused: backends of the program > backend (program.py:5)" in done.stdout


@pytest.mark.soak
def test_what_a_sound_backend_of_the_program_calls_is_searched(tmp_path: Path) -> None:
    sound = BACKEND.replace("REPLACEMENT", "cos")
    (program := tmp_path / "program.py").write_text(sound + WRONG_DECOMPOSITION + CHECKED)

    done = bisect(tmp_path, str(program))

    assert done.returncode == 1, done.stderr
    assert "accused: aot_eager_decomp_partition > decompositions > aten.silu.default" in done.stdout


@pytest.mark.soak
@pytest.mark.parametrize("replacement", ["sin", "cos"])
def test_a_case_that_is_compiled_already_keeps_its_backend(replacement: str, tmp_path: Path) -> None:
    (case := tmp_path / "case.py").write_text(BACKEND.replace("REPLACEMENT", replacement) + COMPILED_CASE)

    done = tracing("run", str(case), runs=tmp_path)
    assert done.returncode == (replacement == "sin"), done.stderr

    searched = bisect(tmp_path, str(case)).stdout
    assert ("accused: backends of the program > backend (case.py:5)" in searched) == (replacement == "sin")


def test_an_operator_that_writes_what_it_does_not_declare_is_named_and_no_pass(tmp_path: Path) -> None:
    (program := tmp_path / "program.py").write_text(UNDECLARED_WRITE)

    done = bisect(tmp_path, str(program))

    assert (done.returncode, done.stdout) == (2, "")
    assert "strange::twice writes x, and its schema does not say so (program.py:15)" in done.stderr


@pytest.fixture
def printing(tmp_path: Path) -> str:
    """The program, which prints whether it is right, and ends with exit status 0."""
    program, source = tmp_path / "printing.py", PROGRAM.read_text()
    raising = "torch.testing.assert_close(results(True), results(False))\nprint("
    assert raising in source
    source = source.replace(raising, "print(torch.allclose(results(True)[0], results(False)[0]) or 'not ' + ")
    program.write_text(f"import sys\nsys.path.insert(0, {str(DATA)!r})\n{source}")
    return str(program)


def test_a_command_judges_what_the_program_prints(printing: str, tmp_path: Path) -> None:
    done = bisect(tmp_path, printing, "decomposition_of_silu", "--", "grep", "-q", "True", "{stdout}")

    assert done.returncode == 1, done.stderr
    assert "wrong in 1 of 1 compiles: grep: exit status 1" in done.stdout
    assert "accused: aot_eager_decomp_partition > decompositions > aten.silu.default" in done.stdout


@pytest.mark.soak
def test_a_command_that_refuses_eager_too_accuses_nothing(printing: str, tmp_path: Path) -> None:
    done = bisect(tmp_path, printing, "decomposition_of_silu", "--", "grep", "-q", "nothing", "{stdout}")

    assert (done.returncode, done.stdout) == (2, "")
    assert "without torch.compile it ends alike: grep: exit status 1" in done.stderr


@pytest.mark.soak
def test_code_that_only_compilation_executes_is_accused(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(IS_COMPILING)

    done = bisect(tmp_path, str(program))

    assert done.returncode == 1, done.stderr
    assert "accused: the program: where torch.compiler.is_compiling() is true" in done.stdout
    assert f"raised by {program}, line 8" in done.stdout


@pytest.mark.parametrize(("source", "said"), ANSWERS)
def test_where_torch_compile_is_not_to_blame_nothing_is_accused(
    source: str, said: str, tmp_path: Path
) -> None:
    program = tmp_path / "program.py"
    program.write_text(source)

    done = bisect(tmp_path, str(program))

    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_a_right_program_says_what_would_make_it_wrong(tmp_path: Path) -> None:
    done = bisect(tmp_path, str(PROGRAM), "none")

    assert done.returncode == 0, done.stderr
    known = "whether the program checks what it computes is not known"
    assert f"exit status 0 in 1 of 1 compiles: {known}\n" in done.stdout
    assert "let it compare its results" in done.stdout.replace("\n", " ")


@pytest.mark.soak
def test_a_second_search_runs_nothing_until_an_imported_file_changes(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("FACTOR = 2\n")
    program = tmp_path / "program.py"
    program.write_text(
        "import torch\nfrom helper import FACTOR\ntorch.compile(torch.sin)(torch.ones(FACTOR))\n"
    )

    first = bisect(tmp_path, str(program)).stderr
    second = bisect(tmp_path, str(program)).stderr
    (tmp_path / "helper.py").write_text("FACTOR = 3\n")
    third = bisect(tmp_path, str(program)).stderr

    assert ["2 built" in first, "0 built" in second, "2 built" in third] == [True] * 3


def test_options_of_a_run_are_refused(tmp_path: Path) -> None:
    done = bisect(tmp_path, "--kernel", "k", str(PROGRAM), "none")

    assert done.returncode == 2
    assert "--kernel is not for a program" in done.stderr


LEFT_BEHIND = "import os, torch\nos.makedirs('left')\ntorch.compile(torch.sin)(torch.ones(3))\n"
CHANCE = "import os, torch\ntorch.compile(torch.sin)(torch.ones(3))\nassert os.urandom(1)[0] < 128\n"


@pytest.mark.soak
def test_a_program_that_fails_because_of_its_own_files_accuses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (program := tmp_path / "program.py").write_text(LEFT_BEHIND)
    monkeypatch.chdir(tmp_path)

    done = bisect(tmp_path / "runs", str(program))

    assert (done.returncode, done.stdout) == (2, "")
    assert "ends with exit status 0; without torch.compile it fails: FileExistsError" in done.stderr
    assert "each build executes it once more in this folder" in " ".join(done.stderr.split())


@pytest.mark.soak
def test_a_program_that_fails_by_chance_is_not_blamed_on_the_compiler(tmp_path: Path) -> None:
    (program := tmp_path / "program.py").write_text(CHANCE)

    done = bisect(tmp_path, "--times", "8", str(program))

    assert done.returncode != 1 and "accused" not in done.stdout, done.stdout
