"""Judges the answer of `tracing compare --json` about two runs, given the truth about them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from faults.truths import Truth
from typer.testing import CliRunner

from tracing.cli import app


class Verdict(Enum):
    """How an answer relates to the truth."""

    RIGHT = "right"
    UNDECIDED = "undecided, rightly"
    UNCERTAIN = "undecided, although it can be decided"
    ACCUSED = "wrong accusation"
    MISSED = "false equality"
    INVENTED = "false difference"
    BROKEN = "no answer"

    @property
    def good(self) -> bool:
        return self in (Verdict.RIGHT, Verdict.UNDECIDED)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a comparison printed, and its exit status."""

    status: int
    said: Mapping[str, Any]  # the JSON object; empty if there was none
    text: str  # stdout and stderr

    @property
    def divergences(self) -> Sequence[Mapping[str, Any]]:
        """The divergences; one is added if only results or outcomes differ."""
        divergences = list(self.said.get("divergences", ()))
        if divergences or self.status == 0:
            return divergences
        kinds = [("result", "results")] if self.said.get("results") else []
        outcomes = self.said.get("outcomes") or {}
        if outcomes.get("a") != outcomes.get("b"):
            kinds = [("outcome", "outcomes")]
        return [
            {"kind": kind, "launch": None, "kernel": "", "argument": None, "accused": {"kind": kind}}
            for kind, _ in kinds
        ]

    def summary(self) -> str:
        """The first verdict in a few words."""
        if not self.said:
            return f"exit status {self.status}: {(self.text.strip().splitlines() or ['nothing'])[-1]}"
        parts = [_summary(one) for one in self.divergences]
        return "; ".join(parts) if parts else {0: "equal", 2: "compared in part"}.get(self.status, "?")


def compared(a: Path, b: Path) -> Answer:
    """`tracing compare A B --json`, in this process."""
    done = CliRunner().invoke(app, ["compare", str(a), str(b), "--anyway", "--json"])
    return answer(done.exit_code, done.stdout, done.output)


def answer(status: int, stdout: str, text: str) -> Answer:
    """Parses the output; stdout without a JSON object is no answer."""
    try:
        said = json.loads(stdout)
    except ValueError:
        return Answer(status, {}, text)
    return Answer(status, said, text)


def judged_equal(answer: Answer, failing: bool) -> Verdict:
    """Judges the answer about two runs without a fault; runs that fail alike are compared in part."""
    if not answer.said:
        return Verdict.BROKEN
    if answer.divergences or answer.status == 1:
        return Verdict.INVENTED
    return Verdict.RIGHT if answer.status == (2 if failing else 0) else Verdict.UNCERTAIN


def judged(answer: Answer, truth: Truth) -> Verdict:
    """Judges the answer about two runs with a known difference."""
    if not answer.said or answer.said.get("status") != answer.status:
        return Verdict.BROKEN
    if answer.status == 0:
        return Verdict.RIGHT if truth.equal else Verdict.MISSED
    if not answer.divergences:
        return _without_divergence(truth)
    if not truth.differs:
        return Verdict.INVENTED
    before = [one for one in answer.divergences if any(may.covers(one["accused"]) for may in truth.before)]
    rest = [one for one in answer.divergences if one not in before]
    if not rest:
        return Verdict.MISSED  # what comes before is without effect: the fault is hidden by it
    return _accusations(rest, truth)


def _without_divergence(truth: Truth) -> Verdict:
    if truth.in_part:
        return Verdict.RIGHT
    return Verdict.UNDECIDED if truth.undecided else Verdict.UNCERTAIN


def _accusations(divergences: Sequence[Mapping[str, Any]], truth: Truth) -> Verdict:
    first, *others = divergences
    for one in others:  # what is reported as independent accuses, too
        if not any(may.covers(one["accused"]) for may in truth.accusations) and not undecided(one):
            return Verdict.ACCUSED
    if truth.names(first):
        return Verdict.RIGHT
    if undecided(first):
        return Verdict.UNDECIDED if truth.undecided else Verdict.UNCERTAIN
    return Verdict.ACCUSED


def undecided(divergence: Mapping[str, Any]) -> bool:
    """Whether a divergence accuses nobody for certain, and names the command that decides."""
    accused = divergence["accused"]
    return not accused.get("certain", True) and bool(accused.get("decides"))


def _summary(divergence: Mapping[str, Any]) -> str:
    accused = divergence["accused"]
    launch = accused.get("launch") or {}
    number = launch.get("b") if launch.get("b") is not None else launch.get("a")
    words = [accused["kind"]]
    words += [f"`{accused['name']}`"] if accused.get("name") else []
    words += [f"#{number}"] if number is not None else []
    words += [f"`{accused['argument']}`"] if accused.get("argument") else []
    words += [f"in {' and '.join(accused['runs'])}"] if accused.get("runs") else []
    words += [f"through {', '.join(accused['through'])}"] if accused.get("through") else []
    words += ["?"] if not accused.get("certain", True) else []
    return " ".join(words)
