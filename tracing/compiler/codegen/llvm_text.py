"""Parse LLVM's output into passes: their names and units, and the IR before and after each.

LLVM prints the number for `-opt-bisect-limit` before each optional pass, and the IR after every
pass. The middle end and the code generator use different pass managers, which name passes
differently; here a numbered pass has the name that LLVM's bisection prints.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

# the lines between the texts; the first group that matched names the kind of line
_LINE = re.compile(
    r"^(?:"
    r"BISECT: running pass \((?P<number>\d+)\) (?P<optional>.+?) on (?P<whole>.*)"
    r"|Running pass: (?P<running>.+?) on (?P<part>.+?)(?: \(\d+ instructions?\))?"
    # the middle end: "; *** IR Dump After SROAPass on softmax ***"
    r"|; \*\*\* IR Dump (?P<side>Before|After) (?:\d+-)?(?P<pass>.+?) on (?P<unit>.+?)"
    r"(?: \(invalidated\))? \*\*\*"
    # the code generator: "*** IR Dump After SROA (sroa) *** (function: softmax)"
    r"|(?:# )?\*\*\* IR Dump (?P<when>Before|After) (?P<title>.+?)(?: \((?P<word>[^()\s]+)\))? \*\*\*:?"
    r"(?: \((?P<kind>\w+): (?P<of>.*)\))?"
    r"|Skipping pass: (?P<skipped>.+?) on .*"
    r"|(?:Running analysis:|Invalidating analysis:|Clearing all analysis|\*\*\* IR Pass ).*"
    r")$",
    re.MULTILINE,
)
_MACHINE_CODE = re.compile(r"# Machine code for function (.+?):")
_FUNCTION = re.compile(r"(?:; Function Attrs: .*\n)?define .*?@([\w.$-]+|\"[^\"]+\")\(.*\n(?:.*\n)*?\}\n")
_SLOT = re.compile(r"^(?:\d+B)?\t", re.MULTILINE)
_BLOCK = "\nbb."  # of machine code
_NAMED = "; ModuleID = "  # a module that was parsed from text has no name
_MODULE = (_NAMED, "source_filename = ")


@dataclass(frozen=True, slots=True)
class LlvmPassText:
    """One pass of LLVM."""

    index: int | None  # as opt-bisect-limit counts, from 1; None: LLVM never leaves it out
    name: str  # "instcombine"
    unit: str  # "softmax", "[module]", "loop %7 in function matmul", "function (softmax)"
    generator: bool  # of the code generator, not the middle end
    before: str
    after: str | None  # None: LLVM printed nothing that can be compared, or died inside it


def printed_passes(log: str, llir: str, *, died: bool) -> Iterator[LlvmPassText]:
    """The passes in LLVM's output, in order.

    log -- with `-opt-bisect-verbose`, `-print-after-all`, `-print-module-scope`, and the IR before the first
    llir -- the input of the code generator; "": the last output of the middle end
    died -- the compiler died while it printed: the last pass is then the one that it died in
    """
    reader = _Reader(llir)
    for line, text in _pieces(log):
        if line["number"]:
            reader.number(int(line["number"]), line["optional"], line["whole"])
        elif line["running"]:
            reader.begin(_Pass(None, line["running"], line["part"], False))
        elif line["skipped"]:
            yield from reader.skip()
        elif begun := _dumped(line, text):
            if "Before" in (line["side"], line["when"]):
                reader.begin(begun, text)
            else:
                yield from reader.end(begun, text)
    yield from reader.rest(died)


def _pieces(log: str) -> Iterator[tuple[re.Match[str], str]]:
    # the lines of LLVM's log, each with the text up to the next one
    last: re.Match[str] | None = None
    for line in _LINE.finditer(log):
        if last is not None:
            yield last, _between(log, last.end(), line.start())
        last = line
    if last is not None:
        yield last, _between(log, last.end(), len(log))


def _between(log: str, start: int, end: int) -> str:
    # LLVM's middle end and code generator print different numbers of empty lines; slot indexes before lines
    # of machine code come from an analysis, which only some passes need
    text = _SLOT.sub("", log[start:end].strip("\n"))
    return f"{text}\n" if text else ""


@dataclass(frozen=True, slots=True)
class _Pass:
    index: int | None
    name: str
    unit: str
    generator: bool
    alias: str = ""  # its second name: the class in the middle end, a description in the code generator

    def same(self, other: _Pass) -> bool:
        return bool({self.name, self.alias} & ({other.name, other.alias} - {""}))


def _dumped(line: re.Match[str], text: str) -> _Pass | None:
    if line["side"]:
        return _Pass(None, line["pass"], line["unit"], False)
    if not line["when"]:
        return None
    function = _FUNCTION.match(text)
    whole = _machine_function(text) or (f"function ({function[1]})" if function else "module")
    unit = f"{line['kind']} ({line['of']})" if line["kind"] else whole
    return _Pass(None, line["word"] or line["title"], unit, True, line["title"])


def _machine_function(text: str) -> str:
    # the function, if it is machine code: LLVM prints that function by function
    match = _MACHINE_CODE.match(text)
    return f"function ({match[1]})" if match else ""


class _Reader:
    # joins announced passes with printed text

    def __init__(self, llir: str) -> None:
        self._llir = llir
        self._open: list[_Pass] = []  # announced with a number, and not printed yet
        self._begun: _Pass | None = None  # another pass that began after them
        self._generator = False  # has printed something
        self._module = ""
        self._machine: dict[str, str] = {}  # the machine code of each function

    def number(self, index: int, name: str, unit: str) -> None:
        self._open.append(_Pass(index, name, unit, self._generator))
        self._begun = None

    def begin(self, begun: _Pass, text: str = "") -> None:
        self._generator |= begun.generator
        if not _machine_function(text) or _BLOCK in text:  # before instruction selection there is none yet
            self._keep(text)
        if self._open and self._open[-1].alias == begun.name:
            return  # "Running pass" and "IR Dump Before" of one pass
        if begun.generator or not self._open or self._open[-1].alias:
            self._begun = begun
        else:  # LLVM's bisection announces the next pass, under a different name
            self._open[-1] = replace(self._open[-1], alias=begun.name)

    def skip(self) -> Iterator[LlvmPassText]:
        # a pass that Triton disables
        if self._open and not self._open[-1].alias:
            *self._open, one = self._open
            yield from self.rest()
            yield LlvmPassText(one.index, one.name, one.unit, False, self._module, self._module)

    def end(self, ended: _Pass, text: str) -> Iterator[LlvmPassText]:
        same = [number for number, one in enumerate(self._open) if one.same(ended)]
        at = same[-1] if same else len(self._open)
        inside = self._open[at + 1 :]  # middle-end passes may be announced as passes of the code generator
        one = self._open[at] if same else ended
        self._open = self._open[:at]
        yield from self.rest()
        if ended.generator and not self._generator:
            one = self._entered(one)
        before = self._machine.get(_machine_function(text), self._module)
        after = self._keep(text)
        yield LlvmPassText(one.index, one.name, one.unit, ended.generator, before, after)
        self._open = inside
        yield from self.rest()

    def rest(self, died: bool = False) -> Iterator[LlvmPassText]:
        """The passes that were announced but not printed, and the pass in which LLVM died."""
        for one in (*self._open, *([self._begun] if died and self._begun else [])):
            before = self._machine.get(one.unit, self._module)
            yield LlvmPassText(one.index, one.name, one.unit, one.generator, before, None)
        self._open, self._begun = [], None

    def _entered(self, first: _Pass) -> _Pass:
        # the IR after Triton's changes before the code generator's first pass, which prints no IR before it
        self._generator = True
        self._module = self._llir or self._module
        if self._module.startswith(_NAMED):
            self._module = self._module.partition("\n")[2]
        return first if first.index else _Pass(None, "to-code-generator", "[module]", True)

    def _keep(self, text: str) -> str | None:
        # the whole that the text is, or is a part of; None: of a region, LLVM prints some of its blocks
        if unit := _machine_function(text):
            self._machine[unit] = text
            return text
        if text.startswith(_MODULE):
            self._module = text
        elif function := _FUNCTION.match(text):  # an LLVM without these options, AMD's from 3.9 on
            self._module = _with(self._module, function)
        else:
            return None
        return self._module


def _with(module: str, function: re.Match[str]) -> str:
    # the module with one of its functions replaced
    same = (one for one in _FUNCTION.finditer(module) if one[1] == function[1])
    old = next(same, None)
    return module[: old.start()] + function[0] + module[old.end() :] if old else module
