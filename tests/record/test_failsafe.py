"""An error of the recorder's own ends the recording, and not the program."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from commands import DATA, tracing
from recorded.programs import as_recorded, bare

from tracing import recording, store
from tracing.launch import hooks
from tracing.model import Cut, Outcome
from tracing.record.launches.launch_digests import LaunchDigests


@pytest.mark.soak
def test_a_full_disk_ends_the_recording_and_the_program_goes_on(tmp_path: Path) -> None:
    done = as_recorded(["full_disk.py"], DATA, tmp_path)

    assert done == bare(["full_disk.py"], DATA)
    assert done.status == 4
    run = store.open_run("latest", tmp_path)
    assert [one.detail.split(";")[0] for one in run.records(Outcome)] == ["exit status 4"]
    (cut,) = run.records(Cut)
    assert "File too large" in cut.error
    assert len(list(run.launches())) >= 1
    assert "recorder failed: after" in tracing("show", "latest", runs=tmp_path).stdout


@pytest.mark.parametrize("strict", [False, True])
def test_a_failure_of_the_recorder_is_reported_once_and_raised_only_if_strict(
    strict: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(digests: LaunchDigests, launch: object) -> None:
        raise MemoryError("no memory for digests")

    monkeypatch.setattr(LaunchDigests, "before", fails)
    double = torch.compile(lambda x: x.relu().sum() * 2)
    with recording(runs=tmp_path, strict=strict, operators="none") as run:
        if strict:
            with pytest.raises(MemoryError):
                double(torch.ones(8))
        else:
            assert [double(torch.ones(8)).item() for _ in range(2)] == [16.0, 16.0]

    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("tracing: ")]
    assert len(said) == len(list(run.records(Cut))) == int(not strict)
    assert all(
        "the recording ended after 1 launches: MemoryError: no memory for digests" in one for one in said
    )
    assert hooks.shown()
