"""Programs with a fault, and the expected report of `tracing compare`: kind, kernel, argument, producer."""

from __future__ import annotations

from pathlib import Path

from commands import DATA
from handmade.records import INFO
from typer.testing import CliRunner

from tracing import store
from tracing.cli import app
from tracing.program.case import load_case
from tracing.program.device import Device
from tracing.program.experiment import Experiment
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.record.run import record

SAID = {
    "grid": (
        " scale\n",
        "a         grid=(4, 1, 1)",
        "b         grid=(3, 1, 1)",
        "the program launches this kernel differently: grid",
        "the outputs of this launch differ: out_ptr",
    ),
    "operator": (
        " shift\n",
        "input     in_ptr (argument 0)",
        "aten::add_.Tensor(other=1) wrote this tensor last, outside of Triton, only in b",
    ),
    "host": (
        " shift\n",
        "input     in_ptr (argument 0)",
        " scale wrote this tensor last, as out_ptr, with equal bits;",
        "code outside of Triton and torch changed those bits afterwards, in b",
    ),
    "winner": (
        " shift\n",
        "BLOCK=64\n",
        "BLOCK=128\n",
        "an autotuner chose another configuration; nothing else differs",
    ),
    "inserted": (" negate\n", "only b makes 1 launch here", "1 follows from those above"),
}


def faulty(fault: str, runs: Path) -> Path:
    """A run of data/faults.py."""
    case, writer = load_case(f"{DATA / 'faults.py'}:fault={fault}"), store.create(runs, INFO)
    experiment = Experiment(case, Device("sm_90"), seed=0)
    outcome = record(experiment, LaunchRecorder(writer), lambda stage: None, passes=None)
    writer.close()
    assert outcome.status != "failed", outcome.traceback
    return writer.path


def compared(a: Path, b: Path) -> str:
    """The report on two runs that differ."""
    done = CliRunner().invoke(app, ["compare", str(a), str(b)])
    assert done.exit_code == 1, done.output
    return done.stdout
