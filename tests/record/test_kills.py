"""Seven kills at random moments; tests/soak/test_kills.py makes two hundred."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from damage.killed_commands import KilledBisect, KilledPasses, KilledRuns
from damage.kills import commands


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_killed_commands_leave_runs_that_open_and_no_process(tmp_path: Path) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    with commands(tmp_path / "commands") as started:
        runs = KilledRuns(started, tmp_path, random.Random(seed))
        for _ in range(3):
            runs.once()
        for experiment in (KilledPasses(runs), KilledBisect(runs)):
            for _ in range(2):
                experiment.once()
