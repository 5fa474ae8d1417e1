"""A fault of torch.compile that a search of the case names; tests/soak has the others."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from faults.case_faults import FAULTS

FAULT = next(one for one in FAULTS if one.name == "decomposition_of_silu")
SEARCH = """
import json, sys
from pathlib import Path
from faults.case_faults import FAULTS, in_warm_process, searched

name, runs = sys.argv[2], Path(sys.argv[1])
fault = next(one for one in FAULTS if one.name == name)
print(json.dumps(in_warm_process(lambda: [searched(fault, runs, 200) for _ in range(2)], 280)))
"""


@pytest.mark.timeout(300)
def test_the_faulty_step_is_named_and_a_second_search_builds_nothing(tmp_path: Path) -> None:
    # a process of its own: torch refuses to fork one in which another test has run a backward
    command = [sys.executable, "-c", SEARCH, str(tmp_path), FAULT.name]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[3])

    assert done.returncode == 0, done.stderr
    first, second = json.loads(done.stdout.splitlines()[-1])
    assert first["accused"] == second["accused"] == FAULT.accused
    assert first["built"] > 5 and second["built"] == 0
