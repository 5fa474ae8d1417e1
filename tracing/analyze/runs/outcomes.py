"""Describe how a recording ended, and what is therefore missing."""

from __future__ import annotations

from collections.abc import Sequence

from tracing.model import Cut, DigestBatch, LaunchLine, Outcome, Record
from tracing.store import Run, being_recorded, rank_of


class _Index(Record, frozen=True):
    index: int


class _Launches(Record, frozen=True):
    launches: Sequence[int]


def ending(run: Run, rank: int) -> str:
    """The reason why a rank did not record everything: "was interrupted", "failed: ..."; "" if it did.

    Also an error of the recorder itself, after which the program continued.
    """
    outcome = outcome_of(run, rank)
    if (cut := cut_off(run, rank)) or outcome is None:
        return cut
    if outcome.status == "interrupted":
        return "was interrupted"
    return f"failed: {outcome.detail}" if outcome.status == "failed" else ""


def cut_off(run: Run, rank: int) -> str:
    """The reason why the recording of a rank ended, or may have, before its program; "": it did not."""
    own = (process for process in run.processes(Cut) if rank_of(process) == rank)
    cut = next((one for process in own for one in run.view(process, Cut, Cut)), None)
    if cut is not None:
        return f"was not recorded after launch {cut.launches - 1}: {cut.error}"
    return "was interrupted, or is still being recorded" if outcome_of(run, rank) is None else ""


def outcome_of(run: Run, rank: int) -> Outcome | None:
    """How a rank ended; None: it was killed, or is still being recorded."""
    return next(
        (
            outcome
            for process in run.processes(Outcome)
            if rank_of(process) == rank
            for outcome in run.view(process, Outcome, Outcome)
        ),
        None,
    )


def died(run: Run) -> bool:
    """True if the process of a run of one process ended without an outcome, as by a signal."""
    return _only_outcome(run) is None and not being_recorded(run.path)


def failed_anew(run: Run, anew: Run) -> str:
    """The error of a new recording of a run's program, if the program failed now only; "": it did not."""
    before, now = _only_outcome(run), _only_outcome(anew)
    if now is None or now.status != "failed" or (before is not None and before.status == "failed"):
        return ""
    return now.detail


def _only_outcome(run: Run) -> Outcome | None:
    # without --rank-aware each rank of a job has a run of its own
    rank = next(map(rank_of, run.processes(Outcome)), 0) if run.info.world_size == 1 else 0
    return outcome_of(run, rank)


def cut_short(run: Run, process: str) -> bool:
    """True if a process lost its last launches but not their digests. Reads the whole recording."""
    launches = max((one.index for one in run.view(process, LaunchLine, _Index)), default=-1)
    digested = (one.launches[-1] for one in run.view(process, DigestBatch, _Launches) if one.launches)
    return max(digested, default=-1) > launches
