"""What commands write into the checkout by default is ignored by git, and so by ruff."""

from __future__ import annotations

import subprocess

import pytest
from commands import ROOT


@pytest.mark.parametrize(
    "name",
    ["repro-demo-sound-1/repro.py", "repro-silu-operator3-rank0/repro.py", "demo-sound-demo-faulty.html"],
)
def test_default_outputs_are_ignored(name: str) -> None:
    done = subprocess.run(["git", "check-ignore", "--quiet", name], cwd=ROOT, check=False)

    assert done.returncode == 0
