"""LLVM's passes over one kernel, for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.text import Text

from tracing.analyze.passes.pass_table import PassStep
from tracing.model import Compilation, LlvmPass, LlvmPasses
from tracing.report.passes.passes import changes, columns
from tracing.report.text import Line, plural


def death_text(llvm: LlvmPasses) -> Iterator[Line]:
    """The pass in which LLVM died, if it did."""
    last = llvm.passes[-1]
    if llvm.failure and last.after is not None:
        yield Text(f"LLVM's half of the compilation did not end, after its last pass: {llvm.failure}")
    elif llvm.failure:
        number = f"LLVM pass {last.index}, " if last.index is not None else ""
        yield Text.assemble(
            (last.name, "bold red"), f" ({number}{last.stage}) on {last.unit} did not end: {llvm.failure}"
        )


def warning_text(llvm: LlvmPasses) -> Iterator[Line]:
    """A warning if the passes differ from the recorded compilation."""
    if llvm.differs:
        yield Text(
            f"warning: {' and '.join(llvm.differs)} differ from the recorded ones: another libtriton, or "
            "environment variables that LLVM reads"
        )


def llvm_text(
    llvm: LlvmPasses, steps: Sequence[PassStep[LlvmPass]], among: Sequence[PassStep[LlvmPass]]
) -> Iterator[Line]:
    """Some passes of LLVM: a line for each of `among`, and the sum of all.

    Of those without an index only passes that changed the IR have a line.

    steps -- of passes in `llvm`
    """
    last = llvm.passes[-1] if llvm.failure else None
    shown = [one for one in among if one.record.index is not None or one.record.changed or one.record is last]
    rows: list[tuple[str, ...]] = [("index", "stage", "pass", "on", "changed", "before", "after")]
    rows += [_row(one, ended=one.record is not last) for one in shown]
    yield from columns(rows, "rllllrr")
    changed = sum(one.record.changed for one in steps)
    yield Text(
        f"{plural(len(steps), 'pass')}, {changed} changed the IR; index: as opt-bisect-limit counts; "
        "before, after: instructions"
    )
    if hidden := len(among) - len(shown):
        yield Text(f"not shown: {hidden} without an index, of which no change is known")
    if not llvm.failure and not llvm.differs:
        stages = dict.fromkeys(one.stage for one in llvm.passes)
        yield Text(f"{' and '.join(stages)} are equal to the recorded ones, byte for byte")


def _row(step: PassStep[LlvmPass], *, ended: bool) -> tuple[str, ...]:
    one = step.record
    index = "-" if one.index is None else str(one.index)
    before, after = str(sum(step.before.values())), str(sum(step.after.values()))
    if one.after is None:
        return index, one.stage, one.name, one.unit, "not printed" if ended else "no end", before, "-"
    return index, one.stage, one.name, one.unit, "yes" if one.changed else "", before, after


def llvm_pass_heading(compilation: Compilation, step: PassStep[LlvmPass]) -> Iterator[Text]:
    """The pass, its function or module, and its effect on the number of instructions."""
    one = step.record
    number = f"LLVM pass {one.index}" if one.index is not None else "LLVM pass that cannot be left out"
    yield Text.assemble((one.name, "bold"), f"  {number}, {one.stage} of {compilation.kernel_name}")
    yield Text(f"    on        {one.unit}")
    if one.after is not None:
        yield Text(f"    changes   {changes(step.before, step.after, 'instruction')}")


def unprinted_text(heading: Iterable[Text], before: str, *, died: bool) -> Iterator[Line]:
    """A pass without IR after it: its input, as a file that LLVM reads, with comments."""
    why = "LLVM prints no IR after this pass: the diff of the next pass contains its changes"
    reason = "it did not end" if died else why
    for line in [*heading, Text(f"    {reason}; this is its input IR")]:
        yield Text.assemble("; ", line)
    yield from map(Text, before.splitlines())
