"""The results of a workload in exact arithmetic, and the spread that rounding may cause in each of them.

The workload runs in eager once for the exact results, and `samples` times with every rounding randomised. All
runs start from the same seed and draw the same random numbers.

Cost: samples + 1 runs, each several times as long as one in eager. Memory: a float64 copy of the tensors
alive in eager, three of the results, and one of the operands of each test for equality of numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from tracing.launch import hooks
from tracing.launch.launch_site import Grid, LaunchSite, tensor_of
from tracing.numerics.choices import Choices
from tracing.numerics.rounding import Noise, wide
from tracing.numerics.shadow import Shadow
from tracing.numerics.shadow_storages import is_inexact
from tracing.numerics.undeclared_effects import effect_text

SAMPLES = 8
MORE_SAMPLES = 32  # where few elements are off
UNREPEATABLE = "eager itself: repeated, it gives another result"
_REPEATED = 64  # roundings of the largest value by which repeated runs may differ
Results = Mapping[str, Any]


Extremes: TypeAlias = tuple[torch.Tensor, torch.Tensor]  # [*] int64


@dataclass(frozen=True, slots=True)
class Expected:
    """One result in exact arithmetic."""

    exact: torch.Tensor  # [*] float64 or complex128; integers keep their dtype
    spread: torch.Tensor  # [*] float64, root mean square of what random rounding changes; of integers: 1 or 0
    missing: tuple[str, ...] = ()  # operators and kernels that were not followed in float64
    own: torch.Tensor | None = None  # [*] what eager gave in the first of the runs; None: not kept
    drawn: bool = False  # it depends on random numbers, other than those of the inputs
    extremes: Extremes | None = None  # least and largest value of each element in all runs, if integers


class Reference:
    """The results of a workload in exact arithmetic, and their spread in as many runs as were asked for."""

    def __init__(
        self,
        run: Callable[[], Results],
        *,
        fused: bool = False,
        tf32: Collection[str] | None = None,
        progress: Callable[[int], None] = lambda done: None,
        undeclared: Callable[[str], None] = lambda effect: None,
    ) -> None:
        """The arguments are those of `reference`; nothing is run before `expected` is called."""
        self._run, self._fused, self._progress, self._undeclared = run, fused, progress, undeclared
        self._tf32 = tf32
        self._runs = 0  # the exact one, and then those with random rounding
        self._exact: dict[str, torch.Tensor] = {}
        self._own: dict[str, torch.Tensor] = {}
        self._missing: dict[str, set[str]] = {}
        self._drawn: set[str] = set()
        self._choices: Choices | None = None
        self._squares: dict[str, torch.Tensor] = {}
        self._extremes: dict[str, Extremes] = {}

    def expected(self, samples: int) -> dict[str, Expected]:
        """The results by name, with the spread of this many runs with random rounding, or of more."""
        if not self._runs:
            self._run_exactly()
        while self._runs <= samples:
            self._run_with_noise()
        spread = {name: (one / max(1, self._runs - 1)).sqrt() for name, one in self._squares.items()}
        return {
            name: Expected(
                one, spread[name], tuple(sorted(self._missing[name])), self._own[name], name in self._drawn,
                self._extremes.get(name),
            )
            for name, one in self._exact.items()
        }  # fmt: skip

    def _run_exactly(self) -> None:
        shadow, results = self._followed()
        for name, one in _tensors(results):
            self._exact[name], self._own[name] = shadow.of(one).clone(), one.detach().clone()
            self._missing[name] = set(shadow.missing(one))
            self._drawn |= {name} if shadow.drawn(one) else set()
            self._squares[name] = torch.zeros(one.shape, dtype=torch.float64, device=one.device)
            if not is_inexact(self._exact[name]):
                self._extremes[name] = _extremes(self._own[name], self._exact[name])
        for effect, line in shadow.undeclared.items():
            self._undeclared(effect_text(effect, line))
        self._choices = shadow.choices
        self._ended()

    def _run_with_noise(self) -> None:
        exact, own = self._exact, self._own
        shadow, results = self._followed(Noise(self._runs), self._choices)
        for name, one in _tensors(results):
            if name in exact and repeats(one, own[name]):
                self._missing[name] |= shadow.missing(one)  # a branch that this rounding decides
                self._squares[name] += _squared(shadow.of(one), exact[name])
                if name in self._extremes:
                    self._extremes[name] = _extremes(*self._extremes[name], shadow.of(one))
            elif name in exact:
                self._missing[name].add(UNREPEATABLE)
        self._ended()

    def _ended(self) -> None:
        self._runs += 1
        self._progress(self._runs)

    def _followed(self, noise: Noise | None = None, exact: Choices | None = None) -> tuple[Shadow, Results]:
        shadow = Shadow(noise, exact, self._tf32)
        # fused attention has no float64 on a GPU; its parts have
        kernels = nullcontext() if self._fused else sdpa_kernel(SDPBackend.MATH)
        with kernels, _kernels_followed(shadow), shadow:
            results = self._run()
        return shadow, results


def reference(
    run: Callable[[], Results],
    *,
    samples: int = SAMPLES,
    fused: bool = False,
    tf32: Collection[str] | None = None,
    progress: Callable[[int], None] = lambda done: None,
    undeclared: Callable[[str], None] = lambda effect: None,
) -> dict[str, Expected]:
    """The results of a workload in exact arithmetic, by name.

    run      -- builds the workload, seeds it, runs it in eager and returns its results by name
    fused    -- attention is not taken apart: it has no float64 on a GPU, and draws as it does in eager
    tf32     -- as of `Shadow`
    progress -- called after each run with the number of runs that have ended
    undeclared -- called with "mylib::op writes x, and its schema does not say so (train.py:12)" for each such
                operator, or with "mylib::op returns the memory of x, and its schema says that it is new"
    """
    return Reference(run, fused=fused, tf32=tf32, progress=progress, undeclared=undeclared).expected(samples)


def repeats(a: torch.Tensor, b: torch.Tensor) -> bool:
    """True if both may come from eager runs without state; a program that keeps state differs by far more.

    a, b -- [*] one result of two runs from one seed

    On a GPU atomics make runs differ by roundings; on a CPU the order of eager's additions is fixed.
    """
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if torch.equal(a, b) or not (a.is_floating_point() or a.is_complex()):
        return torch.equal(a, b)
    wide_a, wide_b = (one.to(wide(a.dtype)).nan_to_num() for one in (a, b))
    limit = _REPEATED * torch.finfo(a.dtype).eps * float(wide_b.abs().max())
    return bool(torch.equal(a.isnan(), b.isnan())) and float((wide_a - wide_b).abs().max()) <= limit


def _extremes(*values: torch.Tensor) -> Extremes:
    numbers = torch.stack([one.to(torch.int64) for one in values])
    return numbers.amin(0), numbers.amax(0)


def _squared(sample: torch.Tensor, exact: torch.Tensor) -> torch.Tensor:
    if not (exact.is_floating_point() or exact.is_complex()):
        return (sample != exact).to(torch.float64)
    apart = (sample - exact).abs().to(torch.float64)
    apart[sample == exact] = 0  # two infinities
    # rounding decides whether there is a number, in float64 as well
    apart[(sample.isnan() & exact.isfinite()) | (exact.isnan() & sample.isfinite())] = torch.inf
    return (apart * apart).nan_to_num(nan=0.0)


def _tensors(results: Results) -> Iterator[tuple[str, torch.Tensor]]:
    for name, one in results.items():
        if isinstance(one, torch.Tensor) and one.layout == torch.strided and not one.is_quantized:
            yield name, one


@contextmanager
def _kernels_followed(shadow: Shadow) -> Iterator[None]:
    with hooks.installed(_Launches(shadow)):
        yield


class _Launches:
    # a kernel that the program launches has no float64

    def __init__(self, shadow: Shadow) -> None:
        self._shadow = shadow

    def before(self, site: LaunchSite, values: Sequence[Any], stream: int, grid: Grid | None) -> Any:
        return site.name, [tensor for value in values if (tensor := tensor_of(value)) is not None]

    def after(self, token: Any) -> None:
        name, tensors = token
        for tensor in tensors:
            self._shadow.written(tensor, name)
