"""Passing over equal launches gives the same knowledge of memory as reading each of them."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from generated.programs import case, programs
from handmade.records import new_run
from hypothesis import HealthCheck, Phase, given, settings

from tracing import store
from tracing.analyze.compare.timeline.timeline import Timeline
from tracing.analyze.compare.timeline.timeline_step import Position
from tracing.model import Storage, TensorMeta
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.virtual_gpu import virtual_gpu


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


def recorded(program: object, folder: Path) -> store.Run:
    """A run in which launches are the only writers that are known."""
    writer = new_run(folder)
    with virtual_gpu():
        workload = case.workload(program, "cpu")
        with LaunchRecorder(writer, operators="none"):
            workload.fn(*workload.args)
    writer.close()
    return store.Run(writer.path)


@settings(
    max_examples=20,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate],
)
@given(program=programs())
def test_memory_has_the_same_writers_after_launches_that_were_passed_over(
    program: object, folder: Path
) -> None:
    run = recorded(program, Path(tempfile.mkdtemp(dir=folder)))

    for process in run.processes():  # none: the program launches nothing
        looked, passed = (Timeline(run, process, run.signatures(process)) for _ in range(2))

        launches = sum(1 for _ in looked.steps(Position()))
        passed.pass_over(Position(), Position(launches))
        passed.finish()

        for storage in run.view(process, Storage, Storage):
            first, meta = storage.address, TensorMeta((storage.nbytes,), (1,), "uint8", "")
            of_each = [one.memory.sources(first, first + storage.nbytes, meta) for one in (looked, passed)]
            assert of_each[0] == of_each[1]
