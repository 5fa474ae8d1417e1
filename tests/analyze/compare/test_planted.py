"""Faults planted into a recorded program are reported with kind, kernel, argument and producer, on a CPU.

gpu/test_planted.py holds the faults that need a GPU, test_repeat.py those that need a series of runs.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from faults.reported import SAID, compared, faulty


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return faulty("none", tmp_path_factory.mktemp("runs"))


@pytest.mark.parametrize("fault", SAID)
def test_a_planted_fault_is_named(fault: str, sound: Path, tmp_path: Path) -> None:
    text = compared(sound, faulty(fault, tmp_path))

    print(text)
    assert [said for said in SAID[fault] if said not in text] == []
