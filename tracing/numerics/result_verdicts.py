"""The verdicts of a referee on results whose bits differ from eager's, and the remarks on them."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch

from tracing.digest.host import digest
from tracing.model.first_names import first_names
from tracing.numerics.fact_difference import value_difference
from tracing.numerics.referee import Referee
from tracing.numerics.reference import UNREPEATABLE
from tracing.numerics.shadow_storages import BITS_AS, BY_ROUNDING, is_inexact
from tracing.numerics.verdict import Judged
from tracing.numerics.verdict_text import (
    NAMED,
    apart_text,
    judged_text,
    less_precise_text,
    undecided_text,
    within_text,
)

_TOLERATED = 0.1  # of eager's largest value: beyond what the tolerances of any dtype allow relative to it


class ResultVerdicts:
    """The verdicts of a referee on the tensors whose bits differ."""

    def __init__(self, referee: Referee | None) -> None:
        self._referee = referee
        self._explained: dict[str, Judged] = {}
        self.other_numbers: list[str] = []
        self._stepped: list[str] = []
        self._without: list[str] = []
        self._tolerated: list[str] = []
        self.by_tolerances: list[str] = []  # results on which fixed tolerances decide
        self.eager_repeats = True

    def of(self, name: str, actual: torch.Tensor, expected: torch.Tensor) -> tuple[str, float] | None:
        """The disagreement and its size; None: the referee cannot decide."""
        alike = actual.shape == expected.shape and actual.dtype == expected.dtype
        strided = actual.layout == expected.layout == torch.strided
        if not (alike and strided):
            return None
        judged = None
        if self._referee is not None:
            if digest(actual).bits == digest(expected).bits:
                return "", 0.0
            judged = self._referee.judge(name, actual, expected)
        if judged is None:
            self.by_tolerances.append(name)
            return None
        if judged.verdict == "no reference":
            self.eager_repeats &= UNREPEATABLE not in judged.missing
            why = first_names(judged.missing, NAMED)
            read_as_bits = not is_inexact(expected) and any(one.startswith(BITS_AS) for one in judged.missing)
            if read_as_bits or any(one.endswith(BY_ROUNDING) for one in judged.missing):
                why += ", whose last bits rounding decides" if read_as_bits else ""
                self._tolerated.append(f"{name}: it has no reference, because of {why}")
                return "", 0.0
            self.by_tolerances.append(name)
            self._without.append(f"fixed tolerances decide on {name}: it has no reference, because of {why}")
            return self._with_eagers_numbers(name, judged, expected)
        if judged.verdict == "compiled is off":
            return judged_text(judged), judged.compiled.farthest
        self.other_numbers += [name] if judged.other_numbers else []
        self._stepped += [name] if judged.as_compiled else []
        self._explained[name] = judged
        return "", 0.0

    def _with_eagers_numbers(
        self, name: str, judged: Judged, expected: torch.Tensor
    ) -> tuple[str, float] | None:
        # of a result without a reference; None: it draws no random numbers
        if judged.instead is None:
            return None
        how, size = value_difference(judged.instead, expected)
        if how and judged.unlike_draws:
            self._tolerated.append(f"{name}: {apart_text(judged)}")
            return "", 0.0
        self.other_numbers += [] if how else [name]
        return how, size

    def tolerated(self, name: str, size: float) -> None:
        """Note a result that agrees with eager's by fixed tolerances.

        size -- its distance, as a share of eager's largest value

        Where all values are as small as the tolerances, these decide nothing.
        """
        if self._referee is not None and _TOLERATED < size < math.inf:
            self._tolerated.append(
                f"{name}: it has no reference, and is {size:.0%} of eager's largest value away, "
                "which fixed tolerances allow for so small values"
            )

    def eager_off(self) -> tuple[str, ...]:
        """The results for which eager is off."""
        return tuple(name for name, one in self._explained.items() if one.verdict == "eager is off")

    def undecided(self) -> list[str]:
        """The results of which neither compiled nor eager is right."""
        apart: dict[str, list[str]] = {}
        for name, one in self._explained.items():
            if one.verdict == "not decided":
                apart.setdefault(apart_text(one), []).append(name)
        return [f"{first_names(names, NAMED)}: {text}" for text, names in apart.items()] + self._tolerated

    def less_precise(self) -> list[str]:
        """The results that are within rounding, and much farther from exact than eager's; the worst first."""
        some = [(name, one) for name, one in self._explained.items() if one.less_precise]
        some.sort(key=lambda each: -each[1].compiled.farthest)
        return [less_precise_text(name, one) for name, one in some]

    def remarks(self) -> Iterator[str]:
        """Further remarks on the results, including those that agree."""
        within = {name: one for name, one in self._explained.items() if one.verdict == "within rounding"}
        if within:
            name, most = max(within.items(), key=lambda one: one[1].compiled.farthest)
            far = "" if isinstance(most.compiled.value, int) else within_text(most)
            counted = "1 result, " if len(within) == 1 else f"{len(within)} results, most of all "
            yield f"within rounding: {counted}{name}{far}"
        yield from (f"{name}: {undecided_text(one)}" for name, one in within.items() if one.undecided)
        if less := self.less_precise():
            yield f"less precise than eager: {first_names(less, NAMED)}"
        decided = {name: one for name, one in self._explained.items() if one.verdict != "not decided"}
        yield from (f"{name}: {judged_text(one)}" for name, one in decided.items() if name not in within)
        if self._stepped:
            why = "torch.compile traces optimizers with bias corrections of float32"
            yield f"less precise than eager, because {why}: {first_names(self._stepped, NAMED)}"
        yield from self._without
        if self._referee is not None and self._referee.failure:
            yield f"no reference: {self._referee.failure}"
