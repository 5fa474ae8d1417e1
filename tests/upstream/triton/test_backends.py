"""Backends and ptxas."""

from __future__ import annotations

from pathlib import Path

from tracing.upstream.triton import backends


def test_the_contract_holds_with_the_installed_versions() -> None:
    backends.contract()


def test_each_architecture_has_an_assembler_that_exists() -> None:
    assert all(Path(backends.default_assembler(arch)).is_file() for arch in (80, 90, 100))
