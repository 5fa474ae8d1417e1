"""Collect the Python source of functions and Triton kernels, with everything that they use of their modules.

Objects without source, such as instances of the program's classes, are listed in `missing`.
"""

from __future__ import annotations

import inspect
import textwrap
import types
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from tracing.minify.kernel_call import KernelCall, kernel_call, kernel_name
from tracing.program.user_code import names_in
from tracing.upstream.triton.jit import JITFunction

_IMPORTED = ("torch", "triton", "math", "operator", "builtins", "numpy", "functools", "itertools", "typing")
_PLAIN = (bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device, torch.layout)
_OPTIONS = ("do_not_specialize", "do_not_specialize_on_alignment", "debug", "noinline")  # of triton.jit


class SourceText:
    """Source of several objects, each once, in an order in which it can be executed."""

    def __init__(self, *, interpreted: bool = False) -> None:
        """interpreted -- kernels are executed by Triton's interpreter, which Dynamo must not trace"""
        self._interpreted = interpreted
        self.imports: dict[str, str] = {}  # by name
        self.definitions: dict[str, str] = {}
        self.missing: list[str] = []
        self._objects: dict[str, Any] = {}  # by name

    def add(self, name: str, value: Any) -> None:
        """Add an object that other source calls by a name, and what it reads."""
        if name in self._objects:
            if not _same(self._objects[name], value):
                self.missing.append(f"{name}, a name of two objects")
            return
        self._objects[name] = value
        call = kernel_call(value)
        if call is not None:
            self._launch(name, call)
        elif isinstance(value, types.ModuleType):
            self._module(name, value)
        elif isinstance(value, JITFunction):
            self._function(name, value, value.fn, f"{_decorator(value)}\n{value.src}")
        elif isinstance(value, _PLAIN):
            self.definitions[name] = f"{name} = {_text(value)}"
        elif type(value).__name__ == "constexpr":
            self.imports["triton"] = "import triton.language"
            self.definitions[name] = f"{name} = triton.language.constexpr({value.value!r})"
        elif _package(value) in _IMPORTED and hasattr(value, "__name__"):
            self.imports[name] = f"from {value.__module__} import {value.__name__} as {name}"
        elif inspect.isfunction(value):
            self._function(name, value, value, _source(value))
        else:
            self.missing.append(name)

    def _module(self, name: str, module: types.ModuleType) -> None:
        if _package(module) not in _IMPORTED:
            self.missing.append(name)
        else:
            self.imports[name] = f"import {module.__name__} as {name}"

    def _function(self, name: str, value: Any, function: Any, source: str) -> None:
        if "triton." in source:
            self.imports.setdefault("triton", "import triton")
        if not source:
            self.missing.append(name)
            return
        if function.__name__ != name:  # `double = times`
            self.add(function.__name__, value)
            self.definitions[name] = f"{name} = {function.__name__}"
            return
        self.definitions[name] = ""  # a function may call itself
        for read, value in _read(function):
            self.add(read, value)
        del self.definitions[name]  # after what it reads
        self.definitions[name] = source.rstrip()

    def _launch(self, name: str, call: KernelCall) -> None:
        kernel, called = call.kernel, kernel_name(call)
        constants = {key: _text(value) for key, value in call.constants.items()}
        if isinstance(kernel, JITFunction):
            self.add(called, kernel)
        elif isinstance(getattr(kernel, "fn", None), JITFunction) and hasattr(kernel, "configs"):
            self.add(called, kernel.fn)
            called = self._autotuner(called, kernel)
        else:
            self.missing.append(called)
        if not all(constants.values()):
            self.missing += [key for key, text in constants.items() if not text]
        given = "".join(f", {key}={text}" for key, text in constants.items())
        grid, before = str(call.grid), ""
        if isinstance(call.grid, str):
            before, grid = f"{call.grid.rstrip()}\n\n\n", "grid"
            before = before.replace("\ngrid = ", f"\n{name}_grid = ")
            grid = f"{name}_grid"
        disabled = "@torch.compiler.disable\n" if self._interpreted else ""
        text = f"{disabled}def {name}(**tensors):\n    {called}[{grid}](**tensors{given})"
        self.definitions[name] = before + text

    def _autotuner(self, kernel: str, tuner: Any) -> str:
        # the name of the kernel with its configurations; the interpreter measures none: it has the chosen one
        name = f"tuned_{kernel}"
        chosen = [getattr(tuner, "best_config", tuner.configs[0])]
        configs = chosen if self._interpreted else tuner.configs
        lines = "".join(f"    triton.Config({_configuration(one)}),\n" for one in configs)
        hooks = {one: list(getattr(tuner, one, ())) for one in ("reset_to_zero", "restore_value")}
        more = "".join(f", {option}={names!r}" for option, names in hooks.items() if names)
        keys = list(getattr(tuner, "keys", []))
        self.definitions[name] = (
            f"{name} = triton.autotune(configs=[\n{lines}], key={keys!r}{more})({kernel})"
        )
        return name


def _same(a: Any, b: Any) -> bool:
    a, b = (one.value if type(one).__name__ == "constexpr" else one for one in (a, b))
    return a is b or (isinstance(a, _PLAIN) and type(a) is type(b) and _text(a) == _text(b))


def _decorator(kernel: Any) -> str:
    options = {name: getattr(kernel, name, None) for name in _OPTIONS}
    given = ", ".join(f"{name}={value!r}" for name, value in options.items() if value)
    return f"@triton.jit({given})" if given else "@triton.jit"


def _configuration(config: Any) -> str:
    options = {"num_warps": config.num_warps, "num_stages": config.num_stages}
    options |= {"num_ctas": config.num_ctas} if config.num_ctas != 1 else {}
    options |= {"maxnreg": config.maxnreg} if config.maxnreg else {}
    return ", ".join([repr(config.kwargs), *(f"{name}={value}" for name, value in options.items())])


def _package(value: Any) -> str:
    name = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None)
    return str(name or "").partition(".")[0]


def _source(function: Any) -> str:
    try:
        lines = textwrap.dedent(inspect.getsource(function)).splitlines()
    except (OSError, TypeError):
        return ""
    start = next((i for i, line in enumerate(lines) if line.startswith("def ")), None)
    return "\n".join(lines[start:]) if start is not None else ""


def _text(value: Any) -> str:
    # "" where there is none that makes it
    if isinstance(value, float) and value != value:
        return 'float("nan")'
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return f'float("{value}")'
    if isinstance(value, torch.device):
        return f"torch.{value!r}"
    return repr(value) if isinstance(value, _PLAIN) else ""


def _read(function: Any) -> Iterator[tuple[str, Any]]:
    free = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=False))
    known: Mapping[str, Any] = function.__globals__
    for name in names_in(function.__code__):
        if name in known:
            yield name, known[name]
    for name, cell in free.items():
        yield name, cell.cell_contents
