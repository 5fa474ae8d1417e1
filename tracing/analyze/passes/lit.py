"""Write a lit test of one pass: a RUN line, CHECK lines, and the IR before the pass.

The test checks what the pass did: the lines that it added to the IR, the positions at which it removed lines,
and the operations of which none remains. Locations are dropped, SSA names and block numbers are general;
constants, types and attributes are kept. If a pass rewrites everything, like a conversion, only the first
line of every kind of operation is checked.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tracing.analyze.line_matching import LineMatcher
from tracing.analyze.passes.filecheck import TOKEN, ValueNames, defined, general, results_of
from tracing.analyze.passes.lit_keywords import (
    check_without_keywords,
    one_line,
    require_one_command,
    variable,
    without_comments,
    without_keywords,
)
from tracing.analyze.passes.operations import counts, operations, without_locations
from tracing.errors import Problem

LIMIT = 40  # maximum of lines of a function that are parsed completely
_ABSENT = 4  # operations named as gone
_ALIAS = re.compile(r"#([\w$.]+) = (.*)")
_FUNCTION = re.compile(r"( *)((?:tt|llvm|func)\.func .*?@(?:[\w$.-]+|\"[^\"]*\")\()(.*)\{$")


@dataclass(frozen=True, slots=True)
class LitTest:
    """One test file, and its further arguments of FileCheck."""

    text: str
    filecheck: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Part:
    """A function, or the lines of a module outside of its functions."""

    label: str  # "tt.func public @add_kernel("; "" outside
    lines: tuple[str, ...]  # of a function the first is its head


@dataclass(frozen=True, slots=True)
class _Choice:
    """The checked lines of one part."""

    part: _Part
    lines: Sequence[int]
    names: bool = True  # whether SSA names are followed from line to line


def lit_test(
    before: str, after: str, flag: str, title: str, *, limit: int | None = LIMIT, only: str | None = None
) -> LitTest:
    """A test that a pass turns `before` into IR with the essential lines of `after`.

    before -- the module, as printed, with or without locations
    after  -- the module after the pass, in the same form
    flag   -- the pass on triton-opt's command line
    title  -- where it comes from, one line
    limit  -- functions with more changed lines are checked by the first line of each kind; None: never
    only   -- a regular expression: check the lines that it finds, and no others

    Raises Problem if the pass changed nothing, or nothing but locations; and if `only` is no regular
    expression, or finds no line.
    """
    source, result = _Module(before), _Module(after)
    if only is not None:
        _require_lines(only, result)
    absent = _absent(source, result)
    checks = list(_checks(source, result, limit, only))
    if not checks and not absent:
        raise Problem(
            "the pass changed nothing that a test could check",
            "`tracing passes RUN --kernel K --changed` lists those that changed the IR",
        )
    filecheck = tuple(f"--implicit-check-not={name}" for name in absent)
    run = f"// RUN: triton-opt %s -split-input-file {flag} | {' '.join(('FileCheck %s', *filecheck))}"
    return _test([run, f"// {one_line(title)}", ""], checks, source, filecheck)


def _require_lines(only: str, result: _Module) -> None:
    try:
        pattern = re.compile(only)
    except re.error as error:
        raise Problem(f"{only!r} is no regular expression: {error}", "escape ( as \\(, for example") from None
    if not any(pattern.search(line) for part in result.parts for line in part.lines):
        raise Problem(
            f"no line of the IR after the pass matches {only!r}", "`tracing passes --after` prints it"
        )


def survival_test(before: str, flag: str, title: str) -> LitTest:
    """A test that a pass survives `before`: its output has each function.

    before -- the module, as printed, with or without locations
    flag   -- the pass on triton-opt's command line
    title  -- its origin, and how the pass crashes, in lines
    """
    source = _Module(before)
    labels = [f"// CHECK-LABEL: @{_symbol(one.label)}" for one in source.parts if one.label]
    run = f"// RUN: triton-opt %s -split-input-file {flag} | FileCheck %s"
    comments = [f"// {one_line(line)}" for line in title.splitlines()]
    return _test([run, *comments, ""], labels, source, ())


def _test(head: Sequence[str], checks: Iterable[str], source: _Module, filecheck: tuple[str, ...]) -> LitTest:
    lines = [*head, *map(check_without_keywords, checks), "", source.text]
    return LitTest(require_one_command("\n".join(lines)), filecheck)


class _Module:
    """A printed module: its attribute aliases, and its parts in order."""

    def __init__(self, text: str) -> None:
        lines = without_comments(without_locations(text)).splitlines()
        aliases = {match[1]: match[2] for match in map(_ALIAS.fullmatch, lines) if match}
        body = [line for line in lines if not _ALIAS.fullmatch(line)]
        used = _reached(body, aliases)
        self.aliases = {name: value for name, value in aliases.items() if name in used}
        definitions = [f"#{name} = {value}" for name, value in self.aliases.items()]
        self.text = without_keywords("\n".join([*definitions, *body, ""]))  # the input of a test
        self.parts = list(_parts([line.rstrip() for line in body]))

    def part(self, label: str) -> _Part:
        """The part of that function, or one without lines."""
        name = _symbol(label)
        matching = [part for part in self.parts if _symbol(part.label) == name]
        return _Part(label, tuple(line for part in matching for line in part.lines))

    def keys(self, lines: Iterable[str]) -> list[str]:
        """Lines for comparison: without names, with aliases expanded."""
        return [TOKEN.sub(lambda token: self._key(token[0]), line.strip()) for line in lines]

    def _key(self, token: str) -> str:
        if token[0] in "%^":
            return token[0]
        return self.aliases.get(token[1:], token) if token[0] == "#" else token


def _reached(lines: Iterable[str], aliases: Mapping[str, str]) -> set[str]:
    # the aliases that lines use, directly or through another one
    reached: set[str] = set()
    waiting = list(lines)
    while waiting:
        tokens = {token[1:] for token in TOKEN.findall(waiting.pop()) if token[0] == "#"}
        new = (tokens & aliases.keys()) - reached
        reached |= new
        waiting += [aliases[name] for name in new]
    return reached


def _parts(lines: Sequence[str]) -> Iterator[_Part]:
    outside: list[str] = []
    at = 0
    while at < len(lines):
        head = _FUNCTION.fullmatch(lines[at])
        if head:
            yield _Part("", tuple(outside))
            outside = []
            end = lines.index(f"{head[1]}}}", at)
            yield _Part(head[2], tuple(lines[at:end]))
            at = end
        elif lines[at].strip(" {}"):
            outside.append(lines[at])
        at += 1
    yield _Part("", tuple(outside))


def _symbol(label: str) -> str:
    # a conversion makes an llvm.func of a tt.func
    return label.rpartition("@")[2]


def _absent(source: _Module, result: _Module) -> list[str]:
    # as text: implicit-check-not looks at all of it
    gone = [(-number, name) for name, number in counts(source.text).items() if name not in result.text]
    return sorted(name for _, name in sorted(gone)[:_ABSENT])


def _checks(source: _Module, result: _Module, limit: int | None, only: str | None) -> Iterator[str]:
    choices = [_choice(source, result, part, limit, only) for part in result.parts]
    choices = [one for one in choices if one.lines]
    used = _reached([one.part.lines[at] for one in choices for at in one.lines], result.aliases)
    aliases = {name: variable(f"${name.upper()}") for name in used}
    names = ValueNames(aliases, frozenset())
    for name, value in result.aliases.items():
        if name in used:
            yield f"// CHECK: #[[{aliases[name]}:.+]] = {general(value, names)}"
    for one in choices:
        yield from _part_checks(one, aliases)


def _choice(source: _Module, result: _Module, part: _Part, limit: int | None, only: str | None) -> _Choice:
    keys = result.keys(part.lines)
    if only is not None:
        chosen = {at for at, line in enumerate(part.lines) if re.search(only, line)}
        return _Choice(part, sorted(_unambiguous(keys, chosen)))
    changed = _changed(source.keys(source.part(part.label).lines), keys, bool(part.label))
    chosen = _unambiguous(keys, _with_constants(part, changed))
    if limit is not None and len(chosen) > limit:
        return _Choice(part, _first_of_a_kind(part, changed), names=False)
    return _Choice(part, sorted(chosen))


def _changed(old: Sequence[str], new: Sequence[str], ordered: bool) -> set[int]:
    # lines that the pass added, and both neighbours of lines that it removed
    changed: set[int] = set()
    for kind, _, _, start, end in LineMatcher(old, new).get_opcodes():
        if kind == "delete" and ordered and 0 < start < len(new):
            changed |= {start - 1, start}
        elif kind != "equal":
            changed |= set(range(start, end))
    return changed


def _unambiguous(keys: Sequence[str], chosen: Collection[int]) -> set[int]:
    # FileCheck takes the first line that matches: earlier lines that match must be checked, too
    kept = set(chosen)
    start = 0
    for at in sorted(chosen):
        pattern = keys[at][len(results_of(keys[at])[0]) :]  # without its results, if no line uses them
        kept |= {between for between in range(start, at) if pattern in keys[between]}
        start = at + 1
    return kept


def _first_of_a_kind(part: _Part, changed: Collection[int]) -> list[int]:
    names = {operation.line - 1: operation.name for operation in operations("\n".join(part.lines))}
    first: dict[str, int] = {}
    for at in sorted(changed):
        if at in names:
            first.setdefault(names[at], at)
    return sorted({0, *first.values()} & {0, *changed})


def _with_constants(part: _Part, lines: Collection[int]) -> set[int]:
    # a value is worth reading
    used = {token for at in lines for token in TOKEN.findall(part.lines[at])}
    constant = re.compile(r"\s*(%[\w$.-]+) = (?:arith|llvm\.mlir)\.constant\b")
    constants = {at: constant.match(line) for at, line in enumerate(part.lines)}
    return {*lines, *(at for at, match in constants.items() if match and match[1] in used)}


def _part_checks(choice: _Choice, aliases: Mapping[str, str]) -> Iterator[str]:
    part, chosen = choice.part, set(choice.lines)
    names = ValueNames(aliases, _shared(choice) if choice.names else frozenset())
    for at, line in enumerate(part.lines):
        if at == 0 and part.label:
            yield f"// CHECK-LABEL: {part.label}"
            yield from _head(line, names, at in chosen)
        elif at in chosen:
            follows = part.label and choice.names and at - 1 in chosen
            yield f"// CHECK{'-NEXT' if follows else ''}: {general(line.strip(), names)}"
        else:
            names.bound -= defined(line)  # a sibling region may reuse its names


def _shared(choice: _Choice) -> frozenset[str]:
    # SSA names in more than one checked line; the head of a function counts as one
    times: Counter[str] = Counter()
    for at in {0, *choice.lines} if choice.part.label else choice.lines:
        times.update({token for token in TOKEN.findall(choice.part.lines[at]) if token[0] == "%"})
    return frozenset(token for token, number in times.items() if number > 1)


def _head(line: str, names: ValueNames, changed: bool) -> Iterator[str]:
    # arguments, up to the last one that a later line names; attributes if they are new
    arguments = list(re.finditer(r"(%[\w$.-]+): ([^,{})]*[^,{}) ])", line))
    while arguments and arguments[-1][1] not in names.needed:
        arguments.pop()
    for match in arguments:
        yield f"// CHECK-SAME: {general(match[0], names)}"
    attributes = re.search(r" (attributes \{.*\}) \{$", line)
    if changed and attributes:
        yield f"// CHECK-SAME: {general(attributes[1], names)}"
