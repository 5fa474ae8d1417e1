"""Use an LLVM that is already built: a distribution's, or the archive that Triton's own wheels use.

With either, a debugger steps in Triton's own frames; LLVM's frames have names but no lines.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from scripts.build import archive
from scripts.build.sources import LlvmPin, Say
from scripts.build.toolchain import Toolchain, require_room
from scripts.machine import install, output
from scripts.pins import Problem

# Files below LLVM's folder that Triton's build opens, and their packages (Debian, Fedora, conda).
PARTS = {
    "lib/cmake/llvm/LLVMConfig.cmake": ("llvm-{}-dev", "llvm-devel", "llvmdev={}"),
    "lib/cmake/mlir/MLIRConfig.cmake": ("libmlir-{}-dev", "mlir-devel", "mlir={}"),
    "lib/cmake/lld/LLDConfig.cmake": ("liblld-{}-dev", "lld-devel", "lld={}"),
    "bin/mlir-tblgen": ("mlir-{}-tools", "mlir", "mlir={}"),
    "bin/FileCheck": ("llvm-{}-tools", "llvm-test", "llvm-tools={}"),
    "bin/clang++": ("clang-{}", "clang", "clangxx={}"),
}
PREFIXES = ("/usr/lib/llvm-*", "/usr/lib64/llvm*", "/usr/lib/llvm*", "/usr", "/usr/local")
ARCHIVE = re.compile(r"https?://[^\"'\s]*/llvm-builds/\{name\}[\w.]*")


@dataclass(frozen=True)
class Installed:
    prefix: Path
    version: str  # "22.1.8"

    @property
    def major(self) -> str:
        return self.version.partition(".")[0]


def search_patterns(given: str) -> tuple[str, ...]:
    """Patterns of folders to search: the user's folder, else the folders of distributions."""
    if given:
        return (str(Path(given).expanduser().resolve()),)
    configured = output("llvm-config", "--prefix")
    return (*PREFIXES, configured) if configured else PREFIXES


def look(prefixes: tuple[str, ...]) -> list[Installed]:
    """The installed LLVMs, newest first."""
    folders = {folder.resolve() for pattern in prefixes for folder in Path("/").glob(pattern.lstrip("/"))}
    there = [Installed(folder, version) for folder in folders if (version := version_of(folder))]
    return sorted(there, key=lambda one: [int(n) for n in one.version.split(".")], reverse=True)


def version_of(prefix: Path) -> str:
    config = prefix / "lib/cmake/llvm/LLVMConfig.cmake"
    match = (
        re.search(r"set\(LLVM_PACKAGE_VERSION (\d+\.\d+\.\d+)", config.read_text())
        if config.exists()
        else None
    )
    return match.group(1) if match else ""


def of_distribution(major: str, given: str, say: Say, prefixes: tuple[str, ...] = ()) -> Installed:
    """The system's LLVM of a major version, complete.

    major    -- the one that Triton requires; empty: unknown, the newest is used
    given    -- a folder that the user names instead, with any version
    prefixes -- folders to search instead of search_patterns()

    Raises Problem if none is installed or a part is missing, with the packages that provide it.
    """
    there = look(prefixes or search_patterns(given))
    fitting = [one for one in there if given or one.major == (major or one.major)]
    if not fitting:
        installed = ", ".join(f"{one.version} in {one.prefix}" for one in there) or "none"
        remedy = packages(list(PARTS), major or "NN") + "; or build it: make LLVM=source llvm"
        if there and not given:
            remedy += f"; or try another: make LLVM=system LLVM_SRC={there[0].prefix} llvm"
        raise Problem(f"LLVM {major} with MLIR was needed, found: {installed}", remedy)
    chosen = fitting[0]
    if lacking := [part for part in PARTS if not (chosen.prefix / part).exists()]:
        raise Problem(
            f"LLVM in {chosen.prefix} has no {', no '.join(lacking)}", packages(lacking, chosen.major)
        )
    needed = (
        f"Triton is written against {major}" if major else "the LLVM version that Triton needs is unknown"
    )
    risk = "" if chosen.major == major else ": its build may fail"
    say(f"LLVM {chosen.version} is taken, {needed}{risk}")
    return chosen


def packages(parts: list[str], major: str) -> str:
    columns: Iterator[tuple[str, ...]] = zip(*(PARTS[part] for part in parts), strict=True)
    debian, fedora, conda = (" ".join(dict.fromkeys(column)).replace("{}", major) for column in columns)
    return install(debian, fedora, conda)


# ---------------------------------------------------------------- Triton's own archive


def of_triton(tools: Toolchain, triton: Path, pin: LlvmPin, say: Say) -> Path:
    """Download the LLVM that Triton publishes for its pin, verify its SHA-256, unpack and test it.

    Raises Problem if this Triton publishes none for this system, or none with a known hash.
    """
    system = system_name()
    digest = dict(pin.sha256s).get(system, "")
    url = address(triton, f"llvm-{pin.commit[:8]}-{system}-{pin.build}")
    if not digest or not url:
        problem = f"{triton} names no archive of LLVM with a sha256 for {system}"
        raise Problem(problem, "build it: make LLVM=source llvm; or a distribution's: make LLVM=system llvm")
    folder = tools.root / f"llvm-{pin.commit[:8]}-{system}-{pin.build}"
    if not folder.exists():
        require_room(tools.root, 8e9, "the archive of LLVM, unpacked")
        say(f"fetching {url}")
        packed = tools.root / url.rpartition("/")[2]
        archive.download(url, packed, digest)
        archive.unpack(packed, folder)
        packed.unlink()
    require_runs(folder)
    return folder


def system_name() -> str:
    """Triton's name of this system in its archives, by the C library that they need."""
    if platform.machine() in ("aarch64", "arm64"):
        return "ubuntu-arm64"
    version = platform.libc_ver()[1] or "0.0"
    return "ubuntu-x64" if [int(n) for n in version.split(".")[:2]] > [2, 28] else "almalinux-x64"


def address(triton: Path, name: str) -> str:
    """The address from which Triton's own build fetches LLVM."""
    for file in (triton / "python/build_helpers.py", triton / "setup.py"):
        match = ARCHIVE.search(file.read_text(encoding="utf-8")) if file.exists() else None
        if match:
            return match.group(0).replace("{name}", name)
    return ""


def require_runs(folder: Path) -> None:
    if not output(str(folder / "bin/mlir-tblgen"), "--version"):
        remedy = "it needs a newer libstdc++ than this system's; build it: make LLVM=source llvm"
        raise Problem(f"the tools in {folder} do not run here", remedy)
