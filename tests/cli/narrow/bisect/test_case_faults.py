"""Three faults of torch.compile that a search of the case names; tests/soak has the others."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from faults.case_faults import FAULTS

QUICK = [one for one in FAULTS if one.name in ("decomposition_of_silu", "joint_pattern", "lowering_raises")]
SEARCH = """
import json, sys
from pathlib import Path
from faults.case_faults import FAULTS, in_warm_process, searched

names, runs = sys.argv[2:], Path(sys.argv[1])
faults = [one for name in names for one in FAULTS if one.name == name]
print(json.dumps(in_warm_process(lambda: [searched(one, runs, 200) for one in faults], 280)))
"""


@pytest.mark.timeout(300)
def test_the_faulty_step_is_named_and_a_second_search_builds_nothing(tmp_path: Path) -> None:
    names = [fault.name for fault in (*QUICK, QUICK[0])]
    # a process of its own: torch refuses to fork one in which another test has run a backward
    command = [sys.executable, "-c", SEARCH, str(tmp_path), *names]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[3])

    assert done.returncode == 0, done.stderr
    *answers, second = json.loads(done.stdout.splitlines()[-1])
    assert [one["accused"] for one in answers] == [fault.accused for fault in QUICK]
    assert all(one["built"] > 5 for one in answers)
    assert (second["accused"], second["built"]) == (QUICK[0].accused, 0)
