"""The random numbers that Inductor's kernels draw, from the seed that a launch read.

A number is a function of the seed and of the element's position. So a kernel that draws is judged as any
other: it must give the numbers of its own generator, not those of eager.

Sources: the generator is Philox4x32-10 of J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3"
(2011); what becomes of its words is as in triton/language/random.py and, of integers, `randint64` in
torch/_inductor/runtime/triton_helpers.py.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from tracing.model import KernelLaunch
from tracing.store import Run

_KEYS, _MULTIPLIERS = (0x9E3779B9, 0xBB67AE85), (0xD2511F53, 0xCD9E8D57)
_ROUNDS = 10
_AT_ONCE = 1 << 18  # positions: their words stay in the processor's caches
_WORD = np.uint64(0xFFFFFFFF)
_UNIFORM = np.float32(4.6566127342e-10)  # of a non-negative int32, to [0, 1)
_LEAST = np.float32(1e-7)  # of a uniform number whose logarithm is taken
_CALLS = ("tl.rand(", "tl.randn(", "triton_helpers.randint64(")  # of this generator, a position each
_OTHERS = ("rand4x(", "randn4x(", "rand_eager_kernel(")  # these give other numbers, or in another order


def draws_as_known(run: Run, launches: Sequence[KernelLaunch]) -> bool:
    """True if all numbers that these launches of a run draw are computed as in this module."""
    sources = [run.text(one.kernel.source) if one.kernel.source else "" for one in launches]
    drawing = [one for one in sources if any(call in one for call in (*_CALLS, *_OTHERS))]
    return bool(drawing) and not any(call in one for one in drawing for call in _OTHERS)


@functools.lru_cache(maxsize=4)  # the runs that measure rounding draw the same numbers
def drawn_words(seed: int, count: int) -> npt.NDArray[np.uint32]:
    """[2, count] the first two words of each position.

    seed -- 64 bits
    """
    words = np.empty((2, count), np.uint32)
    for start in range(0, count, _AT_ONCE):
        some = slice(start, min(start + _AT_ONCE, count))
        words[:, some] = _philox(seed, np.arange(some.start, some.stop, dtype=np.uint64))[:2]
    return words


def _philox(seed: int, positions: npt.NDArray[np.uint64]) -> list[npt.NDArray[np.uint64]]:
    # four words of 32 bits for each position
    key = [seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF]
    words = [positions & _WORD, *(np.zeros_like(positions) for _ in range(3))]
    for _ in range(_ROUNDS):
        first, second = (words[i] * np.uint64(by) for i, by in zip((0, 2), _MULTIPLIERS, strict=True))
        words = [
            (second >> np.uint64(32)) ^ words[1] ^ np.uint64(key[0]),
            second & _WORD,
            (first >> np.uint64(32)) ^ words[3] ^ np.uint64(key[1]),
            first & _WORD,
        ]
        key = [(one + step) & 0xFFFFFFFF for one, step in zip(key, _KEYS, strict=True)]
    return words


def numbers(size: Sequence[int], seed: torch.Tensor, mode: str, align_dtype: Any = None) -> torch.Tensor:
    """`prims.inductor_random`: [*size] float32.

    seed        -- [] int64
    mode        -- "rand": uniform in [0, 1); "randn": of the normal distribution
    align_dtype -- concerns numbers that are those of eager only
    """
    words = drawn_words(int(seed), math.prod(size))
    first = torch.from_numpy(_uniform(words[0])).reshape(tuple(size)).to(seed.device)
    if mode == "rand":
        return first
    second = torch.from_numpy(_uniform(words[1])).reshape(tuple(size)).to(seed.device)
    radius = (first.clamp(min=float(_LEAST)).log() * -2.0).sqrt()
    return radius * (second * math.tau).cos()


def integers(low: int, high: int, size: Sequence[int], seed: torch.Tensor) -> torch.Tensor:
    """`prims.inductor_randint`: [*size] int64, from low to high - 1."""
    words = drawn_words(int(seed), math.prod(size)).astype(np.uint64)
    drawn = (words[0] | words[1] << np.uint64(32)) % np.uint64(high - low)
    return (torch.from_numpy(drawn.astype(np.int64)) + low).reshape(tuple(size)).to(seed.device)


def _uniform(word: npt.NDArray[np.uint32]) -> npt.NDArray[np.float32]:
    signed = word.view(np.int32)
    uniform: npt.NDArray[np.float32] = np.where(signed < 0, ~signed, signed).astype(np.float32) * _UNIFORM
    return uniform


FUNCTIONS: Mapping[str, Callable[..., torch.Tensor]] = {
    "prims::inductor_random": numbers,
    "prims::inductor_randint": integers,
}
