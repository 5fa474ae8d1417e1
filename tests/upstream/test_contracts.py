"""All contracts together, as `tracing doctor` runs them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tracing import upstream
from tracing.upstream import contracts
from tracing.upstream.inductor import autotuner as inductor_autotuner

ROOT = Path(str(upstream.__file__)).parent
FILES = {".".join(path.relative_to(ROOT).with_suffix("").parts) for path in ROOT.glob("*/*.py")}
WITHOUT = {"inductor.__init__", "torch.__init__", "triton.__init__"}


def test_every_file_has_a_contract_and_a_test() -> None:
    tests = Path(__file__).parent.glob("*/test_*.py")
    tested = {f"{path.parent.name}.{path.stem.removeprefix('test_')}" for path in tests}

    assert contracts.FEATURES.keys() == FILES - WITHOUT
    assert tested >= FILES - WITHOUT


def test_every_feature_works_with_the_installed_versions() -> None:
    assert [feature for feature in contracts.features() if feature.failure] == []


def test_a_renamed_method_switches_one_feature_off_and_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(inductor_autotuner.CachingAutotuner, "bench")

    off = [feature for feature in contracts.features() if feature.failure]

    assert [feature.module for feature in off] == ["inductor.autotuner"]
    assert "CachingAutotuner with bench" in off[0].failure


def test_a_file_that_cannot_be_imported_switches_its_feature_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(contracts.FEATURES, "no_such_file", "nothing")

    *_, last = contracts.features()

    assert last.failure.startswith("ModuleNotFoundError")


def test_the_doctor_prints_each_feature_and_exits_with_0() -> None:
    command = [sys.executable, "-m", "tracing", "doctor", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    report = json.loads(done.stdout)
    assert done.returncode == 0
    assert {feature["module"] for feature in report["features"]} == FILES - WITHOUT
