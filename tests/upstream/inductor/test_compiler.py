"""Inductor's compiler and its workers."""

from __future__ import annotations

from typing import Any

import pytest

from tracing.upstream.inductor import compiler as inductor_compiler


def test_the_contract_holds_with_the_installed_versions() -> None:
    inductor_compiler.contract()


def test_a_worker_job_gets_the_settings_before_its_own_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    def job(*args: Any) -> Any:
        return args

    def run(setting: str, job: Any, *args: Any) -> Any:
        return setting, job(*args)

    monkeypatch.setattr(inductor_compiler.async_compile, "_worker_compile_triton", job)
    with inductor_compiler.worker_jobs(run, "kept"):
        result = inductor_compiler.async_compile._worker_compile_triton(1, 2)

    assert result == ("kept", (1, 2))


def test_a_torch_without_worker_jobs_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(inductor_compiler.async_compile, "_worker_compile_triton")

    with inductor_compiler.worker_jobs(print) as replaced:
        assert not replaced
