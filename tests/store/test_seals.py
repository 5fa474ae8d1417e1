"""A run is this user's if the user's key sealed it, whoever owns the files."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from handmade.records import INFO, kernel
from handmade.small_runs import small_run

from tracing import environment, store
from tracing.errors import Problem
from tracing.model import Derivation, Seal
from tracing.store.lines import lines
from tracing.store.recorded_launch import recorded_launch
from tracing.store.seals import is_own


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return small_run(tmp_path / "runs")


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_what_this_user_recorded_is_the_users_own_also_elsewhere(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "copy")

    assert is_own(run)
    assert is_own(tmp_path / "copy")


def test_what_another_user_recorded_is_not(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "other"))
    assert not is_own(run)  # there is no key

    small_run(tmp_path / "runs of the other")
    assert not is_own(run)


def test_an_altered_line_of_a_users_own_run_breaks_its_seal(run: Path) -> None:
    (kernels,) = run.glob("kernels-*")
    edit(kernels, '"name":"k"', '"name":"j"')

    assert not is_own(run)


@pytest.mark.parametrize("old", ["/case.py", '"seed": 0'])
def test_an_altered_description_breaks_every_seal(old: str, run: Path) -> None:
    edit(run / "run.json", old, old.replace("0", "1").replace("case", "evil"))

    assert not is_own(run)


def test_lines_of_another_run_of_the_user_break_the_seal(run: Path, tmp_path: Path) -> None:
    writer = store.create(tmp_path / "others", INFO)
    writer.append(kernel("evil"))
    (own,), (other,) = run.glob("kernels-*"), writer.path.glob("kernels-*")
    shutil.copy(other, own)
    with next(run.glob("seals-*")).open("a") as seals:
        seals.write(next(writer.path.glob("seals-*")).read_text())

    assert not is_own(run)


def test_a_file_that_nobody_sealed_breaks_the_seal(run: Path) -> None:
    (run / "kernels-vm-0-1.ndjson").write_text(next(run.glob("kernels-*")).read_text())

    assert not is_own(run)


def test_what_a_killed_process_wrote_is_still_the_users_own(run: Path) -> None:
    (kernels,) = run.glob("kernels-*")
    with kernels.open("a") as file:
        file.write('{"id":1,"na')

    assert is_own(run)


def test_commands_that_add_records_to_a_strangers_run_do_not_make_it_the_users(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "other"))
    writer = store.reopened(run)
    writer.append(Derivation("vm-0-1", 0, ""))
    writer.close()

    assert not is_own(run)


def test_a_run_without_seals_as_of_earlier_versions_is_a_strangers(run: Path) -> None:
    next(run.glob("seals-*")).unlink()

    assert not is_own(run)


def test_the_key_is_the_users_only_and_is_in_no_run(run: Path) -> None:
    (key,) = environment.state_folder().iterdir()

    assert (key.stat().st_mode & 0o777, len(key.read_bytes())) == (0o600, 32)
    assert not any(key.read_bytes() in path.read_bytes() for path in run.rglob("*") if path.is_file())


def test_a_key_that_others_can_read_is_none(run: Path) -> None:
    (key,) = environment.state_folder().iterdir()
    key.chmod(0o644)

    assert not is_own(run)


def test_a_folder_that_cannot_hold_a_key_stops_no_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))

    run = small_run(tmp_path / "runs")

    assert not is_own(run)
    assert not list(run.glob("seals-*"))


def test_each_line_is_sealed_before_it_is_written(run: Path) -> None:
    sizes = {one.file: one.size for path in run.glob("seals-*") for one in lines(path, Seal)}

    for path in [*run.glob("*.ndjson"), run / "run.json"]:
        if not path.name.startswith("seals-"):
            assert sizes[path.name] == path.stat().st_size


def test_a_strangers_kernel_is_executed_with_consent_only(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded_launch(store.Run(run), 0)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "other"))
    said: list[str] = []
    consenting = store.Run(run)
    consenting.consent = said.append

    with pytest.raises(Problem, match=r"was not recorded by you .* the source of k: .*/blobs/"):
        recorded_launch(store.Run(run), 0)
    recorded_launch(consenting, 0)
    assert len(said) == 1
