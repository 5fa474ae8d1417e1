"""What `tracing bisect` builds with: Triton's compiler, in children of this process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tracing.analyze.probes import Compiled
from tracing.compiler.child import Ended
from tracing.compiler.ptxas import assemblers
from tracing.compiler.variants import Variants
from tracing.model import Compilation, PassRecord
from tracing.store import Run


class VariantBuilder:
    """Builds the recorded compilation in other ways than it was."""

    def __init__(
        self,
        run: Run,
        chosen: Compilation,
        passes: Sequence[PassRecord],
        recorded: Mapping[str, str | bytes],
        last: str,
        seconds: float,
    ) -> None:
        self._variants = Variants(chosen, passes, run.text, recorded, last=last, seconds=seconds)
        backend, _, arch = chosen.target.partition(":")
        found = assemblers(int(arch)) if backend == "cuda" else []
        self.assemblers: Sequence[str] = [f"{one.name} {one.version}" for one in found]

    def without(self, dropped: frozenset[int]) -> Compiled:
        return _compiled(self._variants.without(dropped))

    def limited(self, limit: int | None) -> Compiled:
        return _compiled(self._variants.limited(limit))

    def assembled(self, level: int | None, assembler: str | None) -> Compiled:
        return _compiled(self._variants.assembled(level, assembler.split()[0] if assembler else None))


def _compiled(ended: Ended) -> Compiled:
    return Compiled(ended.result or {}, ended.failure, final=not ended.timed_out)
