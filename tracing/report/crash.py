"""In which pass a compile dies, and what provokes it, as a person reads it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.text import Text

from tracing.analyze.bisect.search import FirstBad, Step, Undecided
from tracing.report.bisect import reproduction
from tracing.report.passes import Line


def died_text(kernel: str, where: str, name: str, said: str, facts: Mapping[str, str]) -> Iterator[Line]:
    """The pass that dies.

    where -- "pass 27, ttgir"
    facts -- what else is known, and commands that show more of it
    """
    yield Text.assemble(f"{kernel} dies in ", (name, "bold red"), f" ({where})")
    yield from reproduction({"it says": said, **facts})


def provoked_text(layer: str, step: Step, others: Sequence[Step], facts: Mapping[str, str]) -> Iterator[Line]:
    """The earlier pass without which it does not die.

    others -- earlier ones still, without which it does not die either
    """
    yield Text.assemble((layer, "bold"), ": provoked by ", (str(step), "bold red"))
    rows = {"without it": "it does not die there", **facts}
    if others:
        rows["nor without"] = f"{', '.join(map(str, others))}, on which it builds"
    yield from reproduction(rows)


def unprovoked_text(layer: str, because: str) -> Line:
    """That no earlier pass of a layer is known to provoke it."""
    return Text.assemble((layer, "bold"), f": no earlier one provokes it, as far as can be judged: {because}")


def mlir_text(answer: FirstBad | Undecided, facts: Mapping[str, str]) -> Iterator[Line]:
    """What the search over MLIR's passes gave."""
    if isinstance(answer, FirstBad):
        yield from provoked_text(answer.layer, answer.step, answer.needed, facts)
        return
    yield unprovoked_text(answer.layer, answer.because)
    for one in answer.suspects:
        yield Text(f"    {one.step}: {one.why.splitlines()[0]}")
