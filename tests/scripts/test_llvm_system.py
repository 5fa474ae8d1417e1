"""LLVM without a build: the distribution's, of the right version, or Triton's archive, unchanged."""

from __future__ import annotations

import functools
import hashlib
import http.server
import os
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import script_module

archive, llvm_system, pins, sources, toolchain = map(
    script_module, ("build.archive", "build.llvm_system", "pins", "build.sources", "build.toolchain")
)
Problem = pins.Problem


def quiet(_message: str) -> None:
    pass


# ---------------------------------------------------------------- LLVM=system


def system(folder: Path, version: str, *, without: str = "") -> Path:
    for part in llvm_system.PARTS:
        path = folder / part
        path.parent.mkdir(parents=True, exist_ok=True)
        if part != without:
            path.write_text(f"set(LLVM_PACKAGE_VERSION {version})\n")
    return folder


def test_the_distributions_llvm_of_the_right_version_is_used(tmp_path: Path) -> None:
    system(tmp_path / "llvm-22", "22.1.8")
    system(tmp_path / "llvm-23", "23.1.4")
    said: list[str] = []

    llvm = llvm_system.of_distribution("22", "", said.append, (f"{tmp_path}/llvm-*",))

    assert (llvm.prefix, llvm.version) == (tmp_path / "llvm-22", "22.1.8")
    assert said == ["LLVM 22.1.8 is taken, Triton is written against 22"]


def test_a_distribution_with_another_version_only_is_refused(tmp_path: Path) -> None:
    system(tmp_path / "llvm-19", "19.1.7")

    with pytest.raises(Problem, match=r"LLVM 23 with MLIR was needed, found: 19\.1\.7 in ") as caught:
        llvm_system.of_distribution("23", "", quiet, (f"{tmp_path}/llvm-*",))
    assert "make LLVM=source llvm" in caught.value.remedy
    assert f"LLVM_SRC={tmp_path}/llvm-19" in caught.value.remedy


def test_an_llvm_without_mlir_is_not_proposed_instead(tmp_path: Path) -> None:
    system(tmp_path / "llvm-19", "19.1.7", without="lib/cmake/mlir/MLIRConfig.cmake")

    with pytest.raises(Problem) as caught:
        llvm_system.of_distribution("23", "", quiet, (f"{tmp_path}/llvm-*",))
    assert "LLVM_SRC" not in caught.value.remedy


def test_a_missing_part_is_reported_with_its_package(tmp_path: Path) -> None:
    system(tmp_path / "llvm-23", "23.1.4", without="lib/cmake/mlir/MLIRConfig.cmake")

    with pytest.raises(Problem, match=r"has no lib/cmake/mlir/MLIRConfig\.cmake") as caught:
        llvm_system.of_distribution("23", "", quiet, (f"{tmp_path}/llvm-*",))
    assert "mlir" in caught.value.remedy and "lld" not in caught.value.remedy


def test_another_version_is_used_if_the_user_names_its_folder(tmp_path: Path) -> None:
    said: list[str] = []

    llvm = llvm_system.of_distribution("23", str(system(tmp_path / "x", "22.1.8")), said.append)

    assert llvm.version == "22.1.8" and "its build may fail" in said[0]


def test_a_folder_that_the_user_names_is_preferred_to_a_newer_llvm_config(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    newer = system(tmp_path / "newer", "99.1.0")
    program = newer / "bin/llvm-config"
    program.write_text(f"#!/bin/sh\necho {newer}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")

    assert llvm_system.of_distribution("23", str(system(tmp_path / "x", "22.1.8")), quiet).version == "22.1.8"
    assert llvm_system.of_distribution("99", "", quiet).prefix == newer


def test_an_unlisted_triton_needs_the_llvm_of_its_minor_version() -> None:
    known = pins.read()

    assert known.llvm_major("3.7.0") == known.llvm_major("3.7.1") == "23"
    assert known.llvm_major("4.0.0") == known.llvm_major("") == ""


# ---------------------------------------------------------------- LLVM=prebuilt


class Server(http.server.SimpleHTTPRequestHandler):
    """Serves a folder with support for ranges, like the servers of archives, and keeps the requests."""

    ranges: list[str] = []  # noqa: RUF012  # one list for all requests of a test

    def do_GET(self) -> None:
        asked = self.headers.get("Range", "")
        self.ranges.append(asked)
        content = Path(self.translate_path(self.path)).read_bytes()
        start = int(asked.removeprefix("bytes=").rstrip("-")) if asked else 0
        self.send_response(206 if asked else 200)
        self.end_headers()
        self.wfile.write(content[start:])

    def log_message(self, *_arguments: Any) -> None:
        pass


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "www").mkdir()
    Server.ranges.clear()
    handler = functools.partial(Server, directory=str(tmp_path / "www"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_an_interrupted_download_is_resumed(tmp_path: Path, served: str) -> None:
    (tmp_path / "www/llvm.tar.gz").write_bytes(b"0123456789")
    (tmp_path / "llvm.tar.gz.part").write_bytes(b"0123")

    archive.download(
        f"{served}/llvm.tar.gz", tmp_path / "llvm.tar.gz", hashlib.sha256(b"0123456789").hexdigest()
    )

    assert (tmp_path / "llvm.tar.gz").read_bytes() == b"0123456789" and Server.ranges == ["bytes=4-"]


def test_an_archive_with_another_sha256_is_deleted(tmp_path: Path, served: str) -> None:
    (tmp_path / "www/llvm.tar.gz").write_bytes(b"something else")

    with pytest.raises(Problem, match=r"has sha256 \w{64}, abc was needed"):
        archive.download(f"{served}/llvm.tar.gz", tmp_path / "llvm.tar.gz", "abc")
    assert not (tmp_path / "llvm.tar.gz").exists()


def test_tritons_own_archive_is_fetched_verified_and_executed(tmp_path: Path, served: str) -> None:
    name = f"llvm-55555555-{llvm_system.system_name()}-3"
    tool = tmp_path / name / "bin/mlir-tblgen"
    tool.parent.mkdir(parents=True)
    tool.write_text("#!/bin/sh\necho LLVM version 23\n")
    tool.chmod(0o755)
    with tarfile.open(tmp_path / "www" / f"{name}.tar.gz", "w:gz") as packed:
        packed.add(tmp_path / name, name)
    triton = tmp_path / "triton"
    triton.mkdir()
    (triton / "setup.py").write_text(f'url = f"{served}/llvm-builds/{{name}}.tar.gz"')
    (tmp_path / "www/llvm-builds").symlink_to(tmp_path / "www")
    digest = archive.sha256(tmp_path / "www" / f"{name}.tar.gz")
    pin = sources.LlvmPin("5" * 40, 3, ((llvm_system.system_name(), digest),))
    tools = toolchain.Toolchain(tmp_path / "tools")
    tools.root.mkdir()

    llvm = llvm_system.of_triton(tools, triton, pin, quiet)

    assert llvm == tools.root / name and (llvm / "bin/mlir-tblgen").exists()


def test_an_archive_that_cannot_be_verified_is_not_fetched(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="names no archive of LLVM with a sha256"):
        llvm_system.of_triton(toolchain.Toolchain(tmp_path), tmp_path, sources.LlvmPin("5" * 40), quiet)
