"""The passes of two compilations side by side, for a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from rich.text import Text

from tracing.analyze.line_matching import unified_diff
from tracing.analyze.passes.compared_compilations import ComparedCompilations
from tracing.analyze.passes.compilation_pairs import CompilationPairs, differing, partner_of
from tracing.analyze.passes.compilations import DIGITS, label
from tracing.analyze.passes.operations import counts
from tracing.analyze.passes.pass_pairs import PassPair, PassPairs
from tracing.analyze.passes.renaming import renamed
from tracing.model import Blob, Compilation, PassRecord
from tracing.report.passes.passes import DIFF_STYLES, columns
from tracing.report.text import Line, plural

SHOWN = 4  # maximum of operations in a row of the table
ATTRIBUTES = 8  # maximum of attributes that are printed
NAMES = 4  # maximum of kernels in a line
ONE_SIDED = 8  # maximum of compilations of each run that are printed


def pair_heading(a: Compilation, b: Compilation, versions: tuple[str, str]) -> Iterator[Line]:
    """The two compilations, and their compilers and options."""
    for side, one, version in zip("ab", (a, b), versions, strict=True):
        yield Text.assemble(
            f"{side}  ", (one.kernel_name, "bold"), f"  {one.hash[:DIGITS]}  {one.target}  Triton {version}"
        )
    yield from _changed_settings(a, b)


def _changed_settings(a: Compilation, b: Compilation) -> Iterator[Line]:
    yield from (Text(f"    {one}") for one in settings(a, b))


def settings(a: Compilation, b: Compilation) -> list[str]:
    """The constants and options that differ, with both values: `constant BLOCK: 256 | 512`."""
    changed = {"constant": differing(a.constants, b.constants), "option": differing(a.options, b.options)}
    return [
        f"{what} {name}: {_or_none(in_a)} | {_or_none(in_b)}"
        for what, values in changed.items()
        for name, (in_a, in_b) in values.items()
    ]


def one_sided_text(
    matched: CompilationPairs, of_a: Sequence[Compilation], of_b: Sequence[Compilation]
) -> Iterator[Line]:
    """The compilations that only one run has, and how they differ from the most similar one of the other.

    of_a, of_b -- all compilations of each run
    """
    for side, only, own, others in (("a", matched.only_a, of_a, of_b), ("b", matched.only_b, of_b, of_a)):
        for one in only[:ONE_SIDED]:
            named = f"{label(own, one)}  {one.hash[:DIGITS]}  {one.target}"
            yield Text.assemble((f"only {side} compiled {named}", "bold"))
            if (nearest := partner_of(one, others)) is not None:
                pair = (one, nearest) if side == "a" else (nearest, one)
                yield Text(f"    most similar in {'ab'[side == 'a']}: {label(others, nearest)}")
                yield from _changed_settings(*pair)
        if len(only) > ONE_SIDED:
            yield Text(f"only {side} compiled {plural(len(only) - ONE_SIDED, 'kernel')} more")


def _or_none(value: str | None) -> str:
    return "none" if value is None else value


def pairs_text(pairs: PassPairs, rows: Sequence[PassPair]) -> Iterator[Line]:
    """Some passes of both, a line each."""
    table = [("a", "b", "stage", "pass", "changed", "IR of a and b", "b has")]
    table += [
        (_index(one.a), _index(one.b), one.stage, one.name, _changed(one), _state(one), _more(pairs, one))
        for one in rows
    ]
    yield from columns(table, "rrlllll")


def _index(one: PassRecord | None) -> str:
    return "" if one is None else str(one.index)


def _changed(pair: PassPair) -> str:
    # a pass that only one compilation has is printed in the column of that compilation
    sides = [
        side
        for side, one in zip("ab", (pair.a, pair.b), strict=True)
        if one is not None and one.after is not None and one.changed
    ]
    return " ".join(sides)


def _state(pair: PassPair) -> str:
    return "a pass did not end" if pair.state == "unknown" else pair.state


def _more(pairs: PassPairs, pair: PassPair) -> str:
    return more(pairs, pair) if pair.state == "diverges" else ""


def more(pairs: PassPairs, pair: PassPair) -> str:
    """The operations of which b has more or fewer than a after a pass: `+1 ttng.fence_async_shared`."""
    difference = Counter(counts(pairs.plain_b(pair.texts[1]).text))
    difference.subtract(counts(pairs.plain_a(pair.texts[0]).text))
    changes = [f"{count:+} {name}" for name, count in sorted(difference.items()) if count]
    rest = [f"and {len(changes) - SHOWN} more"] if len(changes) > SHOWN else []
    return (
        ", ".join([*changes[:SHOWN], *rest])
        or "the same operations, with other operands, types or attributes"
    )


def pass_text(pair: PassPair) -> str:
    """A pass in both runs: `tritongpu-pipeline (26 | 28)`."""
    return f"{pair.name} ({_index(pair.a) or 'none'} | {_index(pair.b) or 'none'})"


def verdict_text(compared: ComparedCompilations) -> Iterator[Line]:
    """The passes after which the IR differs, becomes equal, and differs to the end."""
    pairs = compared.passes
    if not pairs.entry_equal:
        changed = settings(compared.a, compared.b)
        yield Text(_entry_text(pairs, changed), style="" if pairs.first_divergence() else "bold")
    first, last, moved = pairs.first_divergence(), pairs.last_divergence(), pairs.reordered()
    if moved is not None:
        yield Text(f"operations without effects are in another order after {pass_text(moved)}")
    if first is None:
        if pairs.entry_equal:
            yield Text(_equal_text(compared), style="bold")
        yield from not_repeated_text(compared)
        return
    yield Text(f"the IR first differs after {pass_text(first)}: b has {more(pairs, first)}", style="bold")
    yield from _before(pairs, first)
    later = pairs.pairs[pairs.pairs.index(first) :]
    rejoined = next((one for one in later if one.state == "reconverged"), None)
    if rejoined is not None:
        yield Text(f"it becomes equal after {pass_text(rejoined)}")
    if last is not None and last is not first:
        yield Text(f"it differs to the end from {pass_text(last)}: b has {more(pairs, last)}", style="bold")
        yield from _before(pairs, last)
    yield from not_repeated_text(compared)


def _equal_text(compared: ComparedCompilations) -> str:
    known = not any(compared.not_repeated)
    equal = "the IR is equal after every pass, but for locations and the names of values"
    if not compared.unexplained:
        return equal if known else "no artefact of the two differs"
    if not known:
        return f"{_differing(compared)}; which pass makes the difference is not known"
    if next(compared.passes.attributes(), None) is not None:
        return f"{_differing(compared)}: after the passes only attributes, as listed below, differ"
    of_mlir = compared.unexplained[0] in ("ttir", "ttgir")
    cause = "another text replaced what the passes made" if of_mlir else "LLVM's passes make the difference"
    return f"{_differing(compared)}, although {equal}: {cause}"


def _differing(compared: ComparedCompilations) -> str:
    verb = "differs" if len(compared.unexplained) == 1 else "differ"
    return f"{', '.join(compared.unexplained)} {verb}"


def not_repeated_text(compared: ComparedCompilations) -> Iterator[Line]:
    """Why the IR between the passes of a compilation is not the recorded one."""
    for side, differs in zip("ab", compared.not_repeated, strict=True):
        if differs:
            yield Text(
                f"the IR between the passes of {side} comes from a repeated compilation, which is not the "
                f"recorded one: {differs}; `tracing run --ir during` records the IR as the passes run"
            )


def _entry_text(pairs: PassPairs, changed: Sequence[str]) -> str:
    # a setting that differs need not be the cause: the sources may differ, too
    cause = "the front ends, the sources or the types of arguments do"
    if changed:
        more = f" and {plural(len(changed) - 1, 'setting')} more" if len(changed) > 1 else ""
        cause = f"so does {changed[0]}{more}"
    rejoined = next((one for one in pairs.pairs if one.state == "reconverged"), None)
    until = f"; it becomes equal after {pass_text(rejoined)}" if rejoined else ""
    until = "; it differs to the end" if pairs.differs_throughout else until
    return f"the IR that enters the first pass differs: {cause}{until}"


def _before(pairs: PassPairs, pair: PassPair) -> Iterator[Line]:
    # the input of the pass: only if it was equal is the pass to blame
    if not pairs.same(*pair.entered):
        yield Text(
            "  its input differs already: because of code between the passes, or of a pass that only "
            "one compilation has"
        )


def attributes_text(pairs: PassPairs) -> Iterator[Line]:
    """The attributes of the module and of functions that differ after some pass."""
    attributes = list(pairs.attributes())
    for one in attributes[:ATTRIBUTES]:
        values = f"{_or_none(one.a)} | {_or_none(one.b)}"
        yield Text(f"attribute {one.name}: {values}, since {pass_text(one.since)}")
    if len(attributes) > ATTRIBUTES:
        yield Text(f"and {plural(len(attributes) - ATTRIBUTES, 'attribute')} more")


def artefacts_text(equal: Mapping[str, bool]) -> Iterator[Line]:
    """The stages with equal artefacts in both."""
    listed = ", ".join(f"{stage} {'equal' if same else 'differs'}" for stage, same in equal.items())
    if listed:
        yield Text(f"artefacts, but for locations: {listed}")


def entry_diff_text(pairs: PassPairs) -> Iterator[Line]:
    """The IR of both that enters the first pass, as a diff; values of b are called as in a."""
    yield from _diff_text(
        pairs, pairs.pairs[0].entered, ("a: before the first pass", "b: before the first pass")
    )


def pair_diff_text(pairs: PassPairs, pair: PassPair) -> Iterator[Line]:
    """The IR of both after a pass, as a diff; values of b are called as in a."""
    titles = (
        f"a: after {_index(pair.a) or '-'} {pair.name}",
        f"b: after {_index(pair.b) or '-'} {pair.name}",
    )
    lines = list(_diff_text(pairs, pair.texts, titles))
    yield from lines
    if not lines:
        yield Text(f"after {pass_text(pair)} the IR is equal, but for locations and the names of values")


def _diff_text(pairs: PassPairs, blobs: tuple[Blob, Blob], titles: tuple[str, str]) -> Iterator[Line]:
    # nothing if the texts are equal
    a, b = pairs.plain_a(blobs[0]).text, pairs.plain_b(blobs[1]).text
    b = renamed(a, b)
    if a == b or pairs.same(*blobs):
        return
    for line in unified_diff(a.splitlines(), b.splitlines(), titles):
        yield Text(line, style=DIFF_STYLES.get(line[:1], ""))


def kernels_table(rows: Sequence[tuple[str, ComparedCompilations]]) -> Iterator[Line]:
    """The constants and options that differ; then for each kernel the pass after which its IR differs."""
    kernels: dict[str, list[str]] = {}
    for name, compared in rows:
        for one in settings(compared.a, compared.b):
            kernels.setdefault(one, []).append(name)
    for one, names in kernels.items():
        more = f" and {plural(len(names) - NAMES, 'kernel')} more" if len(names) > NAMES else ""
        yield Text(f"{one}, of {', '.join(names[:NAMES])}{more}")
    table = [("kernel", "a", "b", "the IR first differs", "differs to the end from")]
    for name, compared in rows:
        side_a, side_b = (f"{one.hash[:DIGITS]} {one.target}" for one in (compared.a, compared.b))
        table.append((name, side_a, side_b, _first_text(compared), _last_text(compared)))
    yield from columns(table, "lllll")


def _first_text(compared: ComparedCompilations) -> str:
    if not compared.passes.entry_equal:
        return "before the first pass"
    if compared.unexplained:
        return f"{_unexplained_text(compared)}; {_differing(compared)}"
    first = compared.passes.first_divergence()
    return f"after {pass_text(first)}" if first else "equal"


def _unexplained_text(compared: ComparedCompilations) -> str:
    if any(compared.not_repeated):
        return "not known"
    if next(compared.passes.attributes(), None) is not None:
        return "in attributes only"
    return "after no pass of MLIR"


def _last_text(compared: ComparedCompilations) -> str:
    pairs = compared.passes
    if pairs.ends_equal:
        return "equal at the end" if compared.passes_differ else ""
    last = pairs.last_divergence()
    return pass_text(last) if last else "the first pass"
