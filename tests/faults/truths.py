"""The planted differences in the cases of data/planted, parsed from the cases' docstrings.

A line of a docstring declares one difference; indented lines continue it:

    - NAME [CLASS]: CLAUSE; CLAUSE; ... . Description.
    - NAME [CLASS] (A2 = RECIPE; B = RECIPE): ...

CLASS is a key of `CLASSES`. Three recordings belong to a difference: A, A2 without the
fault and with harmless variation, and B. Where no recipe is given they are recorded with the options

    A  fault=none,variant=0    A2  fault=none,variant=1    B  fault=NAME,variant=1

A line "Recordings: A = RECIPE; A2 = RECIPE" before the list changes that for a file. A recipe is the options
of the case, flags of `tracing run`, and `old` => `new` for an edit of its file; "plain" is the case as it
is. The first clause says what `tracing compare A B` must answer, with alternatives after "or":

    equal                    no difference
    in part                  no difference as far as the runs go, and exit status 2
    KIND [of NAME]           `accused.kind`, and a glob that `accused.name` matches
    undecided                it cannot be decided, and a command is named that decides

The others narrow it down, each one if it is stated:

    runs b                   `accused.runs`
    launch 2                 the launch of the accused, in the run or the runs that have it
    argument out_ptr         `accused.argument`
    through aten::clone      a glob for one of `accused.through`
    read by shift as in_ptr at 1   kernel, argument and launch of the divergence itself, in B if B has it
    iteration 5              of the divergence
    after KIND [of NAME]     divergences that may come before: launches without effect
    hidden                   the results of A and B are equal all the same
    failing                  the case raises in B, or in A
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

PLANTED = Path(__file__).parents[1] / "data/planted"
CLASSES = {
    "result": "Structure of the result",
    "state": "Parameters, buffers, inputs, state of an optimizer",
    "failure": "Failed runs",
    "scalar": "Float scalars, tuples as arguments",
    "selection": "Runs of chosen launches",
    "code": "Code of a kernel",
    "configuration": "Configuration, autotuning",
    "writer": "Writers by byte range, writes by the host",
    "operator": "Operators",
    "order": "Order of launches",
    "bounds": "Out of bounds",
    "uninitialised": "Uninitialised and recycled memory",
    "missing": "Missing and extra launches",
    "address": "Addresses",
    "set": "Order of a set",
    "thread": "Threads",
    "race": "Races",
    "loop": "Loops",
}
KINDS = (
    "code", "configuration", "winner", "kernel", "operator", "host", "start", "uninitialised",
    "out of bounds", "order", "missing", "result", "outcome", "unknown",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a run of a case is recorded."""

    options: str  # of the case
    edit: tuple[str, str] | None = None  # text of its file, and what replaces it
    flags: tuple[str, ...] = ()  # of `tracing run`


@dataclass(frozen=True, slots=True)
class Accusation:
    """A kind and a name that an answer may accuse."""

    kind: str
    name: str = "*"

    def covers(self, accused: Mapping[str, Any]) -> bool:
        return accused["kind"] == self.kind and fnmatchcase(str(accused.get("name") or ""), self.name)


@dataclass(frozen=True, slots=True)
class Reader:
    """Where a difference is first seen."""

    kernel: str
    argument: str
    launch: int

    def sees(self, divergence: Mapping[str, Any]) -> bool:
        launch = divergence["launch"] or {}
        here = launch.get("b") if launch.get("b") is not None else launch.get("a")
        return (divergence["kernel"], divergence["argument"], here) == (
            self.kernel,
            self.argument,
            self.launch,
        )


@dataclass(frozen=True, slots=True)
class Truth:
    """The truth about two runs, which their comparison must report."""

    accusations: tuple[Accusation, ...] = ()
    equal: bool = False
    in_part: bool = False
    undecided: bool = False  # the answer "undecided" is accepted
    runs: str = ""
    launch: int | None = None
    argument: str = ""
    through: str = ""
    reader: Reader | None = None
    iteration: int | None = None
    before: tuple[Accusation, ...] = ()
    hidden: bool = False
    failing: bool = False

    @property
    def differs(self) -> bool:
        return bool(self.accusations) or self.undecided

    def names(self, divergence: Mapping[str, Any]) -> bool:
        """True if a divergence accuses what is true."""
        accused = divergence["accused"]
        launch = accused.get("launch") or {}
        return (
            any(one.covers(accused) for one in self.accusations)
            and (not self.runs or accused.get("runs") == self.runs)
            and (self.launch is None or self.launch in launch.values())
            and (not self.argument or accused.get("argument") == self.argument)
            and (not self.through or any(fnmatchcase(name, self.through) for name in accused["through"]))
            and (self.reader is None or self.reader.sees(divergence))
            and (self.iteration is None or divergence.get("iteration") == self.iteration)
        )


@dataclass(frozen=True, slots=True)
class Difference:
    """One planted difference: three recordings and the truth of them."""

    path: Path
    name: str
    group: str  # its class
    truth: Truth
    text: str
    a: Recipe
    a2: Recipe
    b: Recipe

    @property
    def id(self) -> str:
        return f"{self.path.stem}-{self.name}"

    @property
    def edited(self) -> bool:
        return any(recipe.edit for recipe in (self.a, self.a2, self.b))


# ---- reading docstrings ----

_LINE = re.compile(
    r"- (?P<name>\w+) \[(?P<group>\w+)\](?: \((?P<recipes>.*?)\))?: (?P<clauses>[^.]*)\. (?P<text>.*)"
)
_RECIPE = re.compile(r"(A2|A|B) = (.*?)(?=; (?:A2|A|B) = |$)")
_EDIT = re.compile(r"`(.*?)` => `(.*?)`")
_READER = re.compile(r"read by (\S+) as (\S+) at (\d+)")
_ACCUSATION = re.compile(rf"({'|'.join(KINDS)})(?: of (\S+))?")
_VERDICTS = {"equal": "equal", "in part": "in_part", "undecided": "undecided"}


def differences(*paths: Path) -> list[Difference]:
    """The differences planted in the given cases, or in all of data/planted."""
    return [one for path in paths or sorted(PLANTED.glob("*.py")) for one in _planted(path)]


def _planted(path: Path) -> Iterator[Difference]:
    described = ast.get_docstring(ast.parse(path.read_text())) or ""
    head, *lines = (" ".join(part.split()) for part in re.split(r"^(?=- )", described, flags=re.M))
    assert lines, f"{path} declares no difference"
    usual = dict(_RECIPE.findall(head.partition("Recordings: ")[2]))
    for line in lines:
        match = _LINE.fullmatch(line)
        assert match and match["group"] in CLASSES, f"{path}: not a declaration: {line}"
        name = match["name"]
        a, a2, b = "fault=none,variant=0", "fault=none,variant=1", f"fault={name},variant=1"
        recipes = {"A": a, "A2": a2, "B": b} | usual | dict(_RECIPE.findall(match["recipes"] or ""))
        yield Difference(
            path, name, match["group"], _truth(match["clauses"]), match["text"],
            *(_recipe(recipes[run]) for run in ("A", "A2", "B")),
        )  # fmt: skip


def _recipe(text: str) -> Recipe:
    edit = _EDIT.search(text)
    words = _EDIT.sub("", text).split()
    options = words.pop(0) if words and not words[0].startswith("-") else "plain"
    old_new = (edit[1].replace("\\n", "\n"), edit[2].replace("\\n", "\n")) if edit else None
    return Recipe("" if options == "plain" else options, old_new, tuple(words))


def _truth(text: str) -> Truth:
    first, *others = text.split("; ")
    verdicts = first.split(" or ")
    fields: dict[str, Any] = {_VERDICTS[one]: True for one in verdicts if one in _VERDICTS}
    fields["accusations"] = tuple(_accusation(one) for one in verdicts if one not in _VERDICTS)
    for clause in others:
        fields |= _narrowing(clause)
    return Truth(**fields)


def _narrowing(clause: str) -> dict[str, Any]:
    word, _, rest = clause.partition(" ")
    if word in ("hidden", "failing"):
        return {word: True}
    if word in ("runs", "argument", "through"):
        return {word: rest}
    if word in ("launch", "iteration"):
        return {word: int(rest)}
    if word == "after":
        return {"before": tuple(_accusation(one) for one in rest.split(" or "))}
    match = _READER.fullmatch(clause)
    assert match, f"no clause of a truth: {clause}"
    return {"reader": Reader(match[1], match[2], int(match[3]))}


def _accusation(text: str) -> Accusation:
    match = _ACCUSATION.fullmatch(text)
    assert match, f"nothing that can be accused: {text}"
    return Accusation(match[1], match[2] or "*")
