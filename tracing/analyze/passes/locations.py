"""Read the Python lines that operations and instructions of a compiled kernel name as their origin.

Every stage's syntax is read into the same stacks of (file, line), innermost first, so that
stages can be joined: MLIR's `loc(…)`, LLVM's `!DILocation`, PTX's and AMDGCN's `.loc`, and the comments of
`nvdisasm -gi`. Columns are dropped: SASS has none. A frame without a line (`unknown`, line 0) is no frame.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, product
from typing import TypeAlias

from tracing.analyze.passes.operations import STRING, operations

# maximum of locations that are read: a few lines of IR can name more than fits into memory
FRAMES = 200
STACKS = 200


@dataclass(frozen=True, slots=True)
class Frame:
    """One Python line."""

    file: str
    line: int
    column: int = 0  # 0: not asked for


Stack: TypeAlias = tuple[Frame, ...]  # innermost first; the others are the calls at which it was inlined


@dataclass(frozen=True, slots=True)
class Located:
    """One operation or instruction with its Python call stacks."""

    line: int  # of the artefact's text, from 1
    text: str
    stacks: tuple[Stack, ...]  # several: it was fused from several; none: it names no location


def located(stage: str, text: str) -> list[Located]:
    """The operations or instructions of one artefact in order.

    stage -- "ttir", "ttgir", "llir", "ptx", "amdgcn" or "sass"
    text  -- the artefact; of a cubin, what `nvdisasm -gi -c` prints
    """
    return list(_READERS[stage](text))


# MLIR

_ALIAS = re.compile(r"(#loc\d*) = loc\((.*)\)")
_TOKEN = re.compile(STRING + r"|#[\w$.]+|\w+|\S")


def located_by_column(text: str) -> list[Located]:
    """As `located`, of MLIR, with the columns of each line: they separate the calls of one line."""
    return list(_mlir(text, columns=True))


def _mlir(text: str, *, columns: bool = False) -> Iterator[Located]:
    aliases = map(_ALIAS.match, text.splitlines())
    locations = _Locations({match[1]: match[2] for match in aliases if match}, columns=columns)
    for operation in operations(text):
        yield Located(operation.line, operation.text, locations.stacks(operation.location))


class _Locations:
    """MLIR's location attributes, read by descent; an alias is read once."""

    def __init__(self, aliases: Mapping[str, str], *, columns: bool) -> None:
        self._aliases, self._columns = aliases, columns
        self._known: dict[str, tuple[Stack, ...]] = {}

    def stacks(self, content: str) -> tuple[Stack, ...]:
        """The stacks of the content of a `loc(…)`."""
        if content not in self._known:
            self._known[content] = ()  # ends the recursion of an alias of itself
            # incomplete or too deep: the location is unknown
            with contextlib.suppress(IndexError, ValueError, RecursionError):
                self._known[content] = self._read(_TOKEN.findall(content)[::-1])
        return self._known[content]

    def _read(self, tokens: list[str]) -> tuple[Stack, ...]:
        # `tokens` is reversed: the next one is popped from its end
        token = tokens.pop()
        if token.startswith("#"):
            return self.stacks(self._aliases[token]) if token in self._aliases else ()
        if token.startswith('"'):
            return self._quoted(token[1:-1], tokens)
        if token == "callsite":
            callee, caller = self._pair(tokens)
            return _inlined(callee, caller)
        return self._fused(tokens) if token == "fused" else ()

    def _quoted(self, text: str, tokens: list[str]) -> tuple[Stack, ...]:
        # "file":line:column, of which a range's end may follow, or "name"(location), or "name"
        following = tokens[-1] if tokens else ""
        if following == ":":
            line, column = int(tokens[-2]), int(tokens[-4]) if self._columns else 0
            while tokens and (tokens[-1] in (":", "to") or tokens[-1].isdecimal()):
                tokens.pop()
            return ((Frame(text, line, column),),) if line else ()
        if following == "(":
            tokens.pop()
            child = self._read(tokens)
            tokens.pop()
            return child
        return ()

    def _pair(self, tokens: list[str]) -> tuple[tuple[Stack, ...], tuple[Stack, ...]]:
        # (callee at caller)
        tokens.pop()
        callee = self._read(tokens)
        tokens.pop()
        caller = self._read(tokens)
        tokens.pop()
        return callee, caller

    def _fused(self, tokens: list[str]) -> tuple[Stack, ...]:
        # <metadata>[location, location]
        depth = 0
        while tokens[-1] != "[" or depth:
            depth += {"<": 1, ">": -1}.get(tokens.pop(), 0)
        stacks: list[Stack] = []
        while tokens.pop() != "]":  # first "[", then a comma each
            stacks += self._read(tokens)
        return tuple(dict.fromkeys(stacks))


def _inlined(callee: tuple[Stack, ...], caller: tuple[Stack, ...]) -> tuple[Stack, ...]:
    both = product(callee or ((),), caller or ((),))
    return tuple((inner + outer)[:FRAMES] for inner, outer in islice(both, STACKS) if inner or outer)


# LLVM IR

_METADATA = re.compile(
    r"!(\d+) = (?:distinct )?!DI(?:Location|Subprogram|LexicalBlock|LexicalBlockFile|File)\((.*)\)"
)
_FIELD = re.compile(r'\b(\w+): (?:distinct )?(?:!(\d+)|(\d+)|"((?:[^"\\]|\\.)*)")')
_INSTRUCTION = re.compile(r"  (?![\s;#\]])(?!.*call void @llvm\.dbg\.)")
_DEBUG = re.compile(r", !dbg !(\d+)")


def _llvm(text: str) -> Iterator[Located]:
    nodes = {number: _fields(fields) for number, fields in _METADATA.findall(text)}
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        inside = line.startswith("define ") or (inside and line != "}")
        if inside and _INSTRUCTION.match(line):
            debug = _DEBUG.search(line)
            stack = tuple(islice(_chain(nodes, debug[1]), FRAMES)) if debug else ()
            yield Located(number, _DEBUG.split(line)[0].strip(), (stack,) if stack else ())


def _fields(text: str) -> dict[str, str]:
    return {name: node or number or string for name, node, number, string in _FIELD.findall(text)}


def _chain(nodes: Mapping[str, Mapping[str, str]], location: str | None) -> Iterator[Frame]:
    seen = set()
    while location is not None and location in nodes and location not in seen:
        seen.add(location)
        node = nodes[location]
        file = nodes.get(nodes.get(node.get("scope", ""), {}).get("file", ""), {})
        if line := int(node.get("line", "0")):
            yield Frame(_path(file.get("directory", ""), file.get("filename", "?")), line)
        location = node.get("inlinedAt")


def _path(directory: str, name: str) -> str:
    return name if name.startswith("/") or not directory else f"{directory}/{name}"


# PTX and AMDGCN

_FILE = re.compile(r'\s*\.file\s+(\d+)\s+"([^"]*)"(?:\s+"([^"]*)")?')
_LOC = re.compile(r"\s*\.loc\s+(\d+)\s+(\d+)\s+(\d+)(?:.*?inlined_at\s+(\d+)\s+(\d+)\s+(\d+))?")
_PTX = re.compile(r"\s*(?:\{\s*)?(?:@!?%\w+\s+)?[a-z][\w.:]*(?=[\s;])")
_AMDGCN = re.compile(r"\t[a-z]\w*(?=\s|$)")
_AMDGCN_CALLER = re.compile(r"@\[ (.+?):(\d+):\d+")


def _ptx(text: str) -> Iterator[Located]:
    files = _files(text)
    known: dict[
        tuple[str, ...], Stack
    ] = {}  # (file, line, column) -> its text if it stood on a line by itself
    stack: Stack = ()
    for number, (line, in_assembly) in enumerate(_with_assembly(text), 1):
        loc = _LOC.match(line)
        if loc and not in_assembly:
            file, row, column, *caller = loc.groups()
            outer = known.get(tuple(caller)) or (_frame(files, *caller[:2]) if caller[0] else ())
            stack = known[file, row, column] = (_frame(files, file, row) + outer)[:FRAMES]
        elif not loc and _PTX.match(line):
            yield Located(number, line.split("//")[0].strip(), (stack,) if stack else ())


def invented_locations(ptx: str) -> int:
    """The number of `.loc` in a PTX that name a line from which its instructions do not come.

    LLVM increments the line of an inline assembly for each line of its text, and ptxas uses these lines. So a
    `.loc` between `// begin inline asm` and `// end inline asm` is ignored here.
    """
    invented, believed = 0, None
    for line, in_assembly in _with_assembly(ptx):
        if loc := _LOC.match(line):
            invented += in_assembly and loc[2] != believed
            believed = believed if in_assembly else loc[2]
    return invented


def _with_assembly(ptx: str) -> Iterator[tuple[str, bool]]:
    inside = False
    for line in ptx.splitlines():
        text = line.strip()
        inside = text == "// begin inline asm" or (inside and text != "// end inline asm")
        yield line, inside


def _amdgcn(text: str) -> Iterator[Located]:
    files = _files(text)
    by_name: dict[str, str] = {}
    for path in set(files.values()):
        name = path.rpartition("/")[2]
        by_name[name] = name if name in by_name else path  # two files of one name: keep the bare name
    stack: Stack = ()
    for number, line in enumerate(text.splitlines(), 1):
        if loc := _LOC.match(line):
            # the comment holds the callers, without their folders
            callers = (Frame(by_name.get(name, name), int(row)) for name, row in _AMDGCN_CALLER.findall(line))
            stack = (*_frame(files, loc[1], loc[2]), *callers)
        elif _AMDGCN.match(line):
            yield Located(number, line.split(";")[0].strip(), (stack,) if stack else ())


def _frame(files: Mapping[str, str], file: str, line: str) -> Stack:
    return (Frame(files.get(file, "?"), int(line)),) if int(line) else ()


def _files(text: str) -> dict[str, str]:
    matches = map(_FILE.match, text.splitlines())
    return {m[1]: _path(m[2], m[3]) if m[3] else m[2] for m in matches if m}


# SASS

_SASS_FILE = re.compile(r'\s*//## File "(.*?)", line (\d+)')
_SASS = re.compile(r"\s+/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;?\s*$")


def _sass(text: str) -> Iterator[Located]:
    stack: list[Frame] = []
    in_comment = False  # one comment line a frame, innermost first
    for number, line in enumerate(text.splitlines(), 1):
        file = _SASS_FILE.match(line)
        if file:
            stack = (stack if in_comment else []) + ([Frame(file[1], int(file[2]))] if int(file[2]) else [])
        elif line.startswith(".text."):
            stack = []
        elif instruction := _SASS.match(line):
            yield Located(number, instruction[1], (tuple(stack),) if stack else ())
        in_comment = file is not None


_READERS: Mapping[str, Callable[[str], Iterator[Located]]] = {
    "ttir": _mlir, "ttgir": _mlir, "llir": _llvm, "ptx": _ptx, "amdgcn": _amdgcn, "sass": _sass,
}  # fmt: skip
