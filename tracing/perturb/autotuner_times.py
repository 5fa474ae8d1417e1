"""Falsify autotuning measurements so that another configuration wins.

Applies to `@triton.autotune`, whose earlier choices are ignored meanwhile, and to Inductor's autotuner. A
configuration that does not run still loses. Inductor's own setting for this,
`test_configs.distort_benchmarking_result`, has no effect here: Inductor reads it when its module is imported.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Literal, TypeAlias

from tracing.interpreter import trials
from tracing.upstream.inductor import autotuner as inductor_autotuner
from tracing.upstream.patch import Method
from tracing.upstream.triton import autotune as triton_autotuner

TunerChoice: TypeAlias = Literal["slowest", "random"]


class OtherWinners:
    """Chooses configurations while `active`, and counts the autotuners that measured."""

    def __init__(self, choice: TunerChoice, seed: int) -> None:
        """choice -- "slowest", of equally slow ones the last; or "random", by `seed`."""
        self.choice = choice
        self.tuned: set[int] = set()  # the autotuners that measured, by id
        self._random = random.Random(seed)
        self._measured = 0
        self._chosen: dict[int, tuple[Any, dict[Any, Any]]] = {}  # autotuners, and what they chose before

    @contextmanager
    def active(self) -> Iterator[None]:
        """While active, autotuners choose other configurations; then the earlier choices are restored."""
        with ExitStack() as stack:
            stack.callback(self._restore)
            stack.enter_context(trials.every_configuration())
            stack.enter_context(inductor_autotuner.around_trials(self._around_trial))
            stack.enter_context(triton_autotuner.around_trials(self._around_trial))
            stack.enter_context(triton_autotuner.around_launches(self._around_launch))
            yield

    def _around_trial(self, original: Method) -> Method:
        def bench(autotuner: Any, *args: Any, **kwargs: Any) -> Any:
            times = original(autotuner, *args, **kwargs)
            self.tuned.add(id(autotuner))
            if isinstance(times, list):
                return [self._falsified(times[0])] * len(times)
            return self._falsified(times)

        return bench

    def _falsified(self, time: float) -> float:
        self._measured += 1
        if not math.isfinite(time):
            return time
        if self.choice == "random":
            return self._random.random()
        return (1 / time if time else 1e9) * (1 - 1e-9 * self._measured)

    def _around_launch(self, original: Method) -> Method:
        def run(autotuner: Any, *args: Any, **kwargs: Any) -> Any:
            if id(autotuner) not in self._chosen:
                self._chosen[id(autotuner)] = autotuner, dict(autotuner.cache)
                autotuner.cache.clear()
            return original(autotuner, *args, **kwargs)

        return run

    def _restore(self) -> None:
        for autotuner, cache in self._chosen.values():
            autotuner.cache.clear()
            autotuner.cache.update(cache)
        self._chosen.clear()
