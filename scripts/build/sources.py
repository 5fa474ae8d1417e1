"""Choose the sources to build: Triton by its tag, LLVM by the commit that Triton names.

Only Triton's version is chosen, and LLVM's commit follows from it, so the two always fit. Either source comes
from git, or from a folder or an archive that the user names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from scripts.build import archive, checkout
from scripts.build.toolchain import Toolchain
from scripts.pins import Pins, Problem

COMMIT = re.compile(r"[0-9a-f]{40}")
LLVM_PARTS = ("llvm", "mlir", "lld", "cmake", "third-party", "libunwind/include")
Say = Callable[[str], None]


@dataclass(frozen=True)
class Source:
    folder: Path
    commit: str  # "": an archive or a folder without git
    given: bool = False  # named by the user, not fetched here


@dataclass(frozen=True)
class LlvmPin:
    commit: str
    build: int = 0  # of Triton's archive of that commit
    sha256s: tuple[tuple[str, str], ...] = ()  # by system, of those archives; none: none published


def llvm_pin(triton: Path) -> LlvmPin:
    """The LLVM commit that a Triton tree requires. Raises Problem if the tree names none."""
    info, plain = triton / "cmake/llvm-info.json", triton / "cmake/llvm-hash.txt"
    try:
        if info.exists():  # from March 2026
            row = json.loads(info.read_text(encoding="utf-8"))
            pin = LlvmPin(
                row["llvm_hash"], row.get("build_number", 0), tuple(row.get("sha256sum", {}).items())
            )
        else:
            pin = LlvmPin(plain.read_text(encoding="utf-8").strip())
    except (OSError, ValueError, KeyError) as error:
        remedy = "name the root of a Triton tree: make TRITON_SRC=…"
        raise Problem(f"{triton} names no LLVM in {info.name} or {plain.name}: {error}", remedy) from None
    if not COMMIT.fullmatch(pin.commit):
        raise Problem(
            f"{triton} names LLVM {pin.commit!r}, a commit was needed", "look into its cmake folder"
        )
    return pin


def triton(tools: Toolchain, known: Pins, version: str, given: str, say: Say) -> Source:
    """Triton's tree for a version, or the one that the user gave.

    Raises Problem if the version's tag is missing or has moved, or if no server can be reached.
    """
    if given:
        source = take(tools, given, "triton", say)
        require(
            source.folder,
            ("setup.py", "CMakeLists.txt", "cmake", "python/triton/__init__.py"),
            "Triton since 3.4",
        )
        return source
    commit = pinned(tools, known, version)
    if not commit or checkout.head(tools.triton) != commit:
        commit = agreed(known.triton, f"v{version}", commit)
    checkout.bring_to_commit(tools.triton, commit, [known.triton], (), say)
    record = tools.root / f"triton-{version}.commit"
    record.write_text(commit + "\n", encoding="utf-8")
    return Source(tools.triton, commit)


def pinned(tools: Toolchain, known: Pins, version: str) -> str:
    """The commit of a version by pins.toml, or by what its tag named when it was first fetched here."""
    record = tools.root / f"triton-{version}.commit"
    return known.commit(version) or (record.read_text(encoding="utf-8").strip() if record.exists() else "")


def agreed(url: str, tag: str, commit: str) -> str:
    """The commit that a tag names. Raises Problem if another one is pinned."""
    named = checkout.tagged(url, tag)
    if commit and named != commit:
        remedy = (
            "if the new commit is right, change scripts/pins.toml, or delete the .commit file in "
            "the toolchain folder"
        )
        raise Problem(f"tag {tag} has moved: it names {named[:12]}, {commit[:12]} is pinned", remedy)
    return named


def llvm(tools: Toolchain, known: Pins, pin: LlvmPin, given: str, say: Say, *, clang: bool = False) -> Source:
    """LLVM's tree at Triton's pin, or the one that the user gave.

    clang -- whether clang is to be built, too

    Raises Problem if no repository has the commit, or if the given sources are not this LLVM.
    """
    parts = (*LLVM_PARTS, "clang") if clang else LLVM_PARTS
    if not given:
        checkout.bring_to_commit(tools.llvm, pin.commit, known.llvm, parts, say)
        return Source(tools.llvm, pin.commit)
    source = take(tools, given, "llvm", say)
    require(source.folder, [f"{part}/CMakeLists.txt" for part in ("llvm", "mlir", "lld")], "LLVM's monorepo")
    if source.commit != pin.commit:
        commit = source.commit[:12] or "of no known commit"
        say(f"{source.folder} is {commit}, Triton names {pin.commit[:12]}: built as you gave it")
    return source


def take(tools: Toolchain, given: str, name: str, say: Say) -> Source:
    """Use a folder as it is, or unpack an archive once."""
    path = Path(given).expanduser().resolve()
    if path.is_dir():
        return Source(path, checkout.head(path), given=True)
    if not path.is_file():
        raise Problem(f"{given} is neither a folder nor an archive", f"give one: {name.upper()}_SRC=FILE")
    digest = archive.sha256(path)[:12]
    folder, record = tools.root / f"{name}-{digest}", tools.root / f"{name}-{digest}.commit"
    if not folder.exists():
        say(f"unpacking {path}")
        record.write_text(archive.unpack(path, folder), encoding="utf-8")
    return Source(folder, record.read_text(encoding="utf-8") if record.exists() else "", given=True)


def require(folder: Path, names: list[str] | tuple[str, ...], what: str) -> None:
    if lacking := [name for name in names if not (folder / name).exists()]:
        raise Problem(
            f"{folder} has no {', no '.join(lacking)}; {what} was needed", "name the root of the tree"
        )
