"""One divergence as text: its launch, both sides, the accused, and the evidence.

"a" and "b" are the two runs, in the order of the command line.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import singledispatch

from rich.text import Text

from tracing.analyze.compare.divergence_kinds import (
    Divergence,
    InputDiffers,
    LaunchDiffers,
    OneSided,
    OrderDiffers,
    OutputDiffers,
    ReadOutside,
    digests_of,
)
from tracing.analyze.compare.signature_pair import configuration_of
from tracing.analyze.runs.call_sites import LaunchOrigin
from tracing.analyze.runs.digest_ranges import differing_elements
from tracing.model import Digest
from tracing.report.compare.cause import Names, cause_text
from tracing.report.text import plural, some_lines, step_text

_VALUES = 6  # elements that are shown
_WIDTH = 100  # characters of values on one line


def divergence_text(
    divergence: Divergence,
    names: Names = ("a", "b"),
    *,
    first: bool = True,
    site: LaunchOrigin | None = None,
    values: list[tuple[int, object, object]] | None = None,
) -> Iterator[Text]:
    """A divergence, line by line.

    names  -- names of the two runs
    first  -- whether it is the first one
    site   -- the call site of its launch
    values -- index and both values of elements that differ
    """
    yield _title(divergence, names, first)
    if site is not None:
        yield _field("at", str(site))
        yield from (_field("computes", line) for line in some_lines(site.computes))
    yield from _fields(divergence, names)
    if values:
        yield _field("values", _values_text(values))
    for line in _explained(divergence, names):
        yield Text(f"    → {line}")


def _values_text(values: list[tuple[int, object, object]]) -> str:
    shown = [f"[{index}]: {a} | {b}" for index, a, b in values[:_VALUES]]
    while len(", ".join(shown)) > _WIDTH and len(shown) > 1:
        shown.pop()
    rest = f", and {len(values) - len(shown)} more" if len(values) > len(shown) else ""
    return ", ".join(shown) + rest


def _title(divergence: Divergence, names: Names, first: bool) -> Text:
    launch, pair = divergence.pair.launch, divergence.pair
    at = f" on rank {pair.rank}" if pair.rank else ""
    moved = ""
    if pair.a is not None and pair.b is not None and pair.a.index != pair.b.index:
        moved = f" (#{pair.b.index} in {names[1]})"
    title = "first divergence" if first else "another divergence"
    if not (first or isinstance(divergence, LaunchDiffers)):  # its settings may follow
        title += ", which those above do not explain"
    step = "".join(f" ({one})" for one in step_text(launch))
    named = f": launch #{launch.index}{step} {launch.kernel_name}{moved}"
    return Text.assemble((f"✗ {title}{at}", "bold red"), named)


def _field(name: str, value: str) -> Text:
    return Text(f"    {name:<9} {value}")


# ---- both sides


def _fields(divergence: Divergence, names: Names) -> Iterator[Text]:
    yield _field("grid", str(divergence.pair.launch.grid))
    if isinstance(divergence, LaunchDiffers):
        yield from _changed(divergence, names)
    elif isinstance(divergence, (InputDiffers, OutputDiffers)):
        kind = "input" if isinstance(divergence, InputDiffers) else "output"
        name = divergence.pair.launch.args[divergence.position].name
        yield _field(kind, f"{name} (argument {divergence.position})")
        for run, digest in zip(names, digests_of(divergence), strict=True):
            yield _field(run, f"{digest.bits}{value_text(digest)}" if digest else "not digested")
        if where := elements_text(divergence):
            yield _field("elements", where)


def _changed(divergence: LaunchDiffers, names: Names) -> Iterator[Text]:
    for run, side in zip(names, ("a", "b"), strict=True):
        if divergence.changes:
            yield _field(run, ", ".join(f"{one.name}={getattr(one, side)}" for one in divergence.changes))
    launches = divergence.pair.a, divergence.pair.b
    if launches[0] and launches[1] and launches[0].kernel_name == launches[1].kernel_name:
        one, other = (configuration_of(launch.kernel) for launch in launches if launch)
        if alike := ", ".join(f"{name}={value}" for name, value in one.items() if other.get(name) == value):
            yield _field("equal", alike)
    if divergence.code is not None:
        yield _field(divergence.code.stage, "differs")
        yield from (Text(f"              {line}") for line in divergence.code.diff)


def value_text(digest: Digest) -> str:
    """`  L1 norm 45123.89, nan=1`; empty for a dtype without magnitude."""
    counts = {"nan": digest.nan, "inf": digest.inf, "-0": digest.negative_zero}
    parts = [f"L1 norm {digest.l1:.9g}"] if digest.l1 is not None else []
    parts += [f"{name}={count}" for name, count in counts.items() if count]
    return f"  {', '.join(parts)}" if parts else ""


def elements_text(divergence: InputDiffers | OutputDiffers) -> str:
    """`somewhere in 0:16, 32:48 of 256`: in each of these ranges at least one element differs."""
    one, other = digests_of(divergence)
    tensor = divergence.pair.launch.args[divergence.position].tensor
    if one is None or other is None or tensor is None:
        return ""
    count = 1
    for size in tensor.shape:
        count *= size
    before = _before_output(divergence)
    ranges = [f"{start}:{stop}" for start, stop in differing_elements(tensor, one, other, before)]
    where = ", of those that were equal before the launch" if before else ""
    return f"somewhere in {', '.join(ranges)} of {count}{where}" if ranges else ""


def _before_output(divergence: InputDiffers | OutputDiffers) -> tuple[Digest, Digest] | None:
    # the digests before the launch, if they differ although the launch is accused
    if (
        isinstance(divergence, InputDiffers)
        or divergence.doubt
        or divergence.pair.a is None
        or divergence.pair.b is None
    ):
        return None
    one, other = (
        launch.args[divergence.position].before for launch in (divergence.pair.a, divergence.pair.b)
    )
    return (one, other) if one and other and one.bits != other.bits else None


# ---- the cause


@singledispatch
def _explained(divergence: Divergence, names: Names) -> Iterator[str]:
    raise AssertionError(f"no words for {divergence}")


@_explained.register
def _(divergence: OneSided, names: Names) -> Iterator[str]:
    has = names[1] if divergence.pair.a is None else names[0]
    where = "at the end of its run" if divergence.last else "here"
    yield f"only {has} makes {plural(divergence.count, 'launch')} {where}"


@_explained.register
def _(divergence: LaunchDiffers, names: Names) -> Iterator[str]:
    changed = ", ".join(change.name for change in divergence.changes)
    if divergence.code is not None:
        although = "" if divergence.code.stage == "source" else ", although its source is equal"
        yield f"the kernel's {divergence.code.stage} differs{although}"
        if changed:
            yield f"the program launches this kernel differently, too: {changed}"
    elif divergence.tuned:
        only = "" if divergence.inputs else "; nothing else differs"
        yield f"an autotuner chose another configuration{only}"
    elif divergence.other_kernel:
        yield "the program launches another kernel here"
    else:
        yield f"the program launches this kernel differently: {changed}"
    if divergence.inputs:
        yield f"the inputs of this launch differ, too: {', '.join(divergence.inputs)}"
    if divergence.outputs:
        yield f"the outputs of this launch differ: {', '.join(divergence.outputs)}"


@_explained.register
def _(divergence: OrderDiffers, names: Names) -> Iterator[str]:
    other = divergence.other.launch
    shared = divergence.argument
    if divergence.other_argument != shared:
        shared += f", which is {divergence.other_argument} of #{other.index}"
    yield (
        f"{names[0]} makes this launch before #{other.index} {other.kernel_name}, {names[1]} after it;"
        f" both access {shared}: their order matters"
    )


@_explained.register
def _(divergence: OutputDiffers, names: Names) -> Iterator[str]:
    if isinstance(divergence.doubt, ReadOutside):
        yield f"all arguments are equal, and this launch reads memory outside of {divergence.doubt.argument}"
    elif divergence.doubt == "addresses":
        yield "cannot be decided: all arguments are equal,"
        yield "and the kernel reads memory through addresses, whose contents are not recorded"
    elif divergence.doubt == "code":
        yield "every input is equal, outputs differ;"
        yield f"cannot be decided: the code of {divergence.pair.launch.kernel_name} is damaged,"
        yield "copy the damaged run once more, or record it anew"
    elif divergence.doubt == "untouched":
        yield "every input is equal; this memory differed before, and the launch did not change it"
    elif divergence.doubt == "unwritten":
        yield "every input is equal; this memory held other bits before the launch:"
        yield "either the launch left part of it unwritten, or the kernel is not deterministic"
    else:
        yield "code and inputs are equal, outputs differ: this kernel is not deterministic"


@_explained.register
def _(divergence: InputDiffers, names: Names) -> Iterator[str]:
    yield from cause_text(divergence.cause, names)
