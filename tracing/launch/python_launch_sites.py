"""Launch points in Python code: Triton's, Inductor's, the interpreter's.

A site is created at its first launch, and its facts are computed once. Names come from the launcher itself,
never from the position in a signature, because constants may be anywhere between the arguments.
"""

from __future__ import annotations

import base64
import copy
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import triton.language as tl

from tracing.launch.launch_site import (
    FlatSite,
    Grid,
    KernelArtefacts,
    KernelKind,
    launched_grid,
    on_host,
    tensor_of,
)
from tracing.launch.memory.accesses import Accesses
from tracing.launch.roles import Declared, declared
from tracing.launch.tuple_arguments import empty_members, flattened
from tracing.model import Role, without_addresses
from tracing.upstream.inductor.autotuner import argument_names as launcher_arguments
from tracing.upstream.inductor.autotuner import grid_function, kernel_name_of, reloaded_function
from tracing.upstream.inductor.code import kernel_folders
from tracing.upstream.triton.backends import options_of
from tracing.upstream.triton.compiled_kernel import CompiledKernel
from tracing.upstream.triton.interpreter import InterpretedFunction
from tracing.upstream.triton.jit import ConstexprFunction, JITFunction

_FUNCTIONS = JITFunction, ConstexprFunction
_NUM_WARPS = re.compile(r'"ttg\.num-warps" = (\d+)')


class CompiledSite:
    """A compiled kernel that is launched by Triton itself."""

    kind: KernelKind = "triton"
    settled = True
    scalars: Sequence[int] | None = None
    accesses: Accesses | None = None

    def __init__(self, kernel: CompiledKernel, args: Sequence[Any]) -> None:
        self._kernel = kernel
        self.name = kernel.name
        names = argument_names(kernel, len(args))
        self.count = len(names)
        constants = {
            key[0] if isinstance(key, tuple) and len(key) == 1 else key for key in _constants(kernel)
        }
        self.positions = [i for i, name in enumerate(names) if i not in constants and name not in constants]
        self.names: Sequence[str] = [names[i] for i in self.positions]
        types = getattr(kernel.src, "signature", {})  # a kernel is compiled for one nesting of tuples
        self.flat = flattened(self, [args[i] for i in self.positions], types)

    @property
    def binary(self) -> CompiledKernel:
        return self._kernel

    def grid(self, values: Sequence[Any]) -> Grid:
        raise AssertionError("the launch names its grid")

    def compiled(self) -> KernelArtefacts:
        return describe(self._kernel)


class InductorSite:
    """An Inductor autotuner, whichever launcher it uses."""

    kind: KernelKind = "triton"
    flat: FlatSite | None = None  # Inductor launches no kernel with tuples
    accesses: Accesses | None = None

    def __init__(self, autotuner: Any) -> None:
        self._autotuner = autotuner
        if not autotuner.launchers:
            autotuner.precompile()  # as its first run would, but before the arguments are looked at
        self._grid: tuple[object, Callable[[Sequence[Any]], Grid]] | None = None  # of a launcher
        names = launcher_arguments(autotuner.launchers[0])
        self.name = kernel_name_of(autotuner)
        self.names: Sequence[str] = [name for name in names if not name.startswith("_grid_")]
        types = autotuner.triton_meta["signature"]
        tensors = [name for name, kind in types.items() if str(kind).startswith(("*", "tensordesc", "nvTma"))]
        self.scalars: Sequence[int] | None = [i for i, name in enumerate(self.names) if name not in tensors]
        self.count = len(self.names)

    @property
    def settled(self) -> bool:
        return len(self._autotuner.launchers) == 1

    @property
    def binary(self) -> Any:
        return self._autotuner.launchers[0]

    def grid(self, values: Sequence[Any]) -> Grid:
        if self._grid is None or self._grid[0] is not self.binary:
            self._grid = self.binary, grid_function(self._autotuner, self.binary)
        return self._grid[1](values)

    def trailing_grid(self, args: Sequence[Any]) -> Grid:
        """The grid of a user's kernel, which its caller computes and passes after the arguments."""
        return launched_grid(args[self.count :])

    def compiled(self) -> KernelArtefacts:
        scope = self.binary.__globals__
        if isinstance(scope.get("bin"), CompiledKernel):
            return replace(describe(scope["bin"]), function=_function(self._autotuner))
        return _static(self._autotuner, self.binary)


class InterpretedSite:
    """A kernel under TRITON_INTERPRET=1: nothing is compiled, and its accesses are recorded exactly."""

    kind: KernelKind = "interpreted"
    binary = None
    settled = False  # its accesses are known after it has run; `accesses` is of one launch
    scalars: Sequence[int] | None = None

    def __init__(self, function: InterpretedFunction, bound: Mapping[str, Any]) -> None:
        self._function = function
        self.name = function.fn.__name__
        parameters = inspect.signature(function.fn).parameters
        constants = [n for n, p in parameters.items() if "constexpr" in str(p.annotation)]
        self.names: Sequence[str] = [name for name in parameters if name not in constants]
        self.accesses: Accesses = Accesses(self.name, {})
        self.flat = flattened(self, [bound[name] for name in self.names], {})

    def launched(self, values: Mapping[str, Any]) -> tuple[InterpretedSite, list[Any]]:
        """The site of one launch, with what is given to listeners."""
        site, given = copy.copy(self), [values[name] for name in self.names]
        names, members = self.names, given
        if self.flat is not None:
            site.flat = self.flat.at(site)
            names, members = self.flat.names, self.flat.values(given)
        site.accesses = Accesses(self.name, on_host(dict(zip(names, members, strict=True))))
        tensors = [tensor for tensor in map(tensor_of, members) if tensor is not None]
        site.accesses.bounded = all(tensor.device.type == "cpu" for tensor in tensors)
        return site, given

    def grid(self, values: Sequence[Any]) -> Grid:
        raise AssertionError("the launch names its grid")

    def compiled(self) -> KernelArtefacts:
        roles: dict[str, Role] = {name: self.accesses.role(name) for name in self.accesses.names}
        if self.accesses.interrupted:
            roles = dict.fromkeys(roles, "unknown")
        return KernelArtefacts("", "interpreter", {}, {}, {}, lambda: Declared(roles), self._function)


def bound(function: InterpretedFunction, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a launch under TRITON_INTERPRET=1 by name, constants and defaults included."""
    signature = inspect.signature(function.fn)
    known = {name: value for name, value in kwargs.items() if name in signature.parameters}
    arguments = signature.bind(*args, **known)
    arguments.apply_defaults()
    return dict(arguments.arguments)


def argument_names(kernel: CompiledKernel, count: int) -> list[str]:
    """The names of a compiled kernel's arguments, constants included; a kernel from IR has none."""
    function = getattr(kernel.src, "fn", None)
    return list(function.arg_names) if function is not None else [f"arg{i}" for i in range(count)]


def _constants(kernel: CompiledKernel) -> Mapping[Any, Any]:
    constants: Mapping[Any, Any] = getattr(kernel.src, "constants", {})
    return constants


def describe(kernel: CompiledKernel) -> KernelArtefacts:
    """The facts that a compiled kernel holds about itself."""
    names = argument_names(kernel, 0)
    metadata = kernel.metadata

    def name(key: Any) -> str:
        # Triton addresses constants by path: (3,), or (3, 0) inside of a tuple argument
        return ".".join([names[key[0]], *map(str, key[1:])]) if isinstance(key, tuple) else str(key)

    constants = {name(key): _text(value) for key, value in _constants(kernel).items()}
    warps, options = _warps(kernel), options_of(metadata)
    return KernelArtefacts(
        hash=kernel.hash,
        target=f"{metadata.target.backend}:{metadata.target.arch}",
        settings={"num_warps": warps, "num_stages": metadata.num_stages, "num_ctas": metadata.num_ctas},
        constants=constants | dict.fromkeys(empty_members(getattr(kernel.src, "signature", {})), "()"),
        artefacts={stage: kernel.asm[stage] for stage in kernel.asm},
        declared=lambda: declared(kernel.asm["ttir"], kernel.src.signature),
        types=getattr(kernel.src, "signature", {}),
        function=getattr(kernel.src, "fn", None),
        options=options | {"num_warps": str(warps)} if "num_warps" in options else options,
        passed=[one for one in map(_value, _constants(kernel).values()) if isinstance(one, _FUNCTIONS)],
    )


def _warps(kernel: CompiledKernel) -> int:
    # the option: Triton's make_llir adds the warps of specialized partitions to that of the metadata
    ttgir = kernel.asm.get("ttgir")
    option = _NUM_WARPS.search(ttgir) if isinstance(ttgir, str) else None
    warps: int = kernel.metadata.num_warps
    return int(option[1]) if option else warps


def _static(autotuner: Any, launcher: Any) -> KernelArtefacts:
    # Inductor's static launcher keeps the cubin only; the rest is in Triton's cache, by the same hash
    folder = _cached(launcher.cache_hash)
    artefacts = {path.suffix[1:]: path.read_bytes() for path in folder.iterdir()} if folder else {}
    texts = {
        stage: data if stage in ("cubin", "hsaco") else data.decode()
        for stage, data in artefacts.items()
        if stage in ("source", "ttir", "ttgir", "llir", "ptx", "amdgcn", "cubin", "hsaco")
    }
    config = launcher.config
    signature = autotuner.triton_meta["signature"]
    properties = autotuner.device_props
    return KernelArtefacts(
        hash=_digits(launcher.cache_hash),
        target=f"{properties.type}:{properties.cc}",
        settings={"num_warps": config.num_warps, "num_stages": config.num_stages, "num_ctas": 1},
        constants={
            name: _text(value)
            for name, value in {**autotuner.triton_meta.get("constants", {}), **config.kwargs}.items()
        },
        artefacts=texts,
        declared=lambda: declared(str(texts["ttir"]), signature),
        types=signature,
        function=_function(autotuner),
    )


def _value(constant: object) -> object:
    # tuples wrap their constants
    return constant.value if isinstance(constant, tl.constexpr) else constant


def _text(value: object) -> str:
    # a string keeps its quotes: without them it would look like a Triton type; addresses differ between runs
    value = _value(value)
    if isinstance(value, torch.Size):
        value = tuple(value)
    if isinstance(value, ConstexprFunction):
        return f"ConstexprFunction({value.fn.__module__}:{value.fn.__qualname__})"  # like a JITFunction
    return repr(value) if isinstance(value, str) else without_addresses(str(value))


def _function(autotuner: Any) -> Any:
    # A function that a worker compiled came back without its module. Most of Inductor's use what every module
    # of its has; its templates and a user's are reloaded, as Inductor does before it recompiles one.
    function = autotuner.fn
    known = function.__name__.startswith("triton_") and not function.__name__.startswith("triton_tem_")
    return function if known or function.fn is not None else reloaded_function(autotuner)


def _digits(key: str) -> str:
    # Triton's cache names a kernel's folder by its hash in base32; every other name has hexadecimal digits
    return base64.b32decode(key + "=" * (-len(key) % 8)).hex()


def _cached(key: str) -> Path | None:
    return next((folder / key for folder in kernel_folders() if (folder / key).is_dir()), None)
