"""A comparison as text, except for its divergences: the compared launches, and the equal parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from tracing.analyze.compare.divergence_kinds import Divergence, argument_of
from tracing.analyze.compare.first_divergence import Comparison
from tracing.analyze.compare.target_code import TargetCode
from tracing.analyze.compare.verdict import ResultCause
from tracing.analyze.runs.results import ResultDiffers
from tracing.report.compare.cause import cause_text
from tracing.report.text import plural

TARGET_CODES = 4  # maximum of kernels in a line


def summary_text(
    comparison: Comparison, advice: str = "", limit: int | None = None, *, counted: bool = True
) -> Iterator[Text]:
    """The number of compared launches and of consequences, and the parts that were not compared.

    advice  -- the command that distinguishes unwritten memory from nondeterministic kernels
    limit   -- maximum of printed parts that were not compared; None: all
    counted -- False: without the number of further differences, as no difference is printed
    """
    notes = comparison.notes
    repeats = sum(comparison.repeated.values()) - notes.reported
    if counted and (notes.reported or notes.started):
        counts = {"follow from those above": notes.consequences, "repeat one of them": repeats}
        further = ", ".join(_counted(count, what) for what, count in counts.items() if count)
        launches = f"{plural(notes.pairs, 'launch')} compared"
        yield Text(f"{launches}; further differences: {further}" if further else launches)
    if notes.started and notes.first_consequence is not None:
        yield Text(f"first consequence: {_position_text(notes.first_consequence)}")
    if notes.unwritten:
        results = plural(notes.unwritten, "result")
        yield _warning("cannot be decided", f"{results} in memory that held other bits before the launch:")
        yield Text("  either unwritten in part, or not deterministic; no recorded reader shows which")
        if advice:
            yield Text(f"  decides: `{advice}`")
    if notes.uninitialised and not notes.reported:
        count = plural(notes.uninitialised, "launch")
        yield _warning(
            "uninitialised memory", f"{count} computed other values from it, and no result differs"
        )
    if unwritten := [one for one in notes.unwritten_memory if one.unwritten]:
        more = f"; likewise {plural(len(unwritten) - 1, 'argument')} more" if len(unwritten) > 1 else ""
        yield _warning("unwritten", f"at most {unwritten[0]} differ, which nothing wrote{more}")
    if notes.swapped:
        yield Text(
            f"the order of {plural(notes.swapped, 'pair')} of independent launches differs, without effect"
        )
    for kernel, argument in sorted(notes.addresses):
        yield Text(f"not comparable: {argument} of {kernel} holds addresses")
    if notes.undigested:
        yield _warning(
            "not compared", f"the contents of {plural(notes.undigested, 'launch')} without digests"
        )
    if notes.selected:
        yield Text(f"recorded in both runs: {notes.selected}")
    for note in notes.notes[:limit]:
        yield _warning("not compared", note)
    for what in notes.left_out:
        yield _warning("not compared", what)
    if limit is not None and len(notes.notes) > limit:
        rest = len(notes.notes) - limit
        yield _warning("not compared", f"{rest} more: `--limit {len(notes.notes)}` shows them")


def target_code_text(codes: Sequence[TargetCode]) -> Iterator[Text]:
    """The kernels whose code differs between the targets of two runs."""
    unlike = [f"{one.kernel} from {one.stage} on" for one in codes if one.stage is not None]
    if unlike:
        more = f" and {plural(len(unlike) - TARGET_CODES, 'kernel')} more" if unlike[TARGET_CODES:] else ""
        yield _warning("code differs between the targets", f"{', '.join(unlike[:TARGET_CODES])}{more}")
    for one in codes:
        if one.lost:
            yield _warning("not compared", f"the code of {one.kernel}: {one.lost}")


def _counted(count: int, what: str) -> str:
    verb, _, rest = what.partition(" ")
    return f"{count} {verb}{'s' * (count == 1)} {rest}"


def _position_text(divergence: Divergence) -> str:
    launch = divergence.pair.launch
    return f"launch #{launch.index} {launch.kernel_name}, {argument_of(divergence)}"


def _warning(what: str, text: str) -> Text:
    return Text.assemble((what, "yellow"), f": {text}")


def why_text(why: ResultCause, decides: str | None) -> Iterator[Text]:
    """The cause of different results although no launch differs.

    decides -- the command that decides an uncertain cause
    """
    if why.cause is None:
        yield Text(
            "no launch differs, yet results do: because of operators, the host, or what was not covered"
        )
    else:
        for line in cause_text(why.cause, ("a", "b")):
            yield Text(f"    → {why.result.title}: {line}")
    if decides:
        yield Text(f"    decides   {decides}")


def equality_text(comparison: Comparison, alike: int, differing: Sequence[ResultDiffers]) -> Iterator[Text]:
    """The equal parts of two runs without a different launch, and missing digests.

    alike     -- number of equal results
    differing -- the results that differ
    """
    notes = comparison.notes
    without = [run.name for run in (notes.a, notes.b) if run.info.digests == "none"]
    parts = [f"no digests in {', '.join(without)}"] if without else []
    if notes.pairs and not notes.undigested:
        every = "every digest of what they read and wrote" if notes.unwritten_memory else "every digest"
        parts.append(every)
    if alike:
        parts.append(plural(alike, "result"))
    if not (notes.pairs or alike):
        yield Text(f"nothing {'else ' if differing else ''}was compared: no launch and no result")
        return
    whole = notes.complete and not notes.undigested and not notes.left_out
    rest = "the rest is equal" if differing else "equal"
    equal = rest if whole else f"{rest} as far as both were recorded"
    yield Text(f"{equal}: {', '.join([plural(notes.pairs, 'launch'), *parts])}")
