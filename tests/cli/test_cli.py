"""The commands, from a case to a comparison, each in a process of its own as a user runs them."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from commands import DATA, recorded, tracing

from tracing.program.case import CASES


@pytest.fixture(scope="module")
def silu(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    runs = tmp_path_factory.mktemp("runs")
    return runs, recorded("silu", runs), recorded("silu", runs)


def test_a_run_is_shown_with_its_launches_arguments_and_stages(silu: tuple[Path, str, str]) -> None:
    runs, path, _ = silu

    text = tracing("show", path, runs=runs).stdout

    assert "[Triton] triton_poi_fused_mul_sigmoid_0[grid=(" in text
    assert "in_ptr0=t: f32[32, 1, 896]" in text
    assert "[OUT] out_ptr0=t: f32[32, 1, 896]" in text
    assert "xnumel=28672" in text
    assert "stages kept: source, ttir, ttgir, llir, ptx, cubin" in text
    assert "passed: the result agrees with eager" in text


def test_a_run_has_the_guards_of_the_code_that_torch_compile_made(silu: tuple[Path, str, str]) -> None:
    runs, path, _ = silu

    done = tracing("guards", path, "--json", runs=runs)
    (compiled,) = json.loads(done.stdout)["compiles"]

    assert done.returncode == 0
    assert compiled["function"] == "forward" and compiled["operators"] == 3
    assert {"L['x']", "L['up']"} <= {one["source"] for one in compiled["guards"]}


def test_a_launch_leads_to_the_compiler_passes_of_its_kernel(silu: tuple[Path, str, str]) -> None:
    runs, path, _ = silu

    launch = tracing("show", path, "--launch", "0", runs=runs).stdout
    command = next(line for line in launch.splitlines() if "tracing passes" in line).split()[2:]

    assert "compiled as triton_poi_fused_mul_sigmoid_0" in launch
    assert "tritongpu-coalesce" in tracing(*shlex.split(" ".join(command)), runs=runs).stdout


def test_the_second_run_of_a_case_compares_equal(silu: tuple[Path, str, str]) -> None:
    runs, a, b = silu

    done = tracing("compare", a, b, runs=runs)

    assert (done.returncode, done.stdout) == (0, "equal: 1 launch, every digest, 1 result\n")


def test_recorded_runs_are_listed_oldest_first(silu: tuple[Path, str, str]) -> None:
    runs, a, b = silu

    listed = [line.split()[0] for line in tracing("list", runs=runs).stdout.splitlines()]

    assert listed == [Path(a).name, Path(b).name]


@pytest.mark.soak
def test_a_seeded_difference_is_caught_at_the_launch_that_first_reads_it(tmp_path: Path) -> None:
    a, b = (recorded(str(DATA / "seeded.py"), tmp_path, "--seed", seed) for seed in ("0", "1"))

    done = tracing("compare", a, b, runs=tmp_path)

    assert "last written by aten::mm.out" in tracing("show", a, runs=tmp_path).stdout
    assert done.returncode == 1
    assert "seed differs: 0 | 1" in done.stdout
    assert "✗ start: input 2 differs: float32[32, 896] " in done.stdout
    assert "2 launches compared; further differences: 1 follows from those above" in done.stdout
    assert "first consequence: launch #1 triton_" in done.stdout


def test_a_case_that_raises_leaves_a_readable_run_with_the_error(tmp_path: Path) -> None:
    done = tracing("run", str(DATA / "raises.py"), runs=tmp_path)
    shown = tracing("show", "latest", runs=tmp_path)

    assert done.returncode == 2
    assert f"the case failed\n  {DATA}/raises.py:13: error: ValueError: this model is wrong\n" in done.stderr
    assert done.stderr.count("this model is wrong") == 2  # in the message, and in the line of code
    assert "Traceback" not in done.stderr
    assert shown.returncode == 0
    assert "failed: ValueError: this model is wrong" in shown.stdout


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("run", "slu"), "there is no case slu"),
        (("run", "silu", "--target", "sm_1"), "sm_1"),
        (("show", "nothing"), "there is no run nothing"),
        (("compare", "nothing", "nothing"), "there is no run nothing"),
    ],
)
def test_bad_input_is_one_error_without_a_traceback(
    args: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    done = tracing(*args, runs=tmp_path)

    assert done.returncode == 2
    assert done.stderr.startswith("tracing: ")
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_machine_without_a_c_compiler_is_refused(tmp_path: Path) -> None:
    done = tracing("run", "silu", runs=tmp_path, PATH="/nowhere", CC="")

    assert done.returncode == 2
    assert "no C compiler" in done.stderr


def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")

    done = tracing("run", "silu", runs=blocked)

    assert done.returncode == 2
    assert f"'{blocked}' is a file" in done.stderr.replace("\n", "")


@pytest.mark.soak
def test_launches_without_digests_are_compared_in_part_only(tmp_path: Path) -> None:
    a, b = (recorded("silu", tmp_path, "--digests", "none") for _ in range(2))

    shown = tracing("show", a, runs=tmp_path).stdout
    compared = tracing("compare", a, b, runs=tmp_path)

    assert "not digested" in shown
    assert "did not finish" not in shown
    assert compared.returncode == 2
    assert f"no digests in {Path(a).name}" in compared.stdout


def test_an_end_of_line_in_a_name_begins_no_line(tmp_path: Path) -> None:
    case = tmp_path / "x\npassed: forged\ny.py"
    case.write_text((CASES / "silu.py").read_text())

    done = tracing("run", str(case), "--no-passes", "--no-referee", runs=tmp_path)
    shown = tracing("show", "latest", runs=tmp_path)
    lost = tracing("show", "no\npassed: forged", runs=tmp_path)

    for one in (done, shown, lost):
        assert not any(line.startswith("passed: forged") for line in (one.stdout + one.stderr).splitlines())
        assert "\\u000apassed: forged" in one.stdout + one.stderr


def test_a_case_with_a_syntax_error_is_no_program(tmp_path: Path) -> None:
    case = tmp_path / "unclosed.py"
    case.write_text("def build(device):\n    return (\n")

    done = tracing("run", str(case), runs=tmp_path)

    assert done.returncode == 2
    assert "SyntaxError" in done.stderr and [*tmp_path.iterdir()] == [case]


def test_a_case_runs_on_the_cpu_without_a_virtual_gpu(tmp_path: Path) -> None:
    case = tmp_path / "doubled.py"
    case.write_text(
        "from tracing import Workload\nimport torch\ndef build(device):\n    print(device)\n"
        "    return Workload(lambda x: 2 * x, (torch.ones(3, device=device),))\n"
    )

    done = tracing("run", "--no-virtual-gpu", str(case), runs=tmp_path)

    assert "recording on the CPU\n" in done.stderr and "cpu" in done.stdout.splitlines()
    assert "Inductor compiled C++" in done.stderr
    shown = tracing("show", "latest", runs=tmp_path).stdout
    assert "device    CPU, on " in shown
    assert "#0 [C++] cpp_fused_mul_0(" in shown and "Triton]" not in shown and "num_warps" not in shown
