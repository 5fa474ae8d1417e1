"""Python's operators, functions and assignments of a kernel, as Triton's compiler understands them.

Triton's interpreter executes `not x`, `x and y`, `min(x, y)` as Python does, which asks for one truth value
of a whole tensor. It makes a tensor of what is assigned to one name; the compiler also of what is assigned to
several names, by `x -= 1`, and by `x if c else y` where c is a tensor.
"""

from __future__ import annotations

import ast
import builtins
import functools
from collections.abc import Callable, Mapping
from typing import Any

import triton.language as tl

from tracing.interpreter.builder import SEMANTIC
from tracing.upstream.triton.interpreter import FunctionRewriter

_NOT, _AND, _OR = "_tracing_not", "_tracing_and", "_tracing_or"
_CHOICE, _ASSIGNED, _VALUE = "_tracing_choice", "_tracing_assigned", "_tracing_value"
_Operand = Callable[[], Any]


class OperatorRewriter(type(FunctionRewriter.ast_transformer)):  # type: ignore[misc]
    """Replaces operators by calls of the functions in `NAMES`, and drops what only a compile can check."""

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:  # noqa: N802
        """`tl.static_assert(x)`, of a constant that is a number here."""
        called = ast.unparse(node.value.func) if isinstance(node.value, ast.Call) else ""
        if called.split(".")[-1] == "static_assert":
            return ast.copy_location(ast.Pass(), node)
        self.generic_visit(node)
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:  # noqa: N802
        """`not x`."""
        self.generic_visit(node)
        if not isinstance(node.op, ast.Not):
            return node
        return ast.copy_location(ast.Call(ast.Name(_NOT, ast.Load()), [node.operand], []), node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:  # noqa: N802
        """`x and y`, `x or y`; operands are evaluated when they are needed."""
        self.generic_visit(node)
        name = ast.Name(_AND if isinstance(node.op, ast.And) else _OR, ast.Load())
        nothing = ast.arguments([], [], None, [], [], None, [])
        operands: list[ast.expr] = [ast.Lambda(nothing, one) for one in node.values]
        return ast.copy_location(ast.Call(name, operands, []), node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:  # noqa: N802
        """`x if c else y`; the chosen operand is evaluated."""
        self.generic_visit(node)
        nothing = ast.arguments([], [], None, [], [], None, [])
        operands = [node.test, ast.Lambda(nothing, node.body), ast.Lambda(nothing, node.orelse)]
        return ast.copy_location(ast.Call(ast.Name(_CHOICE, ast.Load()), operands, []), node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:  # noqa: N802
        """`x.value` of a constant, which is its value here."""
        self.generic_visit(node)
        if node.attr != "value" or not isinstance(node.ctx, ast.Load):
            return node
        return ast.copy_location(ast.Call(ast.Name(_VALUE, ast.Load()), [node.value], []), node)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:  # noqa: N802
        """`x -= y` is `x = x - y`."""
        if not isinstance(node.target, ast.Name):
            self.generic_visit(node)
            return node
        value = ast.BinOp(ast.Name(node.target.id, ast.Load()), node.op, node.value)
        return self.visit_Assign(ast.copy_location(ast.Assign([node.target], value), node))

    def visit_Assign(self, node: ast.Assign) -> ast.Assign:  # noqa: N802
        """`x = y`, `a, b = c`: what is assigned becomes a tensor."""
        value = self.visit(node.value)
        node.value = ast.copy_location(ast.Call(ast.Name(_ASSIGNED, ast.Load()), [value], []), value)
        return node


def _is_block(value: Any) -> bool:
    return isinstance(value, tl.tensor) and value.type.is_block()


def _not(value: Any) -> Any:
    elementwise = isinstance(value, tl.tensor) and (value.type.is_block() or value.type.is_int1())
    return SEMANTIC.not_(value) if elementwise else not value


def _and(*operands: _Operand) -> Any:
    return _combined(operands, SEMANTIC.logical_and, ends=False)


def _or(*operands: _Operand) -> Any:
    return _combined(operands, SEMANTIC.logical_or, ends=True)


def _combined(operands: tuple[_Operand, ...], combine: Callable[[Any, Any], Any], *, ends: bool) -> Any:
    # ends -- the truth value of an operand that is no block after which no further one is evaluated
    blocks: list[Any] = []
    for operand in operands:
        value = operand()
        if _is_block(value):
            blocks.append(value)
        elif bool(value) is ends:
            return value
    return functools.reduce(combine, blocks) if blocks else value


def _choice(condition: Any, chosen: _Operand, otherwise: _Operand) -> Any:
    value = chosen() if condition else otherwise()
    return _assigned(value) if isinstance(condition, tl.tensor) else value


def _value(constant: Any) -> Any:
    return getattr(constant, "value", constant)


def _assigned(value: Any) -> Any:
    if type(value) is tuple:
        return tuple(map(_assigned, value))
    return SEMANTIC.to_tensor(value, False)


def _extremum(python: Callable[..., Any], name: str, *values: Any, **options: Any) -> Any:
    if not any(isinstance(value, tl.tensor) for value in values):
        return python(*values, **options)
    elementwise = getattr(tl, name)
    return functools.reduce(elementwise, map(SEMANTIC.to_tensor, values))


NAMES: Mapping[str, Any] = {
    _NOT: _not,
    _AND: _and,
    _OR: _or,
    _CHOICE: _choice,
    _ASSIGNED: _assigned,
    _VALUE: _value,
    "min": functools.partial(_extremum, builtins.min, "minimum"),
    "max": functools.partial(_extremum, builtins.max, "maximum"),
}
