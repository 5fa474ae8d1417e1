"""Extract the parts of Triton's wheel that its source lacks: NVIDIA's tools and headers, device code."""

from __future__ import annotations

import shutil
import stat
import subprocess
import zipfile
from pathlib import Path

from scripts.build import recipe
from scripts.build.sources import Say
from scripts.build.toolchain import Toolchain
from scripts.machine import installed
from scripts.pins import Problem

# Files of backends/nvidia that Triton's build would download; lib/cupti is for Proton, which is not built.
TAKEN = ("bin/*", "include/**/*", "lib/*")
DEVICE_CODE = "lib/gsan.ll"


def kept(tools: Toolchain, version: str) -> Path:
    return tools.root / f"nvidia-{version}"


def has_device_code(tools: Toolchain, venv: Path, version: str) -> bool:
    """True if an available wheel has the device code that clang++ would compile."""
    path = installed(venv)["triton_path"]
    folders = [kept(tools, version), *([Path(path, "backends/nvidia")] if path else [])]
    return any((folder / DEVICE_CODE).exists() for folder in folders)


def nvidia(tools: Toolchain, venv: Path, version: str, say: Say) -> Path:
    """A folder with the NVIDIA tools, headers and libraries of a version's wheel, kept for the next time.

    Raises Problem if the wheel is neither installed nor downloadable.
    """
    folder = kept(tools, version)
    if folder.exists():
        return folder
    part = folder.with_name(folder.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    there = installed(venv)
    if there["triton"].partition("+")[0] == version and not there["triton_source"]:
        say(f"taking NVIDIA's tools and headers from the Triton {version} in {venv}")
        shutil.copytree(Path(there["triton_path"], "backends/nvidia"), part)
    else:
        unzip(fetch(tools, venv, version, say), part)
    part.replace(folder)
    return folder


def fetch(tools: Toolchain, venv: Path, version: str, say: Say) -> Path:
    say(f"fetching the wheel of Triton {version} for NVIDIA's tools and headers")
    folder = tools.root / "wheels"
    command = (str(venv / "bin/python"), "-m", "pip", "download", "--quiet", "--no-deps", "-d", str(folder))
    done = subprocess.run([*command, f"triton=={version}"], capture_output=True, text=True)
    wheels = sorted(folder.glob(f"triton-{version}-*.whl")) if folder.exists() else []
    if done.returncode or not wheels:
        last = (done.stderr.strip() or "no wheel was downloaded").splitlines()[-1]
        remedy = f"install it first: make clean && make venv TRITON={version}"
        raise Problem(
            f"the wheel of Triton {version}, which has ptxas and cuda.h, cannot be downloaded: {last}", remedy
        )
    return wheels[-1]


def unzip(wheel: Path, folder: Path) -> None:
    prefix = "triton/backends/nvidia/"
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.startswith(prefix) and not name.endswith("/"):
                path = folder / name.removeprefix(prefix)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(archive.read(name))
                path.chmod(path.stat().st_mode | (archive.getinfo(name).external_attr >> 16 & 0o777))


def put(nvidia: Path, triton: Path) -> None:
    """Copy a wheel's files into Triton's tree, as its build copies what it downloads."""
    backend = triton / "third_party/nvidia/backend"
    for file in (file for part in TAKEN for file in nvidia.glob(part) if file.is_file()):
        target = backend / file.relative_to(nvidia)
        same = target.exists() and target.stat().st_size == file.stat().st_size
        if not same and target != backend / DEVICE_CODE:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, target)


def supply_clang(llvm: Path, triton: Path, nvidia: Path, say: Say) -> None:
    """Install a stand-in for clang++ in LLVM's folder if it has none.

    Triton's build calls clang++ only for its GPU device code; the stand-in copies the wheel's result.
    """
    path = llvm / "bin/clang++"
    if path.exists() or not recipe.wants_clang(triton):
        return
    compiled = nvidia / DEVICE_CODE
    if not compiled.exists():
        problem = f"{path} was needed by this Triton and is missing; the wheel has no {DEVICE_CODE} either"
        raise Problem(problem, f"install clang {recipe.OLDEST_CLANG} or later, then make llvm triton")
    say(f"no clang++: Triton's device code ({DEVICE_CODE}) is taken from the wheel")
    # CMake runs it as `clang++ … -o FILE`, with FILE last.
    path.write_text(f'#!/bin/sh\nfor file; do :; done\ncp "{compiled}" "$file"\n', encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
