"""Compare the results, the changed state, the initial state and the outcome of two runs' cases.

Values are compared by type, text, dtype, shape, stride and bits. Values without equality are listed, not
skipped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from tracing.analyze.runs.errors import alike, error_text
from tracing.analyze.runs.outcomes import ending, outcome_of
from tracing.model import Container, Outcome, PlainValue, Result, Start, TensorValue, Uncomparable, Value
from tracing.store import Run, rank_of

ByName: TypeAlias = Mapping[tuple[int, str], Value]  # by rank and name

ABSENT = "not there"
_AFTERWARDS = " afterwards"  # of an argument's name, where it is a result
_DIGITS = 12  # of a digest


@dataclass(frozen=True, slots=True)
class ResultDiffers:
    """A result, or an outcome, that differs between two runs."""

    name: str
    a: str  # what each run has, in words
    b: str
    rank: int = 0
    tensor: bool = False  # both are tensors

    @property
    def title(self) -> str:
        """The name, with the rank of a job."""
        return f"{self.name} of rank {self.rank}" if self.rank else self.name


def results(run: Run) -> ByName:
    """The results of the case by rank and name, without arguments that it did not change."""
    results, before = _values(run, Result), _values(run, Start)
    return {key: value for key, value in results.items() if not _is_as_it_was(key, value, before)}


def differing_results(a: Run, b: Run) -> tuple[ResultDiffers, ...]:
    """The results of the case that differ.

    A result that only one run has differs, unless the other run did not finish. A value that differs from the
    start and that neither run changed is not included: `differing_start` returns it.
    """
    of_a, of_b = _values(a, Result), _values(b, Result)
    starts = _values(a, Start), _values(b, Start)
    whole = not any(ending(run, rank) for run in (a, b) for rank, _ in (*of_a, *of_b))
    return tuple(
        difference
        for difference in _differing(of_a, of_b, whole)
        if not (_unchanged(difference, of_a, starts[0]) and _unchanged(difference, of_b, starts[1]))
    )


def differing_start(a: Run, b: Run) -> tuple[ResultDiffers, ...]:
    """Starting values that differ: "input 0", "parameter weight", "torch's random generator"."""
    of_a, of_b = _values(a, Start), _values(b, Start)
    ranks = {rank for rank, _ in of_a} & {rank for rank, _ in of_b}
    return tuple(difference for difference in _differing(of_a, of_b, whole=True) if difference.rank in ranks)


def uncomparable_results(a: Run, b: Run) -> tuple[str, ...]:
    """The results that have no equality, each with its type and the reason."""
    of_a, of_b = results(a), results(b)
    return tuple(
        f"{_title(name, rank)} ({value.type}): {value.why}"
        for (rank, name), value in of_a.items()
        if isinstance(value, Uncomparable) and (rank, name) in of_b
        if of_b[rank, name].identity == value.identity
    )


def differing_outcomes(a: Run, b: Run) -> tuple[ResultDiffers, ...]:
    """Ranks that failed in only one run, with another error, or with another exit status; called "outcome".

    Runs that were interrupted, or are still being recorded, are skipped.
    """
    return tuple(
        ResultDiffers("outcome", *texts, rank)
        for rank in _ranks(a, b)
        if (texts := _outcome_texts(a, b, rank)) is not None
    )


def failed_alike(a: Run, b: Run) -> tuple[str, ...]:
    """The errors with which both runs failed, rank by rank; the runs are comparable up to these."""
    differing = []
    for rank in _ranks(a, b):
        of_a, of_b = outcome_of(a, rank), outcome_of(b, rank)
        if of_a and of_b and of_a.status == of_b.status == "failed" and alike(of_a, of_b):
            what = _title(f"the {a.info.kind}", rank)
            differing.append(f"{what} failed alike in both runs: {of_a.detail}")
    return tuple(differing)


def value_text(value: Value) -> str:
    """A value as text: `float32[4] 4d0bd1650fb8, L1 norm 12.5`, `tuple of 2`, `-0.0`."""
    match value:
        case TensorValue():
            return f"{value.meta.dtype}{list(value.meta.shape)} {_bits_text(value)}"
        case PlainValue():
            return value.text
        case Container():
            return value.text()
        case Uncomparable():
            return f"{value.type}, which cannot be compared: {value.why}"


def _bits_text(value: TensorValue) -> str:
    digest = value.digest
    counts = {"nan": digest.nan, "inf": digest.inf, "-0": digest.negative_zero}
    parts = [digest.bits[:_DIGITS]]
    parts += [f"L1 norm {digest.l1:.9g}"] if digest.l1 is not None else []
    return ", ".join([*parts, *(f"{name}={count}" for name, count in counts.items() if count)])


def _texts(a: Value, b: Value) -> tuple[str, str]:
    # two values as text that shows their difference
    if isinstance(a, Container) and isinstance(b, Container):
        return a.text(b), b.text(a)
    text_a, text_b = value_text(a), value_text(b)
    if isinstance(a, TensorValue) and isinstance(b, TensorValue) and a.meta.stride != b.meta.stride:
        return f"{text_a}, stride {list(a.meta.stride)}", f"{text_b}, stride {list(b.meta.stride)}"
    if isinstance(a, PlainValue) and isinstance(b, PlainValue) and a.type != b.type:
        return f"{a.type} {text_a}", f"{b.type} {text_b}"
    return text_a, text_b


def _values(run: Run, kind: type[Result] | type[Start]) -> dict[tuple[int, str], Value]:
    return {
        (rank_of(process), one.name): one.value
        for process in run.processes(kind)
        for one in run.view(process, kind, kind)
    }


def _differing(of_a: ByName, of_b: ByName, whole: bool) -> Iterator[ResultDiffers]:
    # whole -- both runs have all that they have
    for key in dict.fromkeys((*of_a, *of_b)):
        a, b, (rank, name) = of_a.get(key), of_b.get(key), key
        if a is not None and b is not None:
            if a.identity != b.identity:
                tensors = isinstance(a, TensorValue) and isinstance(b, TensorValue)
                yield ResultDiffers(name, *_texts(a, b), rank, tensors)
        elif whole:
            texts = [value_text(value) if value is not None else ABSENT for value in (a, b)]
            yield ResultDiffers(name, texts[0], texts[1], rank)


def _unchanged(difference: ResultDiffers, values: ByName, start: ByName) -> bool:
    before = start.get((difference.rank, difference.name.removesuffix(_AFTERWARDS)))
    after = values.get((difference.rank, difference.name))
    return before is not None and after is not None and before.identity == after.identity


def _is_as_it_was(key: tuple[int, str], value: Value, start: ByName) -> bool:
    rank, name = key
    before = start.get((rank, name.removesuffix(_AFTERWARDS)))
    return name.endswith(_AFTERWARDS) and before is not None and before.identity == value.identity


def _title(name: str, rank: int) -> str:
    return ResultDiffers(name, "", "", rank).title


def _ranks(a: Run, b: Run) -> list[int]:
    return sorted({rank_of(process) for run in (a, b) for process in run.processes(Outcome)})


def _outcome_texts(a: Run, b: Run, rank: int) -> tuple[str, str] | None:
    of_a, of_b = outcome_of(a, rank), outcome_of(b, rank)
    if of_a is None or of_b is None or "interrupted" in (of_a.status, of_b.status):
        return None
    ends = of_a.exit_status, of_b.exit_status
    if None not in ends and ends[0] != ends[1]:
        return f"exit status {ends[0]}", f"exit status {ends[1]}"
    failed = [outcome.status == "failed" for outcome in (of_a, of_b)]
    if not any(failed) or (all(failed) and alike(of_a, of_b)):
        return None
    return error_text(of_a, of_b), error_text(of_b, of_a)
