"""Replaces the cache of `@triton.autotune`, to observe and to freeze its choices.

The autotuner looks up the tuning key before each launch: a key in the cache is not tuned.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

from triton import Config

from tracing.model import Scalar, Winner, plain_scalar
from tracing.upstream.triton.autotune import restored

CacheSettings: TypeAlias = Mapping[str, Scalar]
Frozen: TypeAlias = Callable[[str, str, str, tuple[str, ...]], Winner | None]
How: TypeAlias = Literal["tuned", "cached", "frozen"]


class TuningCache(dict[Any, Any]):
    """Replaces an autotuner's cache until it is removed."""

    def __init__(
        self,
        autotuner: Any,
        frozen: Frozen,
        measured: Callable[[Any], bool],
        took: Callable[[Winner], None],
    ) -> None:
        """frozen   -- the configurations to use, by tuner, kernel, source and key; None: measure
        measured -- True if the autotuner measured before it chose; False: it read Triton's cache on disk
        took     -- receives every choice
        """
        super().__init__(autotuner.cache)
        self._autotuner, self._frozen = autotuner, frozen
        self._measured, self._receive = measured, took
        self._name, self._source = autotuner.base_fn.__name__, source_of(autotuner.fn)
        self._asked = set[Any]()
        self._before: dict[Any, Any] = {}  # what frozen configs replaced; None: nothing

    def __contains__(self, key: object) -> bool:
        if key not in self._asked:
            self._asked.add(key)
            self._first(key)
        return super().__contains__(key)

    def __setitem__(self, key: Any, config: Config) -> None:
        super().__setitem__(key, config)
        self._took(key, config, "tuned" if self._measured(self._autotuner) else "cached")

    def leave(self) -> None:
        """Restore an ordinary cache in the autotuner, with its own measurements."""
        plain = {key: config for key, config in self.items() if key not in self._before}
        plain |= {key: config for key, config in self._before.items() if config is not None}
        self._autotuner.cache = plain

    def _first(self, key: Any) -> None:
        frozen = self._frozen("triton", self._name, self._source, self._key(key))
        # a configuration that is no candidate any more would lack its pre_hook
        same = [one for one in self._autotuner.configs if frozen and settings(one) == frozen.config]
        if same:
            self._before[key] = self.get(key)
            super().__setitem__(key, same[0])
            self._took(key, same[0], "frozen")
        elif super().__contains__(key):
            self._took(key, self[key], "cached")

    def _key(self, key: tuple[Any, ...]) -> tuple[str, ...]:
        names = self._autotuner.keys
        return (
            *(f"{name}={value}" for name, value in zip(names, key, strict=False)),
            *map(str, key[len(names) :]),
        )

    def _took(self, key: Any, config: Config, how: How) -> None:
        candidates = tuple(map(settings, self._autotuner.configs)) if how == "tuned" else ()
        chosen, kept = settings(config), restored(self._autotuner)
        self._receive(
            Winner("triton", self._name, self._source, self._key(key), chosen, how, candidates, kept)
        )


def settings(config: Config) -> dict[str, Scalar]:
    """A configuration as plain values."""
    plain = (bool, int, float, str, type(None))
    return {
        name: plain_scalar(value) if isinstance(value, plain) else str(value)
        for name, value in config.all_kwargs().items()
    }


def source_of(function: Any) -> str:
    """The digest of a kernel's Python source without its name."""
    while not (text := getattr(function, "src", None)) and hasattr(function, "fn"):
        function = function.fn
    text = text or inspect.getsource(function)
    return hashlib.blake2b(text.partition("(")[2].encode(), digest_size=16).hexdigest()
