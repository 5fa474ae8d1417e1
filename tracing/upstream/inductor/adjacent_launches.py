"""Launches of generated code that follow each other: nothing is executed on the device between the two.

Inductor writes a wrapper statement by statement. Between two such launches there are only statements that are
known to execute nothing on the device.
"""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

from torch._inductor.codegen.wrapper import PythonWrapperCodegen
from torch._inductor.runtime.triton_heuristics import CachingAutotuner

from tracing.upstream.contract import require, require_methods, require_parameters

_OF_WRAPPERS = ("assert_size_stride", "assert_alignment", "reinterpret_tensor")
_NO_WORK = {*_OF_WRAPPERS, "get_raw_stream", "max", "min"}
_ALLOCATORS = "empty_strided_"  # begins their names; they fill no memory


class LaunchingLine(NamedTuple):
    """A line of generated code that launches a kernel."""

    code: CodeType  # a function of a generated module
    line: int


class _Pair(NamedTuple):
    kernels: tuple[str, str]  # the variables that hold them
    arguments: Sequence[ast.expr]  # of the first launch
    between: Sequence[ast.stmt]
    line: int  # of the second


def following_launch(
    code: CodeType, line: int, scope: Mapping[str, Any], needed: Collection[int]
) -> int | None:
    """The line of the launch that follows one; None: the device may do other work in between.

    code   -- a function of a generated module
    line   -- of its launch
    scope  -- the globals of the module
    needed -- positions of the arguments whose memory must not be freed in between
    """
    pair = _pairs(code.co_filename).get(line)
    if pair is None or not all(isinstance(scope.get(name), CachingAutotuner) for name in pair.kernels):
        return None  # a choice between kernels has a method `run`, too
    return pair.line if _alive(code.co_filename, line, tuple(needed)) else None


@functools.lru_cache(64)
def _pairs(file: str) -> dict[int, _Pair]:
    # by the line of the first launch
    try:
        module = ast.parse(Path(file).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return {}
    blocks = (getattr(node, "body", None) for node in ast.walk(module))
    return dict(pair for block in blocks if isinstance(block, list) for pair in _pairs_in(block))


def _kernel(launch: ast.Call) -> str:
    return ast.unparse(launch.func).removesuffix(".run")


def _pairs_in(block: Sequence[ast.stmt]) -> Iterable[tuple[int, _Pair]]:
    launch: ast.Call | None = None
    between: list[ast.stmt] = []
    for statement in block:
        following = _launch(statement)
        if following is not None:
            if launch is not None:
                kernels = _kernel(launch), _kernel(following)
                yield launch.lineno, _Pair(kernels, launch.args, between, following.lineno)
            launch, between = following, []
        elif _is_of_the_host(statement):
            between.append(statement)
        else:
            launch = None


def _launch(statement: ast.stmt) -> ast.Call | None:
    # kernel.run(buf0, buf1, 64, stream=stream0)
    match statement:
        case ast.Expr(
            ast.Call(ast.Attribute(ast.Name(), "run"), keywords=[ast.keyword("stream")]) as call
        ) if not any(isinstance(argument, ast.Starred) for argument in call.args):
            return call
    return None


def _is_of_the_host(statement: ast.stmt) -> bool:
    match statement:
        case ast.Delete(targets):
            stored = targets
        case ast.Assign(targets, ast.Name() | ast.Constant() | ast.Call()):
            stored = targets
        case ast.Expr(ast.Constant() | ast.Call()):
            stored = []
        case _:
            return False
    calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call)]
    return all(isinstance(one, ast.Name) for one in stored) and all(map(_does_no_work, calls))


def _does_no_work(call: ast.Call) -> bool:
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    return name in _NO_WORK or name.startswith(_ALLOCATORS)


@functools.lru_cache(1 << 12)
def _alive(file: str, line: int, needed: Sequence[int]) -> bool:
    # whether a variable still refers to the memory of each argument when the second launch begins
    pair = _pairs(file)[line]
    owners = [_names(pair.arguments[i]) for i in needed]
    for statement in pair.between:
        match statement:
            case ast.Delete(targets):
                for names in owners:
                    names -= set(map(ast.unparse, targets))
            case ast.Assign(targets, value):
                assigned, used = set(map(ast.unparse, targets)), _names(value)
                for names in owners:
                    same = bool(names & used)
                    names -= assigned
                    names |= assigned if same else set()
    return all(owners)


def _names(expression: ast.expr) -> set[str]:
    return {node.id for node in ast.walk(expression) if isinstance(node, ast.Name)} - _NO_WORK


def contract() -> None:
    """Raise Broken or another error if torch or Triton has changed what this file relies on."""
    require_methods(CachingAutotuner, "run")
    require_parameters(CachingAutotuner.run, "stream")
    require_methods(PythonWrapperCodegen, "generate_kernel_call", "make_buffer_reuse", "make_buffer_free")
    missing = [name for name in _OF_WRAPPERS if f"{name} = " not in inspect.getsource(PythonWrapperCodegen)]
    require(not missing, f"wrappers that define {', '.join(missing)}")
