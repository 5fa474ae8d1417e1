"""Programs that are no case: `tracing run train.py ARG...` and `tracing run -m package.module ARG...`."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import zipapp
from pathlib import Path

import pytest
import torch
from commands import DATA, tracing
from recorded.programs import as_recorded, bare

from tracing import store
from tracing.cli.options.program_words import is_program
from tracing.model import Outcome, ProgramStep

RAISES = """
def outer():
    try:
        inner()
    except ValueError as error:
        raise RuntimeError("worse") from error


def inner():
    import torch

    raise ValueError(str(torch.ones(2) @ torch.ones(2)))


outer()
"""


OPERATOR_FAILS = """
import threading

import torch


@torch._dynamo.disable
def product():
    return torch.ops.aten.mm(torch.ones(2, 3), torch.ones(2, 3))


thread = threading.Thread(target=product)
thread.start()
thread.join()
try:
    product()
except RuntimeError as error:
    torch.ones(2, 3) @ torch.ones(2, 3)
"""


IGNORES_AN_INTERRUPT = """
import signal, time, weakref
import torch


class Held:
    pass


signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
torch.compile(torch.sin)(torch.ones(8, device="cuda"))
held = Held()
watched = weakref.ref(held, lambda _: signal.raise_signal(signal.SIGINT))
del held  # Python prints "Exception ignored in", and goes on
time.sleep(60)
"""


INTERRUPTED_IN_LAUNCHES = """
import signal
import torch

signal.signal(signal.SIGINT, signal.default_int_handler)
sine = torch.compile(torch.sin)
x = sine(torch.ones(64, device="cuda"))
signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
signal.setitimer(signal.ITIMER_REAL, 0.2)
while True:
    x = sine(x)
"""


CHANGES_THE_FOLDER = """
import os, sys

print(__file__, sys.path[0], sys.argv)
os.chdir("/")
import helper

print(helper.__file__)
"""


REPLACES_ITSELF = """
import os, sys

if sys.argv[1:]:
    print("once more")
    sys.exit(3)

import torch

print(torch.ones(2).sum().item())
try:
    os.execv("/no/such/program", ["program"])
except OSError:
    print("no such program", flush=True)
if os.fork() == 0:
    os.execlp("true", "true")
os.wait()
os.execv(sys.executable, [sys.executable, sys.argv[0], "more"])
"""


TAKES_SIGNALS_AND_FORKS = """
import atexit, os, signal, sys

import torch

sys.unraisablehook = lambda error: print("unraisable:", error.exc_value, flush=True)
atexit.register(handler := lambda: sys.exit("an exit handler"))
received = []
signal.signal(signal.SIGUSR1, lambda number, frame: received.append(number))
torch.compile(torch.sin)(torch.ones(8))
os.kill(os.getpid(), signal.SIGUSR1)
print(received, sys.orig_argv[1:], flush=True)
if (child := os.fork()) == 0:
    atexit.unregister(handler)
    sys.exit(4)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


DIVERGES = """
import torch

@torch.compile
def logits(x):
    return (x - 2).log() * x

logits(torch.ones(8, device="cuda"))
"""

UNTRACED = """
import torch

@torch.compile(fullgraph=True)
def shown(x):
    print(x.sum().item())
    return x * 2

shown(torch.ones(8, device="cuda"))
"""

UNCOMPILED = """
import torch
from torch._inductor.lowering import lowerings

lowerings[torch.ops.aten.sin.default] = lambda x: x.missing()

@torch.compile
def waves(x):
    return x.sin() * 2

waves(torch.ones(8, device="cuda"))
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    runs = tmp_path_factory.mktemp("runs")
    done = as_recorded(["train.py", "--steps", "2"], DATA, runs)
    assert (done.status, done.stderr) == (0, "")
    return runs


def test_a_file_is_a_case_if_it_defines_build_of_a_device_and_nothing_is_executed(tmp_path: Path) -> None:
    texts = {
        "case": "raise SystemExit\ndef build(device: str): ...",
        "other": "raise SystemExit\ndef build(config): ...",
        "none": "1 / 0",
        "broken": "def build(:",
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text)

    programs = {name for name in texts if is_program([str(tmp_path / f"{name}.py")])}

    assert programs == {"other", "none", "broken"}
    assert not is_program(["silu"])
    assert not is_program([f"{tmp_path / 'case.py'}:width=3"])


def test_a_module_with_relative_imports_has_its_arguments_standard_input_and_exit_status(
    tmp_path: Path,
) -> None:
    words = ["-m", "program.arguments", "--status", "3"]

    assert as_recorded(words, DATA, tmp_path, "typed") == bare(words, DATA, "typed")


@pytest.mark.parametrize("named", ["./plain.py", "folder", "./archive.pyz", "./started.pyz"])
def test_a_program_is_found_by_its_absolute_path_after_it_has_changed_the_folder(
    named: str, tmp_path: Path
) -> None:
    (tmp_path / "plain.py").write_text(CHANGES_THE_FOLDER)
    for folder in (tmp_path, tmp_path / "folder"):
        folder.mkdir(exist_ok=True)
        (folder / "helper.py").write_text("import torch\n")
    (tmp_path / "folder/__main__.py").write_text(CHANGES_THE_FOLDER)
    zipapp.create_archive(tmp_path / "folder", tmp_path / "archive.pyz", interpreter=None)
    zipapp.create_archive(tmp_path / "folder", tmp_path / "started.pyz", interpreter="/usr/bin/env python3")

    expected = bare([named], tmp_path)

    assert expected.status == 0
    assert as_recorded([named], tmp_path, tmp_path / "runs") == expected


def test_a_program_that_replaces_itself_ends_the_run(tmp_path: Path) -> None:
    (program := tmp_path / "replaces.py").write_text(REPLACES_ITSELF)

    done = tracing("run", "--no-passes", str(program), runs=tmp_path)

    assert (done.returncode, done.stdout) == (3, "2.0\nno such program\nonce more\n")
    assert f"the program replaced itself by {sys.executable}, which is not recorded" in done.stderr
    (outcome,) = store.open_run("latest", tmp_path).records(Outcome)
    assert outcome.status == "ended" and "replaced itself" in outcome.detail


def by_python_and_recorded(options: list[str], folder: Path) -> list[subprocess.CompletedProcess[str]]:
    """`program.py` with options of the interpreter, run by it and by `tracing run`."""
    return [
        subprocess.run(
            [sys.executable, *options, *words, "program.py"], cwd=folder, capture_output=True, text=True
        )
        for words in ([], ["-m", "tracing", "run"])
    ]


def test_signals_forks_exit_handlers_and_options_of_the_interpreter_are_pythons(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(TAKES_SIGNALS_AND_FORKS)
    options = ["-X", "utf8", "-O", "-I"]

    expected, done = by_python_and_recorded(options, tmp_path)

    assert expected.stdout == f"[10] {[*options, 'program.py']}\n4\nunraisable: an exit handler\n"
    assert (done.stdout, done.returncode) == (expected.stdout, expected.returncode)
    assert all(line.startswith("tracing:") for line in done.stderr.splitlines()), done.stderr


def test_warnings_that_are_errors_are_those_of_the_program(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import torch, warnings\nwarnings.warn('own', DeprecationWarning)\n")

    expected, done = by_python_and_recorded(["-W", "error::DeprecationWarning"], tmp_path)

    assert expected.stderr.endswith("\nDeprecationWarning: own\n")
    assert done.returncode == expected.returncode == 1
    others = [line for line in done.stderr.splitlines() if not line.startswith("tracing:")]
    assert others == expected.stderr.splitlines()


def test_an_exception_is_reported_as_by_python_and_the_run_says_so(tmp_path: Path) -> None:
    (tmp_path / "raises.py").write_text(RAISES)

    expected = bare(["raises.py"], tmp_path)

    assert as_recorded(["raises.py"], tmp_path, tmp_path / "runs") == expected
    assert (expected.status, expected.stdout) == (1, "")
    outcome = next(store.open_run("latest", tmp_path / "runs").records(Outcome))
    assert (outcome.status, outcome.detail) == ("failed", "RuntimeError: worse (raises.py:6)")


@pytest.mark.soak
def test_an_interrupt_that_python_ignores_in_a_callback_ends_the_program_and_the_run_is_kept(
    tmp_path: Path,
) -> None:
    (program := tmp_path / "program.py").write_text(IGNORES_AN_INTERRUPT)
    started = time.monotonic()

    done = tracing("run", str(program), runs=tmp_path)

    assert time.monotonic() - started < 60  # it does not wait for the end of time.sleep
    assert done.returncode == -signal.SIGINT, done.stderr  # as under python
    assert "KeyboardInterrupt" in done.stderr and "Exception ignored" not in done.stderr
    run = store.open_run("latest", tmp_path)
    assert [one.status for one in run.records(Outcome)] == ["interrupted"]
    assert len(list(run.launches())) == 1


def test_an_interrupt_in_a_launch_ends_the_program_as_under_python(tmp_path: Path) -> None:
    (program := tmp_path / "program.py").write_text(INTERRUPTED_IN_LAUNCHES)

    done = tracing("run", "--no-passes", str(program), runs=tmp_path)

    assert done.returncode == -signal.SIGINT, done.stderr
    assert done.stderr.rstrip().splitlines()[-3].endswith("KeyboardInterrupt")
    assert [one.status for one in store.open_run("latest", tmp_path).records(Outcome)] == ["interrupted"]


@pytest.mark.soak
@pytest.mark.parametrize("options", [(), ("--no-virtual-gpu",)])
def test_the_traceback_of_an_operator_that_fails_is_pythons(options: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "fails.py").write_text(OPERATOR_FAILS)

    expected = bare(["fails.py"], tmp_path)

    assert as_recorded(["fails.py"], tmp_path, tmp_path / "runs", "", *options) == expected
    assert expected.stderr.count("mat1 and mat2 shapes cannot be multiplied") == 3


def test_a_step_ends_where_the_optimizer_steps_and_launches_are_numbered_in_it(trained: Path) -> None:
    run = store.open_run("latest", trained)

    assert [one.launches for one in run.records(ProgramStep)] == [4, 8]
    assert [one.step for one in run.launches()] == [(k // 4, k % 4) for k in range(8)]
    text = tracing("show", "latest", runs=trained).stdout
    assert f"program   train.py --steps 2 in {DATA}" in text
    assert "step 1, launch 3 of it" in text
    assert "ended: exit status 0" in text


def test_the_compiles_of_a_programs_own_run_are_recorded(trained: Path) -> None:
    done = tracing("guards", "latest", "--json", runs=trained)
    answer = json.loads(done.stdout)

    assert (done.returncode, answer["graphs"], answer["breaks"]) == (0, 1, [])
    assert "linear" in answer["compiles"][0]["graph"]


@pytest.mark.soak
def test_the_first_difference_from_a_program_that_says_cuda_is_named_by_step_and_launch(
    trained: Path,
) -> None:
    other = as_recorded(["train.py", "--steps", "2", "--rate", "0.2", "--cuda"], DATA, trained)
    names = sorted(path.name for path in trained.iterdir())

    said = tracing("compare", *names, runs=trained)

    assert (other.status, other.stderr) == (0, "")
    assert said.returncode == 1
    assert "launch #4 (step 1, launch 0 of it)" in said.stdout
    entry = json.loads(tracing("compare", *names, "--json", runs=trained).stdout)["divergences"][0]
    assert entry["step"] == [1, 0]


@pytest.mark.soak
def test_a_launch_of_a_program_is_replayed_after_the_program_was_recorded_anew(
    trained: Path,
) -> None:
    first = min(path.name for path in trained.iterdir())

    said = tracing("replay", first, "--launch", "5", "--times", "2", runs=trained)

    assert said.returncode == 0, said.stderr
    assert "deterministic" in said.stdout


def test_a_case_takes_no_words_and_a_program_no_question_about_eager(tmp_path: Path) -> None:
    case = tracing("run", "silu", "--keep-inputs", "extra", runs=tmp_path)
    program = tracing("run", "--show", "--runs", str(tmp_path), str(DATA / "train.py"), runs=tmp_path)

    assert (case.returncode, program.returncode) == (2, 2)
    assert "silu is a case, and takes no further words: extra" in case.stderr
    assert "--show is for a case" in program.stderr
    assert f"`tracing show latest --runs {tmp_path}`" in " ".join(program.stderr.split())


def test_the_commands_to_type_after_a_failure_name_the_folder_of_the_runs(tmp_path: Path) -> None:
    (program := tmp_path / "fails.py").write_text(f"{DIVERGES}\nraise SystemExit(3)\n")

    done = tracing("run", str(program), runs=tmp_path)

    assert done.returncode == 3
    assert f"torch.compile is to blame: tracing bisect --runs {tmp_path} {program}" in done.stderr


def test_a_program_that_does_not_compile_ends_with_one_command_that_names_the_step(tmp_path: Path) -> None:
    (program := tmp_path / "fails.py").write_text(UNCOMPILED)
    bisection = f"tracing bisect --runs {tmp_path} {program}"

    plain = tracing("run", str(program), runs=tmp_path)
    judged = tracing("run", "--judge", str(program), runs=tmp_path)

    assert (plain.returncode, judged.returncode) == (1, 1)
    assert (plain.stderr.count(bisection), judged.stderr.count(bisection)) == (1, 1)


def test_no_step_is_sought_if_dynamo_made_no_graph(tmp_path: Path) -> None:
    (program := tmp_path / "fails.py").write_text(UNTRACED)

    done = tracing("run", str(program), runs=tmp_path)

    assert done.returncode == 1 and "tracing bisect" not in done.stderr


def test_a_program_that_made_a_nan_ends_with_the_launch_and_the_command(tmp_path: Path) -> None:
    (program := tmp_path / "logits.py").write_text(DIVERGES)

    done = tracing("run", str(program), runs=tmp_path)

    [finding] = [line for line in done.stderr.splitlines() if "not finite" in line]
    assert done.returncode == 0 and done.stdout == ""
    assert finding.startswith(
        "tracing: not finite: the first NaN or inf is made by launch #0 triton_poi_fused_log"
    )
    assert "`tracing nan " in finding
    path = store.open_run("latest", tmp_path).path
    asked = "whether a kernel, or a step of torch.compile between Dynamo and the kernels, is wrong"
    assert done.stderr.endswith(f"tracing: {asked}: tracing judge {path}\n")


def test_a_program_that_was_only_compiled_is_not_sent_to_judge(tmp_path: Path) -> None:
    (program := tmp_path / "logits.py").write_text(f"{DIVERGES}\nraise SystemExit(3)\n")

    done = tracing("run", "--compile-only", str(program), runs=tmp_path)

    assert done.returncode == 3
    assert done.stderr.endswith(
        "tracing: --compile-only executed no launch: whether one is right is not known\n"
    )
    assert "tracing judge" not in done.stderr and "tracing bisect" not in done.stderr


BY_HAND = """
import torch, triton, triton.language as tl

@triton.jit
def halve(x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + at, mask=at < n) / 2, mask=at < n)

halve[(3,)](torch.ones(40, device="cuda"), 40, BLOCK=16)
"""


@pytest.mark.skipif(torch.cuda.is_available(), reason="on a GPU the interpreter judges such a kernel")
def test_a_program_of_hand_written_kernels_is_not_sent_to_judge(tmp_path: Path) -> None:
    (program := tmp_path / "halved.py").write_text(BY_HAND)

    done = tracing("run", str(program), runs=tmp_path)

    last = done.stderr.splitlines()[-1]
    assert last.startswith("tracing: nothing checks what hand-written kernels compute; how to check them: ")
    assert last.endswith("docs/case.md#check-a-hand-written-kernel") and "tracing judge" not in done.stderr


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs no GPU")
def test_kernels_that_triton_s_interpreter_executes_are_not_sent_to_judge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    (program := tmp_path / "halved.py").write_text(BY_HAND.replace(', device="cuda"', ""))

    done = tracing("run", "--no-virtual-gpu", str(program), runs=tmp_path)

    assert "1 launch seen" in done.stderr and "tracing judge" not in done.stderr
    assert "nothing checks what hand-written kernels compute" in done.stderr


CAPTURES = """
import torch
torch.compile(torch.sin)(torch.rand(8, device="cuda"))
try:
    torch.cuda.CUDAGraph()
except RuntimeError as error:
    raise ValueError("no graph") from error
"""


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU captures CUDA graphs")
def test_where_the_virtual_gpu_ends_a_program_no_kernel_is_suspected(tmp_path: Path) -> None:
    (program := tmp_path / "captures.py").write_text(CAPTURES)

    done = tracing("run", str(program), runs=tmp_path)

    assert done.returncode == 1 and "1 launch seen" in done.stderr
    assert done.stderr.endswith("tracing: what helps: run the program without, or on a GPU\n")


SETS_VARIABLES = """
import os, sys
assert "torch" not in sys.modules
os.environ["TORCHINDUCTOR_MAX_AUTOTUNE"] = "1"
os.environ["TORCH_LOGS"] = "+recompiles"
os.environ["OMP_NUM_THREADS"] = "1"
from torch.nn import functional
import torch, torch._inductor.config as inductor
os.environ["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"  # too late
print(inductor.max_autotune, inductor.force_disable_caches, functional.__name__, torch.__spec__.name)
print(torch.get_num_threads(), torch._logging._internal.log_state.artifact_names)
"""


def test_variables_that_a_program_sets_before_it_imports_torch_have_their_effect(tmp_path: Path) -> None:
    (program := tmp_path / "sets.py").write_text(SETS_VARIABLES)

    recorded = as_recorded([str(program)], tmp_path, tmp_path / "runs")

    assert recorded.stdout == bare([str(program)], tmp_path).stdout, recorded.stderr
    assert recorded.stdout == "True False torch.nn.functional torch\n1 {'recompiles'}\n"


DROPS_TENSORS = """
import gc, weakref
import torch

compiled = torch.compile(lambda x: x * 2 + 1)
compiled(torch.ones(8, 16))
gc.collect()
gc.disable()
x = torch.ones(8, 16)
y = compiled(x)
seen = weakref.ref(x), weakref.ref(y)
del x, y
print([one() is None for one in seen])
"""


def test_tensors_end_with_their_last_reference(tmp_path: Path) -> None:
    (program := tmp_path / "drops.py").write_text(DROPS_TENSORS)

    assert as_recorded([str(program)], tmp_path, tmp_path / "runs").stdout == "[True, True]\n"


OUT_OF_BOUNDS = """
import torch, triton, triton.language as tl

@triton.jit
def copy(x, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at), mask=at < n)

@torch.compile
def compiled(x):
    out = torch.empty_like(x)
    copy[(1,)](x, out, x.numel(), 128)
    return out + 1

compiled(torch.ones(100, device="cuda"))
"""


def test_where_a_kernel_of_the_program_fails_no_other_suspect_is_proposed(tmp_path: Path) -> None:
    (program := tmp_path / "wrong.py").write_text(OUT_OF_BOUNDS)
    done = tracing("run", str(program), runs=tmp_path)

    assert done.returncode == 1
    assert "error: your kernel copy fails: OutOfBoundsError: copy loads x[100] of 100 elements" in done.stderr
    assert "bisect" not in done.stderr and "judge" not in done.stderr


@pytest.mark.parametrize("options", [("--target", "sm_80"), ("--no-virtual-gpu",)], ids=["target", "host"])
def test_proposed_commands_choose_the_device_of_the_run(options: tuple[str, ...], tmp_path: Path) -> None:
    (program := tmp_path / "wrong.py").write_text(
        "import torch\ntorch.compile(torch.sin)(torch.ones(4)).wrong()\n"
    )
    done = tracing("run", *options, str(program), runs=tmp_path)
    proposed = [line for line in done.stderr.splitlines() if line.startswith("tracing: whether")]

    assert f" tracing run --judge {' '.join(options)} --runs " in proposed[0]
    assert f" tracing bisect {' '.join(options)} --runs " in proposed[1]


def test_a_program_that_python_cannot_read_is_reported_as_by_python_and_not_recorded(tmp_path: Path) -> None:
    (program := tmp_path / "unclosed.py").write_text("import torch\nprint(torch.ones(3)\n")

    done = tracing("run", str(program), "--epochs", "3", runs=tmp_path / "runs")

    python = bare([str(program), "--epochs", "3"], tmp_path)
    assert (done.returncode, done.stdout) == (python.status, python.stdout) == (1, "")
    assert done.stderr == python.stderr + "tracing: nothing was recorded\n"
    assert not (tmp_path / "runs").exists()
