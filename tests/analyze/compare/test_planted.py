"""Faults planted into a recorded program are named, with kind, kernel, argument and producer, on a CPU.

What needs a GPU is in gpu/test_planted.py, what a series of runs finds in test_repeat.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from faults import SAID, compared, faulty


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return faulty("none", tmp_path_factory.mktemp("runs"))


@pytest.mark.parametrize("fault", SAID)
def test_a_planted_fault_is_named(fault: str, sound: Path, tmp_path: Path) -> None:
    text = compared(sound, faulty(fault, tmp_path))

    print(text)
    assert [said for said in SAID[fault] if said not in text] == []
