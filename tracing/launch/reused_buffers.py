"""Finds launches of Inductor's generated code that overwrite a buffer before its last read.

Generated code gives the memory of a dead buffer to a new one, `buf3 = buf1; del buf1  # reuse`. If another
name aliases that memory, for example because an operator returned its input, and the code reads that name
afterwards, it reads the new buffer.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, TypeGuard

import torch

from tracing.launch.tensors import has_memory, tensor_meta
from tracing.upstream.torch.tensor_subclasses import has_storage
from tracing.views import relation

_REUSE = "# reuse"


@dataclass(frozen=True, slots=True)
class OverwrittenName:
    """A name in generated code whose memory a launch has overwritten before its last read."""

    argument: str  # of the launch
    buffer: str  # the name that the launch writes
    name: str  # the name that is read afterwards
    line: int  # where it is read
    where: str  # "file.py:12" of the launch


@dataclass(frozen=True, slots=True)
class _Wrapper:
    # names of one generated function, by line
    stores: Mapping[str, Sequence[int]]
    loads: Mapping[str, Sequence[int]]
    reuses: Mapping[str, int]  # new name -> line

    @classmethod
    def of(cls, code: CodeType) -> _Wrapper | None:
        try:
            text = Path(code.co_filename).read_text()
            tree = ast.parse(text)
        except (OSError, SyntaxError, ValueError):
            return None
        lines = text.splitlines()
        functions = (one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef))
        function = next((one for one in functions if one.lineno == code.co_firstlineno), None)
        if function is None or _REUSE not in text:
            return None
        stores: dict[str, list[int]] = {}
        loads: dict[str, list[int]] = {}
        pools = {id(argument) for call in ast.walk(function) if _is_part(call) for argument in call.args[:1]}
        for one in ast.walk(function):
            if isinstance(one, ast.Name) and id(one) not in pools:
                known = stores if isinstance(one.ctx, ast.Store) else loads
                if not isinstance(one.ctx, ast.Del):
                    known.setdefault(one.id, []).append(one.lineno)
        reuses = {name: at for name, known in stores.items() for at in known if _REUSE in lines[at - 1]}
        return cls(stores, loads, reuses)

    def read_after(self, name: str, line: int) -> int | None:
        """The line after this one that reads the value which a name has here; None: nothing does."""
        reads = [at for at in self.loads.get(name, ()) if at > line]
        if not reads or any(line < at <= min(reads) for at in self.stores.get(name, ())):
            return None
        return min(reads)

    def bound(self, name: str, line: int) -> int:
        """The line before this one that gave a name its value; 0: none."""
        return max((at for at in self.stores.get(name, ()) if at < line), default=0)


class ReusedBuffers:
    """Looks at each launch of generated code once."""

    def __init__(self) -> None:
        # id of a code object, whose hash costs 0.1 ms, and instruction
        self._seen: set[tuple[int, int]] = set()
        self._wrappers: dict[int, tuple[CodeType, _Wrapper | None]] = {}  # by the same id

    def seen(self, launched: tuple[CodeType, int]) -> bool:
        """True if a launch by this instruction was looked at; 0.1 µs. It counts as seen afterwards."""
        code, instruction = launched
        known = (id(code), instruction) in self._seen
        if not known:
            self._wrapper(code)  # and the object is held, so that its id stays its own
            self._seen.add((id(code), instruction))
        return known

    def overwritten(
        self, frame: FrameType, written: Sequence[tuple[str, torch.Tensor]]
    ) -> Iterator[OverwrittenName]:
        """The names that a launch has overwritten although generated code reads them afterwards.

        frame   -- of the generated function that launched it
        written -- the arguments that it wrote, with their names

        Cost: a generated file is parsed once.
        """
        code, line = frame.f_code, frame.f_lineno
        wrapper = self._wrapper(code)
        if wrapper is None:
            return
        values = {name: one for name, one in frame.f_locals.items() if _lies_in_memory(one)}
        for argument, tensor in written:
            for buffer in (name for name in values if line in wrapper.loads.get(name, ())):
                born = wrapper.reuses.get(buffer, 0)
                if not 0 < born < line or born != wrapper.bound(buffer, line):
                    continue
                if not _shares(values[buffer], tensor):
                    continue
                for name, value in values.items():
                    read = wrapper.read_after(name, line)
                    older = wrapper.bound(name, line) < born
                    if name != buffer and read is not None and older and _shares(value, tensor):
                        where = f"{Path(code.co_filename).name}:{line}"
                        yield OverwrittenName(argument, buffer, name, read, where)

    def _wrapper(self, code: CodeType) -> _Wrapper | None:
        if id(code) not in self._wrappers:
            self._wrappers[id(code)] = code, _Wrapper.of(code)
        return self._wrappers[id(code)][1]


def _is_part(node: ast.AST) -> TypeGuard[ast.Call]:
    # a part of a pool becomes a buffer, which reads nothing of it
    return isinstance(node, ast.Call) and ast.unparse(node.func).endswith("alloc_from_pool")


def _lies_in_memory(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and has_storage(value) and has_memory(value)


def _shares(a: torch.Tensor, b: torch.Tensor) -> bool:
    if a.device != b.device or a.untyped_storage().data_ptr() != b.untyped_storage().data_ptr():
        return False
    return relation(tensor_meta(a), tensor_meta(b), a.data_ptr() - b.data_ptr()) != "disjoint"
