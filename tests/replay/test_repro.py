"""A launch as a script that reproduces the recorded bits in a process of its own, and else is refused."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
import torch
import triton
import triton.language as tl
from commands import DATA, recorded, tracing
from data import helped
from handmade.records import INFO
from safetensors.torch import load_file, save_file
from triton.language.extra import libdevice
from triton.tools.tensor_descriptor import TensorDescriptor

from tracing import store
from tracing.analyze.compare.signature_pair import constants_of
from tracing.cli.narrow.repro import tried
from tracing.errors import Problem
from tracing.model import Descriptor
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.record.outputs import Keep
from tracing.replay.repro import write_repro
from tracing.store import Run
from tracing.store.recorded_launch import RecordedLaunch, recorded_launch
from tracing.virtual_gpu import virtual_gpu

ISOLATED = (  # the script, where this project cannot be imported
    "import runpy, sys; sys.modules['tracing'] = None; sys.path.insert(0, sys.argv[1]); "
    "script = sys.argv[1] + '/repro.py'; sys.argv[1:] = []; runpy.run_path(script, run_name='__main__')"
)


@pytest.fixture(scope="module")
def racing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    runs = tmp_path_factory.mktemp("runs")
    return Path(recorded(str(DATA / "racing.py"), runs, "--keep-inputs", "--no-passes"))


def run_script(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", ISOLATED, str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.soak
def test_a_script_that_reproduces_the_recorded_bits_is_a_repro(racing: Path, tmp_path: Path) -> None:
    options = ("--launch", "1", "--kernel", "racing_sum", "--output", str(tmp_path / "it"))
    done = tracing("repro", str(racing), *options, runs=racing.parent)

    assert done.returncode == 0, done.stdout
    assert "1 of 1 replays wrote the recorded bits" in done.stdout
    assert ", interpreter, kernel.py, " in done.stderr
    assert f"a repro: {tmp_path}/it/repro.py" in done.stdout.splitlines()


def test_a_kernel_of_inductor_is_replayed_without_inductors_runtime(racing: Path, tmp_path: Path) -> None:
    write_repro(recorded_launch(Run(racing), 0), tmp_path)

    assert run_script(tmp_path).returncode == 0
    assert "triton_heuristics" not in (tmp_path / "kernel.py").read_text()


@pytest.mark.soak
def test_memory_next_to_a_view_that_the_launch_reads_is_said_to_be_missing(tmp_path: Path) -> None:
    (case := tmp_path / "ahead.py").write_text(NEIGHBOURS)
    run = recorded(str(case), tmp_path, "--keep-inputs", "--no-passes", passed=False)

    said = {}
    for width in (0, 2):
        options = ("--launch", str(width // 2), "--output", str(tmp_path / f"it{width}"))
        done = tracing("repro", run, *options, runs=tmp_path)
        missing = "the script lacks memory that the launch reads, so its bits may differ: "
        said[width] = [line for line in done.stderr.splitlines() if line.startswith(missing)]
        assert done.returncode == (1 if width else 0), done.stdout + done.stderr

    assert said[0] == []
    assert len(said[2]) == 1 and "2 loads outside of x_ptr, within its storage" in said[2][0]


NEIGHBOURS = """
import torch, triton
import triton.language as tl
from tracing import Workload

@triton.jit
def ahead(x_ptr, y_ptr, BY: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(y_ptr + at, tl.load(x_ptr + at + BY) * 2)

def build(device):
    def fn(x):
        first, second = torch.empty(64, device=device), torch.empty(64, device=device)
        ahead[(1,)](x[0], first, 0, 64)
        ahead[(1,)](x[0], second, 2, 64)
        return first, second
    return Workload(fn, (torch.rand(4, 64, device=device),))
"""


@triton.jit
def exact(x_ptr, y_ptr, infinite, negative, nan, zero, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at)
    y = libdevice.fast_expf(x) + libdevice.erf(x) + tl.sum(x, axis=0)
    y = tl.where(at == 0, infinite, tl.where(at == 1, negative, tl.where(at == 2, nan, y)))
    tl.store(y_ptr + at, tl.where(at == 3, zero, y))


@triton.jit
def halves(x_ptr, y_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at)
    tl.store(y_ptr + at, x * x + libdevice.tanh(x.to(tl.float32)).to(tl.bfloat16))


@triton.jit
def doubled(x):
    return x * 2


@triton.jit
def of_functions(x_ptr, y_ptr, APPLY: tl.constexpr, FINISH: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y_ptr + at, FINISH(APPLY(tl.load(x_ptr + at))))


VARIADIC = pytest.param(
    "variadic",
    marks=pytest.mark.skipif(triton.__version__.startswith("3.6."), reason="Triton 3.6 launches no *args"),
)


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Launches whose bits Triton's own interpreter would not reproduce."""
    writer, workload = store.create(tmp_path_factory.mktemp("runs"), INFO), helped.build("cpu", "exp")
    x, half = torch.rand(16), torch.rand(16, dtype=torch.bfloat16)
    with virtual_gpu(), LaunchRecorder(writer, keep=Keep(inputs=True)):
        workload.fn(*workload.args)
        exact[(1,)](x, torch.zeros(16), math.inf, -math.inf, math.nan, -0.0, BLOCK=16)
        halves[(1,)](half, torch.zeros_like(half), BLOCK=16)
        of_functions[(1,)](x, torch.zeros(16), doubled, tl.sigmoid, BLOCK=16)
        of_tuples[(1,)](Inputs(x, Scaled(x + 1, tl.constexpr(3))), (), (torch.zeros(16),), BLOCK=16)
        if not triton.__version__.startswith("3.6."):
            variadic[(1,)](torch.zeros(16), x, (3,))
        of_empty_tuples[(1,)]((x, ((), 2, ()), ()), ((),), torch.zeros(16))
        rows, written = torch.rand(40, 32), TensorDescriptor.from_tensor(torch.zeros(48, 32), [16, 32])
        for padding in ("nan", "zero"):
            of_blocks[(3,)](TensorDescriptor(rows, [30, 32], [32, 1], [16, 32], padding), written, 16)
    return Run(writer.path)


def of_kernel(run: Run, name: str) -> RecordedLaunch:
    return recorded_launch(run, next(one.index for one in run.launches() if one.kernel_name == name))


class Scaled(NamedTuple):
    tensor: Any
    factor: Any


class Inputs(NamedTuple):
    x: Any
    scaled: Any


@triton.jit
def of_tuples(inputs, nothing, results, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x, scaled = inputs  # Triton 3.6 assigns to no tuple in a tuple
    _, factor = scaled
    same = tl.load(inputs.x + at) - tl.load(x + at)
    tl.store(results[0] + at, tl.load(x + at) + tl.load(inputs.scaled.tensor + at) * factor + same)


@triton.jit
def variadic(out_ptr, *args):
    at = tl.arange(0, 16)
    tl.store(out_ptr + at, tl.load(args[0] + at) * args[1][0])


@triton.jit
def of_empty_tuples(inputs, nothing, out_ptr):
    at = tl.arange(0, 16)
    x, factors, rest = inputs
    count: tl.constexpr = 100 * len(rest) + 10 * len(factors) + len(nothing)
    tl.store(out_ptr + at, tl.load(x + at) * factors[1] + count)


@triton.jit
def of_blocks(x, y, ROWS: tl.constexpr):
    row = tl.program_id(0) * ROWS
    y.store([row, 0], x.load([row, 0]) * 2)


def test_launches_with_other_descriptors_of_one_tensor_are_distinguished(kernels: Run) -> None:
    passed = [one.args[0].descriptor for one in kernels.launches() if one.kernel_name == "of_blocks"]

    assert passed == [Descriptor((30, 32), (32, 1), (16, 32), padding) for padding in ("nan", "zero")]


def test_a_descriptor_that_was_not_recorded_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tracing.record.catalogue.descriptor_of", lambda value: None)
    writer = store.create(tmp_path, INFO)
    x, y = (TensorDescriptor.from_tensor(torch.ones(16, 32), [16, 32]) for _ in range(2))
    with virtual_gpu(), LaunchRecorder(writer, keep=Keep(inputs=True)):
        of_blocks[(1,)](x, y, 16)

    with pytest.raises(Problem, match="of_blocks takes a tensor descriptor of a kind that was not recorded"):
        recorded_launch(Run(writer.path), 0)


@pytest.mark.parametrize(
    "name",
    [
        "helped",
        "of_tuples",
        "of_blocks",
        "of_functions",
        pytest.param(*VARIADIC.values, marks=[*VARIADIC.marks, pytest.mark.soak]),
        *(pytest.param(one, marks=pytest.mark.soak) for one in ("halves", "of_empty_tuples")),
    ],
)
def test_a_script_reproduces_libdevice_bfloat16_and_tuples_without_a_gpu(
    name: str, kernels: Run, tmp_path: Path
) -> None:
    write_repro(of_kernel(kernels, name), tmp_path)

    done = run_script(tmp_path)

    assert done.returncode == 0, done.stderr
    assert "1 of 1 replays wrote the recorded bits" in done.stdout


@triton.constexpr_function
def split(number):
    return number // 2


@triton.jit
def sized(x_ptr, SIZE: tl.constexpr, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, SIZE(BLOCK)), 3.0)


class Factor:
    by = 3


@triton.jit
def multiplied(x_ptr, FACTOR: tl.constexpr):
    tl.store(x_ptr, tl.load(x_ptr) * FACTOR.by)


def test_an_object_that_is_a_constant_has_no_address(tmp_path: Path) -> None:
    writer = store.create(tmp_path, INFO)
    with virtual_gpu(), LaunchRecorder(writer):
        multiplied[(1,)](torch.ones(16), Factor())

    (launch,) = Run(writer.path).launches()
    assert launch.kernel.constants == {"FACTOR": f"<{__name__}.Factor object>"}


def test_a_constexpr_function_is_a_constant_without_an_address(tmp_path: Path) -> None:
    writer = store.create(tmp_path, INFO)
    with virtual_gpu(), LaunchRecorder(writer, keep=Keep(inputs=True)):
        sized[(1,)](torch.zeros(16), split, 16)
    launch = recorded_launch(Run(writer.path), 0)
    write_repro(launch, tmp_path)

    done = run_script(tmp_path)

    assert launch.launch.kernel.constants["SIZE"] == f"ConstexprFunction({__name__}:split)"
    assert constants_of(launch.launch.kernel) == {"BLOCK": "16"}
    assert done.returncode == 0, done.stderr


def test_floats_that_json_lacks_are_arguments_of_the_script(kernels: Run, tmp_path: Path) -> None:
    one = of_kernel(kernels, "exact")
    floats = {"infinite": math.inf, "negative": -math.inf, "nan": math.nan, "zero": -0.0}
    args = [msgspec.structs.replace(a, value=floats.get(a.name, a.value)) for a in one.launch.args]
    write_repro(replace(one, launch=msgspec.structs.replace(one.launch, args=tuple(args))), tmp_path)

    done = run_script(tmp_path)

    assert done.returncode == 0, done.stdout + done.stderr


def test_a_script_that_computes_different_bits_names_them(racing: Path, tmp_path: Path) -> None:
    write_repro(recorded_launch(Run(racing), 1), tmp_path)
    facts = json.loads((tmp_path / "launch.json").read_text())
    (tmp_path / "launch.json").write_text(json.dumps(facts | {"contents": []}))

    done = run_script(tmp_path)

    assert done.returncode == 1
    assert f"out_ptr: recorded {facts['expected']['out_ptr']}, written now " in done.stdout


def test_inputs_that_differ_from_the_recorded_ones_are_named_and_used(racing: Path, tmp_path: Path) -> None:
    write_repro(recorded_launch(Run(racing), 1), tmp_path)
    file = tmp_path / "in_ptr.safetensors"
    save_file({"tensor": load_file(file)["tensor"] * 0 + 2}, file)

    done = run_script(tmp_path)

    assert (done.returncode, done.stderr) == (1, "in_ptr.safetensors does not hold what the launch read\n")
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("out_ptr: "))
    assert line.endswith(": [128]")  # the sum of what it reads


def test_the_command_gives_no_answer_if_the_recorded_inputs_are_damaged(tmp_path: Path) -> None:
    script = tmp_path / "repro.py"
    script.write_text(
        "import sys\nprint('x.safetensors does not hold what the launch read', file=sys.stderr)\n"
        "print('0 of 1 replays wrote the recorded bits')\nsys.exit(1)\n"
    )

    status, printed = tried(script, 1, 60.0, "")

    assert status == 2 and "x.safetensors does not hold what the launch read: the run is damaged" in printed


def test_a_missing_launch_is_refused(racing: Path) -> None:
    with pytest.raises(Problem, match="no launch 99: its launches are 0 to "):
        recorded_launch(Run(racing), 99)


def test_a_launch_without_its_inputs_names_the_commands_that_record_and_write_it(
    racing: Path, tmp_path: Path
) -> None:
    without = shutil.copytree(racing, tmp_path / "run", ignore=shutil.ignore_patterns("outputs-*", "sizes-*"))

    done = tracing("repro", str(without), "--launch", "1", "--output", "asked", runs=tmp_path)

    assert done.returncode == 2
    assert "the inputs of launch 1 were not kept: in_ptr, out_ptr" in done.stderr
    assert "--keep-inputs --launches 1:2" in done.stderr
    assert f"latest --runs {tmp_path} --launch 1 --kernel racing_sum --output asked`" in done.stderr


def test_an_argument_of_a_strangers_run_names_no_other_folder(kernels: Run, tmp_path: Path) -> None:
    recorded = of_kernel(kernels, "halves")
    hostile = replace(recorded, inputs={"../owned": next(iter(recorded.inputs.values()))})

    with pytest.raises(Problem, match="no name of an argument"):
        write_repro(hostile, tmp_path / "repro")

    assert list(tmp_path.iterdir()) == []


HALF = """
import torch, triton, triton.language as tl

@triton.jit
def double(x, y, B: tl.constexpr):
    at = tl.arange(0, B)
    tl.store(y + 2 * at, tl.load(x + at) * 2)

x, y = torch.arange(32, device="cuda", dtype=torch.float32), torch.full((64,), 7.0, device="cuda")
double[(1,)](x, y, B=32)
"""


@pytest.mark.soak
def test_elements_that_a_launch_does_not_write_keep_their_recorded_content(tmp_path: Path) -> None:
    (program := tmp_path / "half.py").write_text(HALF)
    tracing("run", "--keep-inputs", "--target", "sm_90", str(program), runs=tmp_path)
    folder = tmp_path / "it"

    done = tracing("repro", "half", "--launch", "0", "--output", str(folder), runs=tmp_path)

    assert done.returncode == 0, done.stdout
    assert "the launch does not write all of y: the rest has its recorded content" in done.stderr
    kernel = folder / "kernel.py"
    kernel.write_text(kernel.read_text().replace("tl.load(x + at) * 2", "tl.load(x + at) * 3"))
    assert run_script(folder).returncode == 1
    kernel.write_text(kernel.read_text().replace("tl.store(y", "tl.store(x"))
    assert run_script(folder).returncode == 1


ASSERTING = """
import torch, triton
import triton.language as tl

@triton.jit(debug=True)
def below_three(x_ptr, y_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    x = tl.load(x_ptr + at)
    tl.device_assert(x < 3, "too large")
    tl.store(y_ptr + at, x * 2)

x = torch.arange(8.0, device="cuda")
below_three[(1,)](x, torch.empty_like(x), N=8)
"""


def test_a_failing_assertion_of_a_kernel_is_reproduced_by_its_script(tmp_path: Path) -> None:
    (program := tmp_path / "asserting.py").write_text(ASSERTING)
    failed = tracing("run", "--keep-inputs", "--no-passes", str(program), runs=tmp_path)
    assert "AssertFails" in failed.stderr, failed.stderr

    done = tracing("repro", "latest", "--launch", "0", "--output", str(tmp_path / "it"), runs=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "tl.device_assert of below_three at kernel.py:" in done.stdout
    assert "a repro of the error with which the program ended: " in done.stdout
