"""Inductor's autotuner."""

from __future__ import annotations

from typing import Any

import pytest

from tracing.upstream.contract import Broken
from tracing.upstream.inductor import autotuner as inductor_autotuner


def test_the_contract_holds_with_the_installed_versions() -> None:
    inductor_autotuner.contract()


class Tuner(inductor_autotuner.CachingAutotuner):
    def __init__(self, interpreted: bool = False) -> None:
        self.triton_interpret = interpreted


class Thread:
    hidden = 0


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    made: list[str] = []
    monkeypatch.setattr(
        inductor_autotuner.CachingAutotuner,
        "run",
        lambda tuner, *args, stream, benchmark_run=False, **kwargs: made.append("original"),
    )
    return made


def recording(made: list[str]) -> inductor_autotuner.Launch:
    def launch(original: Any, tuner: Any, args: Any, stream: int, kwargs: Any, /) -> Any:
        made.append(f"{args} on {stream}")
        return original(tuner, *args, stream=stream, **kwargs)

    return launch


def test_a_launch_of_the_program_is_passed_on_with_its_arguments(launches: list[str]) -> None:
    with inductor_autotuner.around_launches(recording(launches), Thread()):
        Tuner().run(1, 2, stream=7)

    assert launches == ["(1, 2) on 7", "original"]


def test_trials_interpreted_and_hidden_launches_are_not_passed_on(launches: list[str]) -> None:
    hidden = Thread()
    hidden.hidden = 1
    with inductor_autotuner.around_launches(recording(launches), Thread()):
        Tuner().run(1, stream=7, benchmark_run=True)
        Tuner(interpreted=True).run(1, stream=7)
    with inductor_autotuner.around_launches(recording(launches), hidden):
        Tuner().run(1, stream=7)

    assert launches == ["original"] * 3


def test_the_method_that_measures_is_restored() -> None:
    before = inductor_autotuner.trial_method()
    with inductor_autotuner.not_measured(lambda kernel, count: None):
        assert inductor_autotuner.trial_method() is not before

    assert inductor_autotuner.trial_method() is before


def test_a_missing_precompile_breaks_the_contract(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(inductor_autotuner.CachingAutotuner, "precompile")

    with pytest.raises((Broken, AttributeError), match="precompile"):
        inductor_autotuner.contract()
