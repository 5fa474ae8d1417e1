"""Cache a case's results with replaced launches on disk, so that an interrupted swap test can be resumed.

RUN/swap/<key>.json     in run b; the key consists of the case, the device, and the replacements
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import msgspec

from tracing.analyze.replay.swap_plan import Candidate, chosen
from tracing.model import Replacement, SwapResult
from tracing.store import Run

Replacing: TypeAlias = Mapping[str, Mapping[int, Replacement]]


class SwapCache:
    """Results of a run's case with replaced launches; `ran` counts executions, `known` cache hits."""

    def __init__(self, run: Run, key: Sequence[str], make: Callable[[Replacing], SwapResult]) -> None:
        """Cache the results of `make` in a run.

        key -- everything that determines the results in addition to the replaced launches
        """
        self._folder, self._key, self._make = run.path / "swap", key, make
        self.ran = 0
        self.known = 0
        self._asked: dict[Path, SwapResult] = {}

    def of(self, candidates: Sequence[Candidate], *, anew: bool = False) -> SwapResult:
        """The results of the case with these replacements.

        With `anew`, the case is executed even if the results are cached.

        A failure is not cached, because the next execution may succeed.
        """
        replaced = chosen(candidates)
        path = self._folder / f"{_digest(self._key, replaced)}.json"
        if anew or path not in self._asked:
            self._asked[path] = self._executed(path, replaced, anew)
        return self._asked[path]

    def _executed(self, path: Path, replaced: Replacing, anew: bool) -> SwapResult:
        if not anew and path.exists():
            self.known += 1
            return msgspec.json.decode(path.read_bytes(), type=SwapResult)
        result = self._make(replaced)
        self.ran += 1
        if result.outcome.status != "failed":
            path.parent.mkdir(exist_ok=True)
            partial = path.with_suffix(f".{os.getpid()}")
            partial.write_bytes(msgspec.json.encode(result))
            partial.replace(path)
        return result


def _digest(key: Sequence[str], replaced: Replacing) -> str:
    result = hashlib.blake2b(msgspec.json.encode(list(key)), digest_size=8)
    for kernel, turns in sorted(replaced.items()):
        for number, one in sorted(turns.items()):
            result.update(msgspec.json.encode([kernel, number, one]))
    return result.hexdigest()
