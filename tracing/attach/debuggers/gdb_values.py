"""Show operations, values, types and attributes of MLIR as IR where gdb prints or watches them, or hovers.

`$op()` and `$module()` are the operation and the module of the current pass. Runs in gdb's own Python: only
the standard library.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import gdb
import gdb_calls as calls
import gdb_process as process
from gdb_passes import course

_OPERATION, _OP_CLASS, _VALUE = "mlir::Operation", "mlir::OpState", "mlir::Value"
# classes of one pointer, and the member function that prints what it points to
_HANDLES = {_VALUE: calls.VALUE, "mlir::Type": calls.TYPE, "mlir::Attribute": calls.ATTRIBUTE}
_REFERENCES = (gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF)
_VTABLE = "vtable for "  # of the dialect that a type or an attribute belongs to, or of an operation's name
_MI = re.compile(rb"\0--?i(nterpreter)?[=\0]mi")  # in the command line of gdb, under an editor
_SEARCHED = 12  # words at the beginning of an operation, one of which is its name
_LOST = "<optimized out>"
_kinds: dict[str, str] = {}  # what _kind found, by the name of a class


class Shown:
    """A value of MLIR as gdb's printers show it."""

    def __init__(self, value: gdb.Value, kind: str) -> None:
        self.value = value
        self.kind = kind

    def to_string(self) -> str:
        """Its IR, or why it has none."""
        if self.value.is_optimized_out:
            of_module = str(self.value.type.strip_typedefs().unqualified()) == "mlir::ModuleOp"
            return f"{_LOST}; the pass's module:\n{_module()}" if of_module and course.module else _LOST
        try:
            return _text(self.value, self.kind).rstrip("\n")
        except (gdb.error, gdb.GdbError) as error:
            return f"<no IR: {error}>"


class CurrentIr(gdb.Function):
    """$op() or $module(): the operation or the module of the current pass."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def invoke(self, *_arguments: gdb.Value) -> gdb.Value:
        here = course.here()
        address = here.operation if self.name == "op" else course.module
        try:
            return gdb.Value(address.to_bytes(8, "little"), gdb.lookup_type(_OP_CLASS))
        except gdb.error:  # an MLIR without debug information
            return gdb.Value(calls.ir(calls.OPERATION, address))


def watch() -> None:
    """From now on, show MLIR's values as IR."""
    space = gdb.current_progspace()
    assert space is not None  # gdb has one before it has a program
    space.pretty_printers.append(_shown)  # asked before LLVM's own printers
    for name in ("op", "module"):
        CurrentIr(name)
    if _MI.search(Path("/proc/self/cmdline").read_bytes()):
        # a call while it lists the variables of a frame ends gdb 13; variable objects use printers anyway
        gdb.execute("set print raw-values on")


def _shown(value: gdb.Value) -> Shown | None:
    kind = _kind(value.type)
    return Shown(value, kind) if kind else None


def _kind(typed: gdb.Type) -> str:
    # the class named above that a type is, refers to or derives from; "" for none
    plain = typed.strip_typedefs()
    pointer = plain.code == gdb.TYPE_CODE_PTR
    if pointer or plain.code in _REFERENCES:
        plain = plain.target().strip_typedefs()
    name = plain.unqualified().name or ""
    if plain.code != gdb.TYPE_CODE_STRUCT or not name.startswith("mlir::"):
        return ""
    if name not in _kinds:
        bases = (_kind(field.type) for field in plain.fields() if field.is_base_class and field.type)
        known = name in (_OPERATION, _OP_CLASS, *_HANDLES)
        _kinds[name] = name if known else next(filter(None, bases), "")
    kind = _kinds[name]
    return kind if not pointer or kind == _OPERATION else ""


def _text(value: gdb.Value, kind: str) -> str:
    code = value.type.strip_typedefs().code
    if code in _REFERENCES:
        value = value.referenced_value()
    if kind == _OPERATION:
        pointer = value if code == gdb.TYPE_CODE_PTR else value.address
        return _operation(int(pointer)) if pointer is not None else _LOST
    if kind == _OP_CLASS:
        return _operation(int(value["state"]))
    impl = int(value["impl"])
    # a value begins with its first use; then comes its type
    storage = process.word(impl + 8) & ~7 if kind == _VALUE and impl else impl
    if impl and not process.symbol(process.word(process.word(process.word(storage)))).startswith(_VTABLE):
        return f"<not initialized: {impl:#x}>"
    return calls.ir_of_pointer(_HANDLES[kind], impl) if impl else "null"


def _operation(address: int) -> str:
    if not address:
        return "null"
    if not any(name.startswith(_VTABLE) and "OperationName" in name for name in _vtables(address)):
        return f"<not initialized: {address:#x}>"
    return calls.ir(calls.OPERATION, address)


def _vtables(address: int) -> Iterator[str]:
    for index in range(_SEARCHED):
        pointer = process.word(address + 8 * index)
        if process.mapped(pointer):
            yield process.symbol(process.word(pointer))


def _module() -> str:
    return calls.ir(calls.OPERATION, course.module)
