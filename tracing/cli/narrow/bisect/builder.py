"""Build kernels for `tracing bisect` with Triton's compiler, in child processes."""

from __future__ import annotations

from collections.abc import Sequence

from tracing.analyze.bisect.probes import Compiled
from tracing.compiler.child import ChildResult
from tracing.compiler.codegen.ptxas import assemblers
from tracing.compiler.history import History
from tracing.compiler.variants import Variants
from tracing.model import Compilation


class VariantBuilder:
    """Builds variants of a compilation."""

    def __init__(self, chosen: Compilation, source: str, history: History, last: str, seconds: float) -> None:
        self._variants = Variants(chosen, source, history, last=last, seconds=seconds)
        backend, _, arch = chosen.target.partition(":")
        installed = assemblers(int(arch)) if backend == "cuda" else []
        self.assemblers: Sequence[str] = [f"{one.name} {one.version}" for one in installed]

    def without(self, dropped: frozenset[int], *, afresh: bool) -> Compiled:
        return _compiled(self._variants.without(dropped, afresh=afresh))

    def limited(self, limit: int | None, disabled: Sequence[str], *, afresh: bool) -> Compiled:
        return _compiled(self._variants.limited(limit, disabled, afresh=afresh))

    def assembled(self, level: int | None, assembler: str | None) -> Compiled:
        return _compiled(self._variants.assembled(level, assembler.split()[0] if assembler else None))


def _compiled(ended: ChildResult) -> Compiled:
    return Compiled(ended.result or {}, ended.failure, final=not ended.timed_out)
