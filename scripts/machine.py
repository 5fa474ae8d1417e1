"""Describe this machine and its environment: GPUs, free space, installed versions, debug symbols.

Everything is read from files and from other programs; nothing is imported and nothing is changed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

GB = 10**9


def output(*command: str) -> str:
    """Standard output of a command, stripped; empty if it is missing or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def install(debian: str, fedora: str, conda: str) -> str:
    """The command that installs a package here; three commands on an unknown system."""
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
    gpus_listed = [line.replace(", ", ", driver ") for line in query.splitlines() if ", " in line]
    if not gpus_listed and (Path("/dev/nvidia0").exists() or any(Path("/proc/driver/nvidia/gpus").glob("*"))):
        gpus_listed = ["NVIDIA (nvidia-smi does not answer)"]
    return gpus_listed + (amd_gpus() if Path("/dev/kfd").exists() else [])


def amd_gpus() -> list[str]:
    driver = text("/sys/module/amdgpu/version") or "of the kernel"
    nodes = sorted(Path("/sys/class/kfd/kfd/topology/nodes").glob("*"))
    # CPUs are nodes, too; only a GPU has a target.
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
def editable():
    for name in ("triton", "pytorch-triton"):
        try:
            origin = json.loads(metadata.distribution(name).read_text("direct_url.json") or "{}")
        except metadata.PackageNotFoundError:
            continue
        if origin.get("dir_info", {}).get("editable"):
            return origin["url"].partition("://")[2]
    return ""
triton = util.find_spec("triton")
print(json.dumps({
    "torch": version("torch"),
    "triton": version("triton", "triton-rocm", "pytorch-triton-rocm"),
    "triton_path": list(triton.submodule_search_locations or [""])[0] if triton else "",
    "triton_source": editable(),
}))
"""


def installed(venv: Path) -> dict[str, str]:
    """Versions of torch and Triton in an environment, Triton's directory, and the tree that it was
    built from; empty: not there, or from a wheel."""
    answer = output(str(venv / "bin/python"), "-c", PROBE)
    nothing = dict.fromkeys(("torch", "triton", "triton_path", "triton_source"), "")
    return {**nothing, **json.loads(answer or "{}")}


def cores() -> int:
    """Cores that this process may use: its affinity, and the quota of a container."""
    allowed = len(os.sched_getaffinity(0))
    quota, _, period = text("/sys/fs/cgroup/cpu.max").partition(" ")
    return max(1, min(allowed, int(quota) // int(period))) if quota.isdigit() else allowed


def memory() -> int:
    """Bytes of memory that this process may use: the machine's, or the limit of a container."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = text("/sys/fs/cgroup/memory.max")
    return min(total, int(limit)) if limit.isdigit() else total


def free(path: Path) -> int:
    """Free bytes on the disk of a directory, which may not exist yet."""
    there = next(parent for parent in (path.resolve(), *path.resolve().parents) if parent.exists())
    return shutil.disk_usage(there).free


def room(gpu: bool) -> int:
    """Bytes that an environment takes, including wheels while they are unpacked."""
    return (9 if gpu else 3) * GB
