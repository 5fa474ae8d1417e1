"""Records the configuration that each autotuner chooses, and makes autotuners choose given ones.

Two autotuners choose by measurement, so their choices may differ between runs and between ranks:

- `@triton.autotune`: it looks up its cache, by tuning key, before it tunes. While active, the cache
  records each choice and holds the frozen ones;
- Inductor's `CachingAutotuner`: a frozen configuration is the only one that it compiles, in this process and
  in the compile workers, ignoring its own cache on disk, and it is not refined by coordinate descent, scaled
  reduction blocks or combo tuning.

Not covered: a kernel of Inductor's that had chosen before this was entered; how Inductor chooses between
templates and libraries for a matrix product, a convolution or FlexAttention, and whether it pads a matrix
product. The winner is then another kernel, not another configuration; the run reports it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from tracing.model import NotCovered, Winner
from tracing.record.autotuning.tuning_cache import CacheSettings, How, TuningCache, settings, source_of
from tracing.store import RunWriter
from tracing.store.winners import join, joined
from tracing.upstream.inductor import autotuner as inductor_autotuner
from tracing.upstream.inductor.compiler import (
    around_padding,
    around_selection,
    selection_measures,
    worker_jobs,
)
from tracing.upstream.triton import autotune as triton_autotuner

# settings by which Inductor tries further configurations when it compiles or measures a kernel
_NO_TUNING = {
    "coordinate_descent_tuning": False,
    "dynamic_scale_rblock": False,
    "dynamic_disable_pipelining": False,
    "combo_tuning_groups": None,
}
# set if coordinate descent or combo tuning changed something; neither applies to kernels of templates
_REFINED = ("found_by_coordesc", "found_by_combo_autotune")


class Winners:
    """While entered, choices of autotuners are written to a run, and those that are frozen are not tuned."""

    def __init__(self, writer: RunWriter | None = None, frozen: Sequence[Winner] = ()) -> None:
        """writer -- the run that receives them; None: none
        frozen -- the configurations to use; of two for one kernel and key the last
        """
        self.chosen: list[Winner] = []
        self._writer = writer
        self._frozen = {join(one): one for one in frozen}
        self._asked: set[Any] = set()  # for which an autotuner asked
        self._matched: set[Any] = set()  # that an autotuner took
        self._caches: list[TuningCache] = []
        self._measured = WeakSet[Any]()  # autotuners, since they chose last
        self._candidates = WeakKeyDictionary[Any, tuple[CacheSettings, ...]]()  # of Inductor's autotuners
        self._lock = threading.RLock()
        self._exit = ExitStack()

    @property
    def unmatched(self) -> list[Winner]:
        """Frozen winners that no kernel asked for."""
        return [one for key, one in self._frozen.items() if key not in self._matched]

    def __enter__(self) -> Winners:
        with ExitStack() as stack:
            stack.callback(self._finish)
            stack.enter_context(triton_autotuner.around_launches(self._around_run))
            stack.enter_context(triton_autotuner.around_trials(self._around_bench))
            stack.enter_context(inductor_autotuner.around_precompile(self._around_precompile))
            stack.enter_context(inductor_autotuner.around_tuning(self._around_tuner))
            stack.enter_context(around_selection(self._around_selection))
            stack.enter_context(around_padding(self._around_padding))
            if self._frozen:
                stack.enter_context(worker_jobs(frozen_job, tuple(self._frozen.values())))
            self._exit = stack.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        self._exit.close()

    def _finish(self) -> None:
        for cache in self._caches:
            cache.leave()
        for one in self.unmatched if self._writer is not None else ():
            what = f"the frozen winner of {one.kernel} ({', '.join(one.key)})"
            if join(one) in self._asked:
                why = "the kernel's autotuner has no such configuration"
                self._not_covered(f"{what}: {why}", "a configuration that the kernel lists")
            else:
                why = "nothing of this source and key was tuned"
                self._not_covered(f"{what}: {why}", "freeze anew: `tracing winners RUN --output FILE`")

    def frozen(self, tuner: str, kernel: str, source: str, key: tuple[str, ...]) -> Winner | None:
        """The frozen winner to use; None: measure."""
        winner = self._frozen.get(joined(tuner, kernel, source, key))
        if winner is not None:
            self._asked.add(join(winner))
        return winner

    def took(self, winner: Winner) -> None:
        """An autotuner has made a choice."""
        with self._lock:
            if winner.how == "frozen":
                self._matched.add(join(winner))
            if winner not in self.chosen:
                self.chosen.append(winner)
                if self._writer is not None:
                    self._writer.append(winner)

    def _not_covered(self, what: str, setting: str) -> None:
        if self._writer is not None:
            self._writer.append(NotCovered(what, setting))

    # ---- @triton.autotune

    def _around_run(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def run(autotuner: Any, *args: Any, **kwargs: Any) -> Any:
            if len(autotuner.configs) > 1 and type(autotuner.cache) is not TuningCache:
                with self._lock:
                    autotuner.cache = TuningCache(autotuner, self.frozen, self._has_measured, self.took)
                    self._caches.append(autotuner.cache)
            return original(autotuner, *args, **kwargs)

        return run

    def _around_bench(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def bench(autotuner: Any, *args: Any, **kwargs: Any) -> Any:
            self._measured.add(autotuner)
            return original(autotuner, *args, **kwargs)

        return bench

    def _has_measured(self, autotuner: Any) -> bool:
        # since it was asked last
        measured = autotuner in self._measured
        self._measured.discard(autotuner)
        return measured

    # ---- Inductor's

    def _around_precompile(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def precompile(autotuner: Any, *args: Any, **kwargs: Any) -> Any:
            name, source = inductor_autotuner.kernel_name_of(autotuner), source_of(autotuner.fn)
            frozen = self.frozen("inductor", name, source, _inductor_key(autotuner))
            if frozen is not None:
                _freeze(autotuner, frozen.config, kwargs.get("reload_kernel"))
            result = original(autotuner, *args, **kwargs)
            if autotuner.launchers:  # there are none in a worker
                self._precompiled(autotuner, frozen)
            return result

        return precompile

    def _precompiled(self, autotuner: Any, frozen: Winner | None) -> None:
        configs = tuple(settings(launcher.config) for launcher in autotuner.launchers)
        self._candidates[autotuner] = configs
        hit = (autotuner.autotune_cache_info or {}).get("autotune_cache_state") == "hit"
        if frozen is not None or hit:
            self._took(autotuner, configs[0], "cached" if frozen is None else "frozen")

    def _around_tuner(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def tune(autotuner: Any, *args: Any, **kwargs: Any) -> Any:
            launcher = original(autotuner, *args, **kwargs)
            config = (launcher or autotuner.launchers[0]).config
            if launcher is None or any(getattr(config, mark, False) for mark in _REFINED):
                self._took(autotuner, settings(config), "tuned")
            return launcher

        return tune

    def _took(self, autotuner: Any, config: CacheSettings, how: How) -> None:
        candidates = self._candidates.get(autotuner, ())
        key = _inductor_key(autotuner)
        source, name = source_of(autotuner.fn), inductor_autotuner.kernel_name_of(autotuner)
        self.took(Winner("inductor", name, source, key, config, how, candidates if how == "tuned" else ()))

    def _around_selection(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def select(cache: Any, name: str, choices: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
            if len(choices) > 1 and selection_measures():
                what = f"which of several kernels Inductor takes for {name}: it measures them"
                self._not_covered(what, "torch._inductor.config.max_autotune_gemm = False")
            return original(cache, name, choices, *args, **kwargs)

        return select

    def _around_padding(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def is_padded_faster(*args: Any, **kwargs: Any) -> Any:
            what = "whether Inductor pads the matrices of a product: it measures both"
            self._not_covered(what, "torch._inductor.config.shape_padding = False")
            return original(*args, **kwargs)

        return is_padded_faster


def frozen_job(frozen: Sequence[Winner], job: Callable[..., Any], *args: Any) -> Any:
    """Run a job of Inductor in a compile worker, which compiles only frozen configurations."""
    with Winners(None, frozen):
        return job(*args)


def _inductor_key(autotuner: Any) -> tuple[str, ...]:
    # one source serves several sizes and dtypes
    hints = autotuner.size_hints or {}
    types = {name: kind for name, kind in autotuner.triton_meta["signature"].items() if kind != "constexpr"}
    constants = autotuner.triton_meta.get("constants", {})
    return (
        *(f"{name}={size}" for name, size in hints.items()),
        *(f"{name}: {kind}" for name, kind in types.items()),
        *(f"{name}={value}" for name, value in constants.items()),
    )


def _freeze(autotuner: Any, config: CacheSettings, reload_kernel: Callable[[], Any] | None) -> None:
    # called before it compiles; if a worker has compiled, only the frozen configuration is kept
    autotuner.inductor_meta.update(_NO_TUNING)
    compiled = autotuner.compile_results
    same = [result for result in compiled if settings(result.config) == config]
    if compiled and not same and autotuner.fn.fn is None:  # as it came from the worker
        assert reload_kernel is not None
        autotuner.fn = reload_kernel().fn
    autotuner.compile_results, autotuner.launchers = same[:1], []
    if not same:
        autotuner.configs = [inductor_autotuner.config_from_dict(dict(config))]
