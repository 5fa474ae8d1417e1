"""Normalise a module's text, so that texts of two compilers are comparable.

Locations and comments are dropped. Attributes of the module and of functions are kept separately, because
some passes change nothing else. Operations that another version of MLIR renamed get one name.
The names of helpers lose the module that defines them.

Operations without effects may be in any order between those with effects, so two equal texts may differ in
the order of their lines.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from tracing.analyze.passes.assertions import without_positions
from tracing.analyze.passes.operations import STRING, without_locations
from tracing.analyze.passes.renaming import definitions_in, replaced_values

_HOLDER = re.compile(r"^\s*(?P<what>module|[\w.]+\.func)\b(?P<rest>.*) attributes (?=\{)")
_NAME = re.compile(r"@([\w$.-]+|\"[^\"]*\")")
_COMMENT = re.compile(r"(?<!\s)\s*// (?:no predecessors|\d+ preds?: .*|pred: .*)$")
_ALIAS_LINE = re.compile(r"(?P<name>[#!][A-Za-z_][\w$]*) = (?P<meaning>.*)")
_ALIAS = re.compile(STRING + r"|(?P<name>[#!][A-Za-z_][\w$]*)(?![\w$.<])")
_BRACKET = re.compile(rf"{STRING}|->|[{{}}\[\]()<>,]")
# Triton names a helper by the module that defines it; Inductor names that module by the digest of its source,
# which has the options of the launch in it.
_HELPER = re.compile(r"@(\"?)(?:\w+\.)+(?=\w+__)")
# operations whose names differ between the LLVM versions of Triton 3.6 to 3.9
_SPELLING = {"nvvm.barrier0": "nvvm.barrier"}
# Operations of one line that neither read nor write memory. All others keep their order.
_PURE = re.compile(
    r"\s*%[^=]* = \"?(?:(?:arith|math|ub|index)\.\w+|builtin\.unrealized_conversion_cast|ttg\.convert_layout"
    r"|ttg\.memdesc_\w+|tt\.(?:make_range|splat|unsplat|broadcast|expand_dims|addptr|reshape|trans|join|split|cat"
    r"|get_program_id|get_num_programs|bitcast|int_to_ptr|ptr_to_int|fp_to_fp|clampf|mulhiui|precise_\w+|dot)"
    r"|nvvm\.read\.ptx\.[\w.]+|rocdl\.work\w+\.[\w.]+"
    r"|llvm\.(?!load|store|call|inline_asm|br|cond_br|atomicrmw|cmpxchg|alloca|fence|invoke|intr\.)[\w.]+"
    r")(?=[\s\"(<{]|$)(?!.*\{$)"
)
_LONGEST = 10_000  # characters of an alias that are spelt out
_STRUCTURE = re.compile(r"\{$|^\s*\}|^\s*\^|^\s*\"?(?:cf|llvm)\.(?:cond_)?br\b|\b(?:yield|return)\b")
_SPELT = re.compile("|".join(rf"\b{re.escape(old)}\b" for old in _SPELLING))


@dataclass(frozen=True, slots=True)
class PlainModule:
    """A module in two parts."""

    text: str  # with the names of its values
    attributes: Mapping[str, str]  # "ttg.shared" of the module, "@matmul noinline" of a function -> value


def plain(text: str) -> PlainModule:
    """A module's text for comparison; costs a few regular expressions a line."""
    lines, attributes = [], {}
    for line in without_locations(without_positions(text)).splitlines():
        line = _COMMENT.sub("", _SPELT.sub(lambda match: _SPELLING[match[0]], line))
        line = _HELPER.sub(r"@\1", line)
        if match := _HOLDER.match(line):
            end = _closing(line, match.end())
            name = _NAME.search(match["rest"])
            holder = f"@{name[1]} " if name and match["what"] != "module" else ""
            attributes.update(
                {f"{holder}{key}": value for key, value in _entries(line[match.end() + 1 : end])}
            )
            line = line[: match.end() - len(" attributes ")] + line[end + 1 :]
        lines.append(line)
    return PlainModule("".join(f"{line}\n" for line in lines), attributes)


def canonical(module: PlainModule) -> str:
    """The text of a module with its values numbered as they are defined, and its aliases spelt out.

    Two modules with equal canonical texts are equivalent.
    """
    aliases: dict[str, str] = {}
    names: dict[str, str] = {}
    numbers = itertools.count()
    lines = []
    for line in module.text.splitlines():
        if match := _ALIAS_LINE.fullmatch(line):
            aliases[match["name"]] = _shortened(_spelt_out(match["meaning"], aliases))
            continue
        for name in definitions_in(line):
            names[name] = f"%{next(numbers)}"
        lines.append(replaced_values(_spelt_out(line, aliases), names))
    return "\n".join(lines)


def unordered(module: PlainModule) -> str:
    """The text of a module with operations without effects in a canonical order; equal texts: equal modules.

    Each value is named after the operation that defines it.
    """
    return "\n".join(_Unordered().lines(canonical(module).splitlines()))


class _Unordered:
    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._numbers = itertools.count()
        self._pure: list[str] = []
        self._ordered: list[str] = []

    def lines(self, lines: Iterable[str]) -> Iterator[str]:
        for line in lines:
            if _PURE.match(line):
                self._note(line)
                continue
            for name in definitions_in(line):
                self._names[name] = f"%e{next(self._numbers)}"
            self._ordered.append(replaced_values(line, self._names))
            if _STRUCTURE.search(line):
                yield from self._flushed()
        yield from self._flushed()

    def _note(self, line: str) -> None:
        results = definitions_in(line)
        _, _, form = line.partition(" = ")
        form = replaced_values(form, self._names)
        made = hashlib.blake2b(form.encode(), digest_size=8).hexdigest()
        self._names |= {name: f"%{made}.{number}" for number, name in enumerate(results)}
        self._pure.append(form)

    def _flushed(self) -> Iterator[str]:
        yield from sorted(self._pure)
        yield from self._ordered
        self._pure, self._ordered = [], []


def _shortened(meaning: str) -> str:
    # an alias that refers twice to the previous alias would double in each line
    if len(meaning) <= _LONGEST:
        return meaning
    return hashlib.blake2b(meaning.encode(errors="replace"), digest_size=16).hexdigest()


def _spelt_out(text: str, aliases: Mapping[str, str]) -> str:
    return _ALIAS.sub(lambda match: aliases.get(match["name"] or "", match[0]), text)


def _entries(inside: str) -> Iterator[tuple[str, str]]:
    # `noinline = false, ttg.shared = 16 : i32` as pairs; a bare name has no value
    start = 0
    for end in [*_commas(inside), len(inside)]:
        name, _, value = inside[start:end].strip().partition(" = ")
        if name:
            yield name.strip('"'), value
        start = end + 1


def _commas(text: str) -> Iterator[int]:
    depth = 0
    for match in _BRACKET.finditer(text):
        if match[0] == "," and depth == 0:
            yield match.start()
        elif len(match[0]) == 1:
            depth += (match[0] in "{[(<") - (match[0] in "}])>")


def _closing(text: str, start: int) -> int:
    # of the brace at `start`
    depth = 0
    for match in _BRACKET.finditer(text, start):
        depth += (match[0] == "{") - (match[0] == "}")
        if depth == 0:
            return match.start()
    return len(text)
