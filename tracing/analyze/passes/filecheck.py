"""Write a line of IR as a FileCheck pattern: constants, types and attributes literal, names general.

An SSA name becomes a variable if a checked line defines it and another one uses it; an attribute alias
becomes a variable that holds across functions. FileCheck's own syntax is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from tracing.analyze.passes.lit_keywords import variable
from tracing.analyze.passes.operations import STRING

TOKEN = re.compile(STRING + r"|%[\w$.-]+|#[a-zA-Z][\w$.]*|\^bb\d+")
_ANY = "{{[^ ]+}}"


@dataclass(slots=True)
class ValueNames:
    """The FileCheck variables of one part."""

    aliases: Mapping[str, str]  # of attributes -> variable
    needed: frozenset[str]  # SSA names that a checked line uses and another one defines
    variables: dict[str, str] = field(default_factory=dict)  # of SSA names
    bound: set[str] = field(default_factory=set)  # SSA names whose variable has their value here


def general(line: str, names: ValueNames) -> str:
    """The pattern for one line; adds the variables that it binds to `names`.

    line -- without indentation; without its results, if no other line uses them
    """
    results, operation = results_of(line)
    if not names.needed.intersection(TOKEN.findall(results)):
        line = line[len(results) :]  # no line uses them
    new = defined(line)
    names.bound -= new
    parts, at = [], 0
    for match in TOKEN.finditer(line):
        parts += [_literal(line[at : match.start()]), _token(match[0], operation, names, new)]
        new.discard(match[0])
        at = match.end()
    return "".join([*parts, _literal(line[at:])])


def results_of(line: str) -> tuple[str, str]:
    """`%0:2 = ` and the last part of the operation's name; both empty for a line without results."""
    match = re.match(r"(%[^=]* = )\"?(?:\w+\.)*(\w+)", line)
    return (match[1], match[2]) if match else ("", "")


def defined(line: str) -> set[str]:
    """The SSA names that a line defines: results, arguments, and those of `iter_args(%a = %b)`."""
    inside = re.findall(r"(%[\w$.-]+)(?:: | = )", line)
    return {*inside, *re.findall(r"%[\w$.-]+", results_of(line.strip())[0])}


def _token(token: str, operation: str, names: ValueNames, new: Collection[str]) -> str:
    if token[0] == "#":
        return f"#[[{names.aliases[token[1:]]}]]" if token[1:] in names.aliases else token
    if token[0] == "^":
        return "^bb{{[0-9]+}}"
    if token[0] == '"':
        return _literal(token)
    if token not in names.needed or token not in names.bound | set(new):
        return f"%{_ANY}"
    if token in names.bound:
        return f"%[[{names.variables[token]}]]"
    if token not in names.variables:
        names.variables[token] = _variable(token[1:], operation, names.variables.values())
    names.bound.add(token)
    return f"%[[{names.variables[token]}:[^ ]+]]"


def _variable(name: str, operation: str, taken: Collection[str]) -> str:
    # a numbered name carries no meaning; it is named after the operation
    word = re.sub(r"\W", "_", operation if operation and name.isdecimal() else name).upper()
    word = word if not word[0].isdecimal() else f"V{word}"
    number = sum(1 for one in taken if one == word or one.startswith(f"{word}_N"))
    return variable(f"{word}_N{number}" if number else word)


def _literal(text: str) -> str:
    # what FileCheck would read as a variable or a regular expression
    return text.replace("{{", "{{[{][{]}}").replace("[[", r"{{\[\[}}")
