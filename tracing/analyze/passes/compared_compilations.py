"""Compares two compilations: their passes, and the artefacts that they made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tracing.analyze.passes.ir_text import canonical, plain
from tracing.analyze.passes.pass_pairs import PassPairs
from tracing.analyze.passes.pass_table import passes_by_hash
from tracing.analyze.passes.ptx_text import without_debug
from tracing.analyze.passes.source_map import artefacts_by_hash
from tracing.errors import Problem
from tracing.model import Blob, Compilation, Derivation, Kernel
from tracing.store import Run

_BINARIES = ("cubin", "hsaco")  # ptxas is not deterministic


@dataclass(frozen=True, slots=True)
class ComparedCompilations:
    """A compilation of each run, compared pass by pass and artefact by artefact."""

    a: Compilation
    b: Compilation
    passes: PassPairs
    equal: Mapping[str, bool]  # stage -> whether the artefacts are equal, but for locations
    # How each compilation differs where it was repeated for the IR between its passes; "": it does not.
    not_repeated: tuple[str, str]

    @property
    def passes_differ(self) -> bool:
        """True if the IR differs before the first pass or after one."""
        return not self.passes.entry_equal or self.passes.first_divergence() is not None

    @property
    def unexplained(self) -> list[str]:
        """The stages whose text differs, although the IR of the passes that is known does not."""
        if self.passes_differ:
            return []
        return [stage for stage, equal in self.equal.items() if not equal and stage not in _BINARIES]

    @property
    def differ(self) -> bool:
        """True if the compilations differ."""
        return self.passes_differ or bool(self.unexplained)


class CompilationComparer:
    """Compares compilations of two runs."""

    def __init__(self, a: Run, b: Run) -> None:
        self._runs = (a, b)
        self._passes = passes_by_hash(a), passes_by_hash(b)
        self._stages = _stages(a), _stages(b)
        self._not_repeated = _not_repeated(a), _not_repeated(b)

    def compared(self, a: Compilation, b: Compilation) -> ComparedCompilations:
        """Compare one of each run; raises Problem if one has no passes.

        Cost: 1 to 50 ms for each distinct IR.
        """
        passes_a, passes_b = self._passes[0].get(a.hash, []), self._passes[1].get(b.hash, [])
        for run, one, passes in ((self._runs[0], a, passes_a), (self._runs[1], b, passes_b)):
            if not passes:
                what = f"{run.path} has no passes of {one.kernel_name}"
                raise Problem(what, "record it with a fresh cache")
        return ComparedCompilations(
            a,
            b,
            PassPairs(passes_a, passes_b, self._runs[0].text, self._runs[1].text),
            self._equal_stages(a, b),
            (self._not_repeated[0].get(a.hash, ""), self._not_repeated[1].get(b.hash, "")),
        )

    def have_equal_text(self, a: Compilation, b: Compilation) -> bool:
        """True if every artefact that both have is equal, locations included."""
        of_a, of_b = self._stages[0].get(a.hash, {}), self._stages[1].get(b.hash, {})
        return all(blob == of_b[stage] for stage, blob in of_a.items() if stage in of_b)

    def _equal_stages(self, a: Compilation, b: Compilation) -> dict[str, bool]:
        of_a, of_b = self._stages[0].get(a.hash, {}), self._stages[1].get(b.hash, {})
        inlined = a.target.startswith("hip") and self._asserts(of_a)
        return {
            stage: self._equal(stage, of_a[stage], of_b[stage])
            for stage in of_a
            # for AMD the path in the message of an assertion is code
            if stage in of_b and not (inlined and stage in ("llir", "amdgcn"))
        }

    def _asserts(self, of_a: Mapping[str, Blob]) -> bool:
        return "ttir" in of_a and "tt.assert" in self._runs[0].text(of_a["ttir"])

    def _equal(self, stage: str, a: Blob, b: Blob) -> bool:
        if a == b or stage in _BINARIES:
            return a == b
        text_a, text_b = self._runs[0].text(a), self._runs[1].text(b)
        if stage in ("ttir", "ttgir"):
            modules = plain(text_a), plain(text_b)
            alike = canonical(modules[0]) == canonical(modules[1])
            return alike and modules[0].attributes == modules[1].attributes
        return without_debug(text_a) == without_debug(text_b)


def _stages(run: Run) -> dict[str, dict[str, Blob]]:
    # by hash; of a kernel that was launched, what was launched: another text may have replaced a stage
    known = artefacts_by_hash(run)
    for kernel in run.records(Kernel):
        if kernel.hash in known:
            known[kernel.hash] |= {
                stage: blob for stage, blob in kernel.stages.items() if stage in known[kernel.hash]
            }
    return known


def _not_repeated(run: Run) -> dict[str, str]:
    differing = {
        (one.process, one.compilation): one.differs for one in run.records(Derivation) if one.differs
    }
    return {
        one.hash: differing[process[1:], one.id]
        for process in run.processes(Compilation)
        for one in run.view(process, Compilation, Compilation)
        if (process[1:], one.id) in differing
    }
