"""Two hundred compiled programs behave the same with and without a recorder. Takes some twelve minutes."""

from __future__ import annotations

from pathlib import Path

import pytest
from generated.compiled_programs import run_twice


@pytest.mark.parametrize("seed", range(200))
def test_recording_changes_nothing_of_a_random_compiled_program(seed: int, tmp_path: Path) -> None:
    bare, recorded, _ = run_twice(seed, tmp_path)

    assert recorded == bare
