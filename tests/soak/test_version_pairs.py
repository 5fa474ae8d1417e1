"""The contracts of tracing/upstream with every pair of torch and Triton of scripts/pins.toml.

    python -m pytest tests/soak/test_version_pairs.py

Each pair gets an environment of its own: 1 to 3 minutes and some 5 GB, which are deleted after the test.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import script_module

ROOT = Path(__file__).parents[2]
PYTHON = (sys.version_info[0], sys.version_info[1])
PAIRS = [pair for pair in script_module("pins").read().pairs if pair.allows(PYTHON)]


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_every_feature_works_with_a_known_pair(pair: Any, tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    versions = [f"TORCH={pair.torch}", f"TRITON={pair.triton}"]
    subprocess.run(
        ["make", "venv", f"VENV={venv}", f"PYTHON={sys.executable}", *versions], cwd=ROOT, check=True
    )
    command = [venv / "bin/tracing", "doctor", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    features = json.loads(done.stdout)["features"]
    assert [feature for feature in features if feature["failure"]] == []
