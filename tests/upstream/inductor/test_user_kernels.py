"""Copies of the user's kernels in generated code."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

import pytest
import torch
from commands import DATA
from data import compiled_helper

from tracing.launch import hooks
from tracing.launch.launch_site import LaunchSite
from tracing.upstream.inductor.user_kernels import FunctionLines, copied_functions
from tracing.virtual_gpu import virtual_gpu

Pairs: TypeAlias = list[tuple[FunctionLines, FunctionLines]]


class _Functions:
    def __init__(self) -> None:
        self.copied: dict[str, Pairs] = {}

    def before(self, site: LaunchSite, *arguments: object) -> None:
        self.copied[site.name] = copied_functions(site.compiled().function)

    def after(self, token: object) -> None: ...


@pytest.fixture
def copied() -> dict[str, Pairs]:
    functions = _Functions()
    with virtual_gpu(), hooks.installed(functions):
        workload = compiled_helper.build("cpu")
        torch.compile(workload.fn)(*workload.args)
    return functions.copied


def test_a_generated_kernel_and_its_helper_lead_to_the_user_s_lines(copied: dict[str, Pairs]) -> None:
    pairs = copied["compiled_helper"]
    text = (DATA / "compiled_helper.py").read_text().splitlines()

    assert [text[user.line - 1].split("(")[0] for _, user in pairs] == ["def compiled_helper", "def scaled"]
    for copy, user in pairs:
        generated = Path(copy.file).read_text().splitlines()
        assert user == FunctionLines(str(DATA / "compiled_helper.py"), user.line, copy.count)
        assert generated[copy.line - 1 :][: copy.count] == text[user.line - 1 :][: copy.count]


def test_a_kernel_that_inductor_wrote_is_no_copy(copied: dict[str, Pairs]) -> None:
    assert [pairs for name, pairs in copied.items() if name.startswith("triton_")] == [[]]
