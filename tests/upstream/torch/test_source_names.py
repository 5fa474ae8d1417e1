"""Names of torch's files and functions in frames and command lines."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tracing.upstream.contract import Broken
from tracing.upstream.torch import source_names


def test_the_contract_holds_with_the_installed_versions() -> None:
    source_names.contract()


def test_a_file_that_torch_moved_breaks_the_contract(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_names, "COMPILE_WORKER", "torch/_inductor/no_such_file.py")

    with pytest.raises(Broken, match="no_such_file"):
        source_names.contract()


@pytest.mark.parametrize(
    ("name", "function"),
    [("torch_dynamo_resume_in_forward_at_12", "forward"), ("forward", "forward")],
)
def test_a_resumed_function_has_the_name_of_the_users_function(name: str, function: str) -> None:
    assert source_names.function_of(name) == function


def test_the_names_are_known_without_an_import_of_torch() -> None:
    code = "import sys, tracing.upstream.torch.source_names; sys.exit('torch' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
