"""The command that records a run once more has the options that decide whether it ends as before."""

from __future__ import annotations

from pathlib import Path

import pytest
from handmade.records import INFO
from handmade.runs import HOST, saved
from msgspec.structs import replace

from tracing.analyze.runs.program_differences import incomparable
from tracing.analyze.runs.recording_commands import command, variables, with_variables
from tracing.model import ReadVariable
from tracing.store import other_settings

ALLOW = "--allow-out-of-bounds"


def test_accesses_out_of_bounds_that_were_allowed_are_allowed_once_more() -> None:
    typed = ("tracing", "run", ALLOW, "oob.py")
    program = replace(INFO, kind="program", argv=typed, program=("oob.py",))

    assert ALLOW in command(program)
    assert ALLOW in command(replace(INFO, argv=typed))


def test_an_option_of_the_program_is_its_own() -> None:
    words = ("oob.py", ALLOW)
    program = replace(INFO, kind="program", argv=("tracing", "run", *words), program=words)

    assert command(program).count(ALLOW) == 1  # among the words of the program


def test_settings_of_compiles_that_are_others_now_are_set_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = {"TORCHINDUCTOR_MAX_AUTOTUNE": "1", "TRITON_F32_DEFAULT": "ieee", "TRITON_CACHE_DIR": "/here"}
    monkeypatch.setattr(other_settings, "compile_settings", lambda: now)
    knobs = {
        "TORCHINDUCTOR_EMULATE_PRECISION_CASTS": "1",
        "TRITON_F32_DEFAULT": "ieee",
        "CUDA_HOME": "/there",
    }
    run = saved(tmp_path, [], environment=replace(HOST, knobs=knobs))

    assert variables(run) == {
        "TORCHINDUCTOR_EMULATE_PRECISION_CASTS": "1",
        "TORCHINDUCTOR_MAX_AUTOTUNE": None,
    }


def test_variables_that_were_not_set_and_are_not_now_are_not_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(other_settings, "compile_settings", dict)
    monkeypatch.setenv("SET_NOW", "1")
    monkeypatch.delenv("UNSET", raising=False)
    read = [ReadVariable("SET_NOW", None), ReadVariable("UNSET", None), ReadVariable("WAS", "2")]
    run = saved(tmp_path, [], read)

    assert variables(run) == {"SET_NOW": None, "UNSET": None, "WAS": "2"}
    assert with_variables(run) == ["env", "-u", "SET_NOW", "WAS=2"]
    assert with_variables(saved(tmp_path / "unset", [], read[1:2])) == []


def test_a_folder_that_a_compile_reads_is_set_where_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(other_settings, "compile_settings", dict)
    there, gone = str(tmp_path), str(tmp_path / "nowhere")
    for name, folder in (("there", there), ("gone", gone)):
        knobs = {"TRITON_KERNEL_OVERRIDE": "1", "TRITON_OVERRIDE_DIR": folder, "TRITON_CACHE_DIR": there}
        run = saved(tmp_path / name / "runs", [], environment=replace(HOST, knobs=knobs))

        assert variables(run).get("TRITON_OVERRIDE_DIR") == (there if folder == there else None)
        assert "TRITON_CACHE_DIR" not in variables(run)


def test_recordings_in_one_file_are_of_one_program_whatever_their_names_are() -> None:
    a = replace(INFO, kind="code", path="/m/train.py", case="before")

    assert incomparable(a, replace(a, case="after")) == ""
    assert "programs: before and after" in incomparable(a, replace(a, case="after", path="/m/other.py"))


def test_a_rank_with_a_run_of_its_own_is_recorded_with_all_ranks_of_its_job() -> None:
    program = replace(INFO, kind="program", program=("ddp.py",), job_size=2)

    assert command(program)[:5] == ["torchrun", "--nproc-per-node=2", "-m", "tracing", "run"]
    assert "--rank-aware" not in command(program)
