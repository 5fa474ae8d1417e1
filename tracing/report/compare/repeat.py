"""The runs of `tracing repeat`, compared with the first, as text and JSON."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.text import Text

from tracing.analyze.runs.determinism import DifferenceTable, Repeat, rate
from tracing.analyze.runs.results import ResultDiffers
from tracing.report.text import plural

WARNING = ("⚠", "yellow")
_KERNELS = "kernels, and what of a launch first differs (·: nothing)"
_RESULTS = "results (·: no difference)"
_CHANGES = "changed by --perturb (·: not in this run)"
_PERTURBED = {  # by `Perturbed.what`
    "memory": "bytes of undefined values",
    "winners": "autotuned configuration",
    "hash seed": "seed of string hashes",
    "programs": "order of programs",
    "late stream": "late start of a stream",
    "delays": "delayed launches and operators",
}


def warnings_text(results: Iterable[ResultDiffers], failure: str) -> Iterator[Text]:
    """The results of a run that differ from those of the first, and its failure, a line each."""
    lines = [f"{one.title} differs: {one.a} | {one.b}" for one in results]
    for line in [*lines, f"failed: {failure}"] if failure else lines:
        yield Text.assemble("  ", WARNING, f"  {line}")


def equal_text(repeat: Repeat, configured: int) -> Iterator[Text]:
    """A run without a divergence: its equal launches, and possible causes of different results.

    configured -- number of kernels that were launched in another configuration, which --perturb chose
    """
    if repeat.pairs:
        equal = f" {plural(repeat.pairs, 'launch')}: all read and wrote the same bits"
        yield Text.assemble("  ", ("✓", "green"), equal)
    else:
        yield Text("  no launch to compare")
    if configured:
        yield Text(f"    {plural(configured, 'kernel')} in another configuration, which --perturb chose")
    if repeat.results:
        yield Text("  → an operator, the host, or something that was not covered caused the difference")
        for one in repeat.perturbed:
            if one.what == "memory":
                yield Text(f"  → or unwritten memory, which held {one.how} in this run")
            elif one.what == "hash seed" and one.how:
                yield Text("  → or the order of a set: Python's string hashes have another seed in this run")


def unlike_eager_text(unlike: Mapping[int, str], count: int, *, differing: bool) -> Text:
    """The runs whose results differ from eager.

    unlike    -- by run: its difference from eager
    count     -- of all runs
    differing -- runs differ from one another, too
    """
    which = "every run differs" if len(unlike) == count else f"{len(unlike)} of {count} runs differ"
    line = f"{which} from eager" if differing else f"the runs agree with one another, and {which} from eager"
    return Text.assemble(WARNING, f"  {line}: {next(iter(unlike.values()))}")


def deterministic_text(still: bool, least: float, count: int) -> str:
    """The effect of Inductor's deterministic settings on runs that differ without them.

    still -- runs differ under these settings, too
    least -- lower bound of the rate at which runs differ without them
    count -- of runs under these settings
    """
    if still:
        return "runs differ under the deterministic settings, too"
    by_chance = (1 - least) ** count
    return (
        f"the runs agree under the deterministic settings; {plural(count, 'run')} would be equal by chance "
        f"with a probability of at most {by_chance:.2g}"
    )


def hashes_text(repeats: Sequence[Repeat], other: Collection[int], first: int) -> str:
    """The sentence that runs differ with the seed of Python's string hashes; "" unless it divides the runs.

    Several seeds may give a set of few strings the same order. So where two runs with another seed differ,
    others with another seed may be equal.

    other -- the runs whose seed is not that of the first run
    first -- the number of the first run
    """
    differing = [one.index for one in repeats if one.differs]
    same = [one.index for one in repeats if one.index not in other]
    unchanged = [one.index for one in repeats if one.index in other and not one.differs]
    if not differing or not same or not set(differing) <= set(other) or (unchanged and len(differing) < 2):
        return ""
    which, others, rest = (", ".join(map(str, runs)) for runs in (differing, same, unchanged))
    too = f"; also equal, with another seed: {rest}" if rest else ""
    return (
        f"each run that differs ({which}) has another seed of Python's string hashes than run {first}; "
        f"each run with the seed of run {first} ({others}) is equal to it{too}"
    )


def table_text(table: DifferenceTable, width: int = 110) -> Iterator[Text]:
    """Kernel × run: the first difference in each kernel, `·`: none; then results and perturbations.

    width -- of a line; runs that do not fit follow in a second table
    """
    perturbed = {_PERTURBED.get(what, what): words for what, words in table.perturbed.items()}
    sections = {_KERNELS: table.kernels, _RESULTS: table.results, _CHANGES: perturbed}
    rows = [row for section in sections.values() for row in section.items()]
    label = max((len(name) for name, _ in rows), default=0)
    cell = max((len(word) for _, runs in rows for word in runs.values()), default=0)
    fitting = max(8, (width - label) // (cell + 2))  # names of fused kernels take a line by themselves
    for start in range(0, len(table.runs) if rows else 0, fitting):
        runs = table.runs[start : start + fitting]
        yield _row("run", label, map(str, runs), cell)
        for title, section in sections.items():
            if section:
                yield Text(f"{title}:")
            for name, words in section.items():
                yield _row(name, label, (words.get(run, "·") for run in runs), cell)
    for what, why in table.unperturbed.items():
        yield Text(f"not perturbed: {_PERTURBED.get(what, what)} ({why})")


def _row(name: str, label: int, words: Iterable[str], cell: int) -> Text:
    return Text(f"{name:<{label}}" + "".join(f"  {one:>{cell}}" for one in words))


def rate_json(repeats: Sequence[Repeat]) -> dict[str, Any] | None:
    """The rate of runs that differ from the first, with a 95% confidence interval; None: there are none."""
    if not repeats:
        return None
    measured = rate(repeats)
    low, high = measured.interval()
    return {"differing": measured.differing, "runs": measured.runs, "low": low, "high": high}
