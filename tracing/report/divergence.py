"""Where two runs differ, as a person reads it: the place, both digests, the likely cause and who wrote what.

The lines are rich markup. "a" and "b" are the two runs, in the order in which they were named.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.markup import escape

from tracing.analyze.comparison import Comparison
from tracing.analyze.determinism import Table
from tracing.analyze.divergence import Divergence
from tracing.analyze.elements import differing_elements
from tracing.analyze.results import results
from tracing.analyze.ways import configuration_of
from tracing.model import Digest, RunInfo
from tracing.report.text import plural, uncovered_text


def divergence_text(
    found: Divergence, names: tuple[str, str] = ("a", "b"), first: bool = True
) -> Iterator[str]:
    """A divergence, its evidence, and who wrote the differing buffer.

    names -- what the two runs are called
    first -- whether it is the first, or one beside it
    """
    title = "first divergence" if first else "another divergence, independent of those above"
    if found.may_follow:
        title = "another difference, which may follow from those above"
    at = f" on rank {found.rank}" if found.rank else ""
    index = found.launch.index
    moved = f" (#{found.other.index} in {names[1]})" if found.other and found.other.index != index else ""
    yield f"[bold red]✗ {title}{at}[/]: launch #{index} {escape(found.kernel_name)}{moved}"
    yield f"    grid      {found.launch.grid}"
    if found.argument is not None:
        yield f"    {found.kind:<9} {escape(found.argument)} (argument {found.position})"
    values = _values(found)
    for name, told, value in zip(names, (found.a, found.b), values, strict=True):
        yield f"    {name:<9} {escape(told)}{value}"
    if found.kind == "launch" and (alike := _alike(found)):
        yield f"    alike     {escape(alike)}"
    if where := _elements(found):
        yield f"    elements  {where}"
    for line in _cause(found, names):
        yield f"    → {escape(line)}"


def _alike(found: Divergence) -> str:
    # what is equal of two configurations, so that both can be told in full
    if found.other is None or found.other.kernel_name != found.kernel_name:
        return ""
    one, other = (configuration_of(launch.kernel) for launch in (found.launch, found.other))
    return ", ".join(f"{name}={value}" for name, value in one.items() if other.get(name) == value)


def _digests(found: Divergence) -> list[Digest | None]:
    if found.position is None or found.other is None:
        return [None, None]
    args = [launch.args[found.position] for launch in (found.launch, found.other)]
    return [arg.before if found.kind == "input" else arg.after for arg in args]


def _values(found: Divergence) -> list[str]:
    return [value_text(one) if one else "" for one in _digests(found)]


def value_text(digest: Digest) -> str:
    """`  |x| sums to 45123.89, nan=1`; nothing where a dtype has no magnitude."""
    counts = {"nan": digest.nan, "inf": digest.inf, "-0": digest.negative_zero}
    told = [f"|x| sums to {digest.l1:.9g}"] if digest.l1 is not None else []
    told += [f"{name}={count}" for name, count in counts.items() if count]
    return f"  {', '.join(told)}" if told else ""


def _elements(found: Divergence) -> str:
    one, other = _digests(found)
    tensor = found.launch.args[found.position].tensor if found.position is not None else None
    if one is None or other is None or tensor is None:
        return ""
    count = 1
    for size in tensor.shape:
        count *= size
    before = _before_output(found)
    ranges = [f"{first}:{behind}" for first, behind in differing_elements(tensor, one, other, before)]
    where = ", where the memory held equal bits before" if before else ""
    return f"in {', '.join(ranges)} of {count}{where}" if ranges else ""


def _before_output(found: Divergence) -> tuple[Digest, Digest] | None:
    # what differed before a launch that is to blame all the same
    if found.kind != "output" or found.may_be_unwritten or found.position is None or found.other is None:
        return None
    one, other = (launch.args[found.position].before for launch in (found.launch, found.other))
    return (one, other) if one and other and one.bits != other.bits else None


def _cause(found: Divergence, names: tuple[str, str]) -> Iterator[str]:
    if found.kind in ("missing", "added", "end"):
        has = names[1] if found.only_in_b else names[0]
        where = "at its end" if found.kind == "end" else "here"
        yield f"{has} alone has {plural(found.count, 'launch')} {where}"
    elif found.kind == "launch":
        yield "the launch itself differs"
        if found.outputs:
            yield f"and its results differ: {', '.join(found.outputs)}"
    elif found.untouched:
        yield "all that it read is equal; the memory differed before, and the launch left it as it was there"
    elif found.may_be_unwritten:
        yield "all that it read is equal; the memory held other bits before: some may be unwritten"
    elif found.kind == "output":
        yield "all that it read is equal: this kernel gave two results for the same inputs"
    elif found.operator is not None:
        alone = (
            f", in {names['ab'.index(found.operator_in)]} alone" if found.operator_in in ("a", "b") else ""
        )
        yield f"likely cause: {found.operator} wrote it last, outside of Triton{alone}"
    else:
        yield from _producer(found, names)


def _producer(found: Divergence, names: tuple[str, str]) -> Iterator[str]:
    producer = found.producer
    if producer is None:
        yield "no launch wrote it: it comes from the case's inputs or from outside of Triton"
        return
    last = f"launch #{producer.index} {producer.kernel_name}"
    yield f"likely cause: {last} wrote it last, as {producer.argument}"
    yield f"its outputs: {', '.join(producer.outputs)}"
    if producer.unwritten:
        yield "the memory held other bits before that, so part of it may be unwritten, and is read here;"
        yield f"or {producer.kernel_name} is not deterministic"
    elif producer.only_in_a:
        yield f"{names[1]} does not have that launch"
    elif producer.changed_in and producer.other_stream:
        yield "its results were equal, but it ran on another stream: does this launch wait for that one?"
    elif producer.changed_in:
        runs = " and ".join(names["ab".index(run)] for run in producer.changed_in)
        yield f"but its results were equal: something outside of Triton changed them afterwards, in {runs}"
    else:
        yield "its results were equal where they were digested; this reads them through another view"


def summary_text(comparison: Comparison, advice: str = "") -> Iterator[str]:
    """What was compared, what follows from what, and what was left out.

    advice -- the command that tells unwritten memory from kernels that are not deterministic
    """
    repeats = sum(comparison.repeated.values()) - comparison.reported
    if comparison.reported:
        told = f"{comparison.consequences} differ as a consequence, {repeats} repeat what is reported"
        yield f"{plural(comparison.pairs, 'launch')} compared: {told}"
    if first := comparison.first_unwritten:
        results = plural(comparison.unwritten, "result")
        yield f"[yellow]not told apart[/]: {results} in memory that held other bits before, from launch"
        unseen = "" if comparison.reported else "; no reader of them shows it"
        yield f"  #{first.index} on: unwritten in part, or not deterministic{unseen}"
        if advice:
            yield f"  this tells them apart: `{escape(advice)}`"
    if comparison.undigested:
        without = plural(comparison.undigested, "launch")
        yield f"[yellow]not compared[/]: the contents of {without} without digests"
    for note in comparison.notes:
        yield f"[yellow]not compared[/]: {escape(note)}"


def equality_text(comparison: Comparison, differing: Sequence[str]) -> Iterator[str]:
    """What is equal of two runs without a launch that differs, and what of them was not recorded.

    differing -- the results that differ all the same
    """
    a, b = comparison.a, comparison.b
    without = [run.name for run in (a, b) if run.info.digests == "none"]
    told = [f"no digests in {escape(', '.join(without))}"] if without else []
    if comparison.pairs and not comparison.undigested:
        told.append("every digest")
    if alike := len(results(a).keys() & results(b).keys()) - len(differing):
        told.append(plural(alike, "result"))
    equal = "equal" if comparison.complete else "equal as far as they go"
    yield f"{equal}: {', '.join([plural(comparison.pairs, 'launch'), *told])}"
    if differing:
        yield "the results differ all the same: by operators, by the host, or by what was not covered"
    yield from uncovered_text((a, b))


def table_text(table: Table, width: int = 110) -> Iterator[str]:
    """Kernel × run: what differed first in each kernel, `·`: nothing; results; what was perturbed, and how.

    width -- of a line; the runs that do not fit stand below
    """
    sections = {"kernels": table.kernels, "results": table.results, "perturbed": table.perturbed}
    rows = [row for section in sections.values() for row in section.items()]
    label = max((len(name) for name, _ in rows), default=0)
    cell = max((len(told) for _, runs in rows for told in runs.values()), default=0)
    fitting = max(8, (width - label) // (cell + 2))  # names of fused kernels take a line by themselves
    for start in range(0, len(table.runs) if rows else 0, fitting):
        runs = table.runs[start : start + fitting]
        yield _row("run", label, map(str, runs), cell)
        for title, section in sections.items():
            if section:
                yield f"{title}:"
            for name, told in section.items():
                yield escape(_row(name, label, (told.get(run, "·") for run in runs), cell))
    for what, why in table.unperturbed.items():
        yield f"not perturbed: {what} ({why})"


def _row(name: str, label: int, told: Iterable[str], cell: int) -> str:
    return f"{name:<{label}}" + "".join(f"  {one:>{cell}}" for one in told)


def incomparable(a: RunInfo, b: RunInfo) -> str:
    """Why two runs are not of the same program, "" if they are: of other cases, or of other versions."""
    one, other = a.environment, b.environment
    facts = {
        "cases": (a.case, b.case),
        "versions of torch": (one.torch, other.torch),
        "versions of Triton": (one.triton, other.triton),
        "targets": (one.target, other.target),
    }
    return "; ".join(f"{name}: {x} and {y}" for name, (x, y) in facts.items() if x != y)
