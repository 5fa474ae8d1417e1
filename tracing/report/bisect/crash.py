"""The pass in which a compile crashes, and the pass that provokes the crash, for a terminal and as data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.text import Text

from tracing.analyze.bisect.crash import CompileCrash, Hangs, Provoked
from tracing.analyze.bisect.layers import LLVM, MLIR
from tracing.report.bisect.bisect import reproduction
from tracing.report.bisect.bisect_json import step_json, suspect_json
from tracing.report.text import Line, plural


def hangs_text(event: Hangs, kernel: str) -> Text:
    """The cost of the rest of the search."""
    total = f"about {plural(event.most, 'compile')} to come, {event.seconds * event.most:.0f} s if each hangs"
    return Text(f"{kernel} hangs. A compile that hangs takes {event.seconds:g} s from now on; {total}")


def dies_text(event: CompileCrash, kernel: str) -> Iterator[Line]:
    """The pass, or the part of a stage, that crashes."""
    yield Text.assemble(f"{kernel} dies in ", (event.step.name, "bold red"), f" ({_where(event)})")
    yield from reproduction({"message": event.message, **event.facts})


def _where(event: CompileCrash) -> str:
    index, unit = event.step.index, event.step.unit
    if event.layer == MLIR:
        return f"pass {index}, {event.stage}"
    if event.layer == LLVM:
        number = f"LLVM pass {index}, " if index >= 0 else ""
        return f"{number}{event.stage}{f', on {unit}' if unit else ''}"
    return f"stage {event.stage}"


def provoked_text(event: Provoked, facts: Mapping[str, str]) -> Iterator[Line]:
    """The earlier pass without which it does not crash, or the reason why none is named.

    facts -- of the pass: commands that show more
    """
    if event.step is None:
        none = f": no earlier pass provokes this, as far as can be judged: {event.because}"
        yield Text.assemble((event.layer, "bold"), none)
        for one in event.suspects:
            yield Text(f"    {one.step}: {one.why.splitlines()[0]}")
        return
    yield Text.assemble((event.layer, "bold"), ": provoked by ", (str(event.step), "bold red"))
    rows = {"without it": "it does not die there", **facts}
    if event.needed:
        rows["nor without"] = f"{', '.join(map(str, event.needed))}, on which it builds"
    yield from reproduction(rows)


def crash_json(answers: Sequence[CompileCrash | Provoked]) -> dict[str, Any]:
    """What `tracing bisect --crash --json` prints; keys as in docs/json.md."""
    dies = next((one for one in answers if isinstance(one, CompileCrash)), None)
    return {
        "dies": None if dies is None else {**step_json(dies.step), "stage": dies.stage, "said": dies.message},
        "facts": dict(dies.facts) if dies else {},
        "provoked": [_provoked_json(one) for one in answers if isinstance(one, Provoked)],
    }


def _provoked_json(one: Provoked) -> dict[str, Any]:
    return {
        "layer": one.layer,
        "step": step_json(one.step) if one.step else None,
        "because": one.because,
        "needed": [step_json(step) for step in one.needed],
        "suspects": [suspect_json(suspect) for suspect in one.suspects],
    }
