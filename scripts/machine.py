"""What this machine and its environment are: GPUs, free space, installed versions, debug symbols.

Everything is read from files and from other programs; nothing is imported and nothing is changed.
"""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
from pathlib import Path

GB = 10**9


def output(*command: str) -> str:
    """Standard output of a command, stripped; empty if it is missing or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def install(debian: str, fedora: str, conda: str) -> str:
    """The command that installs a package here; all three where the system is another."""
    commands = {
        "conda": f"conda install -c conda-forge {conda}",
        "debian": f"sudo apt install {debian}",
        "fedora": f"sudo dnf install {fedora}",
    }
    if os.environ.get("CONDA_PREFIX"):
        return commands["conda"]
    for system in ("debian", "fedora"):
        if system in text("/etc/os-release"):
            return commands[system]
    return "; or ".join(commands.values())


def gpus() -> list[str]:
    """GPUs that torch could use, each with its driver."""
    query = output("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader")
    found = [line.replace(", ", ", driver ") for line in query.splitlines() if ", " in line]
    if not found and (Path("/dev/nvidia0").exists() or any(Path("/proc/driver/nvidia/gpus").glob("*"))):
        found = ["NVIDIA (nvidia-smi does not answer)"]
    return found + (amd_gpus() if Path("/dev/kfd").exists() else [])


def amd_gpus() -> list[str]:
    driver = text("/sys/module/amdgpu/version") or "of the kernel"
    nodes = sorted(Path("/sys/class/kfd/kfd/topology/nodes").glob("*"))
    # A CPU is a node as well; only a GPU has a target.
    properties = [dict(line.split() for line in text(f"{node}/properties").splitlines()) for node in nodes]
    targets = [node.get("gfx_target_version", "0") for node in properties]
    return [f"AMD target {target}, driver {driver}" for target in targets if target != "0"]


# Versions are read from a distribution whose RECORD, written last, is there: pip may have been interrupted.
PROBE = """
import importlib.metadata as metadata, importlib.util as util, json
def version(*names):
    for name in names:
        try:
            found = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue
        if found.read_text("RECORD"):
            return found.version
    return ""
triton = util.find_spec("triton")
print(json.dumps({
    "torch": version("torch"),
    "triton": version("triton", "triton-rocm", "pytorch-triton-rocm"),
    "triton_path": list(triton.submodule_search_locations or [""])[0] if triton else "",
}))
"""


def installed(venv: Path) -> dict[str, str]:
    """Versions of torch and Triton that an environment sees, and Triton's directory; empty: not there."""
    answer = output(str(venv / "bin/python"), "-c", PROBE)
    found: dict[str, str] = json.loads(answer or '{"torch": "", "triton": "", "triton_path": ""}')
    return found


def elf_sections(path: Path) -> set[str]:
    """Names of the sections of a 64-bit little-endian ELF file; reads its headers only."""
    with path.open("rb") as file:
        header = file.read(64)
        if header[:6] != b"\x7fELF\x02\x01":
            return set()
        (offset,) = struct.unpack_from("<Q", header, 0x28)
        size, count, strings = struct.unpack_from("<HHH", header, 0x3A)
        file.seek(offset)
        entries = [struct.unpack_from("<IIQQQQ", file.read(size)) for _ in range(count)]
        file.seek(entries[strings][4])
        names = file.read(entries[strings][5])
    return {names[entry[0] :].split(b"\0", 1)[0].decode() for entry in entries}


def free(path: Path) -> int:
    """Bytes free where a directory is or would be."""
    there = next(parent for parent in (path.resolve(), *path.resolve().parents) if parent.exists())
    return shutil.disk_usage(there).free


def room(gpu: bool) -> int:
    """Bytes that an environment takes, with the wheels while they are unpacked."""
    return (9 if gpu else 3) * GB
