"""The answer of `tracing judge`: what it prints, keeps in the run, and its exit status."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from tracing import store
from tracing.analyze.judge.judgement import RunJudgement
from tracing.cli.answers.kept_answer import keep_answer
from tracing.cli.app import out
from tracing.errors import Problem
from tracing.model import AnswerTable
from tracing.report.judge.judgement import judgement_text
from tracing.report.judge.judgement_json import judgement_json
from tracing.report.text import plural
from tracing.store.recorded_launch import find_launch

_ROWS = 1000  # launches of the table that is kept
_NAMED = 4  # launches that are listed


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """A judgement, and the commands to type next."""

    judgement: RunJudgement
    next: tuple[str, ...]
    wrong_accesses: Mapping[str, str] = field(default_factory=dict)  # launches, and how: {"4 k": "races"}

    @property
    def status(self) -> int:
        """That of the judgement; 1 if it accuses nothing, and a launch not judged accesses memory wrongly."""
        return 1 if self.accuses_accesses else self.judgement.status

    @property
    def accuses_accesses(self) -> bool:
        """True if nothing else is accused, and a launch without a reference accesses memory wrongly."""
        right = {f"{one.launch} {one.kernel}" for one in self.judgement.launches if one.verdict == "right"}
        return self.judgement.status != 1 and not right.issuperset(self.wrong_accesses)

    def lines(self, next_commands: Sequence[str]) -> Iterator[str]:
        """The judgement for people."""
        if self.accuses_accesses:
            for launch, how in islice(self.wrong_accesses.items(), _NAMED):
                yield f"✗ launch {launch} {how}"
            if further := self.wrong_accesses.keys() - {*islice(self.wrong_accesses, _NAMED)}:
                yield f"    likewise  {plural(len(further), 'more launch')}"
        yield from judgement_text(self.judgement, next_commands)

    def print(self) -> None:
        """Print it for people."""
        for line in self.lines(self.next):
            out.print(line)

    def json(self) -> dict[str, Any]:
        """The keys of `tracing judge --json`, without the run."""
        accesses = {"status": self.status, "wrong_accesses": [*self.wrong_accesses]}
        return {**judgement_json(self.judgement), **accesses, "next": [*self.next]}

    def keep(self, asked: store.Run, judged: store.Run) -> None:
        """Keep the judgement in the run that was asked about.

        judged -- the run that kept tensors: the same one, or a new recording of its program
        """
        anew = [] if asked.path == judged.path else [f"recorded anew, with tensors: {judged.path}"]
        accused = self.judgement.accused or next(iter(self.judgement.suspects), None)
        known = accused is not None and _launches(asked, accused.launch, accused.kernel)
        keep_answer(
            asked,
            "judge",
            self.status,
            [*self.lines(()), *anew],
            next=self.next,
            launch=accused.launch if accused and known else None,
            kernel=accused.kernel if accused else "",
            tables=(_table(self.judgement),) if self.judgement.launches else (),
        )


def _launches(run: store.Run, index: int, kernel: str) -> bool:
    # a new recording may launch in another order
    with suppress(Problem):
        return find_launch(run, index)[1].kernel_name == kernel
    return False


def _table(judgement: RunJudgement) -> AnswerTable:
    rows = (
        (
            str(one.launch),
            one.kernel,
            f"{one.verdict} in part" if one.partly else one.verdict,
            ", ".join(one.nodes),
            one.why,
        )
        for one in judgement.launches[:_ROWS]
    )
    columns = ("launch", "kernel", "verdict", "FX nodes", "why there is no reference")
    return AnswerTable("Judged launches", columns, tuple(rows))
