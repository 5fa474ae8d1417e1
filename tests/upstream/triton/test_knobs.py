"""Triton's knobs and its launch exit hook."""

from __future__ import annotations

import pytest
import triton

from tracing.upstream.triton import knobs


def test_the_contract_holds_with_the_installed_versions() -> None:
    knobs.contract()


def test_a_hook_that_another_tool_assigned_is_called_and_restored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    theirs, ours = list[object](), list[object]()
    runtime = triton.knobs.runtime
    assigned = theirs.append
    monkeypatch.setattr(runtime, "launch_exit_hook", assigned)
    hook = knobs.LaunchExitHook(ours.append)

    hook.join()
    runtime.launch_exit_hook("metadata")
    hook.leave()

    assert theirs == ours == ["metadata"]
    assert runtime.launch_exit_hook is assigned


def test_every_assembler_runs_and_says_its_version() -> None:
    tools = [*knobs.assembler_tools()]

    assert {name for name, _, _ in tools} <= {"ptxas", "ptxas-blackwell"}
    assert all(version and path.is_file() for _, version, path in tools)
