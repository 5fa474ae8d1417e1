"""Two hundred kills at random moments: every run opens, nothing recorded is lost, no process is left."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from damage.killed_commands import KilledBisect, KilledPasses, KilledRuns
from damage.kills import commands

KILLS = int(os.environ.get("KILLS", "200"))


@pytest.mark.timeout(4 * 3600)
def test_two_hundred_kills(tmp_path: Path) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    with commands(tmp_path / "commands") as started:
        runs = KilledRuns(started, tmp_path, random.Random(seed))
        experiments = [runs, KilledPasses(runs), KilledBisect(runs)]
        for number in range(KILLS):
            experiments[number % 3].once()
            print(f"{number + 1} kills: {dict(sorted(runs.tally.items()))}", flush=True)
