"""Versions, device and settings of this process; the only reader of environment variables."""

from __future__ import annotations

import os
import platform
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from tracing.errors import Problem
from tracing.model import Environment

_AT_START = dict(os.environ)  # torch adds to the environment when it is imported
_KNOB_PREFIXES = ("TRITON_", "TORCH", "INDUCTOR_", "CUDA_", "MLIR_", "LLVM_", "HIP_", "ROCR_", "NVIDIA_TF32")


def installed(package: str) -> str:
    """The version of an installed package; raises Problem where there is none."""
    try:
        return version(package)
    except PackageNotFoundError:
        raise Problem(f"{package} is not installed in this environment", "run `make venv`") from None


def environment(device: str, target: str) -> Environment:
    """Describe this process.

    device -- the name of what executes the kernels, "NVIDIA H100" or "virtual GPU"
    target -- what they are compiled for, "cuda:90"
    """
    return Environment(
        python=platform.python_version(),
        torch=installed("torch"),
        triton=installed("triton"),
        device=device,
        target=target,
        host=socket.gethostname(),
        platform=platform.platform(),
        knobs={name: value for name, value in sorted(_AT_START.items()) if name.startswith(_KNOB_PREFIXES)},
    )


def require_compiler() -> None:
    """Raise Problem where there is no C compiler: Triton and Inductor compile their launchers with one."""
    wanted = (os.environ.get("CC") or "cc gcc clang").split()
    if not any(shutil.which(name) for name in wanted):
        raise Problem(
            f"no C compiler was found ({' or '.join(wanted)}); Triton and Inductor need one",
            "install gcc or clang, or name yours in CC; `make doctor` names the package",
        )


def rank() -> int:
    """This process's rank in a distributed job, 0 outside of one."""
    return int(os.environ.get("RANK", "0"))


def local_rank() -> int:
    """This process's rank on its machine: the number of its GPU."""
    return int(os.environ.get("LOCAL_RANK", "0"))


def job() -> str:
    """A name that the ranks of one job have in common; raises Problem outside of torchrun."""
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

    A warm cache would skip the compiler, and code that was made for the virtual GPU must never reach a
    user's own caches.
    """
    names = ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")
    before = {name: os.environ.get(name) for name in names}
    with tempfile.TemporaryDirectory(prefix="tracing-", ignore_cleanup_errors=True) as folder:
        os.environ.update({name: str(Path(folder) / name.split("_")[0].lower()) for name in names})
        try:
            yield Path(folder)
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value
