"""Compares the code of two kernels: a kernel is its code, not its name.

Triton's `metadata.hash` changes with the line number of a kernel, so equal hashes prove equal code and
unequal ones prove nothing. Unequal hashes are decided by the compiled stages, without locations, value names
and alignment hints: TTIR contains a kernel's source, constants, globals and helper functions. A kernel
without TTIR is compared by its Python source.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tracing.analyze.compare.signature_pair import SettingChange, constants_of
from tracing.analyze.line_matching import unified_diff
from tracing.analyze.passes.assertions import without_positions
from tracing.analyze.passes.compilations import compilations
from tracing.analyze.passes.operations import without_locations
from tracing.errors import Problem
from tracing.model import Kernel
from tracing.store import Run

DIFF_LINES = 12  # maximum of printed lines of a diff
_STAGES = ("ttir", "ttgir", "llir", "ptx", "amdgcn")  # not the binary: ptxas is not deterministic
_VALUE = re.compile(r"%[\w$.#-]*[\w$]|(?<=[ (,])[#!][A-Za-z_]\w*(?![\w.])")
_HINT = r"tt\.divisibility = \d+ : i32"
_ALIGNMENT = re.compile(rf" ?\{{{_HINT}\}}|, {_HINT}|{_HINT},? ?")
_ARGUMENT = re.compile(r"%(\w+): [^{},()]*(?:\{[^{}]*?tt\.divisibility = (\d+)[^{}]*\})?")
_PATHS = ("extern_libs",)  # options that are of the machine
_TARGET = re.compile(r'ttg\.target = "[^"]*"')
_DEBUG = re.compile(r", !dbg !\d+|#dbg_\w+\(.*|^!\d+ = .*|^!llvm\..*|^source_filename.*|^; .*")
_ASSEMBLY = re.compile(r"\s*((\.loc|\.file)\b.*|//.*|;.*|(\$L__|\.L)(tmp|func_)\w*:)?$")


@dataclass(frozen=True, slots=True)
class CodeDifference:
    """The first form of two kernels that differs."""

    stage: str  # "source", "ttir", "ttgir", "llir", "ptx", "amdgcn"
    diff: tuple[str, ...]  # the lines of a unified diff, a to b; at most DIFF_LINES


class KernelCodes:
    """The code of the kernels of two runs; remembers what it compared."""

    def __init__(self, a: Run, b: Run) -> None:
        self._runs = (a, b)
        self._known: dict[object, CodeDifference | None] = {}
        self._texts: dict[tuple[int, str, str], tuple[str, ...]] = {}
        self._keys: dict[object, str] = {}
        self._named: tuple[dict[str, list[Kernel]], dict[str, list[Kernel]]] | None = None
        self._options: list[Mapping[str, Mapping[str, str]]] | None = None  # of each run, by hash
        self._lost: set[object] = set()  # pairs whose code cannot be read
        self.notes: list[str] = []  # kernels whose code was lost

    def key(self, kernel: Kernel, side: int) -> str:
        """The identity of a kernel of run 0 or 1, comparable between both.

        The name, if it is unique in each run; else the name with the number of the code, if both runs have
        that code.
        """
        known = (side, kernel.name, kernel.id, kernel.hash)
        if known not in self._keys:
            self._keys[known] = self._computed_key(kernel, side)
        return self._keys[known]

    def _computed_key(self, kernel: Kernel, side: int) -> str:
        if self._named is None:
            self._named = _by_name(self._runs[0]), _by_name(self._runs[1])
        ours, theirs = (named.get(kernel.name, []) for named in self._named)
        if len(ours) < 2 and len(theirs) < 2:
            return kernel.name
        # a run compiles equal code several times: for arguments that are divisible by 16, and for others
        alike = (one for one in theirs if self.is_code(kernel, one))
        partner = kernel if side == 1 else next(alike, None)
        if partner is None:
            return kernel.name
        number = next((n for n, one in enumerate(ours) if self.is_code(one, partner)), None)
        return kernel.name if number is None else f"{kernel.name}#{number}"

    def is_code(self, a: Kernel, b: Kernel) -> bool:
        """True if a kernel of run a and one of run b are the same code with the same configuration."""
        return _configured(a) == _configured(b) and self.difference(a, b) is None and not self.is_lost(a, b)

    def is_lost(self, a: Kernel, b: Kernel) -> bool:
        """True if `difference` cannot read the code of these kernels: it may differ."""
        self.difference(a, b)
        return _pair_key(a, b, alike=True) in self._lost

    def difference(self, a: Kernel, b: Kernel, *, alike: bool = True) -> CodeDifference | None:
        """The difference between the code of a kernel of run a and of one of run b; None: no relevant one.

        alike -- False: they are launched on other types, so that only the source is compared, as it is of
                 kernels with other constants or compiler options
        """
        if a.hash and a.hash == b.hash and _assembly(a) == _assembly(b):
            return None
        key = _pair_key(a, b, alike=alike)
        if key not in self._known:
            try:
                self._known[key] = self._compared(a, b) if alike else self._sources(a, b)
            except Problem as problem:  # a blob that was lost
                self._known[key] = None
                self._lost.add(key)
                self.notes.append(f"the code of {a.name}: {problem.problem}")
        return self._known[key]

    def compiled_for(self, a: Kernel, b: Kernel) -> tuple[SettingChange, ...]:
        """What differs in what two kernels of one source were compiled for: options, and hints of alignment.

        The program's launches decide it, as by `maxnreg=64`, or by a pointer that is no multiple of 16 bytes.
        Nothing for two versions of Triton, which have other defaults.
        """
        if len({run.info.environment.triton for run in self._runs}) > 1:
            return ()
        one, other = (self._compiled_for(side, kernel) for side, kernel in enumerate((a, b)))
        return tuple(
            SettingChange(name, value, other[name])
            for name, value in one.items()
            if name in other and other[name] != value
        )

    def _compiled_for(self, side: int, kernel: Kernel) -> dict[str, str]:
        if self._options is None:
            self._options = [{one.hash: one.options for one in compilations(run)} for run in self._runs]
        # a run without passes, or of a kernel that was compiled before it, has those of the kernel
        options = self._options[side].get(kernel.hash, kernel.options or {})
        known = {name: value for name, value in options.items() if name not in _PATHS}
        if "ttir" in kernel.stages:
            known |= _hints(self._runs[side].text(kernel.stages["ttir"]))
        return known

    def differ_at_most_in_target(self, a: Kernel, b: Kernel) -> bool:
        """True if a kernel of run a and one of run b have one name, constants and launch options."""
        return a.name == b.name and _configured(a)[1:] == _configured(b)[1:]

    def first_unlike_stage(self, a: Kernel, b: Kernel) -> str | None:
        """The first stage recorded of both whose text differs in more than the target; None: there is none.

        Raises Problem if a text is lost.
        """
        for stage in (one for one in _STAGES if one in a.stages and one in b.stages):
            texts = (self._text(side, one, stage) for side, one in enumerate((a, b)))
            plain_a, plain_b = ([_TARGET.sub("", line) for line in text] for text in texts)
            if a.stages[stage] != b.stages[stage] and plain_a != plain_b:
                return stage
        return None

    def _compared(self, a: Kernel, b: Kernel) -> CodeDifference | None:
        stages = [stage for stage in _STAGES if stage in a.stages and stage in b.stages]
        if not stages or _configured(a) != _configured(b):
            return self._sources(a, b)
        for stage in stages:
            if a.stages[stage] == b.stages[stage]:
                continue
            texts = self._text(0, a, stage), self._text(1, b, stage)
            if texts[0] != texts[1]:
                if stage in ("llir", "amdgcn") and self._has_positions_inlined(a, b):
                    self.notes.append(f"the LLVM IR of {a.name}, whose assertions contain a path")
                    return self._sources(a, b)
                return self._sources(a, b) or CodeDifference(stage, _diff(*texts))
        return None

    def _has_positions_inlined(self, a: Kernel, b: Kernel) -> bool:
        # the bytes of an assertion's message are operands of stores for AMD
        asserts = "ttir" in a.stages and "tt.assert" in self._runs[0].text(a.stages["ttir"])
        return a.target.startswith("hip") and a.file != b.file and asserts

    def _sources(self, a: Kernel, b: Kernel) -> CodeDifference | None:
        ours, theirs = (
            _python(run.text(blob)) if (blob := one.module or one.source) else ()
            for run, one in zip(self._runs, (a, b), strict=True)
        )
        if not ours or not theirs or ours == theirs:
            return None
        return CodeDifference("source", _diff(ours, theirs))

    def _text(self, side: int, kernel: Kernel, stage: str) -> tuple[str, ...]:
        key = (side, stage, kernel.stages[stage])
        if key not in self._texts:
            text = self._runs[side].text(kernel.stages[stage])
            self._texts[key] = tuple(_plain(stage, text, kernel.name))
        return self._texts[key]


def _hints(ttir: str) -> dict[str, str]:
    # by argument of the kernel
    function = next((line for line in ttir.splitlines() if "tt.func public" in line), "")
    arguments = _ARGUMENT.findall(without_locations(function))
    return {f"divisibility of {name}": hint or "not known" for name, hint in arguments}


def _assembly(kernel: Kernel) -> object:
    return kernel.stages.get("ptx", kernel.stages.get("amdgcn"))


def _by_name(run: Run) -> dict[str, list[Kernel]]:
    kernels: dict[str, list[Kernel]] = {}
    for kernel in run.records(Kernel):
        if all(kernel.hash != other.hash for other in kernels.setdefault(kernel.name, [])):
            kernels[kernel.name].append(kernel)
    return kernels


def _pair_key(a: Kernel, b: Kernel, *, alike: bool) -> tuple[object, ...]:
    return (alike, *_identity(a), *_identity(b))


def _identity(kernel: Kernel) -> tuple[object, ...]:
    stages = tuple(kernel.stages.values())
    return kernel.hash, kernel.source, kernel.module, stages, _configured(kernel)


def _configured(kernel: Kernel) -> tuple[object, ...]:
    constants = tuple(sorted(constants_of(kernel).items()))
    return kernel.target, kernel.num_warps, kernel.num_stages, kernel.num_ctas, constants


def _python(text: str) -> tuple[str, ...]:
    # without comments and layout
    try:
        return tuple(ast.unparse(ast.parse(text)).splitlines())
    except (SyntaxError, ValueError, RecursionError):
        return tuple(text.splitlines())


def _plain(stage: str, text: str, name: str) -> Iterator[str]:
    text = without_positions(text)
    if stage in ("ttir", "ttgir"):
        yield from _mlir(without_locations(text))
    elif stage == "llir":
        yield from (line for line in (_DEBUG.sub("", one).rstrip() for one in text.splitlines()) if line)
    else:
        body = text.split(".section", 1)[0]
        yield from (line for line in body.splitlines() if not _ASSEMBLY.fullmatch(line))


def _mlir(text: str) -> Iterator[str]:
    # values and aliases are renumbered in order: their names depend on names in the source
    numbers: dict[str, str] = {}
    for line in text.splitlines():
        if line.startswith("#loc"):
            continue
        plain = _ALIGNMENT.sub("", line)
        yield _VALUE.sub(lambda match: numbers.setdefault(match[0], f"%{len(numbers)}"), plain)


def _diff(a: tuple[str, ...], b: tuple[str, ...]) -> tuple[str, ...]:
    lines = list(unified_diff(a, b, ("a", "b"), 1))[2:]
    rest = len(lines) - DIFF_LINES
    return tuple(lines if rest <= 0 else [*lines[:DIFF_LINES], f"... {rest} lines more"])
