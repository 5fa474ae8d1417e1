"""A kernel's passes, for a terminal.

Columns are padded and never cut, so a pipe gets the same text as a terminal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from textwrap import wrap

from rich.text import Text

from tracing.analyze.line_matching import unified_diff
from tracing.analyze.passes.compilations import DIGITS, label
from tracing.analyze.passes.locations import Stack
from tracing.analyze.passes.operations import without_locations
from tracing.analyze.passes.pass_table import KernelPasses, P, PassStep, history
from tracing.analyze.passes.renaming import renamed
from tracing.analyze.passes.replacements import ReplacedOperation
from tracing.analyze.passes.source_map import StageLines, Thread
from tracing.model import Compilation, CopiedFunction, PassRecord
from tracing.model.first_names import first_names
from tracing.report.text import Line, plural, source_position

CALLS = ("llvm.call", "llvm.call_intrinsic", "llvm.inline_asm")
SHOWN = 6  # maximum of operations that replace one operation
WIDTH = 110  # columns of a kernel's options: there are two dozen options
DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}


def columns(rows: Sequence[Sequence[str]], right: str) -> Iterator[Text]:
    """Rows as a table; the first is its heading.

    right -- a letter a column: "r" aligns it to the right, anything else to the left
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for number, row in enumerate(rows):
        cells = [
            cell.rjust(width) if side == "r" else cell.ljust(width)
            for cell, width, side in zip(row, widths, right, strict=True)
        ]
        yield Text("  ".join(cells).rstrip(), style="bold" if number == 0 else "")


def kernels_text(kernels: Sequence[KernelPasses]) -> Iterator[Line]:
    """Every compilation of a run, a line each."""
    known = [one.compilation for one in kernels]
    rows = [("kernel", "hash", "target", "launched", "passes", "changed", "ms")]
    rows += [
        (label(known, one.compilation), one.compilation.hash[:DIGITS], one.compilation.target,
         _launched(one), str(one.count), str(one.changed), f"{one.wall_ms:.1f}")
        for one in kernels
    ]  # fmt: skip
    yield from columns(rows, "llllrrr")
    yield from shared_options_text(known)


def shared_options_text(known: Sequence[Compilation]) -> Iterator[Line]:
    """The options that every compilation of a run was given, once for all of them."""
    title = "options of every kernel" if len(known) > 1 else "options"
    yield Text(f"{title}:")
    yield from (Text(f"    {line}") for line in _wrapped(_shared_options(known)))


def _launched(one: KernelPasses) -> str:
    if one.launched:
        return "yes"
    return "no: by eager" if one.compilation.eager else "no"


def kernel_heading(
    compilation: Compilation, known: Sequence[Compilation], copied: Sequence[CopiedFunction]
) -> Iterator[Line]:
    """The compiled kernel: name, hash, target, file, and the options that not every kernel of the run has.

    known  -- the compilations of the run
    copied -- its functions that are copies of the user's
    """
    source = source_position(compilation.file, copied) if compilation.file else ""
    heading = f"  {compilation.hash[:DIGITS]}  {compilation.target}  {source}"
    yield Text.assemble((compilation.kernel_name, "bold"), heading.rstrip())
    yield from (Text(f"    {line}") for line in _own_options(compilation, known))


def passes_text(
    steps: Sequence[PassStep[PassRecord]], shown: Sequence[PassStep[PassRecord]]
) -> Iterator[Line]:
    """Some passes of one kernel: a line for each that is shown, and the sum of all."""
    rows = [("index", "stage", "pass", "changed", "before", "after", "ms"), *map(_pass_row, shown)]
    yield from columns(rows, "rlllrrr")
    ended = [step.record for step in steps if step.record.after is not None]
    changed, wall_ms = sum(one.changed for one in ended), sum(one.wall_ms or 0.0 for one in ended)
    yield Text(
        f"{plural(len(steps), 'pass')}, {changed} changed the IR, {wall_ms:.1f} ms; before, after: operations"
    )


def _pass_row(step: PassStep[PassRecord]) -> tuple[str, ...]:
    one = step.record
    before = str(sum(step.before.values())) if one.before else "?"
    if one.after is None:
        return (str(one.index), one.stage, one.name, "no end", before, "-", "-")
    changed = "yes" if one.changed else "" if one.after else "?"
    after = str(sum(step.after.values())) if one.after else "?"
    return (str(one.index), one.stage, one.name, changed, before, after, f"{one.wall_ms or 0:.1f}")


def failed_pass_text(record: PassRecord, message: str) -> str:
    """A pass that did not end, in one line: kernel, pass, stage, diagnostic and source of the kernel.

    message -- the compiler's message, the signal first if one ended it
    """
    kernel, lines = record.compilation, message.splitlines()
    reason = next((line for line in lines if "ended by SIG" not in line), (lines or [""])[0])
    source = f" ({source_position(kernel.file)})" if kernel.file and ".py" not in reason else ""
    return f"kernel {kernel.kernel_name}: pass {record.name} ({record.stage}) failed: {reason}{source}"


def unfinished_text(record: PassRecord, message: str) -> Iterator[Line]:
    """A pass that did not end: its name, the compiler's message, and its caller."""
    kernel = record.compilation
    yield Text(failed_pass_text(record, message), "bold red")
    yield Text(f"    pass      {record.index} of {kernel.kernel_name} {kernel.hash[:DIGITS]}: it did not end")
    for name, line in zip_longest(["says"], message.splitlines(), fillvalue=""):
        yield Text(f"    {name:<9} {line}")
    yield Text(f"    pipeline  {record.pipeline}")
    yield Text(f"    caller    {record.caller}")


def no_binary_text(kernel: str, binary: str) -> Text:
    """A kernel whose passes of MLIR ended, and that has no binary."""
    what = "LLVM or the assembler failed, or the process ended before"
    return Text.assemble((f"{kernel} has no {binary}", "bold red"), f": its passes of MLIR ended; {what}")


def reproducer_text(heading: Iterable[Text], before: str) -> Iterator[Text]:
    """The input of a pass that did not end, as a file for triton-opt; the heading is a comment."""
    for line in [*heading, Text("    did not end; this is its input IR")]:
        yield Text.assemble("// ", line)
    yield from map(Text, before.splitlines())


def pass_heading(step: PassStep[PassRecord], known: Sequence[Compilation]) -> Iterator[Text]:
    """The pass, its caller and arguments, its kernel's options, and its effect on the number of operations.

    known -- the compilations of the run, whose shared options are left out
    """
    one = step.record
    yield Text.assemble(
        (one.name, "bold"), f"  pass {one.index}, {one.stage} of {one.compilation.kernel_name}"
    )
    yield Text(f"    pipeline  {one.pipeline}")
    yield Text(f"    caller    {one.caller}  {one.adder}({', '.join(one.arguments)})")
    own = _own_options(one.compilation, known)
    for name, line in zip_longest(["options"] if own else [], own, fillvalue=""):
        yield Text(f"    {name:<9} {line}")
    if one.after is not None:
        yield Text(f"    changes   {changes(step.before, step.after)}, in {one.wall_ms or 0:.1f} ms")


def _shared_options(known: Sequence[Compilation]) -> dict[str, str]:
    first, *others = known
    return {
        name: value
        for name, value in first.options.items()
        if all(one.options.get(name) == value for one in others)
    }


def _own_options(compilation: Compilation, known: Sequence[Compilation]) -> list[str]:
    shared = _shared_options(known)
    return _wrapped({name: value for name, value in compilation.options.items() if name not in shared})


def _wrapped(options: Mapping[str, str]) -> list[str]:
    text = " ".join(f"{name}={value}" for name, value in options.items())
    return wrap(text, WIDTH, break_long_words=False, break_on_hyphens=False)


def changes(before: Mapping[str, int], after: Mapping[str, int], what: str = "operation") -> str:
    """`21 -> 22 operations: +1 arith.addf`."""
    difference = Counter(after)
    difference.subtract(before)
    changed = [f"{count:+} {name}" for name, count in sorted(difference.items()) if count]
    total = f"{sum(before.values())} -> {sum(after.values())} {what}s"
    return f"{total}: {', '.join(changed)}" if changed else total


def diff_text(
    before: str, after: str, locations: bool, plain: Callable[[str], str] = without_locations
) -> Iterator[Line]:
    """A unified diff of two modules.

    locations -- show both as they were recorded; otherwise without locations, and with the values of `after`
                 named as they were before
    plain     -- a module without locations
    """
    if before == after:
        yield Text("the IR did not change")
        return
    if not locations:
        before = plain(before)
        after = renamed(before, plain(after))
    if before == after:
        yield Text("only locations or the names of values changed: `--locations` shows them")
        return
    for line in unified_diff(before.splitlines(), after.splitlines(), ("before", "after")):
        yield Text(line, style=DIFF_STYLES.get(line[:1], ""))


def history_text(
    steps: Sequence[PassStep[P]], wanted: Collection[str], became: Mapping[tuple[int, str], ReplacedOperation]
) -> Iterator[Line]:
    """The passes that change the number of the wanted operations, and that number at both ends.

    became -- the replacements of removed operations, by the pass's index and the operation's name
    """
    rows: list[tuple[str, ...]] = [("index", "stage", "pass", "operation", "before", "after", "")]
    rows += [row for step in history(steps, wanted) for row in _history_rows(step, became)]
    if len(rows) > 1:
        yield from columns(rows, "rlllrrl")
    for name in sorted(wanted):
        first, last = steps[0].before.get(name, 0), _last(steps).get(name, 0)
        yield Text(f"{name}: {first} before the first of these passes, {last} after the last")


def _last(steps: Sequence[PassStep[P]]) -> Mapping[str, int]:
    return next((step.after for step in reversed(steps) if step.record.after is not None), {})


def _history_rows(
    step: PassStep[P], became: Mapping[tuple[int, str], ReplacedOperation]
) -> Iterator[tuple[str, ...]]:
    one = step.record
    index = "-" if one.index is None else str(one.index)
    for name in sorted({**step.before, **step.after}):
        before, after = step.before.get(name, 0), step.after.get(name, 0)
        if before != after:
            word = "appears" if not before else "disappears" if not after else ""
            replaced = became.get((one.index if one.index is not None else -1, name))
            if replaced and replaced.operations:
                word = ": ".join(filter(None, [word, _became(replaced)]))
            yield (index, one.stage, one.name, name, str(before), str(after), word)


def _became(replaced: ReplacedOperation) -> str:
    named = first_names(replaced.others, SHOWN)
    return f"became{f', together with {named}:' if named else ''} {_counted(replaced.operations)}"


def _counted(operations: Mapping[str, int]) -> str:
    most = sorted(operations.items(), key=lambda item: (_telling(item[0]), -item[1], item[0]))
    shown = ", ".join(f"{count} {name}" for name, count in most[:SHOWN])
    more = len(most) - SHOWN
    return f"{shown} and {plural(more, 'other operation')}" if more > 0 else shown


def _telling(operation: str) -> int:
    # operations of the target and calls come before LLVM's operations, of which there are hundreds
    return 0 if operation in CALLS or not operation.startswith("llvm.") else 1


def stages_text(stages: Sequence[StageLines], threads: Sequence[Thread], *, of_model: bool) -> Iterator[Line]:
    """The share of each stage with source locations, and the share of one line.

    of_model -- the line is one of a model, and the threads are those of the whole kernel that computes it
    """
    if of_model:
        yield "this line of a model is a part of the kernel: the kernel's own lines are counted and shown"
    rows = [("stage", "from own lines" if of_model else "from this line", "from any line", "operations", "")]
    for stage in stages:
        here = {one.line for thread in threads for one in thread.stages.get(stage.stage, ())}
        share = sum(1 for one in stage.located if one.stacks)
        rows.append((stage.stage, str(len(here)), str(share), str(len(stage.located)), stage.note))
    yield from columns(rows, "lrrrl")


def threads_text(threads: Sequence[Thread]) -> Iterator[Line]:
    """A line of Python through the stages, call path by call path."""
    named = _names(threads)
    for thread in threads:
        yield ""
        yield Text(_path(thread.stack, named), style="bold")
        for stage, lines in thread.stages.items():
            yield Text(f"  {stage}", style="cyan")
            for one in lines:
                yield Text(f"    {one.line:>5}  {' '.join(one.text.split())}")


def _path(stack: Stack, named: Mapping[str, str]) -> str:
    return " inlined at ".join(f"{named[frame.file]}:{frame.line}" for frame in stack)


def _names(threads: Sequence[Thread]) -> dict[str, str]:
    # the name of the file without folders, unless two files have one name
    files = {frame.file for thread in threads for frame in thread.stack}
    names = Counter(file.rpartition("/")[2] for file in files)
    return {file: short if names[short := file.rpartition("/")[2]] == 1 else file for file in files}
