"""C++ and Python record the same operators of 1,000 random programs, and change no result."""

from __future__ import annotations

from pathlib import Path

import pytest
from generated.operator_programs import program
from recorded.both_forms import in_both_forms, operators

from tracing.model import NotCovered


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("first", range(1000, 2000, 100))
def test_random_programs_are_recorded_the_same_and_have_the_same_results(
    first: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(first, first + 100):
        results: list[object] = []
        python, compiled = in_both_forms(
            tmp_path / str(seed),
            monkeypatch,
            lambda seed=seed, results=results: results.extend(program(seed) for _ in range(3)),  # type: ignore[misc]
            ("python", "compiled") if seed % 2 else ("compiled", "python"),
        )

        assert [*operators(compiled)] == [*operators(python)] != [], seed
        assert [*compiled.records(NotCovered)] == [*python.records(NotCovered)], seed
        assert results == [program(seed)] * 3, seed
