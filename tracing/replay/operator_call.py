"""The call of a recorded operator as a Python expression, with its tensors by name.

A run has an operator's name, its arguments that are no tensors as text, and its tensors in the order of the
arguments. The operator's schema says which of its arguments are tensors.
"""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from tracing.errors import Problem
from tracing.model import Operator, OperatorTensor
from tracing.operators.effects import Effect, effect_of
from tracing.upstream.torch.operator_schemas import schema_of

_TORCHS = ("aten", "prims")  # namespaces of operators that torch itself has
_REFUSED = ("aten::from_file",)  # reads a file that the run names


@dataclass(frozen=True, slots=True)
class OperatorExpression:
    """A call as Python, and its tensors."""

    call: str  # "torch.ops.aten.mm.default(t['in0'], t['in1'])"
    tensors: dict[str, OperatorTensor]  # by name, also those that it only writes
    mutated: tuple[str, ...]  # names of arguments that it writes, in the order of `Operator.writes`
    results: tuple[int, ...] | None  # positions of new tensors in its result; None: the whole result is new
    shared: bool  # a result may be memory of an argument, and is then not among `Operator.writes`


def operator_expression(operator: Operator) -> OperatorExpression:
    """The call of a recorded operator.

    Raises Problem, with the reason, for an operator that is not torch's own, and for an argument that no
    script can contain, as a generator or a process group.
    """
    func, effect = _resolved(operator)
    return _Builder(operator, func, effect).expression()


def _resolved(operator: Operator) -> tuple[Any, Effect]:
    namespace, _, name = operator.name.partition("::")
    packet, _, overload = name.partition(".")
    if namespace not in _TORCHS or operator.name in _REFUSED:
        raise Problem(f"{operator.name} is not an operator of torch, so that a script could not call it")
    try:
        func = getattr(getattr(getattr(torch.ops, namespace), packet), overload or "default")
    except AttributeError:
        raise Problem(f"this torch has no operator {operator.name}", "use the torch of the run") from None
    effect = effect_of(func)
    if effect is None:
        raise Problem(f"{operator.name} writes no tensor")
    if effect.random:
        raise Problem(f"{operator.name} draws random numbers, so that each call has other results")
    return func, effect


@dataclass(slots=True)
class _Builder:
    operator: Operator
    func: Any
    effect: Effect
    tensors: dict[str, OperatorTensor] = field(default_factory=dict)
    mutated: list[str] = field(default_factory=list)

    def expression(self) -> OperatorExpression:
        given = {one.arg: one.value for one in _arguments(self.operator).keywords}
        unread = deque(range(len(self.operator.reads)))
        unwritten = deque(range(len(self.operator.writes)))
        words: list[str] = []
        for position, argument in enumerate(schema_of(self.func).arguments):
            written = position in self.effect.positions or argument.name in self.effect.keywords
            read = position not in self.effect.unread and argument.name not in self.effect.keywords
            if argument.name in given:
                names = [
                    self._named(read, written, unread, unwritten) for _ in _tensors_in(given[argument.name])
                ]
                text = _text(given[argument.name], iter(names))
            elif "Tensor" not in str(argument.type) or not (
                unread if read else not argument.has_default_value()
            ):
                continue
            else:
                text = self._named(read, written, unread, unwritten)
            words.append(f"{argument.name}={text}" if argument.kwarg_only else text)
        if unread:
            raise Problem(f"the arguments of {self.operator.name} do not fit its schema in this torch")
        return OperatorExpression(
            f"torch.ops.{self.func!s}({', '.join(words)})",
            self.tensors,
            tuple(self.mutated),
            None if self.effect.only and self.effect.outputs else self.effect.outputs,
            self.effect.check,
        )

    def _named(self, read: bool, written: bool, unread: deque[int], unwritten: deque[int]) -> str:
        # the next tensor among those that the operator reads, or only writes
        training = self.effect.training is None or "training=True" in self.operator.arguments
        position = unwritten.popleft() if written and training and unwritten else -1
        if read and unread:
            name = f"in{(number := unread.popleft())}"
            self.tensors[name] = self.operator.reads[number]
        elif position >= 0:
            name = f"out{position}"
            self.tensors[name] = self.operator.writes[position]
        else:
            raise Problem(f"{self.operator.name} reads no element of an argument, whose layout the run lacks")
        if position >= 0:
            self.mutated.append(name)
        return f"t[{name!r}]"


def _arguments(operator: Operator) -> ast.Call:
    try:
        call = ast.parse(f"call({operator.arguments})", mode="eval").body
    except SyntaxError:
        raise _not_in_a_script(operator.arguments) from None
    assert isinstance(call, ast.Call)
    return call


def _tensors_in(value: ast.expr) -> Iterator[ast.Name]:
    return (one for one in ast.walk(value) if isinstance(one, ast.Name) and one.id == "t")


def _text(value: ast.expr, names: Iterator[str]) -> str:
    # only values that torch's operators take: nothing of a run is executed as code
    match value:
        case ast.Constant():
            return ast.unparse(value)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return f"-{_text(operand, names)}"
        case ast.BinOp(left=ast.Constant() | ast.UnaryOp(), right=ast.Constant()):  # a complex number
            return ast.unparse(value)
        case ast.List(elts=elements):
            return f"[{', '.join(_text(one, names) for one in elements)}]"
        case ast.Name(id="t"):
            return next(names)
        case ast.Name(id="inf" | "nan" as name):
            return f"float({name!r})"
        case ast.Attribute(value=ast.Name(id="torch"), attr=name):
            return f"torch.{name}"
        case ast.Call(func=ast.Name(id="device"), keywords=[ast.keyword(arg="type", value=kind), *_]):
            on_gpu = isinstance(kind, ast.Constant) and kind.value == "cuda"
            return "DEVICE" if on_gpu else f"torch.{ast.unparse(value)}"
    raise _not_in_a_script(ast.unparse(value))


def _not_in_a_script(text: str) -> Problem:
    return Problem(f"the operator takes {text}, which no script can contain")
