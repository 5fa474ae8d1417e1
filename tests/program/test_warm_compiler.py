"""A warm compiler compiles a case as a cold one does, with what the case has changed in Inductor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch._inductor.decomposition import select_decomp_table

from tracing.compiler.child import in_child
from tracing.program.device import Device
from tracing.program.experiment import Experiment
from tracing.program.warm_compiler import load_and_warm_up

CHANGE = "decompositions[torch.ops.aten.hardswish.default] = lambda x: x * 5"
IN_THE_TABLE = CHANGE.replace("decompositions", "select_decomp_table()")
CASE = """import torch
from torch._inductor.decomposition import decompositions, select_decomp_table
from tracing import Workload
{imported}
def build(device):
    {built}
    return Workload(torch.nn.functional.hardswish, (torch.full((8,), 9.0, device=device),))
"""


@pytest.mark.parametrize(
    ("imported", "built"), [(CHANGE, "pass"), ("", CHANGE), (IN_THE_TABLE, "pass"), ("", "pass")]
)
def test_a_decomposition_of_the_case_is_used(imported: str, built: str, tmp_path: Path) -> None:
    file = tmp_path / "case.py"
    file.write_text(CASE.format(imported=imported, built=built))

    def compiled() -> Any:
        select_decomp_table()  # as if this process had compiled before
        device = Device("sm_90")
        experiment = Experiment(load_and_warm_up(device, str(file)), device, 0)
        with device.active():
            return experiment.results(experiment.workload(), torch.compile)["output"].tolist()

    ended = in_child(compiled, 120)

    assert not ended.failure, ended.stderr
    assert ended.result == [45.0 if imported or CHANGE in built else 9.0] * 8
