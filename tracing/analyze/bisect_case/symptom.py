"""The symptom of a wrong case, and whether another build has the same symptom."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tracing.analyze.bisect.search import Judgement
from tracing.model import is_gradient

SymptomKind: TypeAlias = Literal["right", "eager is off", "differs", "raises", "fails", "dies", "no answer"]
_VARYING = re.compile(r"0x[0-9a-f]+|\d+|'[^']*/[^']*'|\S*/\S*")  # addresses, numbers, paths


@dataclass(frozen=True, slots=True)
class Wrong:
    """One wrong result."""

    name: str  # "output 0", "grad of weight"
    how: Literal["value", "not finite", "layout", "missing"]


@dataclass(frozen=True, slots=True)
class Symptom:
    """How one build of a case ended."""

    kind: SymptomKind
    text: str  # for people, one line
    results: tuple[Wrong, ...] = ()  # if it differs
    by_tolerances: bool = False  # on each of them fixed tolerances decide: it has no reference
    error: str = ""  # type of the exception, the exit status, or the signal
    where: str = ""  # the line that raises it, and its source
    remedy: str = ""  # if there is no answer

    @property
    def only_gradients(self) -> bool:
        """True if gradients are wrong, and no result that is no gradient is."""
        return bool(self.results) and all(is_gradient(one.name) for one in self.results)

    @property
    def only_layout(self) -> bool:
        """True if shapes, strides or dtypes are wrong, and no values are."""
        return bool(self.results) and all(one.how == "layout" for one in self.results)


def judged_as(build: Symptom, wanted: Symptom) -> Judgement:
    """Good if a build is right, bad if it has the symptom `wanted`, else undecided."""
    if build.kind in ("right", "eager is off"):
        return Judgement("good", build.text)
    if build.kind == "no answer":
        return Judgement("skip", build.text, final=False)
    if build.kind != wanted.kind:
        return Judgement("skip", f"the symptom is another:  {build.text}")
    if build.kind == "differs":
        return _by_results(build, wanted)
    same = (build.error, error_core(build.text)) == (wanted.error, error_core(wanted.text))
    return Judgement("bad", build.text) if same else Judgement("skip", f"another error: {build.text}")


def commonest(symptoms: Iterable[Symptom]) -> Symptom:
    """The most frequent symptom; the first one of a tie. `symptoms` must not be empty."""
    known = list(symptoms)
    return max(known, key=lambda one: sum(judged_as(other, one).verdict == "bad" for other in known))


def _by_results(build: Symptom, wanted: Symptom) -> Judgement:
    shared = [one for one in build.results if one in wanted.results]
    if shared:
        return Judgement("bad", build.text)
    return Judgement("skip", f"other results are wrong, or the same in another manner: {build.text}")


def error_core(text: str) -> str:
    """An error message without numbers, addresses and paths, which vary between programs."""
    return " ".join(_VARYING.sub("…", text).split())
