"""Versions, device and settings of this process; the only reader of environment variables."""

from __future__ import annotations

import os
import platform
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from tracing.errors import Problem
from tracing.model import Environment
from tracing.model.recorded_variables import RECORDED_VARIABLES

ROOT = Path(__file__).resolve().parents[2]
_AT_START = dict(os.environ)  # torch adds to the environment when it is imported
_COMPILER_PREFIXES = (
    "TRITON_", "MLIR_", "LLVM_", "AMDGCN_", "NVPTX_", "PTXAS_", "CUDA_", "HIP_", "ROCM_", "LD_", "PYTHON",
    "ALLOW_", "DISABLE_", "DUMP_", "ENABLE_", "FORCE_", "STORE_", "USE_",
)  # fmt: skip


def installed(package: str) -> str:
    """The version of an installed package; raises Problem where there is none."""
    try:
        return version(package)
    except PackageNotFoundError:
        problem = f"{package} is not installed in this environment"
        raise Problem(problem, "`make clean venv` makes it anew") from None


def version_text(package: str) -> str:
    """The version of a package; a phrase where it is not installed, as for a checkout on PYTHONPATH."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "is not installed"


def environment(device: str, target: str) -> Environment:
    """Describe this process.

    device -- the device that executes kernels, "NVIDIA H100" or "virtual GPU"
    target -- the target of kernels, "cuda:90"
    """
    return Environment(
        python=platform.python_version(),
        torch=installed("torch"),
        triton=installed("triton"),
        device=device,
        target=target,
        host=socket.gethostname(),
        platform=platform.platform(),
        knobs=compile_settings(),
    )


def compile_settings() -> dict[str, str]:
    """The variables of torch, Triton, LLVM and CUDA with which this process began, by name."""
    return {name: value for name, value in sorted(_AT_START.items()) if name in RECORDED_VARIABLES}


def compiler_settings() -> dict[str, str]:
    """The variables of this process that Triton, LLVM, ptxas or the dynamic loader may read."""
    return {name: value for name, value in os.environ.items() if name.startswith(_COMPILER_PREFIXES)}


def show_diagnostics(reproducers: Path, debug_only: str, *, debug: bool) -> None:
    """Make Triton's compiler, from now on and in this process, print every diagnostic.

    reproducers -- the file for reproducers of failed passes, which are otherwise mixed with the diagnostics
    debug_only  -- the debug output of LLVM's code that is printed too, as `-debug-only` of LLVM's tools
    debug       -- all of it is, as `-debug` asks for
    """
    os.environ["MLIR_ENABLE_DIAGNOSTICS"] = "warnings,remarks"
    os.environ["TRITON_REPRODUCER_PATH"] = str(reproducers)
    if debug_only:
        os.environ["TRITON_LLVM_DEBUG_ONLY"] = debug_only
    if debug:
        os.environ["TRITON_ENABLE_LLVM_DEBUG"] = "1"


# its arguments: the folder of this project, a module, and the arguments of that
_RUN_MODULE = (
    "import sys; sys.path[0] = sys.argv.pop(1); import runpy; "
    "runpy.run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)"
)


def wants_traceback() -> bool:
    """True if the user asks for the traceback of an unforeseen exception."""
    return bool(os.environ.get("TRACING_TRACEBACK"))


def wants_one_program_at_a_time() -> bool:
    """True if the user asks that the interpreter execute each program of a launch by itself."""
    return bool(os.environ.get("TRACING_ONE_PROGRAM_AT_A_TIME"))


def hashes_are_random() -> bool:
    """True if each process of Python hashes strings by another seed."""
    return os.environ.get("PYTHONHASHSEED", "random") == "random"


def module_command(module: str, *words: str, python: str = sys.executable) -> tuple[str, ...]:
    """A command that runs a module of this project in another Python.

    Like `python -m`, but files of the working directory, as a glob.py of the user, replace no module.
    """
    return (python, "-c", _RUN_MODULE, str(ROOT), module, *words)


def with_hash_seed(command: Sequence[str], seed: int) -> tuple[str, ...]:
    """A command that starts another one of Python, whose string hashes have this seed; 0: they have none."""
    return ("/usr/bin/env", f"PYTHONHASHSEED={seed}", *command)


def state_folder() -> Path:
    """The folder for the state of this user's commands, outside of runs.

    Source: the XDG Base Directory Specification.
    """
    named = os.environ.get("XDG_STATE_HOME", "")
    return Path(named if named.startswith("/") else Path.home() / ".local/state", "debug-triton")


def rank() -> int:
    """This process's rank in a distributed job, 0 outside of one."""
    return int(os.environ.get("RANK", "0"))


def world_size() -> int:
    """The number of ranks of a distributed job, 1 outside of one."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def local_rank() -> int:
    """This process's rank on its machine: the number of its GPU."""
    return int(os.environ.get("LOCAL_RANK", "0"))


def job() -> str:
    """The identity of a job, equal on all ranks; raises Problem outside of torchrun."""
    if "RANK" not in os.environ or "MASTER_PORT" not in os.environ:
        raise Problem(
            "this process is no rank of a job", "start it with `torchrun -m tracing run CASE --rank-aware`"
        )
    name = os.environ.get("TORCHELASTIC_RUN_ID", "none")
    # without --rdzv-id torchrun calls every job "none"; one that runs on one machine has one parent process
    return name if name != "none" else f"{os.environ['MASTER_PORT']}-{os.getppid()}"


@contextmanager
def fresh_caches() -> Iterator[Path]:
    """While active, Triton and Inductor compile into an empty folder, which is removed at the end.

    A warm cache would skip the compiler, and code for the virtual GPU must never enter the user's
    caches.
    """
    names = ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")
    with ExitStack() as stack:
        made = tempfile.TemporaryDirectory(prefix="tracing-", ignore_cleanup_errors=True)
        folder = Path(stack.enter_context(made))
        stack.enter_context(changed({name: str(folder / name.split("_")[0].lower()) for name in names}))
        yield folder


@contextmanager
def gpu_unopened() -> Iterator[None]:
    """While active, torch asks NVML whether there is a GPU, which does not initialise CUDA."""
    with changed({"PYTORCH_NVML_BASED_CUDA_CHECK": "1"}):
        yield


@contextmanager
def changed(variables: Mapping[str, str | None]) -> Iterator[None]:
    """While active, these variables are set in this process; None: not set."""
    before = {name: os.environ.get(name) for name in variables}
    _set(variables)
    try:
        yield
    finally:
        _set(before)


def _set(variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def variables() -> MutableMapping[str, str]:
    """The variables of this process, as its Python code reads them."""
    return os.environ


def with_variables(own: Mapping[str, str | None]) -> dict[str, str]:
    """The environment of a child process with some variables changed; None: removed."""
    variables = {**os.environ, **own}
    return {name: value for name, value in variables.items() if value is not None}


def terminal_variables() -> dict[str, str]:
    """All variables, for a console: without a size of 0, which is none, as for shutil.get_terminal_size."""
    sizes = {name for name in ("COLUMNS", "LINES") if not os.environ.get(name, "").strip("0")}
    return {name: value for name, value in os.environ.items() if name not in sizes}
