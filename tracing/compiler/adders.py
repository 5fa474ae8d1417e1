"""List the passes of the installed Triton, and how its Python bindings add them to a pass manager.

The bindings have one function per pass, its adder: `passes.ttgpuir.add_pipeline(pm, 3, False)`. `triton-opt`
calls the same pass `-tritongpu-pipeline="num-stages=3"`. No name is hard-coded: every adder adds its pass to
an empty pass manager, whose text names the pass and its options; changing one argument at a time shows which
option it sets. All of it takes some 20 ms.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from types import ModuleType
from typing import Any

from tracing.compiler.opt.defaults import default
from tracing.compiler.opt.pipeline_text import PassText, passes_in
from tracing.errors import Problem
from tracing.upstream.triton.libtriton import ir, libtriton

_ARGUMENTS = re.compile(r"\(([^()]*pass_manager[^()]*)\)")
# One option, which AMD's passes called by the first two names before Triton 3.8, and each by its own.
_ARCHITECTURE = ("arch", "arch-generation-name", "gfx-arch")
_TRUE = ("", "1", "true", "True", "TRUE")
_FALSE = ("0", "false", "False", "FALSE")


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument of an adder, after the pass manager."""

    option: str  # the option that it sets, "num-stages"; "" for an enumeration of one member, which sets none
    kind: str  # "bool", "int", "str", or "choice"
    choices: Mapping[str, Any]  # of an enumeration: the option's text -> member

    def value(self, text: str) -> Any:
        """The argument that sets the option to `text`; raises ValueError for an invalid text."""
        if self.kind == "bool":
            return (_FALSE + _TRUE).index(text) >= len(_FALSE)
        if self.kind == "choice":
            if text not in self.choices:
                raise ValueError(text)
            return self.choices[text]
        return int(text, 0) if self.kind == "int" else text


@dataclass(frozen=True, slots=True)
class Adder:
    """The function that adds one pass to a pass manager."""

    name: str  # on triton-opt's command line, "tritongpu-pipeline"
    path: str  # in libtriton, "passes.ttgpuir.add_pipeline"
    parameters: tuple[Parameter, ...]
    fixed: Mapping[str, str]  # the options that no argument sets
    anchor: str  # the operation that the pass runs on, "llvm.func"; "any" if that is not restricted
    function: Callable[..., None]

    def add(self, manager: ir.pass_manager, options: Mapping[str, str]) -> None:
        """Add the pass; raises Problem for an option that is missing, unknown, fixed, or of another type."""
        options = self._in_own_words(options)
        self._check(options)
        self.function(manager, *[self._argument(one, options) for one in self.parameters])

    def flag(self, options: Mapping[str, str]) -> str:
        """The pass on triton-opt's command line, with the options that a compilation chooses."""
        chosen = " ".join(
            f"{one.option}={options[one.option]}" for one in self.parameters if one.option in options
        )
        quoted = f'"{chosen}"' if re.fullmatch(r"[\w.:=,+ -]*", chosen) else shlex.quote(chosen)
        return f"-{self.name}={quoted}" if chosen else f"-{self.name}"

    def _in_own_words(self, options: Mapping[str, str]) -> Mapping[str, str]:
        # an option as this version of Triton calls it
        known = {one.option for one in self.parameters} | self.fixed.keys()
        own = [name for name in _ARCHITECTURE if name in known]
        if len(own) != 1:
            return options
        return {own[0] if name in _ARCHITECTURE else name: value for name, value in options.items()}

    def _argument(self, parameter: Parameter, options: Mapping[str, str]) -> Any:
        if not parameter.option:
            return parameter.choices[""]
        text = options.get(parameter.option, default(self.name, parameter.option))
        if text is None:
            needed = " ".join(f"{one.option}=…" for one in self.parameters if one.option)
            raise Problem(
                f"-{self.name} needs {parameter.option}: Triton's Python bindings give it no default",
                f'write -{self.name}="{needed}"',
            )
        try:
            return parameter.value(text)
        except ValueError:
            kind = "one of " + ", ".join(parameter.choices) if parameter.choices else parameter.kind
            raise Problem(
                f"-{self.name}: {parameter.option}={text} is not of its type",
                f"needed: {kind}",
            ) from None

    def _check(self, options: Mapping[str, str]) -> None:
        known = {one.option for one in self.parameters}
        for option in options.keys() - known:
            if option not in self.fixed:
                raise Problem(f"-{self.name} has no option {option}", _near(option, sorted(known)))
            if options[option] != self.fixed[option]:
                raise Problem(
                    f"-{self.name}: Triton's Python bindings fix {option} to {self.fixed[option]!r}",
                    "build Triton (`make triton`): its own triton-opt can set it",
                )


def adder(name: str) -> Adder:
    """The adder of a pass; raises Problem if this Triton has none, with near names."""
    known = adders()
    if name not in known:
        raise Problem(f"this Triton has no pass {name}", _near(name, list(known)))
    return known[name]


@cache
def adders() -> Mapping[str, Adder]:
    """Every pass that the bindings can add, by name.

    If a pass has two adders, the one with more options is listed. Raises Problem if this Triton cannot print
    a pass manager.
    """
    if not hasattr(ir.pass_manager, "get_pipeline_str"):
        raise Problem(
            "this Triton does not expose the names of its passes: pass_manager has no get_pipeline_str",
            "3.6 to 3.9 have it: `make venv`",
        )
    context = new_context()
    by_name: dict[str, Adder] = {}
    for path, function in _functions(libtriton, ""):
        one = _probed(path, function, context)
        if one.name not in by_name or len(one.parameters) > len(by_name[one.name].parameters):
            by_name[one.name] = one
    return dict(sorted(by_name.items()))


def new_context() -> ir.context:
    """An MLIR context with every dialect of this Triton."""
    context = ir.context()
    for module in vars(libtriton).values():
        if hasattr(module, "load_dialects"):
            module.load_dialects(context)
    return context


def _functions(module: ModuleType, path: str) -> Iterator[tuple[str, Callable[..., None]]]:
    for name, member in sorted(vars(module).items()):
        if isinstance(member, ModuleType):
            yield from _functions(member, f"{path}{name}.")
        elif not isinstance(member, type) and _ARGUMENTS.search(getattr(member, "__doc__", None) or ""):
            yield path + name, member


def _probed(path: str, function: Callable[..., None], context: ir.context) -> Adder:
    values = [_values(annotation) for annotation in _annotations(function)]
    first = [of[0] for of in values]

    def text(arguments: Sequence[Any]) -> PassText:
        manager = ir.pass_manager(context)
        function(manager, *arguments)
        (only,) = passes_in(manager.get_pipeline_str())
        return only

    base = text(first)
    parameters = []
    for position, of in enumerate(values):
        seen = [text([*first[:position], value, *first[position + 1 :]]).options for value in of]
        parameters.append(_parameter(of, seen))
    set_by = {one.option for one in parameters}
    fixed = {name: value for name, value in base.options.items() if name not in set_by}
    return Adder(base.name, path, tuple(parameters), fixed, base.anchors[-1], function)


def _parameter(values: Sequence[Any], seen: Sequence[Mapping[str, str]]) -> Parameter:
    # seen: the options of the pass, for each value of this one argument
    different = [name for name in seen[0] if seen[0][name] != seen[-1][name]]
    option = different[0] if different else ""
    kind = type(values[0]).__name__
    if kind in ("bool", "int", "str"):
        return Parameter(option, kind, {})
    texts = [options.get(option, "") for options in seen]
    return Parameter(option, "choice", dict(zip(texts, values, strict=True)))


def _annotations(function: Callable[..., None]) -> list[str]:
    # pybind11 and nanobind write signatures into the docstring, one for each overload: the longest
    signatures = [arguments.split(", ") for arguments in _ARGUMENTS.findall(function.__doc__ or "")]
    longest = max(signatures, key=len)
    return [one.partition(":")[2].partition("=")[0].strip() for one in longest[1:] if one != "/"]


def _values(annotation: str) -> list[Any]:
    # values of a type by which the option that they set is recognised
    if annotation in ("bool", "str"):
        return [False, True] if annotation == "bool" else ["cuda:80", "gfx942"]
    if "int" in annotation.lower():
        return [7, 11]
    node: Any = libtriton
    for name in annotation.removeprefix(f"{libtriton.__name__}.").split("."):
        node = getattr(node, name)
    return list(node.__members__.values())


def _near(name: str, known: Sequence[str]) -> str:
    near = get_close_matches(name, known, n=3, cutoff=0.5)
    return f"nearest: {', '.join(near)}" if near else "list them with `tracing opt --list-passes`"
