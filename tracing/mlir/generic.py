"""Parse and print MLIR's generic form.

    %0:2 = "name"(%1, %2)[^bb1] <{properties}> ({regions}) {attributes} : (types) -> (types)

Attributes and types are kept as text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from tracing.errors import Problem

_NAME = re.compile(r'"([^"]+)"')
_VALUE = re.compile(r"%[\w$.-]+(?:#\d+)?")
_RESULT = re.compile(r"(%[\w$.-]+)(?::(\d+))?")
_LABEL = re.compile(r"\^[\w$.-]+")
_ALIAS = re.compile(r"^([#!][\w$.]+) = (.*)$", re.MULTILINE)
_OPEN, _CLOSE = "([{<", ")]}>"


@dataclass(slots=True, eq=False)
class Block:
    """One block of a region."""

    label: str  # "^bb0"; "" where it is not printed
    arguments: list[tuple[str, str]]  # names and types
    operations: list[Operation] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Operation:
    """One operation, with its regions."""

    name: str
    results: list[str]  # "%0", or "%0#0", "%0#1"
    result_types: list[str]
    operands: list[str]
    operand_types: list[str]
    successors: list[str]
    properties: dict[str, str]  # of the operation itself, as text
    attributes: dict[str, str]  # others
    regions: list[list[Block]] = field(default_factory=list)

    def attribute(self, name: str) -> str | None:
        """The text of a property or of another attribute."""
        return self.properties.get(name, self.attributes.get(name))

    def walk(self) -> Iterator[Operation]:
        """This operation and all inside of it, from the outside in."""
        yield self
        for region in self.regions:
            for block in region:
                for one in block.operations:
                    yield from one.walk()


@dataclass(slots=True, eq=False)
class Module:
    """A module, and the aliases that its text uses."""

    operation: Operation
    aliases: dict[str, str]  # "#blocked" -> "#ttg.blocked<{...}>"


def parsed(text: str) -> Module:
    """Read a module in generic form, printed without locations; raises Problem where it is none."""
    aliases = dict(_ALIAS.findall(text))
    reader = _Reader(text)
    reader.at = text.find('"builtin.module"')
    if reader.at < 0:
        raise Problem("the text is no module in MLIR's generic form")
    return Module(reader.operation(), aliases)


def printed(module: Module) -> str:
    """The text of a module, as MLIR reads it."""
    aliases = [f"{name} = {value}" for name, value in module.aliases.items()]
    return "\n".join([*aliases, *_lines(module.operation, ""), ""])


class _Reader:
    # a cursor over the text

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def operation(self) -> Operation:
        results = self._results()
        name = self._match(_NAME)[1]
        operands = self._list("(", ")", _VALUE)
        successors = self._list("[", "]", _LABEL) if self._peek("[") else []
        properties = self._dictionary("<{", "}>") if self._peek("<{") else {}
        regions = self._regions() if self._peek("(") else []
        attributes = self._dictionary("{", "}") if self._peek("{") else {}
        self._take(":")
        operand_types = split(self._balanced("(", ")"))
        self._take("->")
        result_types = split(self._balanced("(", ")")) if self._peek("(") else [self._type()]
        names = [f"{name}#{at}" for name, count in results for at in range(count)] if results else []
        if len(results) == 1 and results[0][1] == 1:
            names = [results[0][0]]
        return Operation(
            name, names, result_types, operands, operand_types, successors, properties, attributes, regions
        )

    def _results(self) -> list[tuple[str, int]]:
        labels: list[tuple[str, int]] = []
        while self._peek("%"):
            match = self._match(_RESULT)
            labels.append((match[1], int(match[2] or 1)))
            if self._peek(","):
                self._take(",")
        if labels:
            self._take("=")
        return labels

    def _regions(self) -> list[list[Block]]:
        self._take("(")
        parsed = []
        while self._peek("{"):
            parsed.append(self._region())
            if self._peek(","):
                self._take(",")
        self._take(")")
        return parsed

    def _region(self) -> list[Block]:
        self._take("{")
        blocks: list[Block] = []
        while not self._peek("}"):
            if self._peek("^"):
                label = self._match(_LABEL)[0]
                arguments = self._arguments() if self._peek("(") else []
                self._take(":")
                self._comment()
                blocks.append(Block(label, arguments))
                continue
            if not blocks:
                blocks.append(Block("", []))
            blocks[-1].operations.append(self.operation())
        self._take("}")
        return blocks

    def _arguments(self) -> list[tuple[str, str]]:
        pairs = (one.partition(":") for one in split(self._balanced("(", ")")))
        return [(name.strip(), kind.strip()) for name, _, kind in pairs]

    def _comment(self) -> None:
        # "// pred: ^bb1" after a label
        if self._peek("//"):
            self.at = self.text.find("\n", self.at)

    def _list(self, left: str, right: str, item: re.Pattern[str]) -> list[str]:
        return item.findall(self._balanced(left, right))

    def _dictionary(self, left: str, right: str) -> dict[str, str]:
        self._take(left)
        start, self.at = self.at, self._end(self.at)
        inside = self.text[start : self.at]
        self._take(right)
        pairs = (partition(one) for one in split(inside))
        return {name.strip().strip('"'): value.strip() for name, value in pairs}

    def _balanced(self, left: str, right: str) -> str:
        self._take(left)
        start, self.at = self.at, self._end(self.at)
        inside = self.text[start : self.at]
        self._take(right)
        return inside

    def _type(self) -> str:
        # up to the end of the line: nothing follows a result's type
        self._space()
        end = self.text.find("\n", self.at)
        start, self.at = self.at, end if end >= 0 else len(self.text)
        return self.text[start : self.at].strip()

    def _end(self, at: int) -> int:
        # the position of the bracket that closes the one before `at`
        for position, _, depth in _brackets(self.text, at):
            if depth < 0:
                return position
        raise Problem("a bracket is left open in MLIR's generic form")

    def _space(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def _peek(self, text: str) -> bool:
        self._space()
        return self.text.startswith(text, self.at)

    def _take(self, text: str) -> None:
        if not self._peek(text):
            line = self.text.count("\n", 0, self.at) + 1
            raise Problem(f"line {line} of MLIR's generic form has no {text!r} where one is needed")
        self.at += len(text)

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str]:
        self._space()
        match = pattern.match(self.text, self.at)
        if match is None:
            line = self.text.count("\n", 0, self.at) + 1
            raise Problem(f"line {line} is not in MLIR's generic form")
        self.at = match.end()
        return match


def split(text: str, separator: str = ",") -> list[str]:
    """Split a text at separators outside of brackets and strings."""
    parts, start = [], 0
    for position, character, depth in _brackets(text, 0, separator):
        if depth == 0 and character == separator:
            parts.append(text[start:position].strip())
            start = position + 1
    parts.append(text[start:].strip())
    return [part for part in parts if part]


def partition(text: str) -> tuple[str, str]:
    """`name = value`; a name without a value is a unit attribute."""
    for position, character, depth in _brackets(text, 0, "="):
        if depth == 0 and character == "=":
            return text[:position], text[position + 1 :]
    return text, "unit"


def _brackets(text: str, at: int, also: str = "") -> Iterator[tuple[int, str, int]]:
    # brackets, and characters of interest, outside of strings, each with the depth after it
    depth = 0
    for match in re.compile(rf'"(?:[^"\\]|\\(?s:.))*(?:"|\\?\Z)|->|[][(){{}}<>{re.escape(also)}]').finditer(
        text, at
    ):
        character = match[0]
        if character[0] == '"' or character == "->":
            continue
        depth += (character in _OPEN) - (character in _CLOSE)
        yield match.start(), character, depth


def _lines(one: Operation, indent: str) -> Iterator[str]:
    head = f'{indent}{_defined(one.results)}"{one.name}"({", ".join(one.operands)})'
    if one.successors:
        head += f"[{', '.join(one.successors)}]"
    if one.properties:
        head += f" <{{{_pairs(one.properties)}}}>"
    tail = f" {{{_pairs(one.attributes)}}}" if one.attributes else ""
    results = one.result_types[0] if len(one.result_types) == 1 else f"({', '.join(one.result_types)})"
    tail += f" : ({', '.join(one.operand_types)}) -> {results}"
    if not one.regions:
        yield head + tail
        return
    for number, region in enumerate(one.regions):
        yield f"{head} ({{" if number == 0 else f"{indent}}}, {{"
        for block in region:
            if block.label:
                arguments = ", ".join(f"{name}: {kind}" for name, kind in block.arguments)
                yield f"{indent}{block.label}({arguments}):" if arguments else f"{indent}{block.label}:"
            for inner in block.operations:
                yield from _lines(inner, f"{indent}  ")
    yield f"{indent}}}){tail}"


def _defined(results: list[str]) -> str:
    names: dict[str, int] = {}
    for result in results:
        name = result.partition("#")[0]
        names[name] = names.get(name, 0) + 1
    counted = (f"{name}:{count}" if count > 1 else name for name, count in names.items())
    return f"{', '.join(counted)} = " if results else ""


def _pairs(attributes: dict[str, str]) -> str:
    return ", ".join(
        _key(name) if value == "unit" else f"{_key(name)} = {value}" for name, value in attributes.items()
    )


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_][\w$.]*", name) else f'"{name}"'
