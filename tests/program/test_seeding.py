"""One seed for every generator from which a program draws without a seed of its own."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch

from tracing.program.seeding import seed_generators


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    entropy = np.random.bit_generator.randbits  # type: ignore[attr-defined]
    with torch.random.fork_rng(devices=[]):
        yield
    random.seed()
    np.random.seed()
    np.random.bit_generator.randbits = entropy  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "drawn",
    [
        lambda: torch.rand(()).item(),
        random.random,
        np.random.rand,
        lambda: np.random.default_rng().random(),
        lambda: np.random.Generator(np.random.Philox()).random(),
    ],
)
def test_a_seed_decides_what_is_drawn(drawn: Callable[[], float]) -> None:
    numbers = []
    for seed in (3, 3, 4):
        seed_generators(seed)
        numbers.append(drawn())

    assert numbers[0] == numbers[1] != numbers[2]


def test_generators_that_are_made_without_a_seed_differ_from_each_other() -> None:
    seed_generators(0)

    assert np.random.default_rng().random() != np.random.default_rng().random()
