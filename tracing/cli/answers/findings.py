"""The findings in a recorded run, as `tracing run` prints them: a line for each, with its command."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from shlex import quote

from rich.text import Text

from tracing import environment, store
from tracing.analyze.nonfinite.data_events import Kind
from tracing.analyze.nonfinite.first_nonfinite import first_nonfinite
from tracing.analyze.runs.launch_counts import launch_counts
from tracing.cli.answers import hints
from tracing.model import Outcome, Result, TensorValue
from tracing.report.findings import (
    memory_text,
    no_kernel_text,
    out_of_bounds_text,
    trials_text,
    uncovered_text,
    uninitialised_text,
)
from tracing.report.nonfinite import first_text, later_text, title, unexplained_text, value_text

_NAN: dict[Kind, str] = {"nan": " --kind nan"}  # with the option of `tracing nan`
_KINDS: dict[Kind, str] = {"any": "", **_NAN}
_EXAMINED = 10_000  # launches whose digests are searched for a NaN


def findings_text(run: store.Run) -> Iterator[Text]:
    """A line for each finding: no kernel, memory, NaN or inf, what was not covered.

    Of a job of several ranks, the reasons for no kernel are those of this rank: others may still run.
    """
    yield from no_kernel_text(run, environment.rank() if run.info.world_size > 1 else None)
    yield from memory_findings_text(run)
    yield from unwritten_reads_text(run)
    yield from trials_text(run)
    yield from _not_finite(run, _NAN if _right_and_finite(run) else _KINDS)
    yield from uncovered_text([run])


def memory_findings_text(run: store.Run) -> Iterator[Text]:
    """A line for each access to memory that no correct kernel makes.

    Loads inside the storage of an argument, which a kernel may mean, are listed if results differ from eager.
    """
    differs = any(outcome.status == "differs" for outcome in run.records(Outcome))
    for line in out_of_bounds_text(run, padding=differs):
        yield Text.assemble(("out of bounds", "yellow"), f": {line}")
    yield from memory_text(run, but=("out of bounds",))


def unwritten_reads_text(run: store.Run) -> Iterator[Text]:
    """A line for each kernel and argument of which it reads elements that nothing wrote."""
    for line in uninitialised_text(run):
        decides = hints.of_unwritten(run)
        yield line + Text(f": `{decides}` tells whether a result depends on it" if decides else "")


def nan_text(run: store.Run) -> Iterator[Text]:
    """A line for the launch that makes the first NaN, if there is any: an inf may be meant, as in a mask."""
    yield from _not_finite(run, _NAN)


def _not_finite(run: store.Run, kinds: Mapping[Kind, str]) -> Iterator[Text]:
    for sentence in _nonfinite(run, kinds):
        yield Text.assemble(("not finite", "yellow"), f": {sentence}")


def _nonfinite(run: store.Run, kinds: Mapping[Kind, str]) -> Iterator[str]:
    if run.info.digests == "none" or sum(one.total() for one in launch_counts(run).values()) > _EXAMINED:
        return
    nan = f"tracing nan {quote(str(run.path))}"
    for kind, command in kinds.items():
        answer = first_nonfinite(run, kind)
        origin = answer.origin
        if origin is not None and origin.made and not origin.skipped:
            later = answer.later
            more = f", and {later_text(answer)} of finite values by {title(later)}" if later else ""
            yield f"{first_text(origin, kind)} is made by {title(origin.event)}{more}: `{nan}{command}`"
            return
        if origin is not None and origin.partial and origin.verb == "reads":
            yield f"{first_text(origin, kind)} is read by {title(origin.event)}: `{nan}{command}`"
            return
        if origin is not None and origin.fills and origin.carriers:
            may = f"may make {first_text(origin, kind)}, where it fills memory that is not set"
            yield f"{title(origin.event)} {may}: `{nan}{command}`"
            return
        if origin is not None and origin.unwritten:
            yield f"{title(origin.event)} reads {first_text(origin, kind)}: `{nan}{command}`"
            return
        if answer.later is not None:
            of = "an inf" if any(one.accessed("inf") for one in answer.later.reads) else "finite values"
            yield f"{value_text(kind)} is made of {of} by {title(answer.later)}: `{nan}{command}`"
            return
        if answer.unexplained:
            yield f"{unexplained_text(answer)}: `{nan}{command}`"
            return
        if origin is None and not answer.reads and not answer.undecided:
            return
        # else it is the program's own data, as in a mask, or nothing reads it, or torch.amp.GradScaler skips
        # that step: a NaN may still be computed


def _right_and_finite(run: store.Run) -> bool:
    # an inf that a kernel makes is a mask then, as that of an attention
    if any(outcome.status != "passed" for outcome in run.records(Outcome)):
        return False
    values = [one.value for one in run.records(Result) if isinstance(one.value, TensorValue)]
    return bool(values) and not any(one.digest.nan or one.digest.inf for one in values)
