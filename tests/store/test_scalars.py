"""Scalars are read back from disk with type and bits, and are equal only if both are."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from commands import DATA, recorded, tracing
from handmade.records import META, new_run
from hypothesis import given
from hypothesis import strategies as st

from tracing.model import Argument, Kernel, LaunchLine, Scalar, Signature, UserHash, Winner, exact
from tracing.store import Run
from tracing.store.winners import read_winners, write_winners

SPECIAL = [math.inf, -math.inf, math.nan, -0.0, 0.0, True, 1, 1.0, "nan", None, 1 << 70, 5e-324]
SCALARS = st.sampled_from(SPECIAL) | st.floats() | st.integers() | st.booleans() | st.text() | st.none()


def distinct(values: list[Scalar]) -> list[object]:
    return [exact(value) for value in values]


def test_every_special_scalar_of_a_launch_is_read_back_unchanged(tmp_path: Path) -> None:
    writer = new_run(tmp_path)
    args = tuple(Argument(f"x{i}", value=value) for i, value in enumerate(SPECIAL))
    writer.append(Kernel(0, "k", "h", "cuda:90", 4, 3, 1, {"MAX": str(math.inf)}, {}))
    writer.append(Signature(0, 0, (1, 1, 1), "forward", "cpu", (Argument("p", "in", META), *args)))
    writer.append(LaunchLine(0, 0, 0, (0,)))
    writer.close()

    (launch,) = Run(writer.path).launches()

    assert distinct([arg.value for arg in launch.args[1:]]) == distinct(SPECIAL)
    assert all(type(arg.value) in (float, int, bool, str, type(None)) for arg in launch.args)
    assert launch.kernel.constants == {"MAX": "inf"}


@given(SCALARS, SCALARS)
def test_two_arguments_are_equal_if_their_values_have_equal_types_and_bits(a: Scalar, b: Scalar) -> None:
    one, other = Argument("x", value=a), Argument("x", value=b)
    alike = (type(a), repr(a)) == (type(b), repr(b))

    assert (one == other) == alike == (exact(a) == exact(b))
    assert not alike or hash(one) == hash(other)


def test_signatures_whose_arguments_differ_only_in_type_are_distinguished() -> None:
    signatures = {
        Signature(0, 0, (1, 1, 1), "forward", "", (Argument("x", value=v),)) for v in (True, 1, 1.0)
    }

    assert len(signatures) == 3


@given(st.dictionaries(st.text(), SCALARS), st.dictionaries(st.integers(0, 9), SCALARS))
def test_a_configuration_and_a_users_hashes_are_read_back_unchanged(
    tmp_path_factory: pytest.TempPathFactory, config: dict[str, Scalar], hashes: dict[int, Scalar]
) -> None:
    writer = new_run(tmp_path_factory.mktemp("run"))
    winner = Winner("triton", "k", "s", (), config, candidates=(config,))
    writer.append(winner)
    writer.append(UserHash(0, hashes, {}))
    writer.close()

    run = Run(writer.path)

    assert list(run.records(Winner)) == [winner]
    assert list(run.records(UserHash)) == [UserHash(0, hashes, {})]


def test_a_configuration_with_an_infinity_is_frozen_and_read_back(tmp_path: Path) -> None:
    winner = Winner("triton", "k", "s", (), {"LIMIT": -math.inf})
    info = Run(new_run(tmp_path).path).info

    write_winners(tmp_path / "w.json", info.environment, [winner])

    assert read_winners(tmp_path / "w.json").winners == (winner,)


@pytest.mark.soak
def test_a_kernel_with_float_arguments_that_json_lacks_has_a_repro(tmp_path: Path) -> None:
    run = recorded(f"{DATA / 'scalars.py'}:high=nan", tmp_path, "--keep-inputs", "--no-passes")

    done = tracing("repro", run, "--launch", "0", "--output", str(tmp_path / "it"), runs=tmp_path)

    assert done.returncode == 0, done.stdout + done.stderr
    assert {arg.name: repr(arg.value) for arg in next(Run(Path(run)).launches()).args[2:]} == {
        "low": "-inf",
        "high": "nan",
    }
