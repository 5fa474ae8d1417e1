"""The planted differences: records, compares and judges each; writes the table of docs/planted.md.

`python tests/planted_differences.py` records them all and writes docs/planted.md anew: some minutes.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from faults.answers import Answer, Verdict, compared, judged, judged_equal
from faults.case_results import left_by
from faults.truths import CLASSES, Difference, differences
from recorded.planted_cases import Recordings, case_of, failed

PAGE = Path(__file__).parents[1] / "docs/planted.md"


@dataclass(frozen=True, slots=True)
class Row:
    """The answers about one planted difference."""

    difference: Difference
    sound: Answer  # of A and A2
    answer: Answer  # of A and B
    equal: Verdict
    verdict: Verdict

    @property
    def good(self) -> bool:
        return self.equal.good and self.verdict.good

    def __str__(self) -> str:
        lines = [f"{self.difference.id}: {self.difference.text}"]
        lines += [f"  A, B   {self.verdict.value}: {self.answer.summary()}"]
        if not self.equal.good:
            lines += [f"  A, A2  {self.equal.value}: {self.sound.summary()}"]
        return "\n".join(lines)


def examined(difference: Difference, recordings: Recordings) -> Row:
    """Record a difference, compare A with A2 and A with B, and judge both answers."""
    a, a2, b = (recordings.of(difference, one) for one in (difference.a, difference.a2, difference.b))
    sound, answer = compared(a, a2), compared(a, b)
    failing = difference.truth.failing and failed(a)
    return Row(difference, sound, answer, judged_equal(sound, failing), judged(answer, difference.truth))


def left(difference: Difference, folder: Path) -> list[dict[str, str]]:
    """The results of A, A2 and B without a recorder."""
    results = []
    for recipe in (difference.a, difference.a2, difference.b):
        with case_of(difference, recipe, folder) as case:
            results.append(left_by(case))
    return results


def counts(rows: Sequence[Row]) -> list[tuple[str, int]]:
    """How many answers there are of each kind: of A and B, and of A and A2."""
    verdicts = Counter(verdict for row in rows for verdict in (row.verdict, row.equal))
    return [(verdict.value, verdicts[verdict]) for verdict in Verdict]


def table(rows: Sequence[Row]) -> str:
    """The counts, and every answer that is not good."""
    lines = [f"{len(rows)} planted differences, {2 * len(rows)} answers"]
    lines += [f"  {number:4d}  {name}" for name, number in counts(rows)]
    return "\n".join([*lines, *(str(row) for row in rows if not row.good)])


def page(rows: Sequence[Row]) -> str:
    """docs/planted.md."""
    return "\n".join([*_head(rows), *(line for group in CLASSES for line in _section(group, rows))]) + "\n"


def _head(rows: Sequence[Row]) -> Iterator[str]:
    yield "# Planted differences"
    yield ""
    yield f"Of {len(rows)} cases three runs are recorded on the virtual GPU: A, B with the fault, and A2,"
    yield "which differs from A only in what no result depends on. `make soak` compares A with both."
    yield "The cases are in `tests/data/planted`; `python tests/planted_differences.py` writes this page from"
    yield "such runs."
    yield ""
    yield "| answers | |"
    yield "|---|---|"
    for name, number in counts(rows):
        yield f"| {name} | {number} |"


def _section(group: str, rows: Sequence[Row]) -> Iterator[str]:
    chosen = [row for row in rows if row.difference.group == group]
    if chosen:
        yield from ("", f"## {CLASSES[group]}", "", "| case | what B does | `compare` |", "|---|---|---|")
        for row in chosen:
            said = row.answer.summary().replace("|", "\\|")
            said += "" if row.good else f" (**{row.verdict.value}; A, A2: {row.equal.value}**)"
            yield f"| {row.difference.id} | {row.difference.text.replace('|', chr(92) + '|')} | {said} |"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        recordings = Recordings(Path(folder))
        rows = [examined(difference, recordings) for difference in differences()]
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(rows))
    print(table(rows))


if __name__ == "__main__":
    main()
