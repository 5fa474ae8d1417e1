"""The compilers, disassemblers, debuggers and sources of this machine; variables of the user name others."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from importlib.machinery import ModuleSpec
from pathlib import Path

from tracing.errors import Problem


def require_compiler() -> None:
    """Raise Problem if there is no C compiler: Triton and Inductor compile their launchers with it."""
    wanted = (os.environ.get("CC") or "cc gcc clang").split()
    if not any(shutil.which(name) for name in wanted):
        raise Problem(
            f"no C compiler was found ({' or '.join(wanted)}); Triton and Inductor need one",
            "install gcc or clang, or name yours in CC; `make doctor` names the package",
        )


def nvdisasm() -> Path | None:
    """NVIDIA's disassembler: the one that Triton's own variable names, the wheel's, or one on the PATH."""
    triton = importlib.util.find_spec("triton")
    candidates = [
        os.environ.get("TRITON_NVDISASM_PATH"),
        *(str(Path(folder, "backends/nvidia/bin/nvdisasm")) for folder in _folders(triton)),
        "nvdisasm",
    ]
    paths = (shutil.which(candidate) for candidate in candidates if candidate)
    return next((Path(path) for path in paths if path), None)


def use_inductors_ptxas() -> None:
    """Make Triton use torch's own ptxas in this process and its children, as Inductor does.

    Importing Inductor, as in a recorded run, has this effect if torch contains a ptxas and the user names
    none.
    """
    for folder in _folders(importlib.util.find_spec("torch")):
        ptxas = Path(folder, "bin/ptxas")
        if os.access(ptxas, os.X_OK):
            os.environ.setdefault("TRITON_PTXAS_PATH", str(ptxas))


def triton_opt() -> str | None:
    """The `triton-opt` that the user names in TRITON_OPT."""
    return os.environ.get("TRITON_OPT") or None


def gdb() -> str:
    """The gdb of this machine, or the one that GDB names; raises Problem if there is none with Python."""
    wanted = os.environ.get("GDB") or "gdb"
    path = shutil.which(wanted)
    if path is None:
        raise Problem(
            f"{wanted} was not found, and gdb is needed for stops in C++", "`make doctor` names the package"
        )
    probe = [path, "-nx", "-batch", "-ex", "python print(len('four'))"]
    if subprocess.run(probe, capture_output=True, text=True, check=False).stdout.strip() != "4":
        raise Problem(
            f"{path} has no Python, which break-pass needs",
            "install the distribution's gdb, or name another in GDB",
        )
    return path


def sources() -> tuple[Path, ...]:
    """The checkouts of Triton and of LLVM that `make` fetched, if they exist."""
    root = Path(os.environ.get("TOOLCHAIN") or Path(__file__).parents[2] / "toolchain")
    triton, llvm = root / "triton", root / "llvm-project"
    return (triton, *([llvm] if llvm.is_dir() else [])) if triton.is_dir() else ()


def lacks_source() -> bool:
    """True if the installed Triton is a wheel, and `make` did not fetch its source."""
    folders = _folders(importlib.util.find_spec("triton"))
    return not sources() and any("-packages" in folder for folder in folders)


def _folders(package: ModuleSpec | None) -> list[str]:
    return list(package.submodule_search_locations or ()) if package else []
