"""Seeds every generator of random numbers from which a program draws unless it seeds them itself."""

from __future__ import annotations

import random

import numpy as np
import torch


def seed_generators(seed: int) -> None:
    """Seed torch, `numpy.random` and `random`, for the rest of this process.

    Generators that the program makes without a seed, as by `numpy.random.default_rng()`, are seeded as well,
    each with another seed. Not seeded is a `random.Random()` of the program's own: Python seeds it in C.

    seed -- not negative
    """
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed % 2**32)
    np.random.bit_generator.randbits = random.Random(seed).getrandbits  # type: ignore[attr-defined]  # its entropy
